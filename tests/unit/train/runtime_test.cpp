// What a step's kernels are launched by, what hides the experts' exchange, how even their load is, what casts cost.
#include <gtest/gtest.h>

#include <algorithm>

#include "config/catalog.h"
#include "support/errors.h"
#include "support/scratch.h"
#include "train/question.h"
#include "train/resolve.h"

namespace scalecalc {
namespace {

TrainQuestion mixtral() {
  TrainQuestion q{.model = "mixtral-8x7b", .hardware = "h100-sxm", .chips = 64};
  q.stack = "any";  // pins that no one launches together are costed all the same
  q.fix.tp = 1;
  q.fix.cp = 1;
  q.fix.pp = 1;
  q.fix.ep = 8;
  q.fix.dp = 64;
  q.fix.micro_batch_seqs = 1;
  q.fix.remat = Remat::kFull;
  q.fix.remat_layers = 0;  // of all layers, however many more would fit
  q.top = 1;
  return q;
}

std::vector<std::string> coefficients(const std::vector<std::pair<std::string, std::string>>& values) {
  std::vector<std::string> out;
  for (const auto& [name, value] : values) {
    out.push_back("hw.efficiency." + name + ".value=" + value);
    out.push_back("hw.efficiency." + name + ".source=test");
  }
  return out;
}

double part(const TrainQuestion& q, const std::string& name) {
  const TrainAnswer found = answer(q, Catalog());
  if (found.plans.empty()) throw std::runtime_error("nothing fits");
  for (const auto& [cause, seconds] : found.plans.front().figures.time_s) {
    if (cause == name) return seconds;
  }
  throw std::runtime_error("no such part: " + name);
}

bool assumes(const TrainQuestion& q, const std::string& flag) {
  for (const Assumption& a : answer(q, Catalog()).assumptions) {
    if (a.flag == flag) return true;
  }
  return false;
}

TEST(Runtime, SaysWhichDispatcherItAssumesAndRefusesOneThatTheStackHasNot) {
  TrainQuestion q = mixtral();
  EXPECT_TRUE(assumes(q, "--moe-dispatcher"));
  q.dispatch = ExpertDispatch::kAllToAll;
  EXPECT_FALSE(assumes(q, "--moe-dispatcher"));
  q.stack = "deepspeed";
  EXPECT_EQ(resolve(q, Catalog()).workload.runtime.dispatch, ExpertDispatch::kAllToAll);
  q.dispatch = ExpertDispatch::kDeepEp;
  const auto refused = [&](const char* text) {
    return test::problems_of([&] { resolve(q, Catalog()); }).find(text) != std::string::npos;
  };
  EXPECT_TRUE(refused("--moe-dispatcher deepep: deepspeed ") && refused(" has only all-to-all"));
  q.stack = "megatron@0.10";  // of February 2025; DeepEP is of Megatron Core 0.11
  EXPECT_TRUE(refused("megatron 0.10 has only all-to-all"));
  q.stack = "megatron@0.11";
  EXPECT_EQ(resolve(q, Catalog()).workload.runtime.dispatch, ExpertDispatch::kDeepEp);
  q.dispatch.reset();
  q.stack = "megatron@0.10";
  EXPECT_EQ(resolve(q, Catalog()).workload.runtime.dispatch, ExpertDispatch::kAllToAll);
  q.dispatch = ExpertDispatch::kDeepEp;
  q.model = "llama3-8b";
  EXPECT_NE(test::problems_of([&] { resolve(q, Catalog()); }).find("--moe-dispatcher has no meaning"),
            std::string::npos);
}

TEST(Runtime, ACapturedStepLeavesAShareOfTheOverheads) {
  TrainQuestion q = mixtral();
  q.set =
      coefficients({{"captured_share", "0.25"}, {"step_overhead", "0s"}, {"scale_loss", "0"}, {"host_overhead", "0s"}});
  const double launched = part(q, "overhead");
  q.graphs = GraphCapture::kStep;
  EXPECT_NEAR(part(q, "overhead"), launched / 4, 1e-9 * launched);
  q.graphs = GraphCapture::kLayer;
  const double layers = part(q, "overhead");
  const auto none = coefficients({{"expert_overhead", "0s"}});
  q.set.insert(q.set.end(), none.begin(), none.end());
  EXPECT_GT(layers, part(q, "overhead")) << "the host still runs the experts";
  EXPECT_FALSE(assumes(q, "--graphs"));
  q.graphs = GraphCapture::kNone;
  EXPECT_TRUE(assumes(q, "--graphs"));
}

TEST(Runtime, AnotherMicrobatchHidesTheExpertsExchange) {
  TrainQuestion q = mixtral();
  q.set = coefficients({{"overlap.ep", "0.2"}, {"overlap.ep_paired", "1"}});
  EXPECT_TRUE(assumes(q, "--ep-overlap off"));
  q.fix.ep_overlap = false;
  const double exposed = part(q, "ep_exposed");
  q.fix.ep_overlap = true;
  // All of it may hide; what is left is what its own kernels take from the compute.
  EXPECT_LT(part(q, "ep_exposed"), exposed / 2);
  EXPECT_FALSE(assumes(q, "--ep-overlap off"));
}

/// What the masks hold stands in tests/unit/cost/layer_cost_test.cpp.
TEST(Runtime, DropoutIsOnWhereItIsAskedFor) {
  TrainQuestion q = mixtral();
  EXPECT_FALSE(resolve(q, Catalog()).workload.dropout);
  q.dropout = true;
  EXPECT_TRUE(resolve(q, Catalog()).workload.dropout);
}

/// Of the dense MLP, 2 bytes a parameter of weights and gradients each beside it, Adam keeps two moments of 4 bytes and
/// a copy of 4; an update of bf16 weights alone reads the gradient of 4 bytes and reads and writes 2 + 2 x 4.
TEST(Runtime, WithoutMastersTheUpdateTouchesTheWeightsThemselves) {
  TrainQuestion q = mixtral();
  q.optimizer = "adam";
  q.precision = "bf16";
  EXPECT_EQ(resolve(q, Catalog()).workload.optimizer.state_bytes, 12);
  EXPECT_EQ(resolve(q, Catalog()).workload.optimizer.update_bytes, 4 + 2 * (8 + 4) + 2);
  q.master_weights = false;
  EXPECT_EQ(resolve(q, Catalog()).workload.optimizer.state_bytes, 8);
  EXPECT_EQ(resolve(q, Catalog()).workload.optimizer.update_bytes, 4 + 2 * (8 + 2));
  q.precision = "fp32";
  EXPECT_THROW(resolve(q, Catalog()), UserError) << "which have no copy";
}

/// What a node sends is its chips' together.
TEST(Runtime, NodesMayBeCabledTheirOwnWay) {
  TrainQuestion q = mixtral();
  q.chips = 16;
  q.node_bandwidth = 100e9;
  EXPECT_DOUBLE_EQ(resolve(q, Catalog()).hw.network[1].switched.bandwidth_per_chip.value(), 12.5e9);
  q.chips = 8;
  EXPECT_THROW(resolve(q, Catalog()), UserError) << "one node";
}

/// The newest release of the month, as configs/stacks/megatron.yaml lists them.
TEST(Runtime, SoftwareMayBeThatOfADate) {
  TrainQuestion q = mixtral();
  q.stack = "megatron";
  const auto release = [&](const char* date) {
    q.as_of = date;
    return resolve(q, Catalog()).launcher;
  };
  ASSERT_NE(release("2026-08"), nullptr);
  EXPECT_NE(release("2024-09") == nullptr ? "" : release("2024-09")->version, release("2026-08")->version);
  EXPECT_EQ(release("2012-01"), nullptr) << "nobody knows what it could do";
  const std::vector<Assumption> said = resolve(q, Catalog()).assumptions;
  EXPECT_TRUE(std::any_of(said.begin(), said.end(), [](const Assumption& a) {
    return a.text.find("the oldest known release of megatron is newer than 2012-01") != std::string::npos;
  }));
  q.as_of = "yesterday";
  EXPECT_THROW(resolve(q, Catalog()), UserError);
  q.as_of = "2026-08";
  q.stack = "megatron@" + release("2026-08")->version;
  EXPECT_THROW(resolve(q, Catalog()), UserError) << "both say which release";
}

TEST(Runtime, EvenLoadsLeaveNoOneWaiting) {
  TrainQuestion q = mixtral();
  q.set = coefficients({{"moe_imbalance", "1.5"}});
  const double uneven = part(q, "compute");
  q.balanced_experts = true;
  const double even = part(q, "compute");
  q.balanced_experts = false;
  q.set = coefficients({{"moe_imbalance", "1"}});
  EXPECT_DOUBLE_EQ(even, part(q, "compute"));
  EXPECT_GT(uneven, 1.2 * even);
}

/// Experts that are filled up to their capacity multiply as many rows, whatever is routed; nobody waits for another.
TEST(Runtime, ExpertsOfAFixedCapacityMultiplyItsRows) {
  TrainQuestion q = mixtral();
  q.set = coefficients({{"moe_imbalance", "1.5"}, {"grouped_half_rows", "1"}});
  q.expert_capacity = 1;
  const double mean = part(q, "compute");
  const double exchanged = part(q, "ep_exposed");
  q.expert_capacity = 1.5;
  const double filled = part(q, "compute");
  q.expert_capacity.reset();
  EXPECT_NEAR(filled / part(q, "compute"), 1, 0.02) << "as many rows as the slowest group's";
  EXPECT_TRUE(assumes(q, "--balanced-experts"));
  q.balanced_experts = true;
  EXPECT_DOUBLE_EQ(mean, part(q, "compute"));
  q.expert_capacity = 1.5;
  EXPECT_GT(part(q, "ep_exposed"), 1.2 * exchanged) << "places are sent, filled or not";
  EXPECT_FALSE(assumes(q, "--balanced-experts"));
}

/// Loads whose fullest of 8 ranks has half as much again: the rows, the exchange and the tensors of places filled
/// to 1.5.
TEST(Runtime, TheFullestExpertRankSetsThePace) {
  const test::Scratch scratch;
  TrainQuestion q = mixtral();
  q.expert_capacity = 1.5;
  const TrainAnswer filled = answer(q, Catalog());
  q.expert_capacity.reset();
  q.expert_load = scratch.put("load.csv", "expert,tokens\n0,3\n1,1\n2,2\n3,2\n4,2\n5,2\n6,2\n7,2\n");
  const TrainAnswer loaded = answer(q, Catalog());
  ASSERT_FALSE(filled.plans.empty() || loaded.plans.empty());
  EXPECT_EQ(loaded.plans[0].plan.time.compute.value(), filled.plans[0].plan.time.compute.value());
  EXPECT_EQ(loaded.plans[0].plan.time.ep.value(), filled.plans[0].plan.time.ep.value());
  // The sum of a token's experts writes one tensor of d_model, which the load counts with its top_k inputs.
  const double extra = loaded.plans[0].plan.time.hbm.value() / filled.plans[0].plan.time.hbm.value();
  EXPECT_GE(extra, 1);
  EXPECT_LT(extra, 1.01);
  EXPECT_NEAR(loaded.plans[0].plan.memory.total().value(), filled.plans[0].plan.memory.total().value(), 1);
  const auto said = std::find_if(loaded.assumptions.begin(), loaded.assumptions.end(),
                                 [](const Assumption& a) { return a.flag == "--expert-load"; });
  ASSERT_NE(said, loaded.assumptions.end());
  EXPECT_NE(said->text.find("the fullest of 8 expert ranks gets 1.5 times the mean load"), std::string::npos);
  EXPECT_FALSE(assumes(q, "--balanced-experts"));
}

TEST(Runtime, WhereEveryRankHasAllExpertsNoneWaits) {
  TrainQuestion q = mixtral();
  q.fix.ep = 1;
  q.balanced_experts = true;
  const double even = part(q, "compute");
  q.balanced_experts = false;
  q.expert_load = "zipf:2";
  EXPECT_DOUBLE_EQ(part(q, "compute"), even);
  q.fix.ep = 8;
  const double steep = part(q, "compute");
  q.expert_load = "zipf:1";
  EXPECT_LT(part(q, "compute"), steep);
  q.expert_load = "zipf:0";
  EXPECT_DOUBLE_EQ(part(q, "compute"), [&] {
    TrainQuestion balanced = q;
    balanced.expert_load.clear();
    balanced.balanced_experts = true;
    return part(balanced, "compute");
  }());
}

TEST(Runtime, ALoadNeedsExpertsAndNoCapacity) {
  TrainQuestion q = mixtral();
  q.expert_load = "zipf:1";
  q.expert_capacity = 1;
  EXPECT_THROW(answer(q, Catalog()), UserError);
  q = {.model = "llama3-8b", .hardware = "h100-sxm", .chips = 8};
  q.expert_load = "zipf:1";
  EXPECT_THROW(answer(q, Catalog()), UserError);
}

TrainQuestion tensor_ranks() {
  TrainQuestion q{.model = "llama3-70b", .hardware = "h100-sxm", .chips = 64};
  q.fix = {.dp = 8, .tp = 8, .sp = 1, .cp = 1, .pp = 1, .ep = 1, .micro_batch_seqs = 1};
  q.fix.remat = Remat::kFull;
  q.fix.zero = 1;
  q.top = 1;
  return q;
}

TEST(Runtime, TensorRanksHideWhatTheyAreToldTo) {
  TrainQuestion q = tensor_ranks();
  q.set = coefficients({{"overlap.tp", "0.3"}, {"overlap.tp_pipelined", "0.8"}, {"contention.scale_up", "0"}});
  const double stack = part(q, "tp_exposed");
  q.tp_overlap = CommOverlap::kNone;
  const double none = part(q, "tp_exposed");
  q.tp_overlap = CommOverlap::kPipelined;
  EXPECT_NEAR(stack, 0.7 * none, 1e-3 * none);
  EXPECT_NEAR(part(q, "tp_exposed"), 0.2 * none, 0.01 * none);
}

TEST(Runtime, GradientsHideUnlessTold) {
  TrainQuestion q = tensor_ranks();
  const double hidden = part(q, "dp_exposed");
  q.dp_overlap = CommOverlap::kNone;
  EXPECT_GT(part(q, "dp_exposed"), 2 * hidden);
}

/// NeMo's recipes sum gradients in 16 bits, Megatron-LM in 32.
TEST(Runtime, SomeStacksReduceIn16Bits) {
  TrainQuestion q = tensor_ranks();
  q.dp_overlap = CommOverlap::kNone;
  q.set = coefficients({{"link.scale_up", "0.8"}, {"link.scale_out", "0.8"}});
  q.stack = "megatron";
  const double fp32 = part(q, "dp_exposed");
  q.stack = "nemo";
  // ZeRO-1 scatters 4 or 2 bytes of gradients and gathers 2 of weights.
  EXPECT_NEAR(part(q, "dp_exposed") / fp32, 4.0 / 6, 0.02);
}

/// Of two chunks the first to be done hides under the groups of microbatches that follow.
TEST(Runtime, ChunksReduceTheirGradientsInTurn) {
  TrainQuestion q{.model = "llama3-70b", .hardware = "h100-sxm", .chips = 256};
  q.stack = "any";
  q.fix = {.dp = 8, .tp = 8, .sp = 1, .cp = 1, .pp = 4, .vpp = 1, .ep = 1, .micro_batch_seqs = 1};
  q.fix.remat = Remat::kFull;
  q.fix.zero = 1;
  q.fix.schedule = Schedule::k1F1B;
  q.top = 1;
  const double whole = part(q, "dp_exposed");
  q.dp_overlap = CommOverlap::kNone;
  const double bare = part(q, "dp_exposed");
  q.fix.vpp = 5;
  q.fix.schedule = Schedule::kInterleaved;
  EXPECT_NEAR(part(q, "dp_exposed"), bare, 0.05 * bare) << "nothing hides, in however many chunks";
  q.dp_overlap = CommOverlap::kStack;
  EXPECT_LT(part(q, "dp_exposed"), whole / 2);
  // ZeRO-2 reduces every microbatch as it goes: the same for one chunk and for five, but for the gather of weights.
  q.fix.zero = 2;
  const double chunks = part(q, "dp_exposed");
  q.fix.vpp = 1;
  q.fix.schedule = Schedule::k1F1B;
  EXPECT_GT(chunks, 0.9 * (part(q, "dp_exposed") - whole));
}

/// Gathers of 8-bit inputs carry half the bytes, the scatters of 16-bit outputs all: forward 3/4 of the traffic.
TEST(Runtime, SomeStacksGatherInEightBits) {
  TrainQuestion q = tensor_ranks();
  q.precision = "fp8";
  q.tp_overlap = CommOverlap::kNone;
  q.fix.remat = Remat::kNone;
  q.seq = 2048;
  const auto exposed = [&](const char* stack) {
    q.stack = stack;
    q.set = coefficients({{"link.scale_up", "0.8"}, {"link.scale_out", "0.8"}});
    return part(q, "tp_exposed");
  };
  EXPECT_LT(exposed("megatron"), 0.85 * exposed("paxml"));
}

/// [ATTENTION-SHAPE] at a mean context of c tokens and heads of d.
TEST(Runtime, AttentionDependsOnContextAndHeads) {
  TrainQuestion q = tensor_ranks();
  const auto compute = [&](const char* context, const char* narrow, const char* width) {
    q.set = coefficients(
        {{"attention_half_context", context}, {"attention_half_head_dim", narrow}, {"attention_head_width", width}});
    return part(q, "compute");
  };
  const double flat = compute("0", "0", "128");
  const double mean_context = static_cast<double>(q.seq.value_or(8192)) / 2;
  const std::string half = std::to_string(static_cast<int>(mean_context));
  const double twice = compute(half.c_str(), "0", "128");
  EXPECT_GT(twice, flat);
  EXPECT_DOUBLE_EQ(compute("0", "88", "128"), flat) << "heads of 128 are wide enough";
  // d / (d + h) (256 + h) / 256 is 1/2 for h beyond all sizes: as much as half the rate.
  EXPECT_NEAR(compute("0", "4000", "256") - flat, twice - flat, 0.1 * (twice - flat));
}

TEST(Runtime, CastsToEightBitsPassMemory) {
  TrainQuestion q = mixtral();
  q.model = "llama3-8b";
  q.fix.ep = 1;
  q.set = coefficients({{"cast", "1"}});
  const double bf16 = part(q, "hbm");
  q.precision = "fp8";
  const double cast = part(q, "hbm");
  q.set = coefficients({{"cast", "0"}});
  const double fused = part(q, "hbm");
  EXPECT_GT(cast, fused);
  q.precision.reset();
  EXPECT_DOUBLE_EQ(bf16, part(q, "hbm")) << "16-bit operands are not cast";
  // Operands of a Llama 3 8B layer, elements a token: inputs of q and kv (twice: forward and again), o, gate and up,
  // down; gradients of all outputs. Read twice in 16 bits, as torchtitan scales by what a tensor holds, and written
  // twice in 8.
  constexpr double kIn = 4096 + 4096 + 4096 + 2 * 4096 + 14336;
  constexpr double kOut = 4096 + 2 * 1024 + 4096 + 2 * 14336 + 4096;
  const TrainAnswer found = answer(q, Catalog());
  const double tokens = found.plans.front().plan.batch_seqs * 8192 / 64;
  const double expected = 32 * tokens * 6 * (2 * kIn + kOut) / (3.35e12 * found.hw.efficiency.hbm.value);
  EXPECT_NEAR(cast - fused, expected, 0.35 * expected) << "to the fusion of projections";
}

TEST(Runtime, ScalesComeFromWhereTheFlagSays) {
  TrainQuestion q = mixtral();
  q.model = "llama3-8b";
  q.fix.ep = 1;
  q.stack = "megatron";
  q.precision = "fp8";
  EXPECT_TRUE(assumes(q, "--fp8-recipe")) << "delayed, as Megatron-LM has it by default";
  const double unasked = part(q, "hbm");
  q.fp8_recipe = Scaling::kDelayed;
  EXPECT_FALSE(assumes(q, "--fp8-recipe"));
  EXPECT_DOUBLE_EQ(part(q, "hbm"), unasked);
  q.fp8_recipe = Scaling::kCurrent;
  EXPECT_GT(part(q, "hbm"), unasked) << "a tensor is read once more for its largest value";
  q.precision = "bf16";
  EXPECT_NE(test::problems_of([&] { resolve(q, Catalog()); }).find("--fp8-recipe has no meaning"), std::string::npos);
  q.precision = "fp8";
  q.fp8_recipe = Scaling::kRow;
  EXPECT_FALSE(assumes(q, "--fp8-recipe")) << "measured on an H100";
  q.hardware = "mi300x";
  q.stack = "primus";
  EXPECT_TRUE(assumes(q, "--fp8-recipe")) << "and on no MI300X";
}

/// What the answer says it assumed about gradients that data ranks sum.
double assumed_reduction(const std::string& precision) {
  TrainQuestion q{.model = "llama3-8b", .hardware = "a100-80g", .chips = 16};
  q.stack = "deepspeed";
  q.precision = precision;
  q.top = 1;
  for (const Assumption& a : answer(q, Catalog()).assumptions) {
    if (a.key == "reduced_bytes") return std::get<double>(a.value);
  }
  return 0;
}

TEST(Reduction, ItsBytesAreThoseOfTheStack) {
  // DeepSpeed's fp16 optimizer reduces what the backward made; of bf16 nothing is said, so it is fp32.
  EXPECT_EQ(assumed_reduction("fp16"), 2);
  EXPECT_EQ(assumed_reduction("bf16"), 4);
}

}  // namespace
}  // namespace scalecalc
