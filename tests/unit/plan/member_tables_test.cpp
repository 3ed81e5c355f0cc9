// What members share must be what each layout would compute alone: memory to the last bit, ends and gathers as bounds.
#include "plan/member_tables.h"

#include <gtest/gtest.h>

#include "plan/enumerate.h"
#include "plan/places.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

class MemberTablesTest : public ::testing::Test {
 protected:
  MemberTablesTest()
      : hw_(test::switched_chip()),
        model_(test::moe_model(8)),
        request_(test::request(model_, hw_, 64)),
        chip_(read_chip(kReader, hw_, request_.efficiency, DType::kBf16)),
        overlap_(read_overlap(kReader, request_.efficiency)) {}

  StepInput<double> input(const Layout& layout, const NetworkCost<double>& cost, const std::vector<StageShape>& stages,
                          const MeshChannels<double>& channels) const {
    return {.model = &model_,
            .workload = &request_.workload,
            .network = &cost,
            .channels = &channels,
            .overlap = &overlap_,
            .chip = &chip_,
            .stages = &stages,
            .memory_reserve = Bytes(1e9),
            .layout = layout};
  }

  static constexpr Reader<double> kReader{};
  HardwareSpec hw_;
  ModelSpec model_;
  PlanRequest request_;
  ChipRates<double> chip_;
  OverlapRates<double> overlap_;
};

TEST_F(MemberTablesTest, MemoryIsThatOfEveryLayoutToTheLastBit) {
  SearchStats stats;
  for (const Schedule schedule : {Schedule::k1F1B, Schedule::kZeroBubble, Schedule::kDualPipe}) {
    const Layout branch{.dp = 8, .tp = 2, .pp = 4, .ep = 4, .grad_accum = 8, .sp = true, .schedule = schedule};
    const NetworkCost<double> cost =
        network_cost(kReader, model_, read_model(kReader, model_), chip_, request_.workload, inner_of(branch));
    const std::vector<StageShape> stages = partition(model_, branch);
    const std::vector<StateSharding> ways = shardings(request_, branch, stats);
    MemberTables tables;
    for (const StateSharding& way : ways) {
      const Layout layout = sharded(branch, way);
      const MeshChannels<double> sizes = sizes_of(layout);
      tables.add(input(layout, cost, stages, sizes), {});
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

TEST_F(MemberTablesTest, GatheredWeightsLengthenTheOutlineByWhatTheStepShows) {
  const Layout layout{
      .fsdp = 16, .tp = 2, .pp = 2, .grad_accum = 4, .sp = true, .zero = 3, .schedule = Schedule::k1F1B};
  const NetworkCost<double> cost =
      network_cost(kReader, model_, read_model(kReader, model_), chip_, request_.workload, inner_of(layout));
  const std::vector<StageShape> stages = partition(model_, layout);
  MeshChannels<double> channels = sizes_of(layout);
  for (const double seconds_per_byte : {0.0, 1e-12, 1e-9}) {
    channels.shard.gather = channels.expert_shard.gather = SecondsPerByte(seconds_per_byte);
    channels.shard.links = 1;  // its own
    const StepInput<double> in = input(layout, cost, stages, channels);
    Layout free = layout;
    free.zero = 2;
    StepOutline bound;
    outline(in,
            gathering(totals_of(phases(input(free, cost, stages, channels))), gather_times(in), cost.kinds.size(),
                      overlap_.fsdp),
            bound);
    StepOutline step;
    outline(in, totals_of(phases(in)), step);
    EXPECT_LE(step_lower_bound(bound), step_lower_bound(step) * (1 + 1e-12));
    EXPECT_GE(step_lower_bound(bound), step_lower_bound(step) * 0.5);
  }
}

}  // namespace
}  // namespace scalecalc
