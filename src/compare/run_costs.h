// A compared run's figures as traced formulas, and what follows from two of them: the tokens that equal dollars buy,
// and the price at which two systems cost the same (docs/model.md, [BREAK-EVEN]).
#pragma once

#include <optional>

#include "base/quantity.h"
#include "compare/train_comparison.h"

namespace scalecalc {

using UsdOf = Quantity<kUsdDim, Traced>;
using FlopsPerUsdOf = Quantity<kFlopDim - kUsdDim, Traced>;

struct RunCosts {
  SecondsOf<Traced> step;  ///< with `explain` as the sum of its causes, else an input
  SecondsOf<Traced> time;
  Traced chip_hours;
  std::optional<UsdOf> usd;
  std::optional<JoulesOf<Traced>> energy;
  std::optional<FlopsPerUsdOf> peak_per_usd;       ///< of the data sheet's dense peak at the compute format
  std::optional<FlopsPerUsdOf> delivered_per_usd;  ///< of the model FLOPs that count for MFU
};

/// Of an answered row.
RunCosts run_costs(const TrainComparison& comparison, const ComparedRun& row, bool explain);

/// Dollars per chip and hour at which `chip_hours` cost as much as the other's `usd`.
UsdOf break_even_price(const UsdOf& usd, const Traced& chip_hours);
/// Share of the other's tokens, at equal dollars: a run's cost is proportional to its tokens.
Traced tokens_for_equal_usd(const Traced& tokens, const UsdOf& other_usd, const UsdOf& usd);

}  // namespace scalecalc
