// Elasticities over random plans: they are the finite differences of machines and models that were really changed, they
// obey the sum rule, and a plan that may move gains no less than one that stays.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "cost/pipeline.h"
#include "property/random_plan.h"
#include "sensitivity/balance.h"
#include "sensitivity/elasticity.h"
#include "sensitivity/reoptimise.h"

namespace scalecalc {
namespace {

using test::PlanCase;
using test::random_plan;
using test::RandomPlan;

ResolvedQuestion resolved_of(const PlanCase& c) {
  return {.model = c.model,
          .hw = c.hw,
          .workload = c.request.workload,
          .efficiency = c.request.efficiency,
          .slices = c.request.slices};
}

double planned_step(const PlanRequest& request, const Plan& plan) {
  return read_plan(Reader<double>{}, request, plan).time.total().value();
}

/// Whether `slope` is the derivative of `f` at 1, or at a kink lies between those of its two sides.
bool is_derivative(const std::function<double(double)>& f, double slope) {
  constexpr double kStep = 1e-6;
  constexpr double kClose = 1e-4;
  const double here = f(1);
  const double up = (f(1 + kStep) - here) / kStep;
  const double down = (here - f(1 - kStep)) / kStep;
  const double slack = kClose * here;
  return slope >= std::min(up, down) - slack && slope <= std::max(up, down) + slack;
}

/// The real machine with one rate changed, read as plain numbers.
RC_GTEST_PROP(Sensitivity, ElasticitiesOfRatesAreFiniteDifferencesOfChangedMachines, ()) {
  const RandomPlan r = random_plan();
  for (const HardwareRate& rate : hardware_rates(resolved_of(*r.c))) {
    if (rate.read_as.empty()) continue;
    const StepAt at = step_at(r.c->request, r.plan, rate.read_as);
    const auto step = [&](double factor) {
      HardwareSpec hw = r.c->hw;
      rate.scale(hw, factor);
      PlanRequest moved = r.c->request;
      moved.hw = &hw;
      return planned_step(moved, r.plan);
    };
    RC_ASSERT(is_derivative(step, at.slope_s));
    RC_ASSERT(std::abs(step_at(r.c->request, r.plan, rate.read_as, 1.3).step_s - step(1.3)) <= 1e-12 * at.step_s);
    RC_ASSERT((rate.is_time ? at.elasticity >= 0 : at.elasticity <= 1e-12));
  }
}

/// All inputs, those of the model as real numbers included.
RC_GTEST_PROP(Sensitivity, EveryElasticityIsAFiniteDifference, ()) {
  const RandomPlan r = random_plan();
  for (const SensitiveInput& input : inputs_of(r.c->request, r.plan)) {
    const StepAt at = step_at(r.c->request, r.plan, input.read_as);
    const auto step = [&](double factor) { return step_at(r.c->request, r.plan, input.read_as, factor).step_s; };
    RC_LOG() << input.name << '\n';
    RC_ASSERT(is_derivative(step, at.slope_s));
    RC_ASSERT(at.step_s == r.plan.step_s);
  }
}

/// A model whose file really has twice the width is what the reading at factor 2 says.
RC_GTEST_PROP(Sensitivity, AReadingAtAFactorIsTheModelWithThatDimension, ()) {
  const RandomPlan r = random_plan();
  const auto dealt = [&](const ModelSpec& model) {
    std::vector<std::int64_t> out;
    for (const ChunkShape& chunk : deal(model, r.plan.layout.pp, r.plan.layout.vpp)) out.push_back(chunk.layers);
    return out;
  };
  const auto check = [&](const char* name, const std::function<void(ModelSpec&)>& twice) {
    ModelSpec model = r.c->model;
    twice(model);
    // A heavier head is left fewer layers where they do not divide.
    if (r.plan.layout.pp > 1 && dealt(model) != dealt(r.c->model)) return;
    PlanRequest moved = r.c->request;
    moved.model = &model;
    const double really = planned_step(moved, r.plan);
    const double read = step_at(r.c->request, r.plan, {name}, 2).step_s;
    RC_ASSERT(std::abs(read - really) <= 1e-9 * really);
  };
  check("d_ff", [](ModelSpec& m) { m.mlp.d_ff *= 2; });
  check("vocab", [](ModelSpec& m) { m.vocab *= 2; });
  check("heads", [](ModelSpec& m) { m.attention.heads *= 2; });
  if (r.c->model.moe) {
    check("expert d_ff", [](ModelSpec& m) { m.moe->d_ff *= 2; });
    check("experts", [](ModelSpec& m) { m.moe->experts *= 2; });
  }
  if (r.plan.layout.pp > 1 || r.plan.layout.remat_layers > 0) return;  // else layers are dealt or treated anew
  check("layers", [](ModelSpec& m) {
    const std::vector<std::uint8_t> once = m.layer_kind;
    m.layer_kind.insert(m.layer_kind.end(), once.begin(), once.end());
  });
}

RC_GTEST_PROP(Sensitivity, RatesLessTimesSumToMinusOne, ()) {
  const RandomPlan r = random_plan();
  const SumRule rule = sum_rule(elasticities(r.c->request, r.plan, 0.2, false));
  RC_ASSERT(std::abs(rule.sum() + 1) <= 1e-9);
}

/// Each input of the step is listed once, and no other input of the readings moves it.
RC_GTEST_PROP(Sensitivity, WhatIsNotListedDoesNothing, ()) {
  const RandomPlan r = random_plan();
  std::vector<std::string> listed;
  for (const SensitiveInput& input : inputs_of(r.c->request, r.plan)) {
    RC_ASSERT(std::find(listed.begin(), listed.end(), input.read_as.front()) == listed.end());
    listed.push_back(input.read_as.front());
  }
  for (const HardwareRate& rate : hardware_rates(resolved_of(*r.c))) {
    if (rate.read_as.empty()) continue;
    const bool known = std::find(listed.begin(), listed.end(), rate.read_as.front()) != listed.end();
    RC_ASSERT(known || step_at(r.c->request, r.plan, rate.read_as).slope_s == 0);
  }
}

RC_GTEST_PROP(Sensitivity, AFreePlanGainsAtLeastWhatAKeptOneDoes, ()) {
  const RandomPlan r = random_plan();
  const ResolvedQuestion resolved = resolved_of(*r.c);
  const TrainQuestion question{.top = 1};
  const PlanRequest request = request_of(question, resolved);
  Planner planner(request);
  PlanResult best = planner.best({.top = 1});
  RC_ASSERT(!best.plans.empty());
  const Plan& plan = best.plans.front();
  const Reoptimised out = reoptimise(resolved, request, planner, plan, true, {});
  RC_ASSERT(out.complete);
  RC_ASSERT(out.base.step_s == plan.step_s);
  for (const RateChange& change : out.rates) {
    RC_ASSERT(change.free.has_value());
    RC_ASSERT(change.free->gain >= change.gain - 1e-12);
    RC_ASSERT(change.loss >= -1e-12);
  }
  // What the bounded search finds is what an unbounded one does.
  const RateChange& change = out.rates[*rc::gen::inRange<std::size_t>(0, out.rates.size())];
  HardwareSpec hw = resolved.hw;
  change.rate.scale(hw, change.rate.factor(1.1));
  PlanRequest moved = request;
  moved.hw = &hw;
  const PlanResult found = Planner(moved).best({.top = 1});
  RC_ASSERT(!found.plans.empty());
  const Plan& there = found.plans.front();
  const double best_s = there.step_s / (there.batch_seqs * static_cast<double>(moved.workload.seq));
  RC_ASSERT(std::abs(best_s - change.free->after_s) <= 1e-12 * best_s);
}

/// Just below its knee a rate still helps, just above it does not.
RC_GTEST_PROP(Sensitivity, AKneeIsWhereARateStopsHelping, ()) {
  const RandomPlan r = random_plan();
  for (const BalanceGroup& group : balance(resolved_of(*r.c), r.c->request, r.plan)) {
    if (!group.knee) continue;
    const double factor = *group.knee / group.rate;
    const auto at = [&](double k) { return -step_at(r.c->request, r.plan, group.read_as, k).elasticity; };
    RC_ASSERT(at(factor * (1 - 1e-9)) >= kKneeElasticity * (1 - 1e-6));
    RC_ASSERT(at(factor * (1 + 1e-9)) <= kKneeElasticity * (1 + 1e-6));
  }
}

}  // namespace
}  // namespace scalecalc
