// Reads the inputs of one plan's step in one reading: numbers, bounds, formulas or derivatives.
#include "plan/plan_costs.h"

namespace scalecalc {

template <class R>
PlanCosts<R>::PlanCosts(const Reader<R>& reader, const PlanRequest& request, const Efficiency& efficiency,
                        const Plan& plan)
    : request_(request),
      layout_(plan.layout),
      chip_(read_chip(reader, *request.hw, efficiency, request.workload.precision.high)),
      overlap_(read_overlap(reader, efficiency)),
      channels_(make_channels(*request.hw, plan.slice, read_network(reader, *request.hw, efficiency), plan.placement,
                              plan.layout, routing_of(*request.model, request.workload.runtime.dispatch))),
      network_(
          network_cost(reader, *request.model,
                       read_model(reader, *request.model, request.workload.fine_tune, request.workload.expert_capacity),
                       chip_, request.workload, inner_of(plan.layout))),
      stages_(partition(*request.model, plan.layout, request.workload.runtime.stages)) {
  const Coefficient& reserve = efficiency.memory_reserve;
  memory_reserve_ = read(reader, Bytes(reserve.value), "efficiency.memory_reserve", reserve.source, reserve.error);
}

template <class R>
StepInput<R> PlanCosts<R>::input() const {
  return {.model = request_.model,
          .workload = &request_.workload,
          .network = &network_,
          .channels = &channels_,
          .overlap = &overlap_,
          .chip = &chip_,
          .stages = &stages_,
          .memory_reserve = memory_reserve_,
          .layout = layout_};
}

template class PlanCosts<double>;
template class PlanCosts<Dual>;
template class PlanCosts<Traced>;

template <class R>
PlanReading<R> read_plan(const Reader<R>& reader, const PlanRequest& request, const Plan& plan) {
  const PlanCosts<R> costs(reader, request, plan);
  const StepInput<R> in = costs.input();
  return {step_time(reader, in), memory_use(in)};
}

template PlanReading<double> read_plan(const Reader<double>&, const PlanRequest&, const Plan&);
template PlanReading<Dual> read_plan(const Reader<Dual>&, const PlanRequest&, const Plan&);
template PlanReading<Traced> read_plan(const Reader<Traced>&, const PlanRequest&, const Plan&);

}  // namespace scalecalc
