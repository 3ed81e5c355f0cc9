#include "validate/training_validation.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/io.h"
#include "unit/validate/measured.h"

namespace scalecalc {
namespace {

Validation run(std::vector<Measurement> rows, Compared compared = Compared::kStepTime) {
  return validate({.rows = std::move(rows), .compared = compared}, Catalog());
}

PredictedRow predicted(const std::string& more) {
  Validation found = run({test::measurement(more)});
  EXPECT_EQ(found.rows.size(), 1U) << (found.skipped.empty() ? "" : found.skipped.front().detail);
  return found.rows.front();
}

TEST(Validate, TheErrorIsSigned) {
  const double predicted_s = predicted("").predicted;
  Measurement slower = test::measurement();
  slower.step_s = 2 * predicted_s;
  const Validation found = run({slower});
  EXPECT_DOUBLE_EQ(found.rows[0].error, -0.5);
  EXPECT_DOUBLE_EQ(*found.summary.bias, -0.5);
  EXPECT_DOUBLE_EQ(*found.summary.mean_abs, 0.5);
  EXPECT_EQ(found.summary.too_slow, 0U);
  EXPECT_LE(found.rows[0].low, found.rows[0].predicted);
  EXPECT_GE(found.rows[0].high, found.rows[0].predicted);
}

TEST(Validate, ChipsAreCalledAsInTheCatalog) {
  Measurement alias = test::measurement();
  alias.id = "b";
  alias.chip = "H100";
  const std::vector<Measurement> rows{test::measurement(), alias};
  for (const char* typed : {"h100-sxm", "H100"}) {
    const Validation found = validate({.rows = rows, .only = {{"chip", {typed}}}}, Catalog());
    ASSERT_EQ(found.rows.size(), 2U) << typed;
    EXPECT_EQ(found.rows[1].row.chip, "h100-sxm");
    const auto chips = std::count_if(found.groups.begin(), found.groups.end(),
                                     [](const GroupOf<Training>& g) { return g.by == "chip"; });
    EXPECT_EQ(chips, 1);
  }
}

TEST(Validate, AMistypedNameIsLeftOutWithTheNearest) {
  Measurement model = test::measurement();
  model.model = "lama3-8b";
  model.shape.reset();
  Measurement chip = test::measurement();
  chip.chip = "h100-smx";
  const Validation found = run({model, chip});
  ASSERT_EQ(found.skipped.size(), 2U);
  EXPECT_NE(found.skipped[0].detail.find("did you mean 'llama3-8b'"), std::string::npos) << found.skipped[0].detail;
  EXPECT_NE(found.skipped[1].detail.find("did you mean 'h100-sxm'"), std::string::npos) << found.skipped[1].detail;
  EXPECT_TRUE(found.skipped[1].detail.ends_with("?")) << "no more of the hint: " << found.skipped[1].detail;
}

/// One step described in each way a source may print it.
TEST(Validate, EveryWayOfPrintingAStepGivesTheSameTime) {
  constexpr double kTokens = 32 * 2048;
  constexpr double kStep = 0.5;
  // Per token: 6 x weights of matmuls; scores of the whole sequence 12 L H dh S.
  const double d = 2048;
  const double matmul = 8 * (2 * d * d + 2 * d * 512 + 3 * d * 8192) + 32000 * d;
  const double embedding_and_norms = 32000 * d + (2 * 8 + 1) * d;
  const double attention = 12.0 * 8 * 16 * 128 * 2048;
  const double flops_per_s = kTokens / kStep / 8;
  const auto row = [&](const std::string& count, double flops) {
    return predicted("  measured: {tflops_per_chip: " + std::to_string(flops * flops_per_s / 1e12) +
                     ", tflops_convention: " + count + "}\n");
  };
  EXPECT_NEAR(predicted("  measured: {tokens_per_s_per_chip: 16384}\n").measured, kStep, 1e-9);
  EXPECT_NEAR(row("6N", 6 * matmul).measured, kStep, 1e-6);
  EXPECT_NEAR(row("6N+attn_causal", 6 * matmul + attention / 2).measured, kStep, 1e-6);
  EXPECT_NEAR(row("6N+attn_full", 6 * matmul + attention).measured, kStep, 1e-6);
  EXPECT_NEAR(row("6Nall", 6 * (matmul + embedding_and_norms)).measured, kStep, 1e-6);
  EXPECT_NEAR(row("6Nall+attn_full", 6 * (matmul + embedding_and_norms) + attention).measured, kStep, 1e-6);
  EXPECT_NEAR(row("hw_full_recompute", (6 * matmul + attention) * 4 / 3).measured, kStep, 1e-6);
  const double mfu_pct = 100 * 6 * matmul * flops_per_s / 500e12;
  EXPECT_NEAR(
      predicted("  measured: {mfu_pct: " + std::to_string(mfu_pct) + ", mfu_peak_tflops: 500, tflops_convention: 6N}\n")
          .measured,
      kStep, 1e-6);
}

TEST(Validate, AFigureOfUnknownConventionIsLeftOut) {
  const Validation found = run({test::measurement("  measured: {tflops_per_chip: 400}\n"),
                                test::measurement("  measured: {mfu_pct: 40, tflops_convention: 8N}\n")});
  EXPECT_TRUE(found.rows.empty());
  EXPECT_EQ(found.summary.skipped.at("the FLOPs convention of the figure is not known"), 2U);
  EXPECT_FALSE(found.summary.mean_abs);
}

TEST(Validate, ALayoutNoLauncherStartsIsLeftOut) {
  const Validation found = run({test::measurement("  parallel: {dp: 1, tp: 8, pp: 1}\n  micro_batch: 3\n")});
  ASSERT_EQ(found.skipped.size(), 1U);
  EXPECT_EQ(found.skipped[0].reason.rfind("no such layout: ", 0), 0U);
}

TEST(Validate, ARunThatDoesNotFitIsPredictedAndCounted) {
  Measurement row = test::measurement();
  row.batch_seqs = 4096;
  row.layout.micro_batch = 1024;
  row.seq = 8192;
  const Validation found = run({row});
  ASSERT_EQ(found.rows.size(), 1U);
  EXPECT_FALSE(found.rows[0].fits);
  EXPECT_EQ(found.summary.out_of_memory, 1U);
}

TEST(Validate, AllocatedMemoryHasNoReserve) {
  Measurement row = test::measurement("  memory_gib_per_chip: 10\n");
  row.memory_count = MemoryCount::kDevice;
  const PredictedRow device = run({row}, Compared::kMemory).rows.at(0);
  row.memory_count = MemoryCount::kAllocated;
  const PredictedRow allocated = run({row}, Compared::kMemory).rows.at(0);
  EXPECT_LT(allocated.predicted, device.predicted);
  EXPECT_LT(allocated.low, allocated.predicted);
  EXPECT_LT(allocated.predicted, allocated.high);
  const Validation none = run({test::measurement()}, Compared::kMemory);
  EXPECT_EQ(none.summary.skipped.at("no memory was measured"), 1U);
}

/// A pool holds what the allocator cannot use, the driver sees the runtime too.
TEST(Validate, EachCountOfMemoryHoldsTheOneBefore) {
  Measurement row = test::measurement("  memory_gib_per_chip: 10\n  framework: torchtitan\n");
  const auto predicted = [&](MemoryCount count) {
    row.memory_count = count;
    return run({row}, Compared::kMemory).rows.at(0).predicted;
  };
  EXPECT_LT(predicted(MemoryCount::kAllocated), predicted(MemoryCount::kReserved));
  EXPECT_DOUBLE_EQ(predicted(MemoryCount::kDevice) - predicted(MemoryCount::kReserved), 2.0 * 1024 * 1024 * 1024);
}

/// With more and more tokens a chip a run fits, then only by savings its source does not state, then not.
TEST(Validate, ThriftThatSourcesDoNotStateIsCounted) {
  Measurement row = test::measurement();
  row.batch_seqs = 4096;
  std::size_t fit = 0, made = 0, not_fit = 0;
  for (std::int64_t microbatch = 1; microbatch <= 1024; microbatch *= 2) {
    row.layout.micro_batch = microbatch;
    const Validation found = run({row});
    const PredictedRow& p = found.rows.at(0);
    EXPECT_EQ(found.summary.made_to_fit, p.assumed.empty() ? 0U : 1U);
    EXPECT_TRUE(p.fits || p.assumed.empty());
    (!p.fits ? not_fit : p.assumed.empty() ? fit : made) += 1;
    EXPECT_TRUE(not_fit == 0 || !p.fits);
  }
  EXPECT_GT(fit, 0U);
  EXPECT_GT(not_fit, 0U);
  EXPECT_EQ(fit + made + not_fit, 11U);
}

Measurement layout(const std::string& id, std::int64_t dp, std::int64_t tp, double step) {
  Measurement row = test::measurement();
  row.id = id;
  row.layout.dp = dp;
  row.layout.tp = tp;
  row.step_s = step;
  return row;
}

TEST(Validate, RegretIsWhatThePickedLayoutCosts) {
  // Measured best: tp 8. The engine prefers tp 1, which was measured 50 % slower.
  const Validation found = run({layout("a", 8, 1, 1.5), layout("b", 4, 2, 1.2), layout("c", 1, 8, 1.0)});
  ASSERT_EQ(found.rows.size(), 3U);
  EXPECT_LT(found.rows[0].predicted, found.rows[2].predicted);
  EXPECT_EQ(found.summary.of_job.sets, 1U);
  EXPECT_DOUBLE_EQ(*found.summary.of_job.regret, 0.5);
  EXPECT_LT(*found.summary.of_job.spearman, 0);
  EXPECT_FALSE(run({layout("a", 8, 1, 1.5), layout("b", 4, 2, 1.2)}).summary.of_job.regret)
      << "two layouts are no order";
}

TEST(Validate, LayoutsOfAModelAreOrderedByChipSecondsOfAToken) {
  // The same five layouts with twice the batch and twice the time are the same order; four are none.
  std::vector<Measurement> rows{layout("a", 8, 1, 1.5), layout("b", 4, 2, 1.2), layout("c", 2, 4, 1.1),
                                layout("d", 1, 8, 1.0)};
  EXPECT_FALSE(run(rows).summary.of_model.regret);
  Measurement twice = layout("e", 8, 1, 4.0);
  twice.batch_seqs *= 2;
  rows.push_back(twice);
  const OrderQuality order = run(rows).summary.of_model;
  EXPECT_EQ(order.sets, 1U);
  EXPECT_NEAR(*order.regret, 1.0, 1e-12) << "the larger batch is predicted fastest per token, and measured slowest";
  EXPECT_EQ(*order.median_spearman, *order.spearman);
}

TEST(Validate, SourcesOfManyRowsDoNotOutvoteOthers) {
  std::vector<Measurement> rows;
  const double p = predicted("").predicted;
  for (int i = 0; i < 3; ++i) {
    rows.push_back(layout("big" + std::to_string(i), 4, 2, p));
    rows.back().group = "big";
  }
  rows.push_back(layout("small", 4, 2, p / 2));
  rows.back().group = "small";
  const Validation found = run(rows);
  EXPECT_DOUBLE_EQ(*found.summary.mean_abs, 0.25);
  EXPECT_DOUBLE_EQ(*found.summary.source_mean_abs, 0.5);
}

TEST(Validate, OnlyRowsThatPassEveryFilterCount) {
  Measurement other = test::measurement();
  other.id = "b";
  other.chip = "h200";
  ValidateQuestion q{.rows = {test::measurement(), other}, .only = {{"chip", {"h200"}}, {"family", {"tiny"}}}};
  const Validation found = validate(q, Catalog());
  EXPECT_EQ(found.summary.rows, 1U);
  q.only = {{"chip", {"tpu-v5e"}}};
  EXPECT_THROW(validate(q, Catalog()), UserError);
}

/// The shipped measurements: nothing is dropped in silence, and most of it is predicted.
class Shipped : public testing::TestWithParam<std::tuple<const char*, Compared, std::size_t>> {};

TEST_P(Shipped, EveryRowIsPredictedOrLeftOutWithAReason) {
  const auto& [file, compared, count] = GetParam();
  const std::string path = std::string(SCALECALC_SOURCE_DIR "/configs/measurements/") + file;
  const Validation found =
      run(cli::read_measurements(read_yaml(read_text_file(path), path, limits::kTableNodes)), compared);
  EXPECT_EQ(found.summary.rows, count);
  EXPECT_EQ(found.rows.size() + found.skipped.size(), count);
  EXPECT_GT(found.rows.size(), count * 4 / 5);
  for (const SkippedRow& row : found.skipped) {
    EXPECT_FALSE(row.reason.empty()) << row.row.id;
    EXPECT_NE(row.reason, "the model is not known") << row.row.id;
    EXPECT_NE(row.reason, "the chip is not known") << row.row.id;
  }
  for (const PredictedRow& row : found.rows) {
    EXPECT_GT(row.predicted, 0) << row.row.id;
    EXPECT_GT(row.measured, 0) << row.row.id;
  }
}

INSTANTIATE_TEST_SUITE_P(Measurements, Shipped,
                         testing::Values(std::tuple("train.yaml", Compared::kStepTime, 1005U),
                                         std::tuple("memory.yaml", Compared::kMemory, 121U),
                                         std::tuple("train-2.yaml", Compared::kStepTime, 203U),
                                         std::tuple("memory-2.yaml", Compared::kMemory, 33U),
                                         std::tuple("small-steps.yaml", Compared::kStepTime, 720U)));

/// spec/stack_memory.h: nine of ten measured runs lie within the error of their stack's rules, of several at least.
TEST(Validate, NineOfTenLieWithinTheErrorOfTheirStacksMemory) {
  const std::string path = SCALECALC_SOURCE_DIR "/configs/measurements/memory.yaml";
  const Validation found =
      run(cli::read_measurements(read_yaml(read_text_file(path), path, limits::kTableNodes)), Compared::kMemory);
  std::map<std::string, std::pair<std::size_t, std::size_t>> by_stack;  // within, of
  for (const PredictedRow& row : found.rows) {
    if (row.row.stack.empty()) continue;  // no stack's rules
    auto& [within, all] = by_stack[row.row.stack];
    within += row.in_band() ? 1U : 0U;
    ++all;
  }
  EXPECT_GE(by_stack.size(), 6U);
  for (const auto& [stack, count] : by_stack) {
    EXPECT_GE(count.first, count.second * 9 / 10) << stack;  // rounded down: 7 of 8, 17 of 19
  }
}

/// A bound: no run may have beaten it.
TEST(Validate, NoMeasuredStepIsFasterThanTheIdealOne) {
  const std::string path = SCALECALC_SOURCE_DIR "/configs/measurements/train.yaml";
  const Validation found = validate(
      {.rows = cli::read_measurements(read_yaml(read_text_file(path), path, limits::kTableNodes)), .ideal = true},
      Catalog());
  for (const PredictedRow& row : found.rows) EXPECT_LE(row.error, 0) << row.row.id;
}

}  // namespace
}  // namespace scalecalc
