// What members share must be what each layout would compute alone: memory to the last bit, ends and gathers as bounds.
#include "plan/member_tables.h"

#include <gtest/gtest.h>

#include <limits>

#include "cost/step_bound.h"
#include "plan/enumerate.h"
#include "plan/memory_floor.h"
#include "plan/places.h"
#include "support/member_costs.h"

namespace scalecalc {
namespace {

class MemberTablesTest : public ::testing::Test, protected test::MemberCosts {
 protected:
  MemberTablesTest() : MemberCosts(test::switched_chip(), test::moe_model(8)) {}
};

TEST_F(MemberTablesTest, MemoryIsThatOfEveryLayoutToTheLastBit) {
  SearchStats stats;
  for (const Schedule schedule : {Schedule::k1F1B, Schedule::kZeroBubble, Schedule::kDualPipe}) {
    const Layout branch{.dp = 8, .tp = 2, .pp = 4, .ep = 4, .grad_accum = 8, .sp = true, .schedule = schedule};
    const NetworkCost<double> cost = cost_of(inner_of(branch));
    const std::vector<StageShape> stages = partition(model_, branch);
    const std::vector<StateSharding> ways = Space(request_, stats).shardings({.layout = branch}, stats);
    MemberTables tables;
    for (const StateSharding& way : ways) {
      const Layout layout = sharded(branch, way);
      const MeshChannels<double> sizes = sizes_of(layout);
      tables.add(input(layout, cost, stages, sizes), {}, {});
    }
    for (const Recipe& recipe : recipes(request_, stats)) {
      Layout layout = branch;
      layout.remat = recipe.remat;
      layout.remat_layers = recipe.some ? 1 : 0;
      layout.loss = recipe.loss;
      tables.recipe(input(layout, cost, stages, MeshChannels<double>{}));
      for (std::size_t i = 0; i < ways.size(); ++i) {
        const Layout whole = sharded(layout, ways[i]);
        const MeshChannels<double> sizes = sizes_of(whole);
        EXPECT_EQ(tables.fullest(i, 1e9), memory_use(input(whole, cost, stages, sizes)).total().value());
      }
    }
  }
}

/// Whatever a layout shards, runs again and offloads.
TEST_F(MemberTablesTest, FloorsAreNoHigherThanTheMemoryOfAnyLayout) {
  SearchStats stats;
  const std::vector<StageShape> model = partition(model_, Layout{});
  for (const Schedule schedule : {Schedule::k1F1B, Schedule::kZeroBubble, Schedule::kDualPipe}) {
    Layout branch{.dp = 8, .tp = 2, .pp = 4, .ep = 4, .micro_batch_seqs = 4, .grad_accum = 8, .sp = true};
    branch.schedule = schedule;
    const auto cost_with = [&](std::int64_t sequences) {
      InnerDegrees inner = inner_of(branch);
      inner.micro_batch_seqs = sequences;
      return cost_of(inner);
    };
    const NetworkCost<double> larger = cost_with(16);
    Layout of_larger = branch;
    of_larger.micro_batch_seqs = 16;
    const ActivationFloor activations = activation_floor(input(of_larger, larger, model, MeshChannels<double>{}));
    const NetworkCost<double> cost = cost_with(4);
    const std::vector<StageShape> stages = partition(model_, branch);
    StateFloor state;
    state.fill(std::numeric_limits<double>::infinity());
    MemberTables tables;
    const std::vector<StateSharding> ways = Space(request_, stats).shardings({.layout = branch}, stats);
    for (const StateSharding& way : ways) {
      const Layout layout = sharded(branch, way);
      const MeshChannels<double> sizes = sizes_of(layout);
      lower(state, input(layout, cost, model, sizes));
      tables.add(input(layout, cost, stages, sizes), {}, {});
    }
    for (const Recipe& recipe : recipes(request_, stats)) {
      for (const std::uint8_t offload : {std::uint8_t{0}, kOffloadOptimizer, kOffloadActivations, kOffloadAll}) {
        if (recipe.some && offload != 0) continue;
        const RecipeVerdict verdict{.remats = {true, true, true, true, true}, .any_offload = offload};
        const double floor = least_memory(state, activations, verdict, branch.pp, 4).of(branch.micro_batch_seqs) + 1e9;
        EXPECT_GT(floor, 1.01e9);
        for (std::size_t i = 0; i < ways.size(); ++i) {
          Layout layout = sharded(with_recipe(branch, recipe), ways[i]);
          const MeshChannels<double> sizes = sizes_of(layout);
          tables.recipe(input(layout, cost, stages, sizes));
          layout.offload = offload;
          const double memory = memory_use(input(layout, cost, stages, sizes)).total().value();
          EXPECT_LE(floor, memory);
          EXPECT_LE(tables.least(i, offload, 1e9), memory);
          EXPECT_GE(tables.least(i, offload, 1e9), memory * (1 - 1e-9)) << "all of it is offloaded";
        }
      }
    }
  }
}

/// [RUN]: per sequence no phase takes longer in a larger microbatch.
TEST_F(MemberTablesTest, ALargerMicrobatchTakesNoLongerPerSequence) {
  const std::vector<StageShape> model = partition(model_, Layout{});
  for (const std::int64_t ep : {1, 4}) {
    for (const std::int64_t tp : {1, 2}) {
      double last = std::numeric_limits<double>::infinity();
      for (std::int64_t sequences = 1; sequences <= 64; ++sequences) {
        const Layout layout{.tp = tp, .ep = ep, .micro_batch_seqs = sequences, .sp = tp > 1};
        const NetworkCost<double> cost = cost_of(inner_of(layout));
        MeshChannels<double> channels = sizes_of(layout);
        channels.tp.gather = channels.tp.reduce = channels.ep.all_to_all = SecondsPerByte(1e-11);
        channels.tp.gather_latency = channels.ep.all_to_all_latency = Seconds(1e-5);
        const StepInput<double> in = input(layout, cost, model, channels);
        const double each = whole_model_time(in, totals_of(*in.network, phases(in))) / static_cast<double>(sequences);
        EXPECT_LE(each, last * (1 + 1e-12)) << sequences;
        last = each;
      }
    }
  }
}

TEST_F(MemberTablesTest, GatheredWeightsLengthenTheOutlineByWhatTheStepShows) {
  const Layout layout{
      .fsdp = 16, .tp = 2, .pp = 2, .grad_accum = 4, .sp = true, .zero = 3, .schedule = Schedule::k1F1B};
  const NetworkCost<double> cost = cost_of(inner_of(layout));
  const std::vector<StageShape> stages = partition(model_, layout);
  MeshChannels<double> channels = sizes_of(layout);
  for (const double seconds_per_byte : {0.0, 1e-12, 1e-9}) {
    channels.shard.gather = channels.expert_shard.gather = SecondsPerByte(seconds_per_byte);
    channels.shard.links = 1;  // its own
    const StepInput<double> in = input(layout, cost, stages, channels);
    Layout free = layout;
    free.zero = 2;
    PassTotals gathered;
    gathering(totals_of(cost, phases(input(free, cost, stages, channels))), gather_times(in), gathered);
    StepOutline bound;
    outline(in, gathered, bound);
    StepOutline step;
    outline(in, totals_of(*in.network, phases(in)), step);
    EXPECT_LE(step_lower_bound(bound), step_lower_bound(step) * (1 + 1e-12));
    EXPECT_GE(step_lower_bound(bound), step_lower_bound(step) * 0.5);
  }
}

/// On its own link, with nothing else sent: what the outline adds is what the step has, put off or not.
TEST_F(MemberTablesTest, GatheredWeightsAloneLengthenThePassesExactly) {
  for (const Schedule schedule : {Schedule::k1F1B, Schedule::kZeroBubble}) {
    const Layout layout{.fsdp = 16, .pp = 2, .grad_accum = 4, .zero = 3, .schedule = schedule};
    const NetworkCost<double> cost = cost_of(inner_of(layout));
    const std::vector<StageShape> stages = partition(model_, layout);
    MeshChannels<double> channels = sizes_of(layout);
    for (const double seconds_per_byte : {0.0, 1e-12, 1e-11, 1e-10, 1e-9}) {
      channels.shard.gather = channels.expert_shard.gather = SecondsPerByte(seconds_per_byte);
      channels.shard.links = 1;
      const StepInput<double> in = input(layout, cost, stages, channels);
      Layout free = layout;
      free.zero = 2;
      PassTotals gathered;
      gathering(totals_of(cost, phases(input(free, cost, stages, channels))), gather_times(in), gathered);
      const PhaseTotals exact = totals_of(cost, phases(in));
      for (std::size_t k = 0; k < exact.layers.size(); ++k) {
        EXPECT_NEAR(gathered.layers[k].time, exact.layers[k].time, 1e-12 * exact.layers[k].time) << seconds_per_byte;
        EXPECT_NEAR(gathered.layers[k].put_off, exact.layers[k].put_off, 1e-12 * exact.layers[k].time);
      }
    }
  }
}

/// Placed groups have the sizes that the degrees give them: of 2 x 4 data ranks, half have the same experts.
TEST_F(MemberTablesTest, PlacedGroupsHaveTheSizesOfTheirDegrees) {
  const Slice slice = slices_of(hw_, 16, 1).at(0);
  const NetworkRates<double> network = read_network(kReader, hw_, request_.efficiency);
  for (const std::int64_t fsdp : {2, 4, 8}) {
    const Layout layout{.dp = 8 / fsdp, .fsdp = fsdp, .tp = 2, .ep = 2, .sp = true, .zero = 3};
    const std::vector<Placement> all = placements(hw_, slice, {2, 1, layout.fsdp, layout.dp, 1});
    ASSERT_FALSE(all.empty());
    const MeshChannels<double> placed =
        make_channels(hw_, slice, network, all.front(), layout, routing_of(model_, request_.workload.runtime.dispatch));
    const MeshChannels<double> sizes = sizes_of(layout);
    EXPECT_EQ(placed.shard.size, sizes.shard.size);
    EXPECT_EQ(placed.data.size, sizes.data.size);
    EXPECT_EQ(placed.expert_shard.size, sizes.expert_shard.size);
    EXPECT_EQ(placed.expert_data.size, sizes.expert_data.size);
    EXPECT_EQ(placed.ep.size, 2);
    EXPECT_EQ(sizes.expert_shard.size, fsdp * 2 / 2) << "two tensor ranks route for themselves, two share the experts";
    EXPECT_EQ(sizes.expert_data.size, 8);
  }
}

}  // namespace
}  // namespace scalecalc
