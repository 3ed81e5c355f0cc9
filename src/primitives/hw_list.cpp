#include "primitives/hw_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/diagnostic.h"
#include "base/text.h"
#include "spec/load.h"

namespace scalecalc {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

bool same(const std::string& a, const std::string& b) { return lower(a) == lower(b); }

bool of_the_book(const std::string& name) { return name.starts_with("book/"); }

/// A word that no chip has is a mistyped one.
void check_known(const char* flag, const std::optional<std::string>& word, const std::vector<HardwareSpec>& chips,
                 std::string HardwareSpec::*field) {
  if (!word) return;
  std::set<std::string> known;
  for (const HardwareSpec& hw : chips) known.insert(hw.*field);
  known.erase("");
  const std::vector<std::string> words(known.begin(), known.end());
  if (std::any_of(words.begin(), words.end(), [&](const std::string& other) { return same(other, *word); })) return;
  std::string hint = did_you_mean(nearest(*word, words));
  if (!hint.empty()) hint += ' ';
  throw UserError(fmt::format("no chip has {} {}", flag, in_quotes(*word)), hint + "known: " + join(words, ", "));
}

bool meets(const HardwareSpec& hw, const HwListQuestion& q) {
  if (q.book != of_the_book(hw.name)) return false;
  if (q.vendor && !same(hw.vendor, *q.vendor)) return false;
  if (q.family && !same(hw.family, *q.family)) return false;
  if (q.since && hw.year < *q.since) return false;
  if (q.dtype && !hw.matmul_peak[static_cast<std::size_t>(*q.dtype)]) return false;
  if (q.min_memory && hw.hbm_capacity < *q.min_memory) return false;
  if (q.min_bandwidth && hw.hbm_bandwidth < *q.min_bandwidth) return false;
  if (q.priced && hw.prices.empty()) return false;
  return !(q.sold && hw.announced);
}

/// Larger comes first, but names, and prices of which the lower does; what is not published comes last.
double rank(const HardwareSpec& hw, const HwListQuestion& q) {
  constexpr double kLast = 1e300;
  switch (q.order) {
    case HwOrder::kName: return 0;
    case HwOrder::kYear: return -static_cast<double>(hw.year);
    case HwOrder::kMatmul: {
      const auto rate = compared_rate(hw, q.dtype);
      return rate ? -rate->value() : kLast;
    }
    case HwOrder::kMemory: return -hw.hbm_capacity.value();
    case HwOrder::kBandwidth: return -hw.hbm_bandwidth.value();
    case HwOrder::kPrice: return hw.prices.empty() ? kLast : hw.prices.front().usd_per_chip_hour;
  }
  return 0;
}

}  // namespace

std::optional<FlopsPerSecond> compared_rate(const HardwareSpec& hw, std::optional<DType> dtype) {
  if (dtype) return hw.matmul_peak[static_cast<std::size_t>(*dtype)];
  const auto& bf16 = hw.matmul_peak[static_cast<std::size_t>(DType::kBf16)];
  return bf16 ? bf16 : hw.matmul_peak[static_cast<std::size_t>(DType::kFp16)];
}

HwList list_hardware(const HwListQuestion& question, const Catalog& catalog) {
  std::vector<HardwareSpec> all;
  for (const std::string& name : catalog.names(CatalogKind::kHardware)) {
    all.push_back(load_hardware(catalog.load(CatalogKind::kHardware, name), catalog, Unpublished::kAllowed));
  }
  check_known("--vendor", question.vendor, all, &HardwareSpec::vendor);
  check_known("--family", question.family, all, &HardwareSpec::family);
  HwList out{.question = question};
  for (HardwareSpec& hw : all) {
    if (meets(hw, question)) {
      out.chips.push_back(std::move(hw));
    } else if (of_the_book(hw.name) == question.book) {
      ++out.left_out;
    }
  }
  std::stable_sort(out.chips.begin(), out.chips.end(),
                   [&](const HardwareSpec& a, const HardwareSpec& b) { return rank(a, question) < rank(b, question); });
  return out;
}

}  // namespace scalecalc
