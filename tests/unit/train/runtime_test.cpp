// What a step's kernels are launched by, what hides the experts' exchange, how even their load is, what casts cost.
#include <gtest/gtest.h>

#include "train/question.h"

namespace scalecalc {
namespace {

TrainQuestion mixtral() {
  TrainQuestion q{.model = "mixtral-8x7b", .hardware = "h100-sxm", .chips = 64};
  q.fix.tp = 1;
  q.fix.cp = 1;
  q.fix.pp = 1;
  q.fix.ep = 8;
  q.fix.dp = 64;
  q.fix.micro_batch_seqs = 1;
  q.fix.remat = Remat::kFull;
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

TEST(Runtime, ACapturedStepLeavesAShareOfTheOverheads) {
  TrainQuestion q = mixtral();
  q.set = coefficients({{"captured_share", "0.25"}, {"step_overhead", "0s"}});
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
  const double exposed = part(q, "ep_exposed");
  EXPECT_TRUE(assumes(q, "--ep-overlap"));
  q.expert_overlap = true;
  // All of it may hide; what is left is what its own kernels take from the compute.
  EXPECT_LT(part(q, "ep_exposed"), exposed / 2);
  EXPECT_FALSE(assumes(q, "--ep-overlap"));
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
  // down; gradients of all outputs. Read in 16 bits and written twice in 8.
  constexpr double kIn = 4096 + 4096 + 4096 + 2 * 4096 + 14336;
  constexpr double kOut = 4096 + 2 * 1024 + 4096 + 2 * 14336 + 4096;
  const TrainAnswer found = answer(q, Catalog());
  const double tokens = found.plans.front().plan.batch_seqs * 8192 / 64;
  const double expected = 32 * tokens * 4 * (2 * kIn + kOut) / (3.35e12 * found.hw.efficiency.hbm.value);
  EXPECT_NEAR(cast - fused, expected, 0.35 * expected) << "to the fusion of projections";
}

}  // namespace
}  // namespace scalecalc
