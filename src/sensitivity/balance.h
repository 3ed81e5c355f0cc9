// The balance a plan wants between its FLOP/s, its HBM and its links: for each, where more of it stops helping, and
// where it counts as much as compute does. All from the dual-number reading, the plan as it is.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sensitivity/rates.h"

namespace scalecalc {

/// Ten per cent more of a rate gains half a per cent where the elasticity has fallen to this.
inline constexpr double kKneeElasticity = 0.05;

struct BalanceGroup {
  std::string name;                  ///< as --set takes it; "hw.compute.matmul" for all formats together
  std::vector<std::string> read_as;  ///< the rates that move together
  double rate = 0;                   ///< SI base unit; of compute the peak of the job's format
  Dim unit;
  double elasticity = 0;             ///< of the step's time, at the rate as it is; at most 0
  std::optional<double> knee;        ///< [KNEE] rate at which the elasticity is -kKneeElasticity; absent: nowhere near
  std::optional<double> as_compute;  ///< rate at which the elasticity equals that of compute, all else as it is
};

/// Compute, HBM and each tier of the network the plan's step reads, in that order.
std::vector<BalanceGroup> balance(const ResolvedQuestion& question, const PlanRequest& request, const Plan& plan);

/// d ln T / d ln x of compute, HBM and all links together.
struct GroupElasticities {
  double compute = 0, hbm = 0, links = 0;
};
GroupElasticities group_elasticities(const ResolvedQuestion& question, const PlanRequest& request, const Plan& plan);

}  // namespace scalecalc
