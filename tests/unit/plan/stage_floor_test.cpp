// The floors of a member's stages: what memory_by_stage says without what a floor leaves out, and no more than any
// layout takes that does less.
#include "plan/stage_floor.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plan/enumerate.h"
#include "plan/places.h"
#include "support/member_costs.h"

namespace scalecalc {
namespace {

constexpr double kReserve = 1e9;  // of MemberCosts::input

class StageFloors : public ::testing::Test, protected test::MemberCosts {
 protected:
  StageFloors() : MemberCosts(test::switched_chip(), test::moe_model(8)) {
    request_.workload.memory.fragmentation.value = 0.05;
  }

  /// Pipelines of every kind of flight: one microbatch after the other, as many as stages, folded, in chunks.
  static std::vector<Layout> members() {
    std::vector<Layout> out;
    for (const Schedule schedule :
         {Schedule::kGpipe, Schedule::k1F1B, Schedule::kZeroBubble, Schedule::kDualPipe, Schedule::kInterleaved}) {
      for (const bool overlap : {false, true}) {
        out.push_back({.dp = 8,
                       .tp = 2,
                       .pp = 4,
                       .vpp = schedule == Schedule::kInterleaved ? 2 : 1,
                       .ep = 4,
                       .micro_batch_seqs = 4,
                       .grad_accum = 8,
                       .sp = true,
                       .schedule = schedule,
                       .ep_overlap = overlap});
      }
    }
    return out;
  }

  /// Every way to treat or to offload the layers of a stage, which has two of a kind at most, four under DualPipe.
  static std::vector<Layout> ways_to_do(const Layout& member) {
    std::vector<Layout> out;
    for (std::size_t r = 0; r < kRematCount; ++r) {
      Layout layout = member;
      layout.remat = static_cast<Remat>(r);
      for (const std::int64_t treated : {2, 1, 0}) {
        layout.remat_layers = treated;
        out.push_back(layout);
      }
      for (int offload = 1; offload <= kOffloadAll; ++offload) {
        layout.offload = static_cast<std::uint8_t>(offload);
        for (const std::int64_t away : {2, 1, 0}) {
          layout.offload_layers = (offload & kOffloadActivations) != 0 ? away : 0;
          out.push_back(layout);
        }
      }
    }
    return out;
  }

  static double logits_of(const PassFloor& pass, const Layout& layout) {
    return pass.logits[static_cast<std::size_t>(layout.loss)];
  }
};

/// Of one sharding and the microbatch itself the floor of the fullest stage is its weights, gradients and optimizer
/// state, and with what the allocator cannot use its activations and logits.
TEST_F(StageFloors, AreThePartsOfMemoryThatTheyCount) {
  for (const Layout& member : members()) {
    const NetworkCost<double> cost = cost_of(inner_of(member));
    const std::vector<StageShape> stages = partition(model_, member);
    const PassFloor pass = pass_floor(input(member, cost, stages, {}));
    for (const StateSharding way : {StateSharding{1, 1}, StateSharding{3, 8}}) {
      const bool folded = member.schedule == Schedule::kDualPipe;  // whose first stage has both ends, and never ZeRO-3
      if (folded && way.zero == 3) continue;
      StageStateFloor state = no_state(cost.kinds.size());
      const Layout one = sharded(member, way);
      const MeshChannels<double> sizes = sizes_of(one);
      lower(state, input(one, cost, stages, sizes), folded ? 2 : 1);
      for (Layout layout : ways_to_do(one)) {
        for (const LossKind loss : {LossKind::kWhole, LossKind::kFused, LossKind::kChunked}) {
          layout.loss = loss;
          double fullest = 0;
          for (const MemoryUse<double>& use : memory_by_stage(input(layout, cost, stages, sizes), stages)) {
            const Bytes counted = use.weights + use.gradients + use.optimizer + 1.05 * (use.activations + use.logits);
            fullest = std::max(fullest, counted.value());
          }
          std::vector<StageFloor> floors;
          stage_floors(state, layout, stages, floors);
          const double floor = least_on_stages(floors, pass, layout, logits_of(pass, layout));
          EXPECT_LE(floor, fullest);
          EXPECT_GE(floor, folded ? 0 : fullest * (1 - 1e-8)) << static_cast<int>(layout.remat);
        }
      }
    }
  }
}

/// However it is sharded, and from a larger microbatch too.
TEST_F(StageFloors, AreNoHigherThanTheMemoryOfAnyLayoutThatDoesLess) {
  SearchStats stats;
  for (const Layout& member : members()) {
    const NetworkCost<double> cost = cost_of(inner_of(member));
    const std::vector<StageShape> stages = partition(model_, member);
    Layout larger = member;
    larger.micro_batch_seqs = 16;
    const NetworkCost<double> of_larger = cost_of(inner_of(larger));
    const PassFloor pass = pass_floor(input(larger, of_larger, stages, {}));
    StageStateFloor state = no_state(cost.kinds.size());
    const std::vector<StateSharding> shardings = Space(request_, stats).shardings({.layout = member}, stats);
    ASSERT_GE(shardings.size(), 2U);
    for (const StateSharding& way : shardings) {
      const MeshChannels<double> sizes = sizes_of(sharded(member, way));
      lower(state, input(sharded(member, way), cost, stages, sizes), member.schedule == Schedule::kDualPipe ? 2 : 1);
    }
    std::vector<StageFloor> floors;
    stage_floors(state, member, stages, floors);
    for (const Layout& most : ways_to_do(member)) {
      const double floor = least_on_stages(floors, pass, most, pass.least_logits) + kReserve;
      for (const StateSharding& way : shardings) {
        const Layout layout = sharded(most, way);
        const MeshChannels<double> sizes = sizes_of(layout);
        for (const Layout& less : ways_to_do(layout)) {
          const auto all = [](std::int64_t layers) { return layers == 0 ? 1000 : layers; };
          const bool does_less = less.remat == most.remat && all(less.remat_layers) <= all(most.remat_layers) &&
                                 (less.offload & ~most.offload) == 0 &&
                                 all(less.offload_layers) <= all(most.offload_layers);
          if (!does_less || (most.remat_layers > 0 && most.offload != 0)) continue;
          EXPECT_LE(floor, memory_use(input(less, cost, stages, sizes)).total().value());
        }
      }
    }
  }
}

}  // namespace
}  // namespace scalecalc
