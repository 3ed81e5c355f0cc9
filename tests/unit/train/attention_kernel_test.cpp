// Which kernel of attention a question is answered with.
#include <gtest/gtest.h>

#include <algorithm>

#include "config/catalog.h"
#include "support/errors.h"
#include "train/resolve.h"

namespace scalecalc {
namespace {

TrainQuestion asked(const std::string& hardware, const std::string& attention = "") {
  TrainQuestion q{.model = "gpt3-175b", .hardware = hardware, .chips = 64};
  q.stack = "megatron";
  q.attention = attention;
  return q;
}

std::string said(const ResolvedQuestion& r) {
  const auto found = std::find_if(r.assumptions.begin(), r.assumptions.end(),
                                  [](const Assumption& a) { return a.flag == "--attention"; });
  return found == r.assumptions.end() ? "" : found->text;
}

TEST(AttentionKernel, AV100IsUnfusedWithoutBeingTold) {
  const ResolvedQuestion r = resolve(asked("v100"), Catalog());
  EXPECT_EQ(r.workload.attention, AttentionKernel::kUnfused);
  EXPECT_EQ(said(r), "attention in unfused kernels: megatron on volta since 2019-09");
}

TEST(AttentionKernel, ItsFiguresAreTimesWhatWasFitted) {
  const ResolvedQuestion r = resolve(asked("h100-sxm"), Catalog());
  EXPECT_EQ(r.workload.kernel, "cudnn");
  EXPECT_EQ(said(r), "attention in cuDNN fused attention 9.19: megatron on hopper since 2024-01");
  const double fitted =
      efficiency_under(r.hw, "megatron").attention_forward.value / r.hw.efficiency.attention_forward.value;
  EXPECT_NEAR(r.efficiency.attention_forward.value, std::min(1.0, 0.722 * fitted), 1e-9);
  EXPECT_EQ(r.efficiency.scan_forward.value, efficiency_under(r.hw, "megatron").scan_forward.value);
  const ResolvedQuestion older = resolve(asked("h100-sxm", "flash-attention-2"), Catalog());
  EXPECT_NEAR(older.efficiency.attention_forward.value, 0.354 * fitted, 1e-9);
  EXPECT_EQ(said(older), "") << "it was asked for";
}

TEST(AttentionKernel, TheIdealIsOfNoKernel) {
  TrainQuestion q = asked("h100-sxm");
  q.stack.clear();
  q.ideal = true;
  EXPECT_EQ(resolve(q, Catalog()).efficiency.attention_forward.value, 1);
}

TEST(AttentionKernel, WhatDoesNotRunThereIsRefused) {
  const std::string refused = test::problems_of([] { resolve(asked("a100-80g", "flash-attention-3"), Catalog()); });
  EXPECT_NE(refused.find("FlashAttention-3 does not run on a100-80g"), std::string::npos) << refused;
  EXPECT_NE(refused.find("flash-attention-2"), std::string::npos) << refused;
}

}  // namespace
}  // namespace scalecalc
