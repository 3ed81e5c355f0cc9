#include "calibrate/training_calibration.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/io.h"
#include "calibrate/minimize.h"
#include "config/yaml_writer.h"
#include "spec/load.h"
#include "unit/validate/measured.h"

namespace scalecalc {
namespace {

TEST(Minimize, FindsTheBottomOfABowl) {
  const auto bowl = [](const std::vector<double>& x) { return std::pow(x[0] - 1, 2) + 3 * std::pow(x[1] + 2, 2); };
  const std::vector<double> found = minimize(bowl, {0, 0}, {{-4, -4}, {4, 4}});
  EXPECT_NEAR(found[0], 1, 1e-3);
  EXPECT_NEAR(found[1], -2, 1e-3);
}

TEST(Minimize, StaysWithinItsBounds) {
  const auto slope = [](const std::vector<double>& x) { return x[0] - x[1]; };
  const std::vector<double> found = minimize(slope, {0, 0}, {{-1, -1}, {1, 2}});
  EXPECT_DOUBLE_EQ(found[0], -1);
  EXPECT_DOUBLE_EQ(found[1], 2);
}

TEST(Minimize, EndsWhenAsked) {
  int calls = 0;
  const auto bowl = [&](const std::vector<double>& x) { return ++calls, x[0] * x[0] + x[1] * x[1]; };
  const std::vector<double> found = minimize(bowl, {3, 3}, {{-4, -4}, {4, 4}}, [&] { return calls == 4; });
  EXPECT_EQ(calls, 5);
  EXPECT_LE(bowl(found), bowl({3, 3}));
}

TEST(CoefficientSlot, FieldsThatMoveTogetherKeepTheirRatio) {
  Efficiency e;
  e.attention_forward = {0.6, 0.2, ""};
  e.attention_backward = {0.3, 0.2, ""};
  for (const CoefficientSlot& slot : fitted_slots()) {
    if (slot.path == "attention_forward") slot.set(e, 0.5, 0.1);
  }
  EXPECT_DOUBLE_EQ(e.attention_forward.value, 0.5);
  EXPECT_DOUBLE_EQ(e.attention_backward.value, 0.25);
  EXPECT_DOUBLE_EQ(e.attention_backward.error, 0.1);
}

/// Runs of two sources on eight H100, over batch, sequence and layout; the step times are the engine's own with other
/// coefficients, so that the fit has something to find.
std::vector<Measurement> runs_with(const std::vector<std::string>& set) {
  std::vector<Measurement> rows;
  for (const std::int64_t tp : {1, 2, 8}) {
    for (const std::int64_t seq : {1024, 8192, 32768}) {
      for (const double batch : {16.0, 64.0}) {
        Measurement row = test::measurement();
        row.id = std::to_string(tp) + "-" + std::to_string(seq) + "-" + std::to_string(batch);
        row.group = batch > 16 ? "large" : "small";
        row.layout.tp = tp;
        row.layout.dp = 8 / tp;
        row.seq = seq;
        row.batch_seqs = batch;
        row.step_s = 1;
        rows.push_back(row);
      }
    }
  }
  const Validation truth = validate({.rows = rows, .set = set}, Catalog());
  EXPECT_EQ(truth.rows.size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].step_s = truth.rows[i].predicted;
  return rows;
}

/// The same of a stack without factors on H100, so that fits begin at the chip's own coefficients.
std::vector<Measurement> unfitted_runs_with(const std::vector<std::string>& set) {
  std::vector<Measurement> rows = runs_with(set);
  for (Measurement& row : rows) row.framework = "NeMo";
  const Validation truth = validate({.rows = rows, .set = set}, Catalog());
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].step_s = truth.rows[i].predicted;
  return rows;
}

const std::vector<std::string> kSlower{"hw.efficiency.matmul.bf16.value=0.55", "hw.efficiency.matmul.bf16.error=0",
                                       "hw.efficiency.matmul.bf16.source=test"};

double after(const Calibration& c, const std::string& path) {
  for (const FittedCoefficient& f : c.coefficients) {
    if (f.path == path) return f.after;
  }
  ADD_FAILURE() << path << " was not fitted";
  return 0;
}

/// The file's values pull as well, so a few runs move the coefficients most of the way.
TEST(Calibrate, MovesTowardsTheCoefficientTheRunsWereMadeWith) {
  const Calibration c =
      calibrate({.rows = unfitted_runs_with(kSlower), .hardware = "h100-sxm", .stack = "nemo"}, Catalog());
  EXPECT_EQ(c.rows.size(), 18U);
  EXPECT_EQ(c.sources, 2U);
  EXPECT_EQ(c.folds.size(), 2U);
  EXPECT_GT(c.before.mean_abs, 0.05);
  EXPECT_LT(c.inside.mean_abs, c.before.mean_abs / 2);
  EXPECT_LT(c.outside.mean_abs, c.before.mean_abs);
  EXPECT_LT(after(c, "matmul.bf16"), 0.66) << "a third of the way from the 0.715 of the file";
  EXPECT_GT(after(c, "matmul.bf16"), 0.55);
  EXPECT_GE(*c.coverage, 0.8);
}

/// Both formats of 16 bits are one rate on every data sheet: runs in one tell of the other.
TEST(Calibrate, FormatsOf16BitsMoveTogether) {
  std::vector<Measurement> rows = unfitted_runs_with(kSlower);
  const auto fitted = [&] {
    return calibrate({.rows = rows, .hardware = "h100-sxm", .stack = "nemo", .date = "2026-11"}, Catalog());
  };
  EXPECT_EQ(write_yaml(fitted().block).find("fp16"), std::string::npos) << "no run is in fp16";
  rows.back().precision = "fp16";
  const Calibration c = fitted();
  EXPECT_LT(after(c, "matmul.bf16"), 0.66);
  const HardwareSpec hw = load_hardware(Catalog().load(CatalogKind::kHardware, "h100-sxm"), Catalog());
  const auto chips = [&](DType format) { return hw.efficiency.matmul[static_cast<std::size_t>(format)].value; };
  const double fp16 = chips(DType::kFp16) * after(c, "matmul.bf16") / chips(DType::kBf16);
  EXPECT_NE(write_yaml(c.block).find(fmt::format("fp16: {{value: {:.4g}", fp16)), std::string::npos);
}

TEST(Calibrate, LeavesCoefficientsAloneThatAlreadyFit) {
  const Calibration c = calibrate({.rows = runs_with({}), .hardware = "h100"}, Catalog());
  EXPECT_LT(c.before.mean_abs, 1e-9);
  for (const FittedCoefficient& f : c.coefficients) EXPECT_NEAR(f.after / f.before, 1, 2e-3) << f.path;
}

TEST(Calibrate, ASourceNeverBothTrainsAndTests) {
  std::vector<Measurement> rows = runs_with({});
  const Calibration c = calibrate({.rows = rows, .hardware = "h100-sxm"}, Catalog());
  ASSERT_EQ(c.folds.size(), 2U);
  for (const FoldReport& fold : c.folds) {
    EXPECT_EQ(fold.held_out.size(), 1U);
    EXPECT_EQ(fold.rows, 9U);
  }
  for (Measurement& row : rows) row.group = "one";
  const Calibration alone = calibrate({.rows = rows, .hardware = "h100-sxm"}, Catalog());
  EXPECT_TRUE(alone.folds.empty()) << "nor is there a second model";
  EXPECT_EQ(alone.held_out, HeldOut::kNothing);
  EXPECT_FALSE(alone.better());
  EXPECT_FALSE(alone.coverage);
  for (std::size_t i = 0; i < rows.size(); i += 2) rows[i].model = "other";
  const Calibration models = calibrate({.rows = rows, .hardware = "h100-sxm"}, Catalog());
  EXPECT_EQ(models.held_out, HeldOut::kModel);
  EXPECT_EQ(models.folds.size(), 2U);
}

TEST(Calibrate, SaysTheSameTwice) {
  const CalibrateQuestion q{.rows = runs_with(kSlower), .hardware = "h100-sxm", .date = "2026-11"};
  EXPECT_EQ(write_yaml(calibrate(q, Catalog()).block), write_yaml(calibrate(q, Catalog()).block));
}

/// What is written down can be put into a hardware file.
TEST(Calibrate, ItsBlockIsReadByTheLoader) {
  const CalibrateQuestion q{.rows = runs_with(kSlower), .hardware = "h100-sxm", .date = "2026-11"};
  const Calibration c = calibrate(q, Catalog());
  const Catalog catalog;
  ConfigNode document = catalog.load(CatalogKind::kHardware, "h100-sxm");
  const ConfigNode block = read_yaml(write_yaml(c.block), "block.yaml");
  for (ConfigNode::Entry& entry : document.entries) {
    if (entry.key == "efficiency") entry.value = block.entries.front().value;
  }
  const HardwareSpec hw = load_hardware(document, catalog);
  const Efficiency& usual = efficiency_under(hw, "megatron");
  const auto bf16 = static_cast<std::size_t>(DType::kBf16);
  EXPECT_NEAR(usual.matmul[bf16].value, after(c, "matmul.bf16"), 1e-4);
  EXPECT_NE(usual.matmul[bf16].source.str().find("fitted 2026-11: 18 runs"), std::string::npos);
  EXPECT_NEAR(usual.step_overhead.value / after(c, "step_overhead"), 1, 1e-2);
  EXPECT_NEAR(usual.model_error[0], c.model_error[0], 1e-3);
  EXPECT_NE(hw.efficiency.matmul[bf16].value, usual.matmul[bf16].value) << "kernels alone keep their coefficients";
}

/// A coefficient that stays what the chip's file says is inherited, and not written again under the stack.
TEST(Calibrate, WritesWhatTheMeasurementsSayAlone) {
  const Catalog catalog;
  const Calibration c = calibrate({.rows = runs_with(kSlower), .hardware = "h100-sxm"}, catalog);
  const std::string block = write_yaml(c.block);
  std::size_t written = 0, left_out = 0;
  for (const FittedCoefficient& coefficient : c.coefficients) {
    if (coefficient.path.find('.') != std::string::npos) continue;
    const bool found = block.find(" " + coefficient.path + ": {") != std::string::npos;
    if (coefficient.moved) {
      EXPECT_TRUE(found) << coefficient.path << "\n" << block;
    }
    (found ? written : left_out) += 1;
  }
  EXPECT_GT(written, 0U);
  EXPECT_GT(left_out, 0U) << block;
}

/// A chip has one set for each software: runs of another stack teach nothing about this one.
TEST(Calibrate, FitsTheRunsOfOneStack) {
  std::vector<Measurement> rows = runs_with(kSlower);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].framework = i % 3 == 0 ? "composer-fsdp" : "NeMo";
  const Calibration c = calibrate({.rows = rows, .hardware = "h100-sxm", .stack = "composer"}, Catalog());
  EXPECT_EQ(c.stack, "composer");
  EXPECT_EQ(c.rows.size(), 6U);
  EXPECT_EQ(c.other_stacks, 12U);
  EXPECT_NE(write_yaml(c.block).find("composer:"), std::string::npos);
  EXPECT_THROW(calibrate({.rows = rows, .hardware = "h100-sxm"}, Catalog()), UserError) << "none of the usual stack";
  EXPECT_THROW(calibrate({.rows = rows, .hardware = "h100-sxm", .stack = "compose"}, Catalog()), UserError);
}

/// Runs of another chip of the family, all half as fast as its coefficients say, make a chip with one run of its own
/// slower than that run alone does.
TEST(Calibrate, LeansOnTheFamilysOtherChips) {
  std::vector<Measurement> own{unfitted_runs_with({}).front()};
  std::vector<Measurement> all = own;
  for (Measurement row : unfitted_runs_with({})) {
    row.chip = "h200";
    row.id += "-h200";
    row.group = "elsewhere";
    all.push_back(row);
  }
  const Validation other = validate({.rows = all}, Catalog());
  for (std::size_t i = 1; i < all.size(); ++i) all[i].step_s = 1.5 * other.rows[i].predicted;
  const Calibration alone = calibrate({.rows = own, .hardware = "h100-sxm", .stack = "nemo"}, Catalog());
  const Calibration leaning = calibrate({.rows = all, .hardware = "h100-sxm", .stack = "nemo"}, Catalog());
  EXPECT_EQ(alone.relatives, 0U);
  EXPECT_EQ(leaning.relatives, 18U);
  EXPECT_EQ(leaning.rows.size(), 1U);
  EXPECT_LT(after(leaning, "matmul.bf16"), 0.97 * after(alone, "matmul.bf16"));
}

TEST(Calibrate, AFamilysFactorsAreWrittenForItsFile) {
  std::vector<Measurement> rows = runs_with(kSlower);
  const Calibration c = calibrate({.rows = rows, .hardware = {}, .family = "nvidia", .stack = "megatron"}, Catalog());
  EXPECT_EQ(c.rows.size(), 18U);
  const std::string block = write_yaml(c.block);
  EXPECT_EQ(block.find("stacks:\n  megatron:\n"), 0U) << block;
  EXPECT_NE(block.find("{times: "), std::string::npos) << block;
}

/// Whenever it is asked to end: what was not held out has no error on unseen runs, and nothing is praised for it.
TEST(Calibrate, InterruptedHasTheBestFitUntilThen) {
  const CalibrateQuestion q{.rows = runs_with(kSlower), .hardware = "h100-sxm", .next_runs = 0};
  double polls = 0;
  const Calibration whole = calibrate(q, Catalog(), [&] { return ++polls, false; });
  EXPECT_TRUE(whole.converged);
  std::size_t without_folds = 0, with_one = 0;
  for (double share = 0.05; share < 1; share += 0.1) {
    double left = share * polls;
    try {
      const Calibration c = calibrate(q, Catalog(), [&] { return --left < 0; });
      (c.folds.empty() ? without_folds : with_one) += 1;
      EXPECT_LE(c.folds.size(), 1U) << share;
      EXPECT_EQ(c.coverage.has_value(), !c.folds.empty()) << share;
      EXPECT_LE(c.inside.mean_abs, c.before.mean_abs) << share;
      if (c.folds.empty()) {
        EXPECT_FALSE(c.better()) << share;
      }
      if (!c.converged) {
        EXPECT_TRUE(c.folds.empty()) << share;
      }
    } catch (const Stopped&) {
      EXPECT_EQ(without_folds + with_one, 0U) << "before the fit alone";
    }
  }
  EXPECT_GT(without_folds, 0U);
  EXPECT_GT(with_one, 0U);
}

TEST(Gain, HasAStandardErrorOverParts) {
  const Gain gain = gain_of({{"a", {0.1, 0.3}}, {"b", {0.0}}, {"c", {0.1}}});
  EXPECT_NEAR(gain.mean, 0.1, 1e-12) << "each part once";
  ASSERT_TRUE(gain.standard_error);
  EXPECT_NEAR(*gain.standard_error, 0.1 / std::sqrt(3.0), 1e-12);
  EXPECT_TRUE(gain.beyond_chance());
  EXPECT_FALSE(gain_of({{"a", {0.5, 0.5}}}).beyond_chance()) << "one source says nothing of others";
  EXPECT_FALSE(gain_of({{"a", {0.5}}, {"b", {-0.1}}}).beyond_chance());
}

/// What too little tells of stays where it is, with its error.
TEST(Calibrate, MovesWhatIsToldOf) {
  std::vector<Measurement> rows = runs_with(kSlower);
  for (Measurement& row : rows) row.group = row.seq > 8192 ? "long" : "short";
  const Calibration two = calibrate({.rows = rows, .hardware = "h100-sxm"}, Catalog());
  std::size_t stay = 0;
  for (const FittedCoefficient& f : two.coefficients) {
    if (f.sources >= 2) {
      EXPECT_TRUE(f.moved) << f.path;
    }
    if (f.sources == 0) {
      EXPECT_FALSE(f.moved) << f.path;
    }
    EXPECT_LE(f.error_after, f.error_before) << f.path;
    if (f.moved) continue;
    ++stay;
    EXPECT_DOUBLE_EQ(f.after, f.before) << f.path;
    EXPECT_DOUBLE_EQ(f.error_after, f.error_before) << f.path;
    EXPECT_EQ(f.informed, 0) << f.path;
  }
  EXPECT_GT(stay, 0U);
  EXPECT_LT(stay, two.coefficients.size());
  for (Measurement& row : rows) row.group = "one";
  const Calibration one = calibrate({.rows = rows, .hardware = "h100-sxm"}, Catalog());
  for (const FittedCoefficient& f : one.coefficients) EXPECT_EQ(f.moved, f.sources >= 1) << f.path;
}

TEST(Calibrate, DegreesOfFreedomAreWhatIsInformed) {
  const Calibration c = calibrate({.rows = runs_with(kSlower), .hardware = "h100-sxm"}, Catalog());
  double sum = 0;
  for (const FittedCoefficient& f : c.coefficients) sum += f.informed;
  EXPECT_NEAR(c.degrees_of_freedom, sum, 1e-9);
  EXPECT_GT(c.degrees_of_freedom, 0.5);
  EXPECT_LT(c.degrees_of_freedom, static_cast<double>(c.coefficients.size()));
}

/// Of runs that no coefficient explains, nine of ten lie within the model's error.
TEST(Calibrate, WhatCoefficientsDoNotExplainIsTheModelsError) {
  std::vector<Measurement> rows = runs_with({});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].group = "source " + std::to_string(i % 6);
    *rows[i].step_s *= i % 2 == 0 ? 1.3 : 1 / 1.3;
  }
  const Calibration c = calibrate({.rows = rows, .hardware = "h100-sxm"}, Catalog());
  const double error = c.model_error[static_cast<std::size_t>(RunClass::kDense)];
  EXPECT_GT(error, 0.15);
  EXPECT_LT(error, 0.6);
  EXPECT_GE(*c.coverage, 0.8);
  EXPECT_LE(*c.coverage, 0.95);
  EXPECT_NE(write_yaml(c.block).find("model_error: {dense: "), std::string::npos) << write_yaml(c.block);
}

/// Runs that repeat within a per cent are no reason for a band of ten: the errors of what moved shrink until about nine
/// of ten of the runs held out lie inside, and what nothing tells of keeps its own.
TEST(Calibrate, CoefficientsAreAsWellKnownAsRunsHeldOutShow) {
  std::vector<Measurement> rows = runs_with({});
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].group = "source " + std::to_string(i % 6);
  const auto scattered = [&](double by) {
    std::vector<Measurement> out = rows;
    for (std::size_t i = 0; i < out.size(); ++i) *out[i].step_s *= i % 2 == 0 ? 1 + by : 1 / (1 + by);
    return calibrate({.rows = out, .hardware = "h100-sxm"}, Catalog());
  };
  const Calibration close = scattered(0.002), apart = scattered(0.2);
  const auto error = [](const Calibration& c) {
    double sum = 0;
    for (const FittedCoefficient& f : c.coefficients) {
      if (f.moved) sum += f.error_after / f.error_before;
    }
    return sum;
  };
  EXPECT_LT(error(close), 0.5 * error(apart));
  for (const FittedCoefficient& f : close.coefficients) {
    if (f.moved) continue;
    EXPECT_DOUBLE_EQ(f.error_after, f.error_before) << f.path;
  }
}

/// Of a source with nearly all runs models are held out, and each row says so; of the others whole sources.
TEST(Calibrate, RowsSayWhatTheyWereHeldOutWith) {
  std::vector<Measurement> rows = runs_with({});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].group = i < 2 ? "small" : "large";
    if (i % 2 == 0) rows[i].model = "other";
  }
  const Calibration c = calibrate({.rows = rows, .hardware = "h100-sxm"}, Catalog());
  EXPECT_EQ(c.held_out, HeldOut::kSource);
  for (const FittedOf<Training>& row : c.rows) EXPECT_EQ(row.by_model, row.row.group == "large") << row.row.id;
}

/// Collectives at half of the link's rate, as nccl-tests prints them, and nothing else.
TEST(Calibrate, CollectivesTellOfTheirLink) {
  CalibrateQuestion q{.hardware = "h100-sxm"};
  for (const double bytes : {1e6, 1e9, 4e9}) {
    const double rate = bytes < 1e7 ? 20e9 : 225e9;
    q.kernels.push_back({.id = std::to_string(bytes),
                         .group = "all_reduce.txt",
                         .work = TimedCollective{CollectiveOp::kAllReduce, 8, 1, bytes, rate},
                         .seconds = bytes * 1.75 / rate});
  }
  const Calibration c = calibrate(q, Catalog());
  EXPECT_EQ(c.kernels, 2U);
  EXPECT_EQ(c.small_messages, 1U) << "its time is latency";
  ASSERT_EQ(c.coefficients.size(), 1U);
  EXPECT_EQ(c.coefficients.front().path, "link.scale_up");
  EXPECT_LT(c.coefficients.front().factor, 0.95);
  EXPECT_GT(c.coefficients.front().informed, 0.1);
  EXPECT_FALSE(c.better()) << "no step was held out";
}

TEST(Calibrate, RefusesChipsWithoutRuns) {
  EXPECT_THROW(calibrate({.rows = {test::measurement()}, .hardware = "tpu-v5e"}, Catalog()), UserError);
  EXPECT_THROW(calibrate({.rows = {test::measurement()}, .hardware = "h101"}, Catalog()), UserError);
}

}  // namespace
}  // namespace scalecalc
