#include "roofline/roofline.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/diagnostic.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

// test::torus_chip: 100 TFLOP/s, vector unit 10 TFLOP/s, 1 TB/s, links of 50 GB/s; 100 FLOPs in the time of a byte.

RooflineQuestion asking(Operation operation) { return {.operations = {std::move(operation)}}; }

RooflineQuestion matmul(double rows, double contraction, double columns) {
  return asking(Matmul{.rows = rows, .contraction = contraction, .columns = columns});
}

RooflineAnswer on_torus(const RooflineQuestion& question) { return answer(question, test::torus_chip()); }

std::string problem(const RooflineQuestion& question, const HardwareSpec& hw) {
  try {
    answer(question, hw);
  } catch (const UserError& error) {
    return error.diagnostics().front().message + " / " + error.diagnostics().front().hint;
  }
  return "";
}

bool notes(const RooflineAnswer& found, const std::string& text) {
  for (const Assumption& a : found.assumptions) {
    if (a.text.find(text) != std::string::npos) return true;
  }
  return false;
}

/// The point's lead of compute over memory at a batch.
double lead(RooflineQuestion question, double rows, const HardwareSpec& hw) {
  std::get<Matmul>(question.operations.front()).rows = rows;
  const RooflinePoint point = answer(question, hw).points.front();
  return value_of(point.compute_time) - value_of(point.memory_time);
}

TEST(Roofline, TakesTheLongerTimeAndAtMostTheSum) {
  const RooflinePoint p = on_torus(matmul(64, 1000, 1000)).points.front();
  EXPECT_DOUBLE_EQ(value_of(p.compute_time), 2.0 * 64 * 1e6 / 100e12);
  EXPECT_DOUBLE_EQ(value_of(p.memory_time), 2.0 * (64e3 + 1e6 + 64e3) / 1e12);
  EXPECT_EQ(value_of(p.time), value_of(p.memory_time));
  EXPECT_DOUBLE_EQ(value_of(p.upper_time), value_of(p.compute_time) + value_of(p.memory_time));
  EXPECT_EQ(p.bound_by, "memory");
  EXPECT_DOUBLE_EQ(value_of(p.attained), 2.0 * 64 * 1e6 / value_of(p.memory_time));
  EXPECT_DOUBLE_EQ(p.fraction_of_peak->value(), value_of(p.compute_time) / value_of(p.memory_time));
  EXPECT_EQ(on_torus(matmul(4096, 4096, 4096)).points.front().bound_by, "compute");
  EXPECT_EQ(on_torus(matmul(4096, 4096, 4096)).points.front().fraction_of_peak->value(), 1);
}

TEST(Roofline, CriticalBatchIsWhereBothTimesMeet) {
  const HardwareSpec hw = test::torus_chip();
  for (const auto& [weight, pad] : {std::pair{DType::kBf16, 1.0}, {DType::kFp8, 1.0}, {DType::kBf16, 192.0}}) {
    RooflineQuestion question = matmul(1, 1000, 3000);
    question.types.weight = weight;
    std::get<Matmul>(question.operations.front()).pad = pad;
    const Critical critical = *answer(question, hw).critical_batch;
    ASSERT_TRUE(critical.value);
    EXPECT_LT(lead(question, critical.value->value() * 0.999, hw), 0);
    EXPECT_GT(lead(question, critical.value->value() * 1.001, hw), 0);
  }
}

TEST(Roofline, CriticalBatchOfTheWeightsAlone) {
  RooflineQuestion question = matmul(1, 1000, 3000);
  EXPECT_DOUBLE_EQ(on_torus(question).critical_batch->approximate->value(), 100);
  question.types.weight = DType::kFp8;
  EXPECT_DOUBLE_EQ(on_torus(question).critical_batch->approximate->value(), 50);
  question.types.compute = DType::kFp8;
  EXPECT_DOUBLE_EQ(on_torus(question).critical_batch->approximate->value(), 100);
  question.counted = Counted::kWeights;
  EXPECT_DOUBLE_EQ(on_torus(question).critical_batch->value->value(), 100);
  question.sharing = {4, MatmulSplit::kBatch};  // four replicas of the weights
  std::get<Matmul>(question.operations.front()).rows = 4;
  EXPECT_DOUBLE_EQ(on_torus(question).critical_batch->approximate->value(), 400);
  question.sharing.split = MatmulSplit::kEven;
  EXPECT_DOUBLE_EQ(on_torus(question).critical_batch->approximate->value(), 100);
}

TEST(Roofline, SaysWhyThereIsNoCriticalBatch) {
  const RooflineAnswer small = on_torus(matmul(64, 100, 100));  // D F / (D + F) = 50
  EXPECT_FALSE(small.critical_batch->value);
  EXPECT_EQ(small.critical_batch->reason,
            "no batch is compute-bound: the intensity stays below 50 FLOP/byte, and 100 are needed");
  RooflineQuestion own = matmul(64, 4096, 4096);
  std::get<Matmul>(own.operations.front()).per_row_weights = true;
  EXPECT_FALSE(on_torus(own).critical_batch->value);
  EXPECT_FALSE(on_torus(own).critical_batch->approximate);
  own.counted = Counted::kNone;
  EXPECT_EQ(on_torus(own).critical_batch->reason, "no bytes are counted: every batch is compute-bound");
  HardwareSpec slow = test::torus_chip();
  slow.matmul_peak[static_cast<std::size_t>(DType::kBf16)] = FlopsPerSecond(0.5e12);
  own.counted = Counted::kAll;
  EXPECT_EQ(answer(own, slow).critical_batch->reason, "every batch is compute-bound");
}

TEST(Roofline, ATileOfRowsCapsTheCriticalBatch) {
  RooflineQuestion question = matmul(1, 4096, 4096);
  Matmul& m = std::get<Matmul>(question.operations.front());
  m.tile = MatmulTile{512, 512, 512};
  const double critical = on_torus(question).critical_batch->value->value();
  EXPECT_GT(critical, 100);
  m.tile->rows = 64;  // the weights are read again every 64 rows, so no batch helps
  const Critical never = *on_torus(question).critical_batch;
  EXPECT_FALSE(never.value);
  m.rows = 64;
  const double limit = value_of(*on_torus(question).points.front().intensity);
  EXPECT_LT(limit, 100);
  m.rows = 64 * 64;
  EXPECT_NEAR(value_of(*on_torus(question).points.front().intensity), limit, 1e-9);
}

TEST(Roofline, CriticalPromptIsWhereBothTimesMeet) {
  for (const bool causal : {false, true}) {
    for (const bool backward : {false, true}) {
      Attention a{.sequences = 2, .heads = 8, .kv_heads = 2, .head_dim = 64, .query = 1, .kv = 1};
      a.causal = causal;
      a.backward = backward;
      const double prompt = on_torus(asking(a)).critical_prompt->value->value();
      if (!causal && !backward) {
        EXPECT_DOUBLE_EQ(prompt, 100.0 * (4 + 1) / 4);
      }
      a.query = a.kv = prompt;
      const RooflinePoint p = on_torus(asking(a)).points.front();
      EXPECT_NEAR(value_of(p.compute_time) / value_of(p.memory_time), 1, 1e-12);
    }
  }
}

TEST(Roofline, ChipsDivideTimeAndNotIntensity) {
  RooflineQuestion question = matmul(64, 1000, 1000);
  const RooflineAnswer one = on_torus(question);
  question.sharing.chips = 8;
  const RooflineAnswer eight = on_torus(question);
  EXPECT_DOUBLE_EQ(value_of(eight.points[0].time), value_of(one.points[0].time) / 8);
  EXPECT_DOUBLE_EQ(value_of(eight.points[0].attained), 8 * value_of(one.points[0].attained));
  EXPECT_DOUBLE_EQ(eight.points[0].fraction_of_peak->value(), one.points[0].fraction_of_peak->value());
  EXPECT_EQ(value_of(*eight.points[0].intensity), value_of(*one.points[0].intensity));
}

TEST(Roofline, PartialSumsAreAddedUpOverTheLink) {
  RooflineQuestion question = matmul(1024, 16384, 4096);
  question.sharing = {2, MatmulSplit::kContraction};
  question.over = Fabric::kLink;
  question.counted = Counted::kNone;
  const RooflineAnswer two = on_torus(question);
  EXPECT_DOUBLE_EQ(value_of(two.points[0].link_time), 2.0 * 1024 * 4096 / 50e9);  // the book's two chips
  EXPECT_DOUBLE_EQ(two.critical_dimension->value->value(), 2 * 100e12 / 50e9);
  EXPECT_DOUBLE_EQ(value_of(*two.link_intensity), 2000);
  EXPECT_FALSE(two.points[0].intensity);
  question.sharing.chips = 8;
  EXPECT_DOUBLE_EQ(value_of(on_torus(question).points[0].link_time), 2.0 * 7 / 8 * 2 * 1024 * 4096 / 50e9);
  question.over = Fabric::kIci;  // both directions, the chip's own share not taken off
  EXPECT_DOUBLE_EQ(value_of(on_torus(question).points[0].link_time), 2.0 * 2 * 1024 * 4096 / 100e9);
}

TEST(Roofline, TheInputIsGatheredWhereTheOutputIsSplit) {
  RooflineQuestion question = matmul(64, 8192, 4096);
  question.sharing = {4, MatmulSplit::kOutput};
  question.over = Fabric::kScaleUp;
  const HardwareSpec node = test::switched_chip();
  EXPECT_DOUBLE_EQ(value_of(answer(question, node).points[0].link_time), 2.0 * 64 * 8192 * 3 / 4 / 400e9);
  question.over = Fabric::kScaleOut;
  EXPECT_DOUBLE_EQ(value_of(answer(question, node).points[0].link_time), 2.0 * 64 * 8192 * 3 / 4 / 50e9);
  std::get<Matmul>(question.operations.front()).columns = 1024;
  EXPECT_EQ(answer(question, node).points[0].bound_by, "link");
}

TEST(Roofline, CriticalDimensionIsWhereMathAndLinkMeet) {
  for (const MatmulSplit split : {MatmulSplit::kContraction, MatmulSplit::kOutput}) {
    for (const Fabric fabric : {Fabric::kLink, Fabric::kIci}) {
      RooflineQuestion question = matmul(64, 1e6, 1e6);
      question.sharing = {4, split};
      question.over = fabric;
      const double critical = on_torus(question).critical_dimension->value->value();
      Matmul& m = std::get<Matmul>(question.operations.front());
      (split == MatmulSplit::kContraction ? m.contraction : m.columns) = critical;
      const RooflinePoint p = on_torus(question).points.front();
      EXPECT_NEAR(value_of(p.compute_time) / value_of(p.link_time), 1, 1e-12);
    }
  }
}

TEST(Roofline, OperandsElsewhere) {
  RooflineQuestion question = matmul(64, 1000, 1000);
  question.from = OperandHome::kVmem;
  EXPECT_EQ(problem(question, test::torus_chip()),
            "test-chip gives no VMEM bandwidth / say how many times HBM it is: --vmem-multiple 22 (book ch. 2, for the "
            "TPU v5e)");
  // The file's own bandwidth, in times of HBM's 1 TB/s, unless the question has another.
  HardwareSpec with_vmem = test::torus_chip();
  with_vmem.onchip.levels = {{.name = "vmem", .bandwidth = BytesPerSecond(25e12), .over_hbm = 25}};
  EXPECT_DOUBLE_EQ(value_of(answer(question, with_vmem).rates.memory), 25e12);
  question.vmem_multiple = 20;
  EXPECT_DOUBLE_EQ(value_of(answer(question, with_vmem).rates.memory), 20e12);
  EXPECT_DOUBLE_EQ(value_of(*on_torus(question).memory_intensity), 5);
  question.from = OperandHome::kHost;
  EXPECT_EQ(problem(question, test::torus_chip()),
            "test-chip gives no host link rate / give one: --set hw.host.pcie_bandwidth=RATE");
  HardwareSpec hw = test::torus_chip();
  hw.pcie_bandwidth = BytesPerSecond(10e9);
  EXPECT_DOUBLE_EQ(value_of(*answer(question, hw).memory_intensity), 10000);
}

TEST(Roofline, VectorWorkRunsOnTheVectorUnit) {
  RooflineQuestion question = asking(Elementwise{.elements = 1e6});
  EXPECT_DOUBLE_EQ(value_of(*on_torus(question).memory_intensity), 10);
  EXPECT_EQ(on_torus(question).rates.compute_name, "vector");
  question.unit = ComputeUnit::kMatrix;
  EXPECT_DOUBLE_EQ(value_of(*on_torus(question).memory_intensity), 100);
  HardwareSpec hw = test::torus_chip();
  hw.vector_peak.reset();
  question.unit.reset();
  EXPECT_EQ(problem(question, hw), "test-chip gives no vector rate / give one: --set hw.compute.vector=RATE");
}

TEST(Roofline, WorkThatComputesNothingNeedsNoRate) {
  RooflineQuestion question = asking(ParameterLoad{1e9});
  question.types.compute = DType::kInt4;  // which the chip does not have
  const RooflineAnswer found = on_torus(question);
  EXPECT_DOUBLE_EQ(value_of(found.points[0].time), 2e9 / 1e12);
  EXPECT_FALSE(found.points[0].fraction_of_peak);
  EXPECT_FALSE(found.memory_intensity);
  EXPECT_EQ(problem(matmul(1, 1, 1),
                    [] {
                      HardwareSpec hw = test::torus_chip();
                      hw.matmul_peak[static_cast<std::size_t>(DType::kBf16)].reset();
                      return hw;
                    }()),
            "test-chip publishes no bf16 matmul rate / its matmul rates: fp8; or --set hw.compute.matmul.bf16=RATE");
}

HardwareSpec calibrated_chip() {
  HardwareSpec hw = test::torus_chip();
  hw.efficiency.matmul[static_cast<std::size_t>(DType::kBf16)] = {0.5, 0, "test"};
  hw.efficiency.matmul_half_dim = {100, 0, "test"};
  hw.efficiency.attention_forward = {0.4, 0, "test"};
  hw.efficiency.attention_backward = {0.3, 0, "test"};
  hw.efficiency.vector = {0.2, 0, "test"};
  hw.efficiency.hbm = {0.8, 0, "test"};
  hw.efficiency.link_scale_up = {0.9, 0, "test"};
  hw.efficiency.link_scale_out = {0.7, 0, "test"};
  hw.efficiency.kernel_overhead = {1e-6, 0, "test"};
  return hw;
}

/// [ATTENTION-SHAPE] of docs/model.md: half the rate at a mean context of half_context tokens.
TEST(Roofline, ShortContextsAndNarrowHeadsReachLess) {
  HardwareSpec hw = calibrated_chip();
  const auto compute_time = [&](double kv, double head_dim) {
    RooflineQuestion question =
        asking(Attention{.heads = 8, .kv_heads = 8, .head_dim = head_dim, .query = kv, .kv = kv});
    question.calibrated = true;
    return value_of(answer(question, hw).points.front().compute_time);
  };
  const double flat = compute_time(1000, 64);
  hw.efficiency.attention_half_context = {1000, 0, "test"};
  EXPECT_DOUBLE_EQ(compute_time(1000, 64), 2 * flat);
  hw.efficiency.attention_half_context = {0, 0, "test"};
  hw.efficiency.attention_half_head_dim = {64, 0, "test"};
  EXPECT_DOUBLE_EQ(compute_time(1000, 64), flat / (0.5 * 192 / 128));
  EXPECT_DOUBLE_EQ(compute_time(1000, 128), 2 * flat) << "wide enough: twice the FLOPs";
}

/// A profiled MaxText step on 64 TPU7x (configs/hardware/tpu-v7.yaml, hy3-profile): 12 sequences of 4,096 on a core, 24
/// on a chip, 64 heads of 128. The forward kernel took 19.52 ms; the backward's counted 2.5 times 4 x 12 x 64 x 4,096^2
/// x 128 = 6.597e12 FLOPs (whole squares) at 401.1 TFLOP/s, 41.1 ms. Twice as many tokens in one sequence take less
/// than four times as long: 3 of 4 blocks of 2,048 run, then 10 of 16.
TEST(Roofline, SplashAttentionTakesOnATpu7xWhatAProfileSays) {
  const HardwareSpec hw = test::shipped_chip("tpu-v7");
  const auto time = [&](double sequences, double tokens, bool backward) {
    RooflineQuestion question = asking(Attention{.sequences = sequences,
                                                 .heads = 64,
                                                 .kv_heads = 8,
                                                 .head_dim = 128,
                                                 .query = tokens,
                                                 .kv = tokens,
                                                 .causal = true,
                                                 .backward = backward});
    question.calibrated = true;
    return value_of(answer(question, hw).points.front().time);
  };
  EXPECT_NEAR(time(24, 4096, false), 19.52e-3, 0.03 * 19.52e-3);
  EXPECT_NEAR(time(24, 4096, true), 41.1e-3, 0.03 * 41.1e-3);
  const double longer = time(24, 8192, false) / time(24, 4096, false);
  EXPECT_GT(longer, 2.0);
  EXPECT_LT(longer, 3.4) << "4 x (10 / 16) / (3 / 4) = 3.33 where blocks on the diagonal cost as much as others";
}

TEST(Roofline, CalibratedRates) {
  const HardwareSpec hw = calibrated_chip();
  RooflineQuestion question = matmul(100, 300, 900);
  question.calibrated = true;
  const RooflinePoint p = answer(question, hw).points.front();
  EXPECT_DOUBLE_EQ(value_of(p.compute_time), 2.0 * 100 * 300 * 900 / (50e12 * 0.5 * 0.75 * 0.9));
  EXPECT_DOUBLE_EQ(value_of(p.memory_time), 2.0 * (100 * 300 + 300 * 900 + 100 * 900) / 0.8e12);
  EXPECT_EQ(value_of(p.overhead), 1e-6);
  EXPECT_DOUBLE_EQ(value_of(p.time), std::max(value_of(p.compute_time), value_of(p.memory_time)) + 1e-6);
  EXPECT_EQ(p.bound_by, "compute");
  EXPECT_DOUBLE_EQ(p.fraction_of_peak->value(), 2.0 * 100 * 300 * 900 / value_of(p.time) / 100e12);
  question.operations = {Matmul{.rows = 1, .contraction = 8, .columns = 8}};
  EXPECT_EQ(answer(question, hw).points.front().bound_by, "overhead");

  Attention attention{.heads = 8, .kv_heads = 8, .head_dim = 64, .query = 64, .kv = 64};
  question.operations = {attention};
  EXPECT_DOUBLE_EQ(value_of(*answer(question, hw).rates.compute), 40e12);
  attention.backward = true;
  question.operations = {attention};
  EXPECT_DOUBLE_EQ(value_of(*answer(question, hw).rates.compute), 30e12);
  question.operations = {Elementwise{.elements = 1e6}};
  EXPECT_DOUBLE_EQ(value_of(*answer(question, hw).rates.compute), 2e12);
}

TEST(Roofline, CalibratedContractionIsTheMatmulItAmountsTo) {
  RooflineQuestion question = matmul(128, 256, 512);
  question.calibrated = true;
  const double time = value_of(answer(question, calibrated_chip()).points[0].compute_time);
  question.operations = {Contraction{"abk,kj->abj",
                                     {{"a", 8, true, false, true},
                                      {"b", 16, true, false, true},
                                      {"k", 256, true, true, false},
                                      {"j", 512, false, true, true}}}};
  EXPECT_DOUBLE_EQ(value_of(answer(question, calibrated_chip()).points[0].compute_time), time);
}

TEST(Roofline, CalibratedCriticalBatchIsWhereBothTimesMeet) {
  const HardwareSpec hw = calibrated_chip();
  for (const MatmulSplit split :
       {MatmulSplit::kEven, MatmulSplit::kBatch, MatmulSplit::kContraction, MatmulSplit::kOutput}) {
    RooflineQuestion question = matmul(512, 8192, 8192);
    question.types.input = question.types.result = DType::kFp8;
    question.types.weight = DType::kFp32;
    question.calibrated = true;
    question.sharing = {4, split};
    if (split == MatmulSplit::kContraction || split == MatmulSplit::kOutput) question.over = Fabric::kLink;
    const Critical critical = *answer(question, hw).critical_batch;
    ASSERT_TRUE(critical.value) << critical.reason;
    EXPECT_NEAR(lead(question, critical.value->value(), hw) / value_of(answer(question, hw).points[0].memory_time), 0,
                1e-9);
  }
}

TEST(Roofline, CalibratedLinks) {
  RooflineQuestion question = matmul(64, 8192, 4096);
  question.calibrated = true;
  question.sharing = {4, MatmulSplit::kOutput};
  question.over = Fabric::kIci;
  EXPECT_DOUBLE_EQ(value_of(*answer(question, calibrated_chip()).rates.link), 90e9);
  question.over = Fabric::kScaleOut;
  EXPECT_DOUBLE_EQ(value_of(*answer(question, calibrated_chip()).rates.link), 3.5e9);
}

TEST(Roofline, MeasuredTimesOfOnePoint) {
  RooflineQuestion question = matmul(4096, 4096, 4096);
  const double bound = value_of(on_torus(question).points[0].time);
  question.measured = {4 * bound, 2 * bound, 1.25 * bound};
  const RooflineAnswer found = on_torus(question);
  ASSERT_EQ(found.measured.size(), 3U);
  EXPECT_DOUBLE_EQ(found.measured[0].roofline_fraction.value(), 0.25);
  EXPECT_FALSE(found.measured[0].speedup_over_first);
  EXPECT_DOUBLE_EQ(found.measured[2].roofline_fraction.value(), 0.8);
  EXPECT_DOUBLE_EQ(found.measured[2].fraction_of_peak->value(), 0.8);
  EXPECT_DOUBLE_EQ(value_of(found.measured[2].attained), 80e12);
  EXPECT_DOUBLE_EQ(found.measured[2].speedup_over_first->value(), 3.2);
  EXPECT_DOUBLE_EQ(found.measured[2].speedup_over_previous->value(), 1.6);
  EXPECT_FALSE(notes(found, "shorter than the roofline"));
  question.measured = {0.9 * bound};
  EXPECT_TRUE(notes(on_torus(question), "shorter than the roofline"));
}

TEST(Roofline, MeasuredTimesOfASweep) {
  RooflineQuestion question = matmul(64, 4096, 4096);
  question.operations.push_back(Matmul{.rows = 4096, .contraction = 4096, .columns = 4096});
  question.swept = "batch";
  question.measured = {1e-3, 2e-3};
  const RooflineAnswer found = on_torus(question);
  EXPECT_EQ(found.measured[1].point, 1U);
  EXPECT_FALSE(found.measured[1].speedup_over_first);
  EXPECT_DOUBLE_EQ(found.measured[1].roofline_fraction.value(), value_of(found.points[1].time) / 2e-3);
  question.measured = {1e-3};
  EXPECT_EQ(problem(question, test::torus_chip()),
            "1 measured times for 2 points / --measured takes times of one point, or one for each point of the sweep");
}

TEST(Roofline, WarnsWhenTheOperandsDoNotFit) {
  RooflineQuestion question = asking(ParameterLoad{20e9});  // 40 GB of 32
  EXPECT_TRUE(notes(on_torus(question), "the operands take 40 GB of each chip, which has 32 GB"));
  question.sharing.chips = 2;
  EXPECT_FALSE(notes(on_torus(question), "the operands take"));
  EXPECT_FALSE(notes(on_torus(asking(GivenWork{0, 40e9})), "the operands take"));
}

TEST(Roofline, ASplitDimensionHoldsAllChips) {
  RooflineQuestion question = matmul(64, 8192, 4);
  question.sharing = {8, MatmulSplit::kOutput};
  question.over = Fabric::kLink;
  EXPECT_EQ(problem(question, test::torus_chip()),
            "F = 4 cannot be split over 8 chips / fewer chips, or another --split");
}

TEST(Roofline, EveryTraceGivesItsValueAgain) {
  RooflineQuestion question = matmul(64, 8192, 4096);
  question.calibrated = true;
  question.types.weight = DType::kFp32;
  question.sharing = {4, MatmulSplit::kContraction};
  question.over = Fabric::kIci;
  const RooflineAnswer found = answer(question, calibrated_chip());
  const RooflinePoint& p = found.points.front();
  for (const SecondsOf<Traced>& time : {p.compute_time, p.memory_time, p.link_time, p.time, p.upper_time}) {
    EXPECT_EQ(reevaluate(time.value()), value_of(time));
  }
  ASSERT_TRUE(found.critical_batch->value) << found.critical_batch->reason;
  EXPECT_EQ(reevaluate(*found.critical_batch->value), found.critical_batch->value->value());
}

// 1e9 adds at half of the 10 TFLOP/s that count a fused multiply-add as two; a dot product is made of such.
TEST(Roofline, AddsRunAtHalfOfAFusedRate) {
  HardwareSpec hw = test::torus_chip();
  const auto seconds = [&](const Operation& operation) {
    return value_of(answer(RooflineQuestion{.operations = {operation}}, hw).points.front().compute_time);
  };
  const double plain = seconds(Elementwise{.elements = 1e9});
  const double dot = seconds(DotProduct{.elements = 1e9});
  hw.vector_counts_fma = true;
  EXPECT_NEAR(plain, 1e9 / 10e12, 1e-12);
  EXPECT_NEAR(seconds(Elementwise{.elements = 1e9}), 2 * plain, 1e-12);
  EXPECT_NEAR(seconds(DotProduct{.elements = 1e9}), dot, 1e-12);
  RooflineQuestion product{.operations = {Matmul{.rows = 100, .contraction = 100, .columns = 100}}};
  product.unit = ComputeUnit::kVector;
  EXPECT_NEAR(value_of(answer(product, hw).points.front().compute_time), 2e6 / 10e12, 1e-15) << "multiply-adds";
}

/// What adds lose against multiply-adds is in the coefficient that train is calibrated with, and is not lost twice.
TEST(Roofline, CalibratedVectorWorkIsAShareOfThePublishedRate) {
  HardwareSpec hw = test::torus_chip();
  hw.vector_counts_fma = true;
  hw.efficiency.vector = {0.4, 0, "test"};
  RooflineQuestion adds = asking(Elementwise{.elements = 1e9, .inputs = 2, .flops = 1});
  adds.calibrated = true;
  EXPECT_DOUBLE_EQ(value_of(*answer(adds, hw).rates.peak), 5e12);
  EXPECT_DOUBLE_EQ(value_of(*answer(adds, hw).rates.compute), 4e12);
  hw.efficiency.vector = {0.8, 0, "test"};  // no kernel adds faster than the unit
  EXPECT_DOUBLE_EQ(value_of(*answer(adds, hw).rates.compute), 5e12);
  RooflineQuestion products = asking(DotProduct{.elements = 1e9});
  products.calibrated = true;
  EXPECT_DOUBLE_EQ(value_of(*answer(products, hw).rates.compute), 8e12);
}

}  // namespace
}  // namespace scalecalc
