// Bounds are no higher than any layout's step, and no lower than they must be: where communication and the update take
// no time, what a bound leaves out is nothing, so it is the least step itself.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "plan/family_search.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

/// Links and memory without end: only matmuls take time.
HardwareSpec only_matmuls() {
  HardwareSpec hw = test::switched_chip();
  for (Tier& tier : hw.network) {
    tier.switched.bandwidth_per_chip = BytesPerSecond(1e30);
    tier.switched.latency = Seconds(0);
  }
  hw.hbm_bandwidth = BytesPerSecond(1e30);
  hw.vector_peak = FlopsPerSecond(1e30);
  hw.hbm_capacity = Bytes(1e15);
  return hw;
}

/// The least step per token of the layouts of a family, each costed by itself on its first placement.
class Steps {
 public:
  explicit Steps(const PlanRequest& request) : request_(request), inputs_(request) {}

  double least(const Space& space, const Family& family, const std::vector<Recipe>& recipes) const {
    double out = std::numeric_limits<double>::infinity();
    SearchStats stats;
    const NetworkCost<double> cost =
        network_cost(kReader, *request_.model, inputs_.ops, inputs_.chip, request_.workload, inner_of(family.layout));
    space.members(family, stats, [&](const Branch& branch) {
      for (const StateSharding& sharding : space.shardings(branch, stats)) {
        Layout layout = sharded(branch.layout, sharding);
        for (const Recipe& recipe : recipes) {
          if (recipe.some) continue;
          layout = with_recipe(layout, recipe);
          out = std::min(out, step_s(branch, layout, cost) / tokens(layout));
        }
      }
    });
    return out;
  }

  /// The same of those that fit, each made to by treating or offloading as little as it must.
  double least_that_fits(const Space& space, const Family& family, const std::vector<Recipe>& recipes) const {
    double out = std::numeric_limits<double>::infinity();
    SearchStats stats;
    const NetworkCost<double> cost =
        network_cost(kReader, *request_.model, inputs_.ops, inputs_.chip, request_.workload, inner_of(family.layout));
    std::vector<FittedLayout> ways;
    space.members(family, stats, [&](const Branch& branch) {
      for (const StateSharding& sharding : space.shardings(branch, stats)) {
        for (const Recipe& recipe : recipes) {
          const Layout layout = with_recipe(sharded(branch.layout, sharding), recipe);
          const MeshChannels<double> sizes = sizes_of(layout);
          StepInput<double> in = input(branch, layout, cost, sizes);
          const FitOutcome outcome = recipe.some ? fit_with_remat(request_, in, ways)
                                                 : fit_with_offload(request_, in, ways, most_offload(request_, layout));
          if (outcome != FitOutcome::kFits) continue;
          for (const FittedLayout& way : ways) out = std::min(out, step_s(branch, way.layout, cost) / tokens(layout));
        }
      }
    });
    return out;
  }

 private:
  double tokens(const Layout& layout) const { return static_cast<double>(layout.batch_seqs() * request_.workload.seq); }

  double step_s(const Branch& branch, const Layout& layout, const NetworkCost<double>& cost) const {
    const Slice& slice = request_.slices[branch.slice];
    const std::vector<Placement> all =
        placements(*request_.hw, slice, {layout.tp, layout.cp, layout.fsdp, layout.dp, layout.pp});
    if (all.empty()) return std::numeric_limits<double>::infinity();
    const MeshChannels<double> channels =
        make_channels(*request_.hw, slice, inputs_.network, all.front(), layout, inputs_.routing);
    return step_time(kReader, input(branch, layout, cost, channels)).total().value();
  }

  StepInput<double> input(const Branch& branch, const Layout& layout, const NetworkCost<double>& cost,
                          const MeshChannels<double>& channels) const {
    return {.model = request_.model,
            .workload = &request_.workload,
            .network = &cost,
            .channels = &channels,
            .overlap = &inputs_.overlap,
            .chip = &inputs_.chip,
            .stages = &branch.stages->shapes,
            .layout = layout};
  }

  static constexpr Reader<double> kReader{};
  const PlanRequest& request_;
  SearchInputs inputs_;
};

/// The search inside families of a request.
struct Inside {
  explicit Inside(const PlanRequest& request)
      : space(request, stats), all(recipes(request, stats)), inputs(request), search(inputs, space, all, known) {}

  SearchStats stats;
  Space space;
  std::vector<Recipe> all;
  SearchInputs inputs;
  RunBounds known;
  FamilySearch search;
};

class FamilyBounds : public testing::TestWithParam<bool> {
 protected:
  FamilyBounds() : hw_(only_matmuls()), model_(GetParam() ? test::moe_model(8) : test::dense_model(8)) {
    ask(GetParam() ? 8 : 16);
  }
  void ask(std::int64_t chips) { request_ = test::request(model_, hw_, chips); }

  /// `of` is asked of every family: its bound, that of its run alone, and the least step of its layouts.
  template <class Of>
  void each_family(const Of& of) {
    Inside in(request_);
    FamilySearch& search = in.search;
    const Steps steps(request_);
    std::size_t met = 0;
    for (const Family& family : in.space.families()) {
      const double least = steps.least(in.space, family, in.all);
      if (!std::isfinite(least)) continue;
      const RunBound run = search.run_bound(family);
      const double bound = search.bound(family, run.floors);
      of(family, bound, search.token_s(family, run), least);
      ++met;
    }
    EXPECT_GE(met, 2U);
  }

  HardwareSpec hw_;
  ModelSpec model_;
  PlanRequest request_;
};

TEST_P(FamilyBounds, AreTheLeastStepWhereOnlyMatmulsTakeTime) {
  each_family([](const Family& family, double bound, double run, double least) {
    const Layout& l = family.layout;
    EXPECT_LE(bound, least) << l.tp << ' ' << l.cp << ' ' << l.ep << ' ' << l.micro_batch_seqs;
    EXPECT_GE(bound, least * (1 - 1e-6)) << l.tp << ' ' << l.cp << ' ' << l.ep << ' ' << l.micro_batch_seqs;
    EXPECT_LE(run, bound);
  });
}

/// That of the microbatch rounded up to a power of two: no higher, the family's own where it is one.
void expect_rounded(FamilySearch& search, const Family& family, const RunFloors& floors, double bound) {
  const double rounded = search.rounded_bound(family, floors);
  EXPECT_LE(rounded, bound * (1 + 1e-12));
  if (!std::has_single_bit(static_cast<std::uint64_t>(family.layout.micro_batch_seqs))) return;
  EXPECT_EQ(rounded, bound);
}

/// What a larger microbatch says of a smaller one bounds it too ([RUN]), and of itself as well as its own bound.
TEST_P(FamilyBounds, OfALargerMicrobatchAreNoHigher) {
  hw_ = test::switched_chip();
  hw_.efficiency.host_overhead.value = 1e-5;
  ask(32);
  Inside in(request_);
  FamilySearch& search = in.search;
  const Space& space = in.space;
  std::size_t met = 0;
  for (const scalecalc::FamilyRun& run : space.runs()) {
    const Family last = space.family(run, run.last());
    const RunFloors floor = search.run_bound(last).floors;
    for (std::size_t f = run.begin; f < run.end; ++f) {
      const Family family = space.family(run, f);
      const double bound = search.bound(family, floor);
      const std::optional<double> scaled = search.bound(family, floor, last);
      ASSERT_TRUE(scaled);
      EXPECT_TRUE(*scaled <= bound * (1 + 1e-12)) << *scaled << " against " << bound;
      expect_rounded(search, family, floor, bound);
      if (f == run.last() && std::has_single_bit(static_cast<std::uint64_t>(last.layout.micro_batch_seqs)) &&
          std::isfinite(bound)) {
        EXPECT_NEAR(*scaled / bound, 1, 1e-12);
      }
      ++met;
    }
  }
  EXPECT_GE(met, 20U);
}

/// Where memory is short a family is bounded by its layouts that fit, whose layers are treated or offloaded as they
/// must be; where none does the bound has no end.
TEST_P(FamilyBounds, AreOfLayoutsThatFit) {
  hw_.pcie_bandwidth = BytesPerSecond(20e9);
  hw_.host_ram = Bytes(8e12);
  int raised = 0, without_end = 0, uneven = 0;
  for (const double capacity : {1e9, 1.5e9, 2e9, 3e9, 4e9, 8e9}) {
    hw_.hbm_capacity = Bytes(1e15);
    ask(8);
    request_.workload.batch_seqs = 96;
    Inside with_all(request_);
    HardwareSpec small = hw_;
    small.hbm_capacity = Bytes(capacity);
    PlanRequest short_of_memory = request_;
    short_of_memory.hw = &small;
    Inside in(short_of_memory);
    const Steps steps(short_of_memory);
    for (const Family& family : in.space.families()) {
      const double least = steps.least_that_fits(in.space, family, in.all);
      const double bound = in.search.bound(family, in.search.run_bound(family).floors);
      const double of_all = with_all.search.bound(family, with_all.search.run_bound(family).floors);
      expect_rounded(in.search, family, in.search.run_bound(family).floors, bound);
      uneven += std::has_single_bit(static_cast<std::uint64_t>(family.layout.micro_batch_seqs)) ? 0 : 1;
      EXPECT_LE(bound, least * (1 + 1e-12)) << capacity;
      EXPECT_GE(bound, of_all * (1 - 1e-12)) << capacity;
      without_end += std::isfinite(bound) ? 0 : 1;
      raised += std::isfinite(bound) && bound > of_all * 1.001 ? 1 : 0;
    }
  }
  EXPECT_GE(raised, 10);
  EXPECT_GE(without_end, 10);
  EXPECT_GE(uneven, 10);
}

/// Without a pipeline every stage is the mean one and there is no bubble; the microbatch costs what its sequences do.
TEST_P(FamilyBounds, ThatOfARunIsTheLeastStepWithoutAPipeline) {
  request_.fix.pp = 1;
  each_family([](const Family& family, double, double run, double least) {
    const Layout& l = family.layout;
    EXPECT_LE(run, least) << l.tp << ' ' << l.cp << ' ' << l.ep << ' ' << l.micro_batch_seqs;
    EXPECT_GE(run, least * (1 - 1e-6)) << l.tp << ' ' << l.cp << ' ' << l.ep << ' ' << l.micro_batch_seqs;
  });
}

/// A node is all that a tensor group of eight fills, so its sums are those of every placement; data and stages are in
/// other nodes, which cost nothing. Experts are the same on the ranks of a node that route for themselves: summing
/// their gradients is an end, which bounds of members leave out.
TEST_P(FamilyBounds, TensorRanksSendNoLessThanTheyMust) {
  hw_.network[0].switched.bandwidth_per_chip = BytesPerSecond(400e9);
  ask(16);
  request_.fix.tp = 8;
  request_.fix.ep = 1;
  request_.efficiency.overlap_tp.value = 0;
  const double ends = GetParam() ? 0.03 : 1e-6;
  each_family([&](const Family& family, double bound, double run, double least) {
    const Layout& l = family.layout;
    EXPECT_LE(bound, least * (1 + 1e-12)) << l.cp << ' ' << l.etp << ' ' << l.micro_batch_seqs;
    EXPECT_GE(bound, least * (1 - ends)) << l.cp << ' ' << l.etp << ' ' << l.micro_batch_seqs;
    EXPECT_LE(run, bound);
  });
}

INSTANTIATE_TEST_SUITE_P(Models, FamilyBounds, testing::Bool());

}  // namespace
}  // namespace scalecalc
