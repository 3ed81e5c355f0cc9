// What every comparison has, of training and of serving: systems with a price each, what became of them, their ranks,
// and checks on the ranks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/explained.h"
#include "config/catalog.h"
#include "spec/hardware_spec.h"
#include "spec/model_spec.h"

namespace scalecalc {

// Which of a hardware file's prices a comparison pays: by cloud, kind and date.

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

/// One of --hw: "h100-sxm", "tpu-v5p:2x4096@GCP/spot".
struct SystemAsked {
  std::string hardware;  ///< catalog name or path
  std::string model;     ///< likewise; empty: the comparison's only one
  std::optional<std::int64_t> chips;
  std::int64_t slices = 1;
  std::string cloud, kind;      ///< empty: as --cloud and --price-kind say
  std::optional<double> price;  ///< USD per chip and hour, in place of the file's

  PriceFilter prices(const PriceFilter& of_all) const;
};

enum class RankBy : std::uint8_t { kTime, kCost };
inline constexpr std::array<std::string_view, 2> kRankByNames{"time", "cost"};

enum class ComparedStatus : std::uint8_t {
  kAnswered,
  kNotBuilt,     ///< no machine of so many chips
  kOutOfMemory,  ///< nothing fits
  kNoLayout,
  kUnsuited,    ///< the chip lacks what the job asks for: a rate, a network
  kTooSlow,     ///< no count of chips finishes in time, or no batch is within the limits
  kOverBudget,  ///< or costs too much
  kNoPrice,     ///< a budget, and nobody says what the chip costs
  kInterrupted,
};
inline constexpr std::array<std::string_view, 9> kComparedStatusNames{"answered",    "not built", "out of memory",
                                                                      "no layout",   "unsuited",  "too slow",
                                                                      "over budget", "no price",  "interrupted"};
constexpr std::string_view name_of(ComparedStatus status) {
  return kComparedStatusNames.at(static_cast<std::size_t>(status));
}

/// A system at one price, and how it does. What impossible systems lack stays empty.
struct ComparedSystem {
  std::string label;     ///< tells the rows apart: "h100-sxm", "h100-sxm@GCP/spot"
  std::string hardware;  ///< as the file names it
  std::string title;
  std::string model;  ///< what it trains or serves, as its file names it
  SystemAsked asked;  ///< the one of --hw
  std::optional<Price> price;
  ComparedStatus status = ComparedStatus::kAnswered;
  std::string reason;            ///< unless answered: a sentence
  std::optional<double> time_s;  ///< what rank_time goes by: the run's, or a request's
  std::optional<double> usd;     ///< what rank_cost goes by: the run's, or a million tokens'
  std::optional<double> joules;  ///< likewise
  std::size_t rank_time = 0;     ///< 1 is best, equal figures share a rank; 0: none
  std::size_t rank_cost = 0;
  bool cost_ranked = true;  ///< its dollars are held against the others': rank_systems

  bool answered() const { return status == ComparedStatus::kAnswered; }
  void fail(ComparedStatus why, std::string sentence) {
    status = why;
    reason = std::move(sentence);
  }
};

template <class Row>
std::vector<const ComparedSystem*> pointers_to(const std::vector<Row>& rows) {
  std::vector<const ComparedSystem*> out;
  for (const Row& row : rows) out.push_back(&row);
  return out;
}

/// Fills in the ranks. Unless `preemptions_counted`, dollars of preemptible chips are those of a run that is never
/// preempted, so they are ranked only if nobody's are of others.
void rank_systems(const std::vector<ComparedSystem*>& rows, bool preemptions_counted = false);
/// Labels of the answered systems that have no price, so that "cheapest" says nothing about them.
std::vector<std::string> without_price(const std::vector<const ComparedSystem*>& rows);
/// Best first by this; then those without such a figure, then those not answered, each in the order given.
std::vector<std::size_t> order_by(RankBy by, const std::vector<const ComparedSystem*>& rows);
/// A label for each row, as short as tells them apart. `sizes`: "2x4096" or empty, for each row.
void label_systems(const std::vector<ComparedSystem*>& rows, const std::vector<std::string>& sizes);

/// Whether they are about more than one model, and what these are called, each once.
bool several_models(const std::vector<const ComparedSystem*>& rows);
std::pair<std::string, std::string> names_and_titles(const std::vector<const ModelSpec*>& models);

/// --expect cheapest=tpu-v5p
enum class ExpectedKey : std::uint8_t { kCheapest, kFastest, kLeastEnergy, kPossible };
inline constexpr std::array<std::string_view, 4> kExpectedKeyNames{"cheapest", "fastest", "least-energy", "possible"};
struct Expectation {
  ExpectedKey key = ExpectedKey::kCheapest;
  std::string system;  ///< label or hardware, as typed
};

struct ExpectationResult {
  std::string text;  ///< "cheapest=tpu-v5p"
  bool holds = false;
  std::string found;                  ///< labels of those that are; empty: none is
  std::vector<std::string> unpriced;  ///< of "cheapest": labels of the answered systems that have no price
};

/// UserError for a system that is not among the rows. What no row is (nothing has a price) holds for none.
std::vector<ExpectationResult> check_expectations(const std::vector<Expectation>& asked,
                                                  const std::vector<const ComparedSystem*>& rows);

/// First problem of an error with its hint: the reason of a row.
std::string sentence_of(const UserError& error);

// What a comparison needs of each system before it is asked: its file, its prices; and the assumptions of several
// answers as one list.

/// The file with --set hw.… applied. UserError as the catalog and the loader say.
HardwareSpec hardware_compared(const std::string& name, const std::vector<std::string>& sets, const Catalog& catalog);

/// The prices it is asked at: the one the user gave, else those of the file that the filter allows.
std::vector<Price> offers_of(const HardwareSpec& hw, const SystemAsked& asked, const PriceFilter& filter);

/// One list of all; what not every system assumes is said under the names of those that do.
std::vector<Assumption> shared_assumptions(const std::vector<std::string>& names,
                                           const std::vector<std::vector<Assumption>>& each);

/// What a row's chips cost, or that nobody says so.
Assumption price_assumption(const ComparedSystem& row);
/// What is not counted of chips that can be taken back, once for all such rows; nothing if there are none.
/// `failures`: the flag that says how often chips are lost, given or not; empty: the task has none.
std::optional<Assumption> preemption_assumption(const std::vector<const ComparedSystem*>& rows,
                                                std::string_view failures, bool counted);

}  // namespace scalecalc
