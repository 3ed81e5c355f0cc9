// A machine that is better in one rate never runs a fixed layout more slowly, whatever the layout: every schedule,
// every sharding, every policy, on any placement, whether or not it would rank.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <optional>

#include "plan/enumerate.h"
#include "property/cases.h"
#include "property/random_machine.h"
#include "sensitivity/rates.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

HardwareSpec any_machine() {
  HardwareSpec hw = test::random_kind_of_machine();
  hw.host_ram = Bytes(256e9);
  test::draw_rates(hw, *rc::gen::element(0.02, 0.25, 1.0, 4.0));
  return hw;
}

ModelSpec any_model() {
  switch (*rc::gen::inRange(0, 3)) {
    case 0: return test::dense_model(*rc::gen::element(4, 7, 8));
    case 1: return test::moe_model(*rc::gen::element(4, 7, 8));
    default: return test::hybrid_model(7, *rc::gen::arbitrary<bool>());
  }
}

template <class T>
const T& any_of(const std::vector<T>& values) {
  return values[*rc::gen::inRange<std::size_t>(0, values.size())];
}

/// One layout of the space under a schedule, or nothing if it has none.
std::optional<Plan> any_plan(PlanRequest& request, Schedule schedule) {
  if (schedule != Schedule::kNone) request.fix.schedule = schedule;
  SearchStats stats;
  const Space space(request, stats);
  if (space.families().empty()) return std::nullopt;
  std::vector<Branch> branches;
  space.members(any_of(space.families()), stats, [&](const Branch& branch) {
    if (branch.layout.schedule == schedule && !partition(*request.model, branch.layout).empty())
      branches.push_back(branch);
  });
  if (branches.empty()) return std::nullopt;
  const Branch& branch = any_of(branches);
  const std::vector<StateSharding> ways = space.shardings(branch, stats);
  if (ways.empty()) return std::nullopt;
  Plan out{.layout = sharded(branch.layout, any_of(ways)), .slice = request.slices[branch.slice]};
  Layout& l = out.layout;
  l.remat = static_cast<Remat>(*rc::gen::inRange(0, kRematCount));
  l.remat_layers = l.remat != Remat::kNone && *rc::gen::arbitrary<bool>() ? 1 : 0;
  l.offload = *rc::gen::element<std::uint8_t>(0, 0, kOffloadOptimizer, kOffloadActivations, kOffloadAll);
  if ((l.offload & kOffloadActivations) != 0 && l.remat_layers == 0) l.offload_layers = *rc::gen::element(0, 1);
  l.loss = static_cast<LossKind>(*rc::gen::inRange(0, kLossCount));
  std::vector<Placement> places;
  for (Placement& place : placements(*request.hw, out.slice, {l.tp, l.cp, l.fsdp, l.dp, l.pp})) {
    if (experts_fold(place, l)) places.push_back(std::move(place));
  }
  if (places.empty()) return std::nullopt;
  out.placement = any_of(places);
  return out;
}

TEST(Rates, ABetterRateNeverSlowsAFixedLayout) {
  std::map<Schedule, int> compared;
  EXPECT_TRUE(rc::check("each rate of each machine", [&] {
    for (const Schedule schedule : {Schedule::kNone, Schedule::kGpipe, Schedule::k1F1B, Schedule::kInterleaved,
                                    Schedule::kZeroBubble, Schedule::kDualPipe}) {
      const HardwareSpec hw = any_machine();
      const ModelSpec model = any_model();
      PlanRequest request = test::request(model, hw, *rc::gen::element(4, 8, 16));
      request.workload = test::workload(*rc::gen::element(512, 2048), *rc::gen::element(8.0, 16.0, 64.0));
      const std::optional<Plan> plan = any_plan(request, schedule);
      if (!plan) continue;
      ++compared[schedule];
      const double step = read_plan(Reader<double>{}, request, *plan).time.total().value();
      const ResolvedQuestion question{.model = model,
                                      .hw = hw,
                                      .workload = request.workload,
                                      .efficiency = request.efficiency,
                                      .slices = request.slices};
      for (const HardwareRate& rate : hardware_rates(question)) {
        for (const double better : {1.02, 1.5, 8.0}) {
          HardwareSpec moved = hw;
          rate.scale(moved, rate.factor(better));
          PlanRequest there = request;
          there.hw = &moved;
          const double faster = read_plan(Reader<double>{}, there, *plan).time.total().value();
          if (faster > step * (1 + 1e-12)) {
            const Layout& l = plan->layout;
            RC_LOG() << rate.name << " x " << better << ": " << step << " -> " << faster << ", " << name_of(schedule)
                     << " pp " << l.pp << " m " << l.grad_accum << " zero " << int(l.zero) << " tp " << l.tp << " cp "
                     << l.cp << " ep " << l.ep << ' ' << name_of(l.remat) << " offload " << int(l.offload) << '\n';
          }
          RC_ASSERT(faster <= step * (1 + 1e-12));
        }
      }
    }
  }));
  if (!test::all_cases()) return;
  for (const auto& [schedule, plans] : compared) EXPECT_GE(plans, 15) << name_of(schedule);
  EXPECT_EQ(compared.size(), 6U);
}

}  // namespace
}  // namespace scalecalc
