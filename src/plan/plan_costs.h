// What one plan's step is computed from, in one reading: the machine's rates, the layers' costs, the placed groups.
#pragma once

#include "plan/request.h"

namespace scalecalc {

template <class R>
class PlanCosts {
 public:
  /// Keeps references to `request` and what it points to.
  PlanCosts(const Reader<R>& reader, const PlanRequest& request, const Plan& plan)
      : PlanCosts(reader, request, request.efficiency, plan) {}
  /// With other coefficients than the request's.
  PlanCosts(const Reader<R>& reader, const PlanRequest& request, const Efficiency& efficiency, const Plan& plan);

  /// Points into this object.
  StepInput<R> input() const;

 private:
  const PlanRequest& request_;
  Layout layout_;
  ChipRates<R> chip_;
  OverlapRates<R> overlap_;
  MeshChannels<R> channels_;
  NetworkCost<R> network_;
  std::vector<StageShape> stages_;
  BytesOf<R> memory_reserve_;
};

}  // namespace scalecalc
