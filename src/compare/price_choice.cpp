#include "compare/price_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/diagnostic.h"
#include "base/text.h"

namespace scalecalc {
namespace {

std::optional<int> digits(std::string_view text, std::size_t length) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (text.size() != length || error != std::errc() || at != end || value < 0) return std::nullopt;
  return value;
}

/// Clouds are names, so case does not tell them apart.
bool same(std::string_view a, std::string_view b) { return lower_case(a) == lower_case(b); }

bool allows(const std::vector<std::string>& words, std::string_view word) {
  return words.empty() || std::any_of(words.begin(), words.end(),
                                      [&](const std::string& w) { return w == kAllPrices || same(w, word); });
}

bool several(const std::vector<std::string>& words) {
  return words.size() > 1 || (words.size() == 1 && words.front() == kAllPrices);
}

bool allows(const PriceFilter& filter, const Price& price) {
  if (!allows(filter.clouds, price.cloud) || !allows(filter.kinds, price_kind(price))) return false;
  if (!filter.date) return true;
  const auto months = months_of(price.date);
  return months && months->meets(*filter.date);
}

void require_word(std::string_view flag, const std::vector<std::string>& asked, std::vector<std::string> known,
                  std::vector<Diagnostic>& problems) {
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  for (const std::string& word : asked) {
    if (word == kAllPrices || allows(known, word)) continue;
    std::string hint = did_you_mean(nearest(word, known));
    if (!hint.empty()) hint += ' ';
    problems.push_back({{},
                        fmt::format("{}: none of the systems has a price of {}", flag, in_quotes(word)),
                        known.empty() ? "their files have no price; give one: --price 2.5"
                                      : fmt::format("{}there are: {}", hint, join(known, ", "))});
  }
}

}  // namespace

std::optional<MonthRange> months_of(std::string_view text) {
  constexpr int kMonths = 12;
  const std::size_t dash = text.find('-');
  const auto year = digits(text.substr(0, dash), 4);
  if (!year) return std::nullopt;
  const int january = *year * kMonths;
  if (dash == std::string_view::npos) return MonthRange{january, january + kMonths - 1};
  const std::string_view rest = text.substr(dash + 1);
  if (rest.starts_with('Q')) {
    const auto quarter = digits(rest.substr(1), 1);
    if (!quarter || *quarter < 1 || *quarter > 4) return std::nullopt;
    return MonthRange{january + 3 * (*quarter - 1), january + 3 * *quarter - 1};
  }
  if (const auto month = digits(rest, 2)) {
    if (*month < 1 || *month > kMonths) return std::nullopt;
    return MonthRange{january + *month - 1, january + *month - 1};
  }
  const auto until = digits(rest, 4);
  if (!until || *until < *year) return std::nullopt;
  return MonthRange{january, *until * kMonths + kMonths - 1};
}

std::string price_kind(const Price& price) {
  std::string words = price.terms.substr(0, price.terms.find('('));
  while (words.ends_with(' ')) words.pop_back();
  if (const std::size_t at = words.find("-year commitment"); at != std::string::npos) {
    return fmt::format("reserved-{}y", words.substr(0, at));
  }
  std::replace(words.begin(), words.end(), ' ', '-');
  return words;
}

bool is_preemptible(const Price& price) {
  const std::string kind = price_kind(price);
  return same(kind, "spot") || same(kind, "preemptible");
}

std::string price_text(const Price& p) {
  return fmt::format("{:g} USD per chip-hour ({} {}{}{}, {})", p.usd_per_chip_hour, p.cloud, p.terms,
                     p.region.empty() ? "" : " ", p.region, p.date);
}

std::vector<Price> chosen_prices(const std::vector<Price>& prices, const PriceFilter& filter) {
  const bool each = several(filter.clouds) || several(filter.kinds);
  std::vector<Price> out;
  for (const Price& price : prices) {
    if (!allows(filter, price) || (!each && !out.empty())) continue;
    const bool known = std::any_of(out.begin(), out.end(), [&](const Price& p) {
      return same(p.cloud, price.cloud) && price_kind(p) == price_kind(price);
    });
    if (!known) out.push_back(price);
  }
  return out;
}

void require_known(const PriceFilter& filter, const std::vector<Price>& prices) {
  std::vector<std::string> clouds;
  std::vector<std::string> kinds;
  for (const Price& price : prices) {
    clouds.push_back(price.cloud);
    kinds.push_back(price_kind(price));
  }
  std::vector<Diagnostic> problems;
  require_word("--cloud", filter.clouds, clouds, problems);
  require_word("--price-kind", filter.kinds, kinds, problems);
  if (!problems.empty()) throw UserError(std::move(problems));
}

}  // namespace scalecalc
