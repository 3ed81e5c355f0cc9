// A random small problem with a random one of its plans.
#pragma once

#include <rapidcheck.h>

#include <memory>
#include <vector>

#include "plan/request.h"
#include "support/fixtures.h"

namespace scalecalc::test {

struct PlanCase {
  ModelSpec model;
  HardwareSpec hw;
  PlanRequest request;
};

inline Efficiency imperfect() {
  Efficiency e;
  for (Coefficient& c : e.matmul) c = {0.8, 0.1, "test"};
  e.matmul_half_dim = {64, 0.3, "test"};
  e.grouped_matmul = {0.6, 0.2, "test"};
  e.grouped_half_rows = {150, 0.3, "test"};
  e.attention_forward = {0.6, 0.2, "test"};
  e.attention_backward = {0.5, 0.2, "test"};
  e.vector = {0.5, 0.3, "test"};
  e.hbm = {0.8, 0.1, "test"};
  e.link_scale_up = {0.8, 0.1, "test"};
  e.link_scale_out = {0.7, 0.2, "test"};
  e.kernel_overhead = {3e-6, 0.5, "test"};
  e.host_overhead = {*rc::gen::element(0.0, 10e-6, 100e-6), 0.5, "test"};
  e.overlap_tp = {0.3, 0.5, "test"};
  e.overlap_fsdp = {0.8, 0.2, "test"};
  e.overlap_dp = {0.8, 0.2, "test"};
  e.overlap_cp = {0.7, 0.2, "test"};
  e.overlap_ep = {0.2, 0.5, "test"};
  e.overlap_pp = {0.5, 0.5, "test"};
  e.contention_scale_up = {0.1, 0.5, "test"};
  e.contention_scale_out = {0.02, 0.5, "test"};
  e.moe_imbalance = {1.1, 0.05, "test"};
  e.step_overhead = {1e-2, 0.5, "test"};
  e.memory_reserve = {1e9, 0.2, "test"};
  return e;
}

/// A random problem with a random one of its plans.
struct RandomPlan {
  std::unique_ptr<PlanCase> c = std::make_unique<PlanCase>();
  Plan plan;
};

inline RandomPlan random_plan() {
  RandomPlan out;
  PlanCase& c = *out.c;
  const auto layers = *rc::gen::inRange<std::int64_t>(2, 7);
  switch (*rc::gen::inRange(0, 3)) {
    case 0: c.model = dense_model(layers); break;
    case 1: c.model = moe_model(layers); break;
    default: c.model = hybrid_model(7, *rc::gen::arbitrary<bool>()); break;
  }
  c.hw = *rc::gen::arbitrary<bool>() ? torus_chip() : switched_chip();
  c.hw.efficiency = imperfect();
  const std::int64_t chips = *rc::gen::element<std::int64_t>(8, 16, 64);
  c.request = request(c.model, c.hw, chips);
  c.request.workload = workload(*rc::gen::element<std::int64_t>(1024, 4096), *rc::gen::element<double>(16, 48, 64));
  c.request.variants = true;
  c.request.top = 60;
  std::vector<Plan> plans = plan(c.request).plans;
  RC_PRE(!plans.empty());
  out.plan = plans[*rc::gen::inRange<std::size_t>(0, plans.size())];
  return out;
}

}  // namespace scalecalc::test
