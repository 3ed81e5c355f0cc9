// What the search keeps from one layout to the next must be what each would compute alone, to the last bit.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <tuple>

#include "config/catalog.h"
#include "cost/operation_sums.h"
#include "cost/stage_memory.h"
#include "cost/step_bound.h"
#include "plan/enumerate.h"
#include "plan/places.h"
#include "plan/stack_supports.h"
#include "plan/ways_to_fit.h"
#include "support/member_costs.h"

namespace scalecalc {
namespace {

constexpr Reader<double> kNumbers{};

/// Of types that are doubles and nothing else.
template <class T>
bool same_bits(const T& a, const T& b) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % sizeof(double) == 0);
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const T& x, const T& y) { return same_bits(x, y); });
}

TEST(SharedWork, LayerCostsAreTheSameWhateverWasAskedBefore) {
  for (const char* name :
       {"deepseek-v3", "qwen3-235b-a22b", "gpt-oss-120b", "jamba-1.5-large", "llama4-maverick", "llama3-8b"}) {
    const ModelSpec model = test::shipped_model(name);
    HardwareSpec hw = test::switched_chip();
    hw.efficiency.moe_imbalance.value = 1.3;
    const ChipRates<double> chip = read_chip(kNumbers, hw, hw.efficiency, DType::kBf16);
    Workload workload = test::workload(4096);
    workload.optimizer.orthogonalizes = true;
    const ModelOps<double> ops = read_model(kNumbers, model);
    OperationSums sums;
    for (const std::int64_t ep : {1, 8, 2}) {
      for (const std::int64_t tp : {1, 4}) {
        for (const std::int64_t sequences : {1, 3, 4, 1}) {
          for (const std::int64_t cp : {1, 4}) {
            for (const std::int64_t etp : {std::int64_t{1}, tp}) {
              const InnerDegrees inner{
                  .tp = tp, .cp = cp, .ep = ep, .etp = etp, .micro_batch_seqs = sequences, .sp = tp > 1 && ep > 1};
              const NetworkCost<double> alone = network_cost(kNumbers, model, ops, chip, workload, inner);
              const NetworkCost<double> shared = network_cost(kNumbers, model, ops, chip, workload, inner, &sums);
              ASSERT_TRUE(same_bits(alone.kinds, shared.kinds)) << name << " ep " << ep << " tp " << tp;
              ASSERT_TRUE(same_bits(alone.embedding, shared.embedding)) << name;
              ASSERT_TRUE(same_bits(alone.head, shared.head)) << name;
              ASSERT_TRUE(same_bits(alone.mtp, shared.mtp)) << name;
              for (std::size_t t = 0; t < alone.towers.size(); ++t) {
                ASSERT_TRUE(same_bits(alone.towers[t].layer, shared.towers[t].layer)) << name;
              }
            }
          }
        }
      }
    }
  }
}

class SharedOfMember : public ::testing::Test, protected test::MemberCosts {
 protected:
  SharedOfMember() : MemberCosts(test::switched_chip(), test::shipped_model("deepseek-v3")) {
    overlap_.tp = overlap_.ep = 0.4;
    request_.workload.memory.update_bytes = 4;
    request_.workload.memory.fragmentation.value = 0.05;
  }
};

TEST_F(SharedOfMember, PassesOfAPolicyAreTheSameWithThoseOfNone) {
  Layout branch{.dp = 2, .tp = 2, .pp = 4, .ep = 4, .micro_batch_seqs = 2, .grad_accum = 8, .sp = true};
  branch.schedule = Schedule::k1F1B;
  const NetworkCost<double> cost = cost_of(inner_of(branch));
  const std::vector<StageShape> stages = partition(model_, branch);
  MeshChannels<double> channels = sizes_of(branch);
  channels.tp.gather = channels.tp.reduce = channels.ep.all_to_all = SecondsPerByte(1e-11);
  channels.tp.links = 1;
  channels.ep.links = 2;
  for (const bool paired : {false, true}) {
    branch.ep_overlap = paired;
    const Phases<double> plain = phases(input(branch, cost, stages, channels));
    SearchStats stats;
    for (const Recipe& recipe : recipes(request_, stats)) {
      const StepInput<double> in = input(with_recipe(branch, recipe), cost, stages, channels);
      const Phases<double> alone = phases(in);
      const Phases<double> shared = phases(in, &plain);
      EXPECT_TRUE(same_bits(alone.forward, shared.forward));
      EXPECT_TRUE(same_bits(alone.backward, shared.backward));
      EXPECT_TRUE(same_bits(alone.kept_forward, shared.kept_forward));
      EXPECT_TRUE(same_bits(alone.kept_backward, shared.kept_backward));
      EXPECT_TRUE(same_bits(alone.embedding, shared.embedding));
      EXPECT_TRUE(same_bits(alone.head, shared.head));
      EXPECT_TRUE(same_bits(alone.embedding_forward, shared.embedding_forward));
      EXPECT_TRUE(same_bits(alone.head_forward, shared.head_forward));
      EXPECT_EQ(alone.forward_whole.value(), shared.forward_whole.value());
    }
  }
}

TEST_F(SharedOfMember, MemoryOnAStateIsThatOfTheWholeLayout) {
  Layout branch{.dp = 8, .tp = 2, .pp = 4, .ep = 4, .grad_accum = 8, .sp = true, .schedule = Schedule::k1F1B};
  const NetworkCost<double> cost = cost_of(inner_of(branch));
  const std::vector<StageShape> stages = partition(model_, branch);
  SearchStats stats;
  for (const std::int64_t fsdp : {1, 4}) {
    const Layout layout = sharded(branch, {static_cast<std::uint8_t>(fsdp > 1 ? 3 : 1), fsdp});
    const MeshChannels<double> sizes = sizes_of(layout);
    const std::vector<MemoryUse<double>> states = memory_of_state(input(layout, cost, stages, sizes));
    for (const Recipe& recipe : recipes(request_, stats)) {
      for (const std::uint8_t offload : {std::uint8_t{0}, kOffloadOptimizer, kOffloadActivations, kOffloadAll}) {
        if (recipe.some && offload != 0) continue;
        StepInput<double> in = input(with_recipe(layout, recipe), cost, stages, sizes);
        in.layout.offload = offload;
        const MemoryUse<double> alone = memory_use(in);
        EXPECT_TRUE(same_bits(alone, memory_use_on(in, states)));
        EXPECT_TRUE(same_bits(alone, memory_use(in, memory_before_offload(in, states))));
      }
    }
  }
}

/// [RUN], of what a split backward needs too: see step_lower_bound.
TEST_F(SharedOfMember, NothingOfAPassIsShorterPerSequenceInASmallerMicrobatch) {
  for (const std::int64_t tp : {1, 4}) {
    for (const std::int64_t ep : {1, 8}) {
      PassTotals last;
      for (std::int64_t sequences = 32; sequences >= 1; --sequences) {
        const Layout layout{.tp = tp, .ep = ep, .micro_batch_seqs = sequences, .sp = tp > 1};
        const NetworkCost<double> cost = cost_of(inner_of(layout));
        MeshChannels<double> channels = sizes_of(layout);
        channels.tp.gather = channels.tp.reduce = channels.ep.all_to_all = SecondsPerByte(1e-11);
        channels.tp.gather_latency = channels.ep.all_to_all_latency = Seconds(1e-5);
        const std::vector<StageShape> stages = partition(model_, Layout{});
        PassTotals passes = totals_of(cost, phases(input(layout, cost, stages, channels)));
        const double share = static_cast<double>(sequences) / static_cast<double>(sequences + 1);
        const auto expect_no_less = [&](double now, double before) {
          EXPECT_GE(now, before * share * (1 - 1e-12)) << sequences;
        };
        if (sequences < 32) {
          for (std::size_t k = 0; k < passes.layers.size(); ++k) {
            const LayerPasses& now = passes.layers[k];
            const LayerPasses& before = last.layers[k];
            expect_no_less(now.time, before.time);
            expect_no_less(now.time - now.put_off, before.time - before.put_off);
          }
          expect_no_less(passes.embedding.time.value(), last.embedding.time.value());
          expect_no_less(passes.head.time.value(), last.head.time.value());
          expect_no_less((passes.head.time - passes.head.put_off).value(),
                         (last.head.time - last.head.put_off).value());
          expect_no_less(passes.forward_whole, last.forward_whole);
          expect_no_less(passes.boundary.value(), last.boundary.value());
        }
        last = std::move(passes);
      }
    }
  }
}

/// Members that are counted together are as many as one by one, and the cuts are the same; of a stack whose facts look
/// at microbatches too.
TEST(SharedWork, MembersAlikeAreAllOfThem) {
  using Case = std::pair<const char*, const char*>;
  for (const auto& [name, stack] :
       {Case("deepseek-v3", "megatron"), Case("llama3-8b", "megatron"), Case("llama3-8b", "maxtext")}) {
    const ModelSpec model = test::shipped_model(name);
    const HardwareSpec hw = test::switched_chip();
    PlanRequest request = test::request(model, hw, 64);
    request.stack = stack_release(Catalog(), stack, "");
    SearchStats stats;
    const Space space(request, stats);
    EXPECT_EQ(space.facts().tells_batches_apart(), stack == std::string("maxtext"));
    std::uint64_t all = 0;
    std::uint64_t groups = 0;
    for (const scalecalc::FamilyRun& run : space.runs()) {
      using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, bool, bool, FactSet, double, bool>;
      const auto key = [](const Branch& b, std::int64_t sequences, std::int64_t accumulated) {
        return Key{sequences,
                   accumulated,
                   b.layout.pp,
                   b.layout.dp,
                   b.layout.schedule == Schedule::kDualPipe,
                   b.layout.ep_overlap,
                   b.facts,
                   b.stages->with_layers,
                   b.stages->most_treated > 0};
      };
      std::map<Key, std::uint64_t> each, alike;
      SearchStats of_each, of_alike;
      for (std::size_t f = run.begin; f < run.end; ++f) {
        space.members(space.family(run, f), of_each,
                      [&](const Branch& b) { ++each[key(b, b.layout.micro_batch_seqs, b.layout.grad_accum)]; });
      }
      space.members_alike(run, of_alike, [&](const Branch& b, std::uint64_t count, const auto& microbatches) {
        for (const Space::Microbatch& of : microbatches) {
          EXPECT_EQ(of.sequences, space.family(run, run.begin + of.family).layout.micro_batch_seqs);
          alike[key(b, of.sequences, of.accumulated)] += count;
          all += count;
        }
        ++groups;
      });
      ASSERT_EQ(each, alike) << name;
      ASSERT_EQ(of_each.rejected, of_alike.rejected) << name;
      ASSERT_EQ(of_each.stack, of_alike.stack) << name;
    }
    EXPECT_TRUE(all > groups || space.facts().tells_batches_apart());
  }
}

}  // namespace
}  // namespace scalecalc
