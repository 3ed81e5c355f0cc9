// Into how many collectives stacks cut what they move: hand-counted from the sources their files name.
#include "spec/stack_runtime.h"

#include <gtest/gtest.h>

#include "config/catalog.h"
#include "cost/workload.h"
#include "spec/load_stack.h"

namespace scalecalc {
namespace {

StackRuntime runtime_of(const char* stack) { return stack_runtime(Catalog(), stack); }

TEST(Pieces, NoneIsOneCollective) { EXPECT_EQ(Pieces{}.collectives(7e9, 291, 64), 1); }

/// Megatron Core: max(40 M, 1 M x ranks) parameters a bucket.
TEST(Pieces, BucketsGrowWithTheGroup) {
  const Pieces& buckets = runtime_of("megatron").reductions;
  EXPECT_EQ(buckets.collectives(7e9, 291, 8), 175) << "7e9 / 40e6";
  EXPECT_EQ(buckets.collectives(7e9, 291, 1024), 7) << "7e9 / 1024e6";
  EXPECT_EQ(buckets.collectives(7e9, 100, 8), 100) << "no tensor is cut";
}

/// DeepSpeed's ZeRO-3: as many tensors together as 5e7 elements hold. A GPT-3 layer of 1.8e9 has none that fits beside
/// another; a layer of 1e8 goes in two.
TEST(Pieces, TensorsGoTogetherWhereABucketHoldsThem) {
  Pieces gathers = runtime_of("deepspeed").gathers;
  EXPECT_EQ(gathers.collectives(1.8e9, 12, 384), 12);
  EXPECT_EQ(gathers.collectives(1e8, 12, 384), 2);
  gathers.elements = 0;  // before 2022
  EXPECT_EQ(gathers.collectives(1e8, 12, 384), 12);
}

/// InternEvo: every rank that owns tensors broadcasts them.
TEST(Pieces, OwnersSendTheirs) {
  const Pieces& updates = runtime_of("internevo").updates;
  EXPECT_EQ(updates.collectives(7e9, 291, 8), 8);
  EXPECT_EQ(updates.collectives(7e9, 291, 1024), 291);
}

/// Megatron's dispatchers send activations as they are, whatever matmuls read; others send what the recipe says.
TEST(StackRuntime, TokensGoToExpertsInItsFormat) {
  const auto bytes = [](const char* stack, const char* precision) {
    Workload w;
    w.precision = precision_of(precision);
    if (*stack != 0) w.runtime = runtime_of(stack);
    use_reduced_format(w);
    return w.precision.dispatch_bytes;
  };
  EXPECT_EQ(bytes("", "fp8"), 1);
  EXPECT_EQ(bytes("hai-llm", "fp8"), 1) << "arXiv:2412.19437 section 3.3.3";
  for (const char* stack : {"megatron", "nemo"}) {
    EXPECT_EQ(bytes(stack, "fp8"), 2);
    EXPECT_EQ(bytes(stack, "bf16"), 2);
    EXPECT_EQ(bytes(stack, "fp32"), 4);
  }
}

/// Megatron: grouped matmuls and casts since June 2026, of MXFP8 and so on Blackwell; DeepEP since March 2025.
TEST(StackRuntime, DependsOnItsDateAndArchitecture) {
  const auto settled = [](const char* stack, const char* architecture, const char* month) {
    StackRuntime out = runtime_of(stack);
    settle_runtime(out, architecture, month);
    return out;
  };
  EXPECT_TRUE(settled("megatron", "blackwell", "2026-05").launches_each_expert);
  EXPECT_FALSE(settled("megatron", "blackwell", "2026-06").launches_each_expert);
  EXPECT_FALSE(settled("megatron", "blackwell", "").launches_each_expert) << "today";
  EXPECT_TRUE(settled("megatron", "hopper", "").launches_each_expert);
  EXPECT_FALSE(settled("torchtitan", "hopper", "").launches_each_expert);
  EXPECT_FALSE(settled("nemo", "hopper", "2025-03").current_scaling) << "recipes of release 25.02";
  EXPECT_TRUE(settled("nemo", "hopper", "2025-04").current_scaling) << "of 25.04";
  EXPECT_FALSE(settled("megatron", "hopper", "").current_scaling) << "--fp8-recipe is delayed by default";
  EXPECT_TRUE(settled("nemo", "blackwell", "").one_copy);
  EXPECT_FALSE(settled("nemo", "hopper", "").one_copy);
  EXPECT_EQ(settled("megatron", "hopper", "2025-02").dispatch, ExpertDispatch::kAllToAll);
  EXPECT_EQ(settled("megatron", "hopper", "2025-03").dispatch, ExpertDispatch::kDeepEp);
  EXPECT_EQ(settled("deepspeed", "hopper", "").dispatch, ExpertDispatch::kAllToAll);
  EXPECT_EQ(settled("hai-llm", "hopper", "2024-12").dispatch, ExpertDispatch::kDeepEp);
}

/// Megatron Core 0.4, of December 2023, brought --overlap-grad-reduce; DeepSpeed of 2022 prefetches by bucket.
TEST(StackRuntime, HidesFromTheMonthOnInWhichItCould) {
  const auto settled = [](const char* stack, const char* month) {
    StackRuntime out = runtime_of(stack);
    settle_runtime(out, "ampere", month);
    return out;
  };
  EXPECT_FALSE(settled("megatron", "2023-11").hides_gradients);
  EXPECT_TRUE(settled("megatron", "2023-12").hides_gradients);
  EXPECT_FALSE(settled("deepspeed", "2021-12").hides_gathers);
  EXPECT_EQ(settled("deepspeed", "2021-12").gathers.elements, 0);
  EXPECT_TRUE(settled("deepspeed", "2022-01").hides_gathers);
  EXPECT_EQ(settled("deepspeed", "2022-01").gathers.elements, 5e7);
  EXPECT_TRUE(settled("deepspeed", "").hides_gathers) << "today";
}

/// Megatron-LM reduced the input gradients of its column-parallel layers beside weight gradients from September 2021
/// on, and cut what a stage sends over its tensor ranks since the paper of April 2021; its main of March did neither.
TEST(StackRuntime, TensorRanksWaitedAndSentAllOfAStagesOutput) {
  const auto settled = [](const char* month) {
    StackRuntime out = runtime_of("megatron");
    settle_runtime(out, "volta", month);
    return out;
  };
  EXPECT_FALSE(settled("2021-03").shards_sends);
  EXPECT_TRUE(settled("2021-04").shards_sends);
  EXPECT_FALSE(settled("2021-08").hides_tensor);
  EXPECT_TRUE(settled("2021-09").hides_tensor);
  EXPECT_TRUE(settled("").hides_tensor && settled("").shards_sends) << "today";
}

/// XLA's loop over layers on a TPU gathers a layer's weights in its own turn; Ironwood's recipes schedule over layers,
/// and GPUs have another scheduler.
TEST(StackRuntime, GathersOfExpertsWaitForTheirLayerOnSomeChips) {
  const auto waits = [](const char* stack, const char* architecture, const char* chip) {
    StackRuntime out = runtime_of(stack);
    settle_runtime(out, architecture, "", chip);
    return out.expert_gathers_wait;
  };
  EXPECT_TRUE(waits("maxtext", "tpu", "tpu-v6e"));
  EXPECT_FALSE(waits("maxtext", "tpu", "tpu-v7"));
  EXPECT_FALSE(waits("maxtext", "hopper", "h100-sxm"));
  EXPECT_FALSE(waits("megatron", "hopper", "h100-sxm"));
}

/// Before Ironwood no flag of MaxText's runs makes a reduce-scatter asynchronous; on Ironwood SparseCores do it by
/// default.
TEST(StackRuntime, ScattersWaitOnSomeChips) {
  const auto hides = [](const char* architecture, const char* chip) {
    StackRuntime out = runtime_of("maxtext");
    settle_runtime(out, architecture, "", chip);
    return out.hides_scatters;
  };
  EXPECT_FALSE(hides("tpu", "tpu-v6e"));
  EXPECT_TRUE(hides("tpu", "tpu-v7"));
  EXPECT_TRUE(hides("hopper", "h100-sxm"));
}

}  // namespace
}  // namespace scalecalc
