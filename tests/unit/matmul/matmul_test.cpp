#include "matmul/matmul.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/diagnostic.h"
#include "support/fixtures.h"
#include "support/matmul_input.h"

namespace scalecalc {
namespace {

// The fixtures' rates: 100 TFLOP/s, links of 50 GB/s, so a ring's axis brings 100 GB/s.
constexpr double kC = 100e12;
constexpr double kW = 100e9;

const test::Sizes kOneAxis{{"X", 8}};
const test::Sizes kTwoAxes{{"X", 8}, {"Y", 8}};

MatmulQuestion question(const std::string& expression, const test::Sizes& mesh, const test::Sizes& dims) {
  MatmulQuestion out;
  out.input = test::matmul_input(expression, mesh, dims);
  out.placement.wraparound = true;
  return out;
}

class ShardedMatmul : public testing::Test {
 protected:
  MatmulAnswer ask(const std::string& expression, const test::Sizes& mesh, const test::Sizes& dims) {
    return answer(question(expression, mesh, dims), &hw);
  }
  static const Strategy& find(const MatmulAnswer& found, const std::string& name) {
    const auto at = std::find_if(found.strategies.begin(), found.strategies.end(),
                                 [&](const Strategy& s) { return s.name == name; });
    if (at == found.strategies.end()) throw std::runtime_error("no strategy is called " + name);
    return *at;
  }
  static double threshold(const MatmulAnswer& found, const std::string& name) {
    const auto at = std::find_if(found.thresholds.begin(), found.thresholds.end(),
                                 [&](const Threshold& t) { return t.name == name; });
    if (at == found.thresholds.end()) throw std::runtime_error("no threshold is called " + name);
    return at->value.value();
  }
  HardwareSpec hw = test::torus_chip();
};

constexpr double kI = 4096;
constexpr double kJ = 8192;
constexpr double kK = 16384;
const test::Sizes kDims{{"I", 4096}, {"J", 8192}, {"K", 16384}};

/// Book, chapter 3: nothing is sent.
TEST_F(ShardedMatmul, Case1) {
  const MatmulAnswer found = ask("A[I_X, J] * B[J, K_Y]", kTwoAxes, kDims);
  EXPECT_EQ(found.products[0].whole.number, 1);
  EXPECT_EQ(found.strategies[0].name, "multiply");
  EXPECT_EQ(found.strategies[0].output, "C[I_X, K_Y]");
  EXPECT_EQ(value_of(found.strategies[0].communication_time), 0);
  EXPECT_DOUBLE_EQ(value_of(found.strategies[0].time), 2 * kI * kJ * kK / 64 / kC);
  EXPECT_FALSE(found.strategies[0].communication_ratio);
}

/// Book, chapter 3, question 4: gather Y and multiply in full, or multiply slices and add up partial sums.
TEST_F(ShardedMatmul, Case2) {
  const MatmulAnswer found = ask("A[I, J] * B[J_X, K]", kOneAxis, kDims);
  EXPECT_EQ(found.products[0].whole.number, 2);
  const Strategy& gather = find(found, "all-gather B over X, multiply");
  EXPECT_DOUBLE_EQ(value_of(gather.compute_time), 2 * kI * kJ * kK / kC);
  EXPECT_DOUBLE_EQ(value_of(gather.communication_time), 2 * kJ * kK / kW);
  EXPECT_EQ(gather.redundancy.value(), 8);
  EXPECT_DOUBLE_EQ(value_of(gather.flops_all_chips), 8 * 2 * kI * kJ * kK);
  EXPECT_DOUBLE_EQ(value_of(gather.collectives[0].received), 2 * kJ * kK * 7 / 8);
  const Strategy& reduce = find(found, "slice A into J_X, multiply, all-reduce C over X");
  EXPECT_DOUBLE_EQ(value_of(reduce.compute_time), 2 * kI * kJ * kK / 8 / kC);
  EXPECT_DOUBLE_EQ(value_of(reduce.communication_time), 4 * kI * kK / kW);
  EXPECT_DOUBLE_EQ(value_of(reduce.upper_time), value_of(reduce.compute_time) + value_of(reduce.communication_time));
  EXPECT_FALSE(reduce.compute_bound);
  EXPECT_EQ(reduce.shards, std::vector<std::string>{"A[4096, 1024] * B[1024, 16384]"});
  // A as given and sliced, B's shard, C twice.
  EXPECT_DOUBLE_EQ(value_of(reduce.memory), 2 * (kI * kJ * 9 / 8 + kJ * kK / 8 + 2 * kI * kK));
  EXPECT_DOUBLE_EQ(value_of(reduce.memory_time), 2 * (kI * kJ / 8 + kJ * kK / 8 + kI * kK) / 1e12);
}

TEST_F(ShardedMatmul, Case2Thresholds) {
  const MatmulAnswer found = ask("A[I, J] * B[J_X, K]", kOneAxis, kDims);
  const double alpha = kC / kW;
  const std::string gather = "all-gather B over X, multiply";
  const std::string reduce = "slice A into J_X, multiply, all-reduce C over X";
  EXPECT_DOUBLE_EQ(value_of(found.rates->alpha), alpha);
  EXPECT_DOUBLE_EQ(threshold(found, "compute-bound I: " + gather), alpha);
  EXPECT_DOUBLE_EQ(threshold(found, "compute-bound X: " + reduce), kJ / (2 * alpha));
  EXPECT_DOUBLE_EQ(threshold(found, "sends less, J: " + reduce + " than " + gather), 2 * kI);
  EXPECT_DOUBLE_EQ(threshold(found, "sends faster, J: " + reduce + " than " + gather + " computes"), 2 * alpha);
  ASSERT_EQ(found.comparisons.size(), 1);
  EXPECT_DOUBLE_EQ(found.comparisons[0].communication_ratio.value(), kJ * kK / (2 * kI * kK));
}

/// On a line the collective grows with the axis as (N-1)/N.
TEST_F(ShardedMatmul, ThresholdsOfALine) {
  MatmulQuestion asked = question("A[I, J] * B[J_X, K]", kOneAxis, kDims);
  asked.placement.wraparound = false;
  const MatmulAnswer found = answer(asked, &hw);
  // 2 I J K / (X C) = 2 (X-1)/X 2 I K / (W/2) at X = 1 + J W / (4 C).
  EXPECT_NEAR(threshold(found, "compute-bound X: slice A into J_X, multiply, all-reduce C over X"),
              1 + kJ * kW / (4 * kC), 1e-9);
}

TEST_F(ShardedMatmul, Case3) {
  const MatmulAnswer found = ask("A[I, J_X] * B[J_X, K]", kOneAxis, kDims);
  EXPECT_EQ(found.products[0].whole.number, 3);
  const Strategy& reduce = find(found, "multiply, all-reduce C over X");
  EXPECT_DOUBLE_EQ(value_of(reduce.communication_time), 4 * kI * kK / kW);
  EXPECT_TRUE(reduce.textbook);
  const MatmulAnswer scattered = ask("A[I, J_X] * B[J_X, K] -> C[I, K_X]", kOneAxis, kDims);
  const Strategy& scatter = find(scattered, "multiply, reduce-scatter C over X into K_X");
  EXPECT_DOUBLE_EQ(value_of(scatter.communication_time), 2 * kI * kK / kW) << "half of an all-reduce";
  EXPECT_EQ(scatter.output, "C[I, K_X]");
  const MatmulAnswer left = ask("A[I, J_X] * B[J_X, K] -> C[I, K]{U_X}", kOneAxis, kDims);
  EXPECT_EQ(left.strategies[0].name, "multiply") << "partial sums were asked for";
}

TEST_F(ShardedMatmul, Case4) {
  const MatmulAnswer found = ask("A[I_X, J] * B[J, K_X]", kOneAxis, kDims);
  EXPECT_EQ(found.products[0].whole.number, 4);
  const Strategy& left = find(found, "all-gather A over X, multiply");
  EXPECT_EQ(left.output, "C[I, K_X]");
  EXPECT_DOUBLE_EQ(value_of(left.communication_time), 2 * kI * kJ / kW);
  EXPECT_EQ(find(found, "all-gather B over X, multiply").output, "C[I_X, K]");
  EXPECT_EQ(left.redundancy.value(), 1);
}

TEST_F(ShardedMatmul, CasesOfSingleAxes) {
  const MatmulAnswer found = ask("A[I_X, J_Y] * B[J_X, K] -> C[I_X, K]", kTwoAxes, kDims);
  ASSERT_EQ(found.products[0].axes.size(), 2);
  EXPECT_EQ(found.products[0].axes[0].number, 2);
  EXPECT_NE(found.products[0].axes[0].reason.find("one chip would hold parts that do not meet"), std::string::npos);
  EXPECT_EQ(found.products[0].axes[1].number, 2);
  const MatmulAnswer differs = ask("A[I, J_XY] * B[J_X, K]", kTwoAxes, kDims);
  EXPECT_NE(differs.products[0].axes[0].reason.find("J is cut over XY in A and over X in B"), std::string::npos);
}

/// Book, chapter 3, question 2: an idle axis carries its part of a gather.
TEST_F(ShardedMatmul, IdleAxesHelp) {
  const MatmulAnswer found = ask("A[I, J] * B[J_X, K]", kTwoAxes, kDims);
  const Strategy& plain = find(found, "slice A into I_Y, all-gather B over X, multiply, all-gather C over Y");
  EXPECT_FALSE(plain.plan.detour);
  const auto helped = std::find_if(found.strategies.begin(), found.strategies.end(), [](const Strategy& s) {
    return s.plan.detour && s.name.find("all-gather B over XY") != std::string::npos;
  });
  ASSERT_NE(helped, found.strategies.end());
}

TEST_F(ShardedMatmul, TwoAxesGatherAtOnce) {
  const MatmulAnswer found = ask("A[I, J] * B[J, K] -> C[I, K]", kTwoAxes, kDims);
  const Strategy& both = find(found, "slice A into I_XY, multiply, all-gather C over XY");
  EXPECT_DOUBLE_EQ(value_of(both.communication_time), 2 * kI * kK / (2 * kW));
  EXPECT_DOUBLE_EQ(value_of(find(found, "multiply").time), 2 * kI * kJ * kK / kC);
}

TEST_F(ShardedMatmul, Chain) {
  MatmulQuestion asked = question("In[B, D_XY] * W[D, F_XY] * V[F_XY, D] -> Out[B, D_XY]", {{"X", 2}, {"Y", 2}},
                                  {{"B", 128}, {"D", 8192}, {"F", 32768}});
  asked.placement.wraparound.reset();
  asked.placement.ring = 4;
  const MatmulAnswer found = answer(asked, &hw);
  const Strategy& best = found.strategies[0];
  EXPECT_EQ(best.name,
            "all-gather In over XY, multiply In by W, multiply T1 by V, reduce-scatter Out over XY into D_XY");
  EXPECT_DOUBLE_EQ(value_of(best.compute_time), 4.0 * 128 * 8192 * 32768 / 4 / kC);
  EXPECT_DOUBLE_EQ(value_of(best.communication_time), 2 * 2.0 * 128 * 8192 / kW);
  EXPECT_EQ(found.products.size(), 2);
  EXPECT_TRUE(found.comparisons.empty());
}

TEST_F(ShardedMatmul, PartialSumsAreAddedBeforeAProduct) {
  const MatmulAnswer found = ask("A[I, J]{U_X} * B[J, K_X]", kOneAxis, kDims);
  EXPECT_NE(found.products[0].axes[0].reason.find("holds partial sums"), std::string::npos);
  for (const Strategy& s : found.strategies) {
    EXPECT_TRUE(s.collectives.at(0).kind == StepKind::kAllReduce ||
                s.collectives.at(0).kind == StepKind::kReduceScatter)
        << s.name;
  }
}

TEST_F(ShardedMatmul, FormatsChooseTheRate) {
  hw.matmul_peak[static_cast<std::size_t>(DType::kInt8)] = FlopsPerSecond(200e12);
  const MatmulAnswer found = ask("int8 A[I, J_X] * int8 B[J_X, K] -> bf16 C[I, K]", kOneAxis, kDims);
  const Strategy& reduce = find(found, "multiply, all-reduce C over X");
  EXPECT_DOUBLE_EQ(value_of(reduce.compute_time), 2 * kI * kJ * kK / 8 / 200e12);
  EXPECT_DOUBLE_EQ(value_of(reduce.communication_time), 4 * kI * kK / kW);
  const MatmulAnswer mixed = ask("A[I, J_X] * int8 B[J_X, K]", kOneAxis, kDims);
  EXPECT_EQ(mixed.rates->compute_dtype, DType::kBf16);
}

TEST_F(ShardedMatmul, MeasuredTimes) {
  MatmulQuestion asked = question("A[I, J_X] * B[J_X, K]", kOneAxis, kDims);
  asked.measured_s = {0.02, 0.01, 0.008};
  const MatmulAnswer found = answer(asked, &hw);
  ASSERT_EQ(found.measured.size(), 3);
  EXPECT_FALSE(found.measured[0].speedup_over_first);
  EXPECT_DOUBLE_EQ(found.measured[2].speedup_over_first->value(), 2.5);
  EXPECT_DOUBLE_EQ(found.measured[2].speedup_over_previous->value(), 1.25);
  EXPECT_DOUBLE_EQ(found.measured[1].roofline_fraction.value(), value_of(found.strategies[0].time) / 0.01);
}

TEST_F(ShardedMatmul, Calibrated) {
  hw.efficiency.matmul[static_cast<std::size_t>(DType::kBf16)] = {0.5, 0, "test"};
  hw.efficiency.matmul_half_dim = {64, 0, "test"};
  hw.efficiency.link_scale_up = {0.8, 0, "test"};
  hw.efficiency.hbm = {0.5, 0, "test"};
  MatmulQuestion asked = question("A[I, J_X] * B[J_X, K]", kOneAxis, kDims);
  asked.calibrated = true;
  const MatmulAnswer found = answer(asked, &hw);
  const Strategy& reduce = find(found, "multiply, all-reduce C over X");
  const double shape = kI / (kI + 64) * (1024.0 / (1024 + 64)) * (kK / (kK + 64));
  EXPECT_NEAR(value_of(reduce.compute_time), 2 * kI * kJ * kK / 8 / (kC * 0.5 * shape), 1e-12);
  EXPECT_DOUBLE_EQ(value_of(reduce.communication_time), 4 * kI * kK / (0.8 * kW));
  EXPECT_TRUE(found.thresholds.empty()) << "times are not proportional to sizes";
  asked.input.expression = "A[I, J] * B[J_X, K]";
  EXPECT_FALSE(answer(asked, &hw).comparisons.empty());
}

TEST_F(ShardedMatmul, BehindSwitches) {
  hw = test::switched_chip();
  MatmulQuestion asked = question("A[I, J_Y] * B[J_Y, K]", {{"X", 4}, {"Y", 8}}, kDims);
  asked.placement.wraparound.reset();
  const MatmulAnswer found = answer(asked, &hw);
  EXPECT_DOUBLE_EQ(value_of(find(found, "multiply, all-reduce C over Y").communication_time),
                   2 * 2 * kI * kK * 7 / 8 / 400e9)
      << "the last axis is the node";
}

TEST_F(ShardedMatmul, SlicesJoinOverTheOuterNetwork) {
  const MatmulAnswer found = ask("A[I_dcn, J_X] * B[J_X, K]", {{"X", 8}, {"dcn", 2}}, kDims);
  EXPECT_EQ(find(found, "multiply, all-reduce C over X").output, "C[I_dcn, K]");
  const MatmulAnswer across = ask("A[I_X, J_dcn] * B[J_dcn, K]", {{"X", 8}, {"dcn", 2}}, kDims);
  const Strategy& reduce = find(across, "multiply, all-reduce C over dcn");
  EXPECT_DOUBLE_EQ(value_of(reduce.communication_time), 2 * (2 * kI * kK / 8) / 2 / 5e9);
}

TEST_F(ShardedMatmul, AnAxisAlongTwoOfTheMachine) {
  MatmulQuestion asked = question("A[I, J_X] * B[J_X, K]", {{"X", 64}}, kDims);
  asked.input.mesh.axes[0].parts = {8, 8};
  EXPECT_DOUBLE_EQ(value_of(find(answer(asked, &hw), "multiply, all-reduce C over X").communication_time),
                   4 * kI * kK / (2 * kW));
}

TEST_F(ShardedMatmul, ASingleArray) {
  const MatmulAnswer found = answer(question("A[I_X, J]", kTwoAxes, {{"I", 4096}, {"J", 8192}}), &hw);
  ASSERT_EQ(found.arrays.size(), 1);
  const ArrayShare& a = found.arrays[0];
  EXPECT_EQ(a.local_shape, (std::vector<std::int64_t>{512, 8192}));
  EXPECT_EQ(a.replicas.value(), 8);
  EXPECT_EQ(a.fraction.value(), 1.0 / 8);
  EXPECT_DOUBLE_EQ(value_of(*a.load_time), 2 * 512 * 8192 / 1e12);
  EXPECT_FALSE(answer(question("A[I_X, J]", kTwoAxes, {{"I", 4096}, {"J", 8192}}), nullptr).arrays[0].load_time);
}

TEST_F(ShardedMatmul, Notes) {
  const MatmulAnswer small = ask("A[I_X, J] * B[J, K]", kOneAxis, {{"I", 8}, {"J", 8192}, {"K", 8193}});
  ASSERT_EQ(small.notes.size(), 2);
  EXPECT_NE(small.notes[0].find("bound by memory"), std::string::npos) << small.notes[0];
  EXPECT_NE(small.notes[1].find("K = 8,193 over X = 8"), std::string::npos) << small.notes[1];
  const MatmulAnswer large = ask("A[I_X, J] * B[J, K]", kOneAxis, {{"I", 1 << 20}, {"J", 1 << 17}, {"K", 1 << 17}});
  EXPECT_NE(large.notes.at(0).find("on each chip, which has 32 GB"), std::string::npos) << large.notes[0];
}

std::string error_of(const MatmulQuestion& asked, const HardwareSpec* hw) {
  try {
    answer(asked, hw);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST_F(ShardedMatmul, WhatCannotBeAnswered) {
  const MatmulQuestion product = question("A[I, J] * B[J, K]", kOneAxis, kDims);
  EXPECT_EQ(error_of(product, nullptr), "--hw is missing: on which hardware?");
  MatmulQuestion asked = product;
  asked.compute = DType::kInt4;
  EXPECT_NE(error_of(asked, &hw).find("publishes no int4 matmul rate"), std::string::npos);
  asked = question("A[I, J] * B[J, K_X] -> C[I, K_X]{U_Y}", kTwoAxes, {{"I", 8}, {"J", 12}, {"K", 8}});
  EXPECT_EQ(error_of(asked, &hw), "no strategy leads to C[I, K_X]{U_Y}");
  asked = product;
  asked.placement.ring = 4;
  asked.placement.wraparound.reset();
  EXPECT_EQ(error_of(asked, &hw), "--ring 4: the mesh has 8 chips");
  asked.placement.ring = 8;
  asked.placement.wraparound = true;
  EXPECT_EQ(error_of(asked, &hw), "--ring says how all axes lie, and --wraparound contradicts it");
  asked = question("A[I, J]", kOneAxis, {{"I", 8}, {"J", 8}});
  asked.measured_s = {1};
  EXPECT_EQ(error_of(asked, &hw), "--measured: nothing is multiplied");
}

/// Book, chapter 3: an all-to-all moves a quarter of what an all-gather of the same ring does.
TEST_F(ShardedMatmul, OneArrayIsLaidOutOtherwise) {
  const MatmulAnswer found = ask("A[I_X, J] -> A[I, J_X]", kOneAxis, {{"I", 4096}, {"J", 8192}});
  ASSERT_EQ(found.routes.size(), 1U);
  const Redistribution& way = found.routes.front();
  EXPECT_EQ(way.name, "all-to-all A over X from I_X into J_X");
  EXPECT_DOUBLE_EQ(value_of(way.time), 2 * kI * kJ / kW / 4);
  EXPECT_DOUBLE_EQ(value_of(way.memory), 2 * (2 * kI * kJ / 8));
  EXPECT_TRUE(found.strategies.empty());
  ASSERT_EQ(found.arrays.size(), 2U);
  EXPECT_EQ(found.arrays[1].notation, "A[I, J_X]");
  const auto only = [&](const char* text) {
    return ask(text, kOneAxis, {{"I", 4096}, {"J", 8192}}).routes.front().collectives.front().kind;
  };
  EXPECT_EQ(only("A[I_X, J] -> A[I, J]"), StepKind::kAllGather);
  EXPECT_EQ(only("A[I, J]{U_X} -> A[I, J]"), StepKind::kAllReduce);
  EXPECT_EQ(only("A[I, J]{U_X} -> A[I_X, J]"), StepKind::kReduceScatter);
  const MatmulAnswer free = ask("A[I, J] -> A[I_X, J]", kOneAxis, {{"I", 4096}, {"J", 8192}});
  EXPECT_TRUE(free.routes.front().collectives.empty());
  EXPECT_EQ(value_of(free.routes.front().time), 0);
}

/// Where idle axes help, the way that leaves them alone stands beside the fastest.
TEST_F(ShardedMatmul, ARedistributionOverIdleAxesStandsBesideThePlainOne) {
  const MatmulAnswer found = ask("A[I_X, J] -> A[I, J]", kTwoAxes, {{"I", 4096}, {"J", 8192}});
  ASSERT_EQ(found.routes.size(), 2U);
  EXPECT_TRUE(found.routes[0].detour);
  EXPECT_FALSE(found.routes[1].detour);
  EXPECT_LT(value_of(found.routes[0].time), value_of(found.routes[1].time));
  EXPECT_DOUBLE_EQ(value_of(found.routes[1].time), 2 * kI * kJ / kW);
}

TEST_F(ShardedMatmul, ARedistributionIsOfOneArrayAndItsDimensions) {
  const auto error = [&](const char* text) -> std::string {
    try {
      ask(text, kOneAxis, {{"I", 4096}, {"J", 8192}});
    } catch (const UserError& e) {
      return e.diagnostics().front().message;
    }
    return "";
  };
  EXPECT_EQ(error("A[I_X, J] -> B[I, J_X]"), "B is not A: nothing is multiplied");
  EXPECT_EQ(error("A[I_X, J] -> A[J, I_X]"), "A has other dimensions behind the arrow");
  EXPECT_EQ(error("bf16 A[I_X, J] -> int8 A[I, J_X]"), "A is in bf16 before the arrow");
  EXPECT_EQ(error("A[I_X, J] -> A[I, J]{U_X}"), "A holds no such partial sums before the arrow");
  EXPECT_EQ(error("A[I_X, J] -> A[I, J_X] -> A[I, J]"), "the array has its layout already");
  EXPECT_EQ(error("A[I_X, J] -> A[I, J] * B[J]"), "a product stands behind the arrow");
}

/// Y cuts nothing of what is written: its eight chips repeat the work.
TEST_F(ShardedMatmul, AsWrittenSpareAxesAreIdle) {
  const MatmulAnswer found = ask("A[I_X, J] * B[J, K] -> C[I_X, K]", kTwoAxes, kDims);
  const auto at =
      std::find_if(found.strategies.begin(), found.strategies.end(), [](const Strategy& s) { return s.as_written; });
  ASSERT_NE(at, found.strategies.end());
  EXPECT_EQ(at->name, "multiply");
  EXPECT_EQ(at->redundancy.value(), 8);
  EXPECT_DOUBLE_EQ(value_of(at->time), 2 * kI * kJ * kK / 8 / kC);
  for (const Strategy& s : found.strategies) {
    EXPECT_FALSE(s.as_written && s.redundancy.value() < 8) << s.name;
  }
}

/// Question 7 of chapter 3: what a chip cannot hold is no answer while another is.
TEST_F(ShardedMatmul, StrategiesThatDoNotFitStandLast) {
  const std::string product = "X[B, D] * Y[D_X, F] -> Z[B, F]";
  const test::Sizes dims{{"B", 8192}, {"D", 8192}, {"F", 32768}};
  const MatmulAnswer roomy = ask(product, kOneAxis, dims);
  double least = 1e30;
  double most = 0;
  for (const Strategy& s : roomy.strategies) {
    least = std::min(least, value_of(s.memory));
    most = std::max(most, value_of(s.memory));
    EXPECT_TRUE(s.fits);
  }
  ASSERT_LT(least, most);
  hw.hbm_capacity = Bytes((least + most) / 2);
  const MatmulAnswer tight = ask(product, kOneAxis, dims);
  EXPECT_TRUE(tight.strategies.front().fits);
  EXPECT_FALSE(tight.strategies.back().fits);
  for (std::size_t i = 0; i < tight.strategies.size(); ++i) {
    const Strategy& s = tight.strategies[i];
    EXPECT_EQ(s.rank, i + 1);
    EXPECT_EQ(s.fits, value_of(s.memory) <= value_of(hw.hbm_capacity));
    EXPECT_TRUE(i == 0 || !s.fits || tight.strategies[i - 1].fits);
  }
}

/// Book, chapter 9: an array of 3 x 5 in tiles of 2 x 2 is stored as 4 x 6.
TEST_F(ShardedMatmul, ArraysAreStoredInWholeTiles) {
  MatmulQuestion q = question("A[L, I, J]", kOneAxis, {{"L", 3}, {"I", 3}, {"J", 5}});
  q.tile = {2, 2};
  const ArrayShare share = answer(q, nullptr).arrays.front();
  EXPECT_EQ(share.padded_shape, (std::vector<std::int64_t>{3, 4, 6}));
  EXPECT_DOUBLE_EQ(value_of(*share.padded_bytes), 2.0 * 3 * 4 * 6);
  EXPECT_DOUBLE_EQ(share.padding_growth->value(), 24.0 / 15);
}

}  // namespace
}  // namespace scalecalc
