// One training job on several systems: the best plan of each, or the count of chips that a deadline or a budget asks
// for; then what the same dollars and the same time amount to, and at which price two systems cost the same.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compare/chip_search.h"
#include "compare/compared.h"
#include "config/catalog.h"
#include "train/question.h"

namespace scalecalc {

struct TrainCompareQuestion {
  TrainQuestion train;  ///< its hardware, chips, slices and price are those of each system
  std::vector<SystemAsked> systems;
  std::optional<std::int64_t> chips;  ///< of systems that name none; with a deadline or a budget the most to look at
  std::optional<double> deadline_s, budget_usd;
  PriceFilter prices;
  bool equal_time = false;  ///< search the chips that finish as soon as the first system
  std::optional<RankBy> rank_by;
  std::vector<Expectation> expect;

  bool sized() const { return deadline_s || budget_usd; }
};

/// A system's run against the first answered system's.
struct SameTime {
  std::optional<SizedPlan> found;  ///< the fewest chips that finish as soon
  std::string reason;              ///< if none do
};

struct ComparedRun : ComparedSystem {
  std::int64_t chips_asked = 0;  ///< or the most looked at
  std::int64_t slices = 1;
  std::optional<SizedPlan> sized;
  std::optional<SameTime> same_time;  ///< if it was asked for
  std::size_t counts = 0;             ///< of chips, searched for a deadline or a budget
  SearchStats search;                 ///< of one count

  const RunFigures& run() const { return *sized->plan.figures.run; }
  /// The machine rented: the one asked for, or the one that a deadline or a budget chose.
  std::int64_t chips_rented() const { return counts > 0 ? sized->plan.plan.slice.chips : chips_asked; }
};

struct TrainComparison {
  TrainCompareQuestion question;
  std::string model, model_title;
  Workload workload;
  std::vector<ComparedRun> systems;     ///< in the order asked
  std::optional<std::size_t> baseline;  ///< the first that is answered
  RankBy rank_by = RankBy::kTime;
  std::vector<ExpectationResult> expectations;
  std::vector<Assumption> assumptions;
  bool complete = true;
};

/// UserError for a wrong question; one is that no system can take the job at all. What is impossible on some systems
/// is said in their rows.
TrainComparison compare_training(const TrainCompareQuestion& question, const Catalog& catalog,
                                 const std::function<bool()>& stop = {});

}  // namespace scalecalc
