// One service on several systems under the same limits: the point of each that costs least per token.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compare/compared.h"
#include "compare/train_comparison.h"
#include "serve/serve_question.h"

namespace scalecalc {

struct ServeCompareQuestion {
  ServeQuestion serve;  ///< its hardware, chips and price are those of each system
  std::vector<SystemAsked> systems;
  PriceFilter prices;
  std::optional<RankBy> rank_by;
  std::vector<Expectation> expect;
};

struct ComparedService : ComparedSystem {
  std::shared_ptr<const ServeAnswer> answer;  ///< shared by the offers of a system; null: it cannot be asked
  double chip_hours_per_million = 0;          ///< output tokens, at the best point

  const ServePoint& best() const { return *answer->best; }
};

struct ServeComparison {
  ServeCompareQuestion question;
  std::string model, model_title;
  std::vector<ComparedService> systems;  ///< in the order asked
  std::optional<std::size_t> baseline;   ///< the first that is answered
  RankBy rank_by = RankBy::kCost;
  std::vector<ExpectationResult> expectations;
  std::vector<Assumption> assumptions;
  std::vector<std::string> notes;
  bool complete = true;
};

/// As compare_training. `stop` is polled between systems.
ServeComparison compare_serving(const ServeCompareQuestion& question, const Catalog& catalog,
                                const std::function<bool()>& stop = {});

struct ServiceCosts {
  Traced chip_hours;  ///< per million output tokens
  std::optional<UsdOf> usd;
};
/// Of an answered row.
ServiceCosts service_costs(const ComparedService& row);

}  // namespace scalecalc
