// Reads distributions of lengths of prompts, generations and documents, and computes their moments.
#include "model/lengths.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "base/check.h"
#include "base/text.h"

namespace scalecalc {
namespace {

constexpr std::string_view kForms = "a length 8192, a range 1024..8192, or lengths with shares 512:0.3,2048:0.7";
constexpr std::size_t kMostBins = 10'000;

UnitError wrong(std::string_view text, std::string_view why) {
  return {fmt::format("{} {}", in_quotes(text), why), fmt::format("accepted: {}", kForms)};
}

/// Mean square of the whole numbers in a row: the variance of n equally likely ones is (n^2 - 1) / 12.
double mean_square_of(double mean, double n) { return mean * mean + (n * n - 1) / 12; }

double width(const LengthBin& bin) { return static_cast<double>(bin.last - bin.first + 1); }
double middle(const LengthBin& bin) { return (static_cast<double>(bin.first) + static_cast<double>(bin.last)) / 2; }

std::variant<std::int64_t, UnitError> parse_length(std::string_view text) {
  const auto value = parse_quantity(text, UnitKind::kCount);
  if (const UnitError* error = std::get_if<UnitError>(&value)) return *error;
  if (std::get<double>(value) < 1) return wrong(text, "is no length: the shortest is one token");
  return static_cast<std::int64_t>(std::get<double>(value));
}

/// A length or a range.
std::variant<LengthBin, UnitError> parse_bin(std::string_view text) {
  const std::size_t dots = text.find("..");
  const auto first = parse_length(text.substr(0, dots));
  if (const UnitError* error = std::get_if<UnitError>(&first)) return *error;
  LengthBin bin{.first = std::get<std::int64_t>(first), .last = std::get<std::int64_t>(first)};
  if (dots == std::string_view::npos) return bin;
  const auto last = parse_length(text.substr(dots + 2));
  if (const UnitError* error = std::get_if<UnitError>(&last)) return *error;
  bin.last = std::get<std::int64_t>(last);
  if (bin.last < bin.first) return wrong(text, "ends below its start");
  return bin;
}

std::variant<LengthBin, UnitError> parse_weighted(std::string_view text, std::size_t colon) {
  auto bin = parse_bin(text.substr(0, colon));
  if (std::holds_alternative<UnitError>(bin)) return bin;
  const auto share = parse_quantity(text.substr(colon + 1), UnitKind::kNumber);
  if (const UnitError* error = std::get_if<UnitError>(&share)) return *error;
  if (std::get<double>(share) <= 0) return wrong(text, "has no share: leave it out");
  std::get<LengthBin>(bin).share = std::get<double>(share);
  return bin;
}

}  // namespace

Lengths::Lengths(std::vector<LengthBin> bins) : bins_(std::move(bins)) {
  check(!bins_.empty(), "a distribution of lengths has a bin");
  double sum = 0;
  for (const LengthBin& bin : bins_) {
    check(bin.first >= 1 && bin.last >= bin.first && bin.share > 0, "a bin holds lengths and has a share");
    sum += bin.share;
  }
  for (LengthBin& bin : bins_) bin.share /= sum;
  std::sort(bins_.begin(), bins_.end(), [](const LengthBin& a, const LengthBin& b) {
    return std::tie(a.first, a.last) < std::tie(b.first, b.last);
  });
  moments_ = moments_up_to(largest());
}

Lengths Lengths::of(std::vector<std::int64_t> values) {
  std::map<std::int64_t, double> counts;
  for (const std::int64_t value : values) counts[value] += 1;
  std::vector<LengthBin> bins;
  for (const auto& [value, count] : counts) bins.push_back({value, value, count});
  return Lengths(std::move(bins));
}

std::int64_t Lengths::smallest() const { return bins_.front().first; }

std::int64_t Lengths::largest() const {
  return std::max_element(bins_.begin(), bins_.end(),
                          [](const LengthBin& a, const LengthBin& b) { return a.last < b.last; })
      ->last;
}

double Lengths::mean() const { return moments_.sum; }

double Lengths::mean_square() const { return moments_.squares; }

LengthMoments Lengths::moments_up_to(std::int64_t tokens) const {
  LengthMoments out;
  for (const LengthBin& bin : bins_) {
    if (tokens < bin.first) break;
    const LengthBin part{.first = bin.first, .last = std::min(tokens, bin.last)};
    const double share = bin.share * (width(part) / width(bin));
    out.share += share;
    out.sum += share * middle(part);
    out.squares += share * mean_square_of(middle(part), width(part));
  }
  return out;
}

std::int64_t Lengths::quantile(double p) const {
  const auto share_up_to = [&](std::int64_t tokens) {
    double sum = 0;
    for (const LengthBin& bin : bins_) {
      if (tokens < bin.first) break;
      const std::int64_t counted = std::min(tokens, bin.last) - bin.first + 1;
      sum += bin.share * static_cast<double>(counted) / width(bin);
    }
    return sum;
  };
  // Sums of shares miss 1 by roundings.
  const double wanted = p - 1e-12;
  std::int64_t low = smallest();
  std::int64_t high = largest();
  while (low < high) {
    const std::int64_t tried = low + (high - low) / 2;
    if (share_up_to(tried) >= wanted) {
      high = tried;
    } else {
      low = tried + 1;
    }
  }
  return low;
}

std::int64_t Lengths::at(double u) const {
  double below = 0;
  for (const LengthBin& bin : bins_) {
    if (u < below + bin.share || &bin == &bins_.back()) {
      const double inside = std::clamp((u - below) / bin.share, 0.0, 1.0);
      return std::min(bin.first + static_cast<std::int64_t>(inside * width(bin)), bin.last);
    }
    below += bin.share;
  }
  return bins_.back().last;
}

std::variant<Lengths, UnitError> parse_lengths(std::string_view text) {
  std::vector<LengthBin> bins;
  const bool has_shares = text.find(':') != std::string_view::npos;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string_view part = text.substr(at, end - at);
    const std::size_t colon = part.find(':');
    if (has_shares && colon == std::string_view::npos) {
      return wrong(text, fmt::format("gives {} no share", in_quotes(part)));
    }
    if (!has_shares && end < text.size()) {
      // 8,192 is rather a number with a comma than two lengths.
      return wrong(text, "has several lengths without shares");
    }
    const auto bin = has_shares ? parse_weighted(part, colon) : parse_bin(part);
    if (const UnitError* error = std::get_if<UnitError>(&bin)) return *error;
    if (bins.size() == kMostBins) return wrong(text, fmt::format("has more than {} bins", kMostBins));
    bins.push_back(std::get<LengthBin>(bin));
    at = end + 1;
  }
  return Lengths(std::move(bins));
}

std::string lengths_text(const Lengths& lengths) {
  std::string out;
  for (const LengthBin& bin : lengths.bins()) {
    if (!out.empty()) out += ',';
    out += std::to_string(bin.first);
    if (bin.last != bin.first) out += fmt::format("..{}", bin.last);
    if (lengths.bins().size() > 1) out += fmt::format(":{:.4g}", bin.share);
  }
  return out;
}

}  // namespace scalecalc
