// Which of a hardware file's prices a comparison pays: by cloud, kind and date.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spec/hardware_spec.h"

namespace scalecalc {

/// Months counted from the year 0, both ends included.
struct MonthRange {
  int first = 0;
  int last = 0;
  bool meets(const MonthRange& o) const { return first <= o.last && o.first <= last; }
};

/// "2025", "2025-02", "2024-Q4", "2025-2026"; nothing for another text.
std::optional<MonthRange> months_of(std::string_view text);

/// What its terms amount to, as a flag takes it: "on-demand", "spot", "capacity-block", "reserved-1y"; a remark in
/// brackets does not count.
std::string price_kind(const Price& price);

/// Whether its chips may be taken back at any time: "spot", "preemptible".
bool is_preemptible(const Price& price);

/// "10.8 USD per chip-hour (GCP on-demand us, 2025-02)".
std::string price_text(const Price& price);

/// What a price must be. An empty list allows all; with "all", or several words, each combination of cloud and kind is
/// a price of its own.
struct PriceFilter {
  std::vector<std::string> clouds;
  std::vector<std::string> kinds;
  std::optional<MonthRange> date;
  std::string date_text;  ///< as typed
};

inline constexpr std::string_view kAllPrices = "all";

/// The file's first price that the filter allows; of a filter with several words, the first of each combination.
std::vector<Price> chosen_prices(const std::vector<Price>& prices, const PriceFilter& filter);

/// UserError for a cloud or a kind that none of these prices has, with those they have.
void require_known(const PriceFilter& filter, const std::vector<Price>& prices);

}  // namespace scalecalc
