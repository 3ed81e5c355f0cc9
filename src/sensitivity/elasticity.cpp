// Computes the exact elasticities of a plan's step and its step at other values of one input.
#include "sensitivity/elasticity.h"

#include <algorithm>
#include <cmath>

namespace scalecalc {
namespace {

SwungStep swung(const PlanRequest& request, const Plan& plan, const SensitiveInput& input, double factor) {
  const double value = std::clamp(input.value * factor, input.least, input.most);
  const StepAt at = step_at(request, plan, input.read_as, value / input.value);
  return {value, at.step_s, at.step_s / plan.step_s - 1, at.fits};
}

}  // namespace

StepAt step_at(const PlanRequest& request, const Plan& plan, const std::vector<std::string>& read_as, double factor) {
  const PlanReading<Dual> reading = read_plan(Reader<Dual>(read_as, factor), request, plan);
  const Dual step = reading.time.total().value();
  MemoryUse<double> memory;
  memory.weights = Bytes(reading.memory.total().value().value);
  memory.host = Bytes(reading.memory.host.value().value);
  return {step.value, step.derivative, step.derivative * factor / step.value, fits(*request.hw, memory)};
}

double InputElasticity::widest() const { return std::max(std::abs(low.change), std::abs(high.change)); }

std::vector<InputElasticity> elasticities(const PlanRequest& request, const Plan& plan, double swing,
                                          bool coefficients) {
  std::vector<InputElasticity> out;
  for (SensitiveInput& input : inputs_of(request, plan)) {
    if (input.kind == InputKind::kCoefficient && !coefficients) continue;
    const StepAt here = step_at(request, plan, input.read_as);
    InputElasticity e{.input = std::move(input), .step_s = here.step_s, .step_time = here.elasticity};
    e.slope = here.slope_s / e.input.value;
    e.tokens_per_s = e.input.tokens - e.step_time;
    e.low = swung(request, plan, e.input, 1 - swing);
    e.high = swung(request, plan, e.input, 1 + swing);
    out.push_back(std::move(e));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const InputElasticity& a, const InputElasticity& b) { return a.widest() > b.widest(); });
  return out;
}

SumRule sum_rule(const std::vector<InputElasticity>& all) {
  SumRule out;
  for (const InputElasticity& e : all) {
    if (e.input.kind == InputKind::kRate) out.rates += e.step_time;
    if (e.input.kind == InputKind::kTime) out.times += e.step_time;
  }
  return out;
}

}  // namespace scalecalc
