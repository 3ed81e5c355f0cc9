// What the search counts, bounds and leaves out, each by a small case by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "base/divisors.h"
#include "plan/anything_fits.h"
#include "plan/enumerate.h"
#include "plan/memory_floor.h"
#include "plan/places.h"
#include "plan/request.h"
#include "plan/stack_supports.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

constexpr Reader<double> kPlain{};

/// Every layout is costed or cut, once: where nothing is offloaded each candidate has one end.
TEST(SearchCounts, EveryCandidateEndsOnce) {
  HardwareSpec hw = test::switched_chip();
  const ModelSpec dense = test::dense_model(4), moe = test::moe_model(4);
  for (const ModelSpec* model : {&dense, &moe}) {
    for (const double capacity : {0.2e9, 1e9, 4e9}) {
      hw.hbm_capacity = Bytes(capacity);
      PlanRequest request = test::request(*model, hw, 8);
      request.fix.remat_layers = 0;
      for (const std::size_t top : {std::size_t{1}, std::size_t{400}}) {
        request.top = top;
        request.variants = top > 1;
        const SearchStats stats = plan(request).stats;
        const auto cut = [&](Reject why) { return stats.rejected[static_cast<std::size_t>(why)]; };
        EXPECT_EQ(stats.feasible + stats.pruned + cut(Reject::kMemory) + cut(Reject::kPlacement), stats.candidates)
            << model->name << ' ' << capacity << ' ' << top;
      }
    }
  }
}

/// The least of what recipes keep, and beside it what a stage works with, over the pipeline; or what is offloaded.
TEST(MemoryFloor, IsTheLeastOfWhatMayRun) {
  const StateFloor state{1000, 800, 700, 500};
  ActivationFloor activations;
  activations.kept = {100, 60, 50, 40, 10};
  activations.working = {5, 6, 7, 8, 40};
  activations.offloaded = 3;
  const auto least = [&](std::array<bool, kRematCount> remats, std::uint8_t offload, double stages) {
    return least_memory(state, activations, {.remats = remats, .any_offload = offload}, 2, stages).of(4);
  };
  const auto near = [](double found, double wanted) {
    EXPECT_LE(found, wanted);
    EXPECT_NEAR(found, wanted, 1e-8 * wanted);
  };
  near(least({true, false, false, false, false}, 0, 2), (1000 + 4 * (100 + 2 * 5)) / 2.0);
  near(least({true, true, true, true, true}, 0, 2), (1000 + 4 * (40 + 2 * 8)) / 2.0);
  near(least({true, true, true, true, true}, 0, 1), (1000 + 4 * (40 + 8)) / 2.0);
  near(least({true, false, false, false, false}, kOffloadOptimizer, 2),
       (state[kOffloadOptimizer] + 4 * (100 + 2 * 5)) / 2.0);
  near(least({true, false, false, false, false}, kOffloadActivations, 2), (1000 + 4 * (2 * 3)) / 2.0);
}

/// By kind: one dense layer and seven with experts.
TEST(MemoryFloor, CountsEveryKindOfLayer) {
  const ModelSpec model = test::moe_model(8);
  const HardwareSpec hw = test::switched_chip();
  const PlanRequest request = test::request(model, hw, 8);
  const ChipRates<double> chip = read_chip(kPlain, hw, request.efficiency, DType::kBf16);
  const Layout layout{.micro_batch_seqs = 2};
  const NetworkCost<double> cost =
      network_cost(kPlain, model, read_model(kPlain, model), chip, request.workload, inner_of(layout));
  const std::vector<StageShape> stages = partition(model, Layout{});
  const ActivationFloor floor = activation_floor(
      {.model = &model, .workload = &request.workload, .network = &cost, .stages = &stages, .layout = layout});
  const auto bytes = [](const Bytes& b) { return b.value(); };
  for (std::size_t r = 0; r < kRematCount; ++r) {
    EXPECT_NEAR(floor.kept[r], (bytes(cost.kinds[0].saved[r]) + 7 * bytes(cost.kinds[1].saved[r])) / 2, 1e-6);
    const auto again = [&](std::size_t k) {
      return bytes(cost.kinds[k].saved[0] - cost.kinds[k].saved[r] + cost.kinds[k].workspace);
    };
    EXPECT_NEAR(floor.working[r], std::min(again(0), again(1)) / 2, 1e-6);
    EXPECT_LE(floor.offloaded, (bytes(cost.kinds[0].saved[r]) + again(0)) / 2 + 1e-6);
  }
}

/// Two may lie in a node at 400 GB/s, eight fill it; sixteen are on two nodes at least, each of whose eight receive
/// half of the bytes at 50 GB/s each; two that are eight apart are on two nodes.
TEST(BestChannels, OfSwitchesAreTheLeastOfAllWaysToLie) {
  const HardwareSpec hw = test::switched_chip();
  const NetworkRates<double> rates = read_network(kPlain, hw, hw.efficiency);
  const Slice slice = slices_of(hw, 16, 1).at(0);
  const auto best = [&](std::int64_t size, std::int64_t stride = 1) {
    return best_channel(hw, slice, rates, size, false, stride);
  };
  const auto gather = [&](std::int64_t size, std::int64_t stride = 1) { return best(size, stride).gather.value(); };
  const double node = 1.0 / 400e9, leaf = 1.0 / 50e9;
  EXPECT_EQ(gather(1), 0);
  EXPECT_NEAR(gather(2), node / 2, 1e-18);
  EXPECT_NEAR(gather(8), node * 7 / 8, 1e-18);
  EXPECT_NEAR(gather(16), std::max(node * 7 / 8, leaf / 2 / 8), 1e-18);
  EXPECT_NEAR(gather(2, 8), leaf / 2, 1e-18);
  EXPECT_NEAR(best(2).send.value(), node, 1e-18);
  EXPECT_NEAR(best(2, 8).send.value(), leaf, 1e-18) << "to the other node";
}

/// Dense and mixed, with experts over tensor ranks or beside them, sharded in every way.
std::vector<Layout> layouts_on(std::int64_t chips) {
  std::vector<Layout> out;
  for (const std::int64_t tp : {1, 2, 4, 8}) {
    for (const std::int64_t pp : {1, 2, 3, 8}) {
      for (const std::int64_t cp : {1, 2}) {
        if (chips % (tp * pp * cp) != 0) continue;
        const std::int64_t data = chips / (tp * pp * cp);
        for (const std::int64_t ep : {1, 2, 8, 16, 64}) {
          for (const std::int64_t fsdp : divisors(data)) {
            const Layout layout{.dp = data / fsdp, .fsdp = fsdp, .tp = tp, .cp = cp, .pp = pp, .ep = ep};
            out.push_back(layout);
            out.push_back(layout);
            out.back().etp = tp;
          }
        }
      }
    }
  }
  return out;
}

void expect_no_faster(const Channel<double>& channel, const Channel<double>& best) {
  if (channel.size == 1) return;
  const auto near = [&](const auto& least, const auto& placed) {
    EXPECT_LE(least.value(), placed.value() * (1 + 1e-12)) << channel.size;
  };
  near(best.gather, channel.gather);
  near(best.reduce, channel.reduce);
  near(best.all_to_all, channel.all_to_all);
  near(best.send, channel.send);
  near(best.gather_latency, channel.gather_latency);
  near(best.reduce_latency, channel.reduce_latency);
  near(best.all_to_all_latency, channel.all_to_all_latency);
  near(best.send_latency, channel.send_latency);
  near(best.ramp, channel.ramp);
}

/// No group of any placement is faster in any way, experts' among them, on machines of two and of three tiers.
TEST(BestChannels, OfSwitchesAreNoSlowerThanAnyPlacement) {
  std::size_t met = 0;
  using Machine = std::pair<const char*, std::int64_t>;
  for (const auto& [name, chips] : {Machine("h800", 128), Machine("gb200", 144), Machine("h100-sxm", 256)}) {
    const HardwareSpec hw = test::shipped_chip(name);
    const NetworkRates<double> rates = read_network(kPlain, hw, hw.efficiency);
    const Slice slice = slices_of(hw, chips, 1).at(0);
    const Routing routing{.top_k = 8, .n_group = 8, .topk_group = 4};
    for (const Layout& l : layouts_on(chips)) {
      for (const Placement& p : placements(hw, slice, {l.tp, l.cp, l.fsdp, l.dp, l.pp})) {
        if (!experts_fold(p, l)) continue;
        const MeshChannels<double> placed = make_channels(hw, slice, rates, p, l, routing);
        for (const auto* c : {&placed.cp, &placed.pp, &placed.shard, &placed.replicate, &placed.data}) {
          expect_no_faster(*c, best_channel(hw, slice, rates, c->size, false, l.tp));
        }
        for (const auto* c : {&placed.expert_shard, &placed.expert_replicate, &placed.expert_data}) {
          expect_no_faster(*c, best_channel(hw, slice, rates, c->size, true));
        }
        expect_no_faster(placed.ep, best_switched(hw, slice, rates, l.ep, routing, l.etp == 1 ? 1 : l.tp));
        ASSERT_FALSE(testing::Test::HasFailure()) << name << " tp " << l.tp << " pp " << l.pp << " ep " << l.ep;
        ++met;
      }
    }
  }
  EXPECT_GT(met, 1000U);
}

/// Of eight chips on rings of eight, two by two by two have a link of each axis and a whole ring has two; of two on two
/// lines of two one has one. All of 512 have both directions of three rings.
TEST(BestChannels, OfATorusAreTheMostLinksOfItsParts) {
  const HardwareSpec hw = test::torus_chip();
  const NetworkRates<double> rates = read_network(kPlain, hw, hw.efficiency);
  const auto gather = [&](std::int64_t chips, std::int64_t size, bool apart = false) {
    return best_channel(hw, slices_of(hw, chips, 1).at(0), rates, size, apart).gather.value();
  };
  EXPECT_NEAR(gather(512, 8), 7.0 / 8 / (3 * 50e9), 1e-18);
  EXPECT_NEAR(gather(512, 8, true), 7.0 / 8 / (6 * 50e9), 1e-18) << "each pair may be two chips of a ring";
  EXPECT_NEAR(gather(512, 16), 15.0 / 16 / (3 * 50e9), 1e-18) << "8 x 2, or 4 x 2 x 2";
  EXPECT_NEAR(gather(4, 2), 1.0 / 2 / 50e9, 1e-18);
  EXPECT_NEAR(gather(512, 512), 511.0 / 512 / (6 * 50e9), 1e-18);
  EXPECT_EQ(gather(512, 1), 0);
  EXPECT_EQ(gather(512, 3), 0) << "it fits nowhere";
  EXPECT_EQ(best_channel(hw, slices_of(hw, 1024, 2).at(0), rates, 8).gather.value(), 0) << "over two slices";
}

/// No group of any placement has more, merged or folded.
TEST(BestChannels, OfATorusAreNoSlowerThanAnyPlacement) {
  const HardwareSpec hw = test::torus_chip();
  const NetworkRates<double> rates = read_network(kPlain, hw, hw.efficiency);
  std::size_t met = 0;
  for (const Slice& slice : slices_of(hw, 128, 1)) {
    for (const Layout& layout :
         {Layout{.dp = 4, .fsdp = 4, .tp = 4, .cp = 2, .ep = 4},
          Layout{.dp = 2, .fsdp = 8, .tp = 2, .cp = 2, .pp = 2, .ep = 8},
          Layout{.dp = 2, .fsdp = 16, .tp = 4, .ep = 2, .etp = 4}, Layout{.dp = 16, .cp = 4, .pp = 2, .ep = 8}}) {
      for (const Placement& p : placements(hw, slice, {layout.tp, layout.cp, layout.fsdp, layout.dp, layout.pp})) {
        if (!experts_fold(p, layout)) continue;
        const MeshChannels<double> placed = make_channels(hw, slice, rates, p, layout, Routing{});
        const auto expect_no_less = [&](const Channel<double>& channel, bool apart) {
          const Channel<double> best = best_channel(hw, slice, rates, channel.size, apart);
          EXPECT_LE(best.gather.value(), channel.gather.value() * (1 + 1e-12)) << channel.size;
          EXPECT_LE(best.reduce.value(), channel.reduce.value() * (1 + 1e-12)) << channel.size;
        };
        for (const auto* channel : {&placed.tp, &placed.cp, &placed.shard, &placed.replicate, &placed.data}) {
          expect_no_less(*channel, false);
        }
        for (const auto* channel : {&placed.expert_shard, &placed.expert_replicate, &placed.expert_data}) {
          expect_no_less(*channel, true);
        }
        ++met;
      }
    }
  }
  EXPECT_GE(met, 50U);
}

TEST(BestChannels, AreLoweredCoefficientByCoefficient) {
  Channel<double> low, high;
  const auto fill = [](Channel<double>& c, double x) {
    c.gather = c.reduce = c.all_to_all = c.send = SecondsPerByte(x);
    c.gather_latency = c.reduce_latency = c.all_to_all_latency = c.send_latency = c.ramp = Seconds(x);
  };
  fill(low, 1);
  fill(high, 2);
  for (const bool down : {false, true}) {
    Channel<double> bound = down ? high : low;
    lower(bound, down ? low : high);
    for (const SecondsPerByte x : {bound.gather, bound.reduce, bound.all_to_all, bound.send}) EXPECT_EQ(x.value(), 1);
    for (const Seconds x :
         {bound.gather_latency, bound.reduce_latency, bound.all_to_all_latency, bound.send_latency, bound.ramp}) {
      EXPECT_EQ(x.value(), 1);
    }
  }
}

template <class Of>
bool any_member(const PlanRequest& request, const Of& of) {
  SearchStats stats;
  const Space space(request, stats);
  bool out = false;
  for (const Family& family : space.families()) {
    space.members(family, stats, [&](const Branch& branch) { out |= of(branch.layout); });
  }
  return out;
}

/// Thirteen layers, embedding, head and a module are sixteen: eight chunks of two.
TEST(Enumeration, ChunksMayCountModulesAsLayers) {
  const HardwareSpec hw = test::switched_chip();
  ModelSpec model = test::dense_model(13);
  model.mtp_layers = 1;
  const PlanRequest request = test::request(model, hw, 2);
  const auto chunked = [](std::int64_t vpp) {
    return [vpp](const Layout& l) { return l.pp == 2 && l.vpp == vpp && l.schedule == Schedule::kInterleaved; };
  };
  EXPECT_TRUE(any_member(request, chunked(4)));
  model.mtp_layers = 2;
  EXPECT_FALSE(any_member(request, chunked(4))) << "seventeen";
}

TEST(Enumeration, PinnedReplicasLeaveShardsOpen) {
  const HardwareSpec hw = test::switched_chip();
  const ModelSpec model = test::dense_model(4);
  PlanRequest request = test::request(model, hw, 8);
  request.fix.dp = 2;
  EXPECT_TRUE(any_member(request, [](const Layout& l) { return l.dp == 8; })) << "of which four may share weights";
  EXPECT_TRUE(any_member(request, [](const Layout& l) { return l.dp == 2; }));
  EXPECT_FALSE(any_member(request, [](const Layout& l) { return l.dp == 1; }));
  request.fix.fsdp = 2;
  EXPECT_FALSE(any_member(request, [](const Layout& l) { return l.dp != 4; }));
  request.fix.dp = request.fix.fsdp = 1;
  EXPECT_FALSE(any_member(request, [](const Layout& l) { return l.dp != 1; }));
}

/// What was proved of a family holds, by the factor, on faster hardware: the answer is that of a search of its own.
TEST(SearchOnFasterHardware, FindsWhatAFreshSearchDoes) {
  const HardwareSpec hw = test::switched_chip();
  const ModelSpec model = test::dense_model(8);
  for (const double factor : {1.5, 4.0, 16.0}) {
    for (const int rate : {0, 1, 2}) {
      HardwareSpec fast = hw;
      if (rate == 0) {
        for (auto& peak : fast.matmul_peak) {
          if (peak) peak = *peak * factor;
        }
      } else if (rate == 1) {
        fast.hbm_bandwidth = hw.hbm_bandwidth * factor;
      } else {
        scale_bandwidth(fast, 1, factor);
      }
      PlanRequest request = test::request(model, hw, 32);
      Planner planner(request);
      const Goal goal{.top = 1};
      planner.best(goal);
      const Plan found = planner.best_on(fast, factor, goal).plans.at(0);
      request.hw = &fast;
      const Plan fresh = Planner(request).best(goal).plans.at(0);
      EXPECT_EQ(found.layout, fresh.layout) << factor << ' ' << rate;
      EXPECT_EQ(found.step_s, fresh.step_s);
    }
  }
}

TEST(Mechanisms, BeyondWhatWasMeasuredBeginsAboveTheFactor) {
  MeasuredExtent measured;
  const Layout layout{.tp = 8};
  std::size_t tensor = 0;
  while (mechanisms()[tensor].name != "tensor") ++tensor;
  const auto beyond = [&](std::int64_t most) {
    measured.most_ways.at(tensor) = most;
    return unmeasured_in(layout, measured) != 0;
  };
  EXPECT_FALSE(beyond(8 / kBeyondMeasured)) << "as far as it is trusted";
  EXPECT_TRUE(beyond(8 / kBeyondMeasured - 1));
  EXPECT_FALSE(beyond(0)) << "nobody said";
}

TEST(StackCuts, OfOneNameAreOne) {
  const auto release = std::make_shared<StackRelease>();
  for (const char* name : {"a", "b", "a", "c"}) release->facts.push_back({.name = name});
  SearchStats stats;
  stats.launcher = release;
  stats.stack = {3, 5, 4, 0};
  const std::vector<StackCut> cuts = stack_cuts(stats);
  ASSERT_EQ(cuts.size(), 2U);
  EXPECT_EQ(cuts[0].fact->name, "a");
  EXPECT_EQ(cuts[0].layouts, 7U);
  EXPECT_EQ(cuts[1].layouts, 5U);
}

TEST(SupportLevels, AreThoseAtWhichTheSearchDecides) {
  const auto level = [](std::string_view name) {
    for (const SupportQuantity& q : support_quantities()) {
      if (q.name == name) return q.level;
    }
    return std::uint8_t{0};
  };
  for (const char* name : {"tp", "sp", "cp", "cp_comm", "ep", "etp"}) EXPECT_EQ(level(name), kLevelInner) << name;
  for (const char* name : {"pp", "vpp", "schedule", "split"}) EXPECT_EQ(level(name), kLevelPipeline) << name;
  for (const char* name : {"data", "ep_overlap"}) EXPECT_EQ(level(name), kLevelRanks) << name;
  for (const char* name : {"mb", "ga"}) EXPECT_EQ(level(name), kLevelBatch) << name;
  for (const char* name : {"remat", "remat_layers", "loss"}) EXPECT_EQ(level(name), kLevelRemat) << name;
  for (const char* name : {"zero", "dp", "fsdp"}) EXPECT_EQ(level(name), kLevelSharding) << name;
  for (const char* name : {"tp_overlap", "dp_overlap", "seq"}) EXPECT_EQ(level(name), 0) << name << ": of the question";
}

}  // namespace
}  // namespace scalecalc
