// Properties of the cost engine over random small plans: the three readings agree, more of a resource is never slower,
// nothing is sharded over more ranks than hold it.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "plan/plan_costs.h"
#include "plan/request.h"
#include "property/random_plan.h"

namespace scalecalc {
namespace {

using test::random_plan;
using test::RandomPlan;

double step_of(const PlanRequest& request, const Plan& plan) {
  return read_plan(Reader<double>{}, request, plan).time.total().value();
}

RC_GTEST_PROP(Readings, AllAgree, ()) {
  const RandomPlan r = random_plan();
  const PlanRequest& request = r.c->request;
  const PlanReading<double> value = read_plan(Reader<double>{}, request, r.plan);
  const PlanReading<Dual> dual = read_plan(Reader<Dual>{"hw.hbm.bandwidth"}, request, r.plan);
  const PlanReading<Traced> traced = read_plan(Reader<Traced>{}, request, r.plan);
  const double step = value.time.total().value();
  RC_ASSERT(dual.time.total().value().value == step);
  const Traced total = traced.time.total().value();
  // The traced reading drops "+ 0" and "* 1", which can change the last bit of a sum.
  RC_ASSERT(std::abs(total.value() - step) <= 1e-12 * step);
  RC_ASSERT(reevaluate(total) == total.value());
  RC_ASSERT(value.memory.total().value() == dual.memory.total().value().value);
}

/// The step is monotone in each coefficient, so no mix of them leaves the two corners.
RC_GTEST_PROP(Readings, CornersBoundEveryMixOfCoefficients, ()) {
  RandomPlan r = random_plan();
  PlanRequest& request = r.c->request;
  const Efficiency centre = request.efficiency;
  const auto step_at = [&](const Efficiency& e) {
    request.efficiency = e;
    return step_of(request, r.plan);
  };
  const double low = step_at(fastest(centre));
  const double high = step_at(slowest(centre));
  Efficiency mix = centre;
  const auto pick = [](Coefficient& c) {
    c.value = std::min(c.value <= 1 ? 1.0 : 1e30, c.value * (1 + c.error * (*rc::gen::inRange(-10, 11)) / 10.0));
  };
  for (Coefficient& c : mix.matmul) pick(c);
  for (Coefficient* c :
       {&mix.hbm, &mix.link_scale_up, &mix.link_scale_out, &mix.overlap_tp, &mix.overlap_fsdp, &mix.overlap_dp,
        &mix.overlap_ep, &mix.overlap_cp, &mix.overlap_pp, &mix.contention_scale_up, &mix.kernel_overhead,
        &mix.host_overhead, &mix.grouped_matmul, &mix.attention_backward, &mix.moe_imbalance}) {
    pick(*c);
  }
  mix.moe_imbalance.value = std::max(1.0, mix.moe_imbalance.value);
  const double mixed = step_at(mix);
  RC_ASSERT(low <= mixed * (1 + 1e-12));
  RC_ASSERT(mixed <= high * (1 + 1e-12));
}

RC_GTEST_PROP(Readings, DualIsTheFiniteDifference, ()) {
  RandomPlan r = random_plan();
  PlanRequest& request = r.c->request;
  const PlanReading<Dual> dual = read_plan(Reader<Dual>{"hw.hbm.bandwidth"}, request, r.plan);
  const double exact = dual.time.total().value().derivative;
  const double base = r.c->hw.hbm_bandwidth.value();
  const double h = base * 1e-6;
  r.c->hw.hbm_bandwidth = BytesPerSecond(base + h);
  const double up = step_of(request, r.plan);
  r.c->hw.hbm_bandwidth = BytesPerSecond(base - h);
  const double down = step_of(request, r.plan);
  const double step = (up + down) / 2;
  // At a kink the one-sided slopes differ; the kinks are far apart against a step of one millionth.
  RC_ASSERT(std::abs(exact - (up - down) / (2 * h)) * base <= 1e-4 * step);
}

RC_GTEST_PROP(Monotone, MoreOfAResourceIsNeverSlower, ()) {
  RandomPlan r = random_plan();
  HardwareSpec& hw = r.c->hw;
  const double before = step_of(r.c->request, r.plan);
  switch (*rc::gen::inRange(0, 4)) {
    case 0: hw.hbm_bandwidth = hw.hbm_bandwidth * 1.5; break;
    case 1:
      for (auto& peak : hw.matmul_peak) {
        if (peak) peak = *peak * 1.5;
      }
      break;
    case 2:
      for (Tier& tier : hw.network) {
        tier.torus.link_bandwidth = tier.torus.link_bandwidth * 1.5;
        tier.switched.bandwidth_per_chip = tier.switched.bandwidth_per_chip * 1.5;
      }
      break;
    default: hw.vector_peak = *hw.vector_peak * 1.5; break;
  }
  // Contention charges compute for hidden traffic, so faster links can only help and faster compute can only help.
  RC_ASSERT(step_of(r.c->request, r.plan) <= before * (1 + 1e-12));
}

RC_GTEST_PROP(Scaling, AllRatesTwiceAsFastHalvesTheStep, ()) {
  RandomPlan r = random_plan();
  HardwareSpec& hw = r.c->hw;
  const double before = step_of(r.c->request, r.plan);
  for (auto& peak : hw.matmul_peak) {
    if (peak) peak = *peak * 2.0;
  }
  hw.vector_peak = *hw.vector_peak * 2.0;
  hw.hbm_bandwidth = hw.hbm_bandwidth * 2.0;
  for (Tier& tier : hw.network) {
    tier.torus.link_bandwidth = tier.torus.link_bandwidth * 2.0;
    tier.switched.bandwidth_per_chip = tier.switched.bandwidth_per_chip * 2.0;
    tier.torus.hop_latency = tier.torus.hop_latency / 2.0;
    tier.switched.latency = tier.switched.latency / 2.0;
  }
  r.c->request.efficiency.kernel_overhead.value /= 2;
  r.c->request.efficiency.host_overhead.value /= 2;
  r.c->request.efficiency.step_overhead.value /= 2;
  RC_ASSERT(std::abs(step_of(r.c->request, r.plan) - before / 2) <= 1e-12 * before);
}

/// No tensor is divided over more ranks than hold it: the bytes of all chips together are at least one whole copy.
/// Summed over stages, as the fullest may be so by its activations.
RC_GTEST_PROP(Memory, AllChipsTogetherHoldTheModel, ()) {
  const RandomPlan r = random_plan();
  const Workload& workload = r.c->request.workload;
  const PlanCosts<double> costs(Reader<double>{}, r.c->request, r.plan);
  const std::vector<StageShape> stages = all_stages(r.c->model, r.plan.layout, workload.runtime.stages);
  const double chips = static_cast<double>(r.plan.slice.chips) / static_cast<double>(stages.size());
  double held_weights = 0;
  double held_optimizer = 0;
  for (const MemoryUse<double>& use : memory_by_stage(costs.input(), stages)) {
    held_weights += use.weights.value() * chips;
    held_optimizer += use.optimizer.value() * chips;
  }
  double weights = 0;
  const ModelOps<double> ops = read_model(Reader<double>{}, r.c->model);
  for (const std::uint8_t kind : r.c->model.layer_kind) {
    for (const Op<double>& op : ops.kinds[kind]) weights += op.parameters();
  }
  for (const Op<double>& op : ops.embedding) weights += op.parameters();
  RC_ASSERT(held_weights >= weights * 2 * (1 - 1e-12));
  RC_ASSERT(held_optimizer >= weights * 12 * (1 - 1e-12));
}

RC_GTEST_PROP(Step, CausesAreNotNegativeAndSum, ()) {
  const RandomPlan r = random_plan();
  const StepTime<double>& t = r.plan.time;
  double sum = 0;
  for (const Seconds part :
       {t.compute, t.hbm, t.tp, t.fsdp, t.dp, t.cp, t.ep, t.pp, t.bubble, t.optimizer, t.overhead}) {
    RC_ASSERT(part.value() >= 0);
    sum += part.value();
  }
  RC_ASSERT(std::abs(sum - r.plan.step_s) <= 1e-12 * sum);
}

}  // namespace
}  // namespace scalecalc
