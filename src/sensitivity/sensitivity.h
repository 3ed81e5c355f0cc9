// `scalecalc sensitivity`: what a plan's step answers to, what to buy next, and the machine the job wants.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sensitivity/codesign.h"
#include "sensitivity/elasticity.h"
#include "sensitivity/reoptimise.h"

namespace scalecalc {

struct SensitivityQuestion {
  TrainQuestion train;           ///< ranked by time or cost; its first plan is asked about
  std::vector<SetRange> ranges;  ///< to sweep
  double swing = 0.2;
  bool coefficients = false;  ///< those of the efficiency block too
  bool fixed = false;         ///< the plan stays: no search but the first
};

struct SensitivityAnswer {
  SensitivityQuestion question;
  ResolvedQuestion resolved;
  std::optional<RankedPlan> plan;
  std::optional<TrainAnswer> none;  ///< instead of a plan: why there is none
  std::vector<InputElasticity> elasticities;
  Reoptimised reoptimised;
  std::vector<BalanceGroup> balance;
  std::optional<Codesign> codesign;
  std::optional<SecondsOf<Traced>> step;  ///< of the plan, if it is to be explained
  bool complete = true;                   ///< not interrupted
};

/// UserError for a wrong question. `explain`: the step's formulas too. `stop` may be empty, is polled, and ends the
/// searches with what there is.
SensitivityAnswer sensitivity(const SensitivityQuestion& question, const Catalog& catalog, bool explain,
                              const std::function<bool()>& stop = {});

}  // namespace scalecalc
