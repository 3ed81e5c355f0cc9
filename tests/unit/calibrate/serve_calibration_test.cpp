#include "calibrate/serving_calibration.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "unit/validate/served.h"

namespace scalecalc {
namespace {

const Catalog kCatalog;

/// Decode steps that an engine with these coefficients would measure.
std::vector<ServeMeasurement> made_by(const Efficiency& truth, const std::string& engine, const std::string& source) {
  std::vector<ServeMeasurement> rows;
  for (const int batch : {1, 4, 16, 64, 256}) {
    const std::string rest = fmt::format("phase: decode, batch: {}, measured: {{decode_step_ms: 1}}", batch);
    ServeMeasurement row = test::served(test::served_text(rest, fmt::format("{}-{}", source, batch))).front();
    row.engine = row.stack = engine;
    row.group = source;
    row.measured = served_figures(served_row(row, kCatalog, {}, false), truth).figure;
    rows.push_back(row);
  }
  return rows;
}

Efficiency slower(double factor) {
  const ServeMeasurement row =
      test::served(test::served_text("phase: decode, batch: 1, measured: {decode_step_ms: 1}")).front();
  Efficiency out = served_row(row, kCatalog, {}, false).hw->efficiency;
  out.serving.layer_overhead.value *= factor;
  return out;
}

const ServeSet& set_of(const ServeCalibration& found, const std::string& stack) {
  return *std::find_if(found.sets.begin(), found.sets.end(), [&](const ServeSet& s) { return s.stack == stack; });
}

TEST(ServeCalibration, FindsWhatAnEngineSpends) {
  ServeCalibrateQuestion q{.date = "2026-11"};
  for (const auto& [engine, factor] : {std::pair{"vllm", 3.0}, std::pair{"sglang", 1.0}}) {
    for (const char* source : {"x", "y"}) {
      for (ServeMeasurement& row : made_by(slower(factor), engine, engine + std::string(source))) q.rows.push_back(row);
    }
  }
  const ServeCalibration found = calibrate_serving(q, kCatalog);
  ASSERT_EQ(found.sets.size(), 2U);
  EXPECT_EQ(found.folds, 4U) << "each source by itself";
  const ServeSet& vllm = set_of(found, "vllm");
  EXPECT_GT(vllm.before.mean_abs, 0.2);
  EXPECT_LT(vllm.inside.mean_abs, 0.05);
  EXPECT_LT(vllm.outside.mean_abs, 0.07) << "the other source of the engine knows";
  EXPECT_LT(set_of(found, "sglang").outside.mean_abs, 0.07) << "and does not lend it to another engine";
  EXPECT_GE(found.coverage, 0.9);
}

TEST(ServeCalibration, AHeldOutSourceIsNotRemembered) {
  ServeCalibrateQuestion q;
  for (ServeMeasurement& row : made_by(slower(1), "sglang", "x")) q.rows.push_back(row);
  for (ServeMeasurement& row : made_by(slower(4), "vllm", "y")) q.rows.push_back(row);
  const ServeCalibration found = calibrate_serving(q, kCatalog);
  const ServeSet& vllm = set_of(found, "vllm");
  EXPECT_GT(vllm.outside.mean_abs, 3 * vllm.inside.mean_abs) << "nothing else has measured this engine";
}

TEST(ServeCalibration, WritesABlockThatAHardwareFileTakes) {
  ServeCalibrateQuestion q;
  for (ServeMeasurement& row : made_by(slower(2), "vllm", "x")) q.rows.push_back(row);
  const ServeCalibration found = calibrate_serving(q, kCatalog);
  const ConfigNode* stacks = found.sets.front().block.find("efficiency")->find("stacks");
  const ConfigNode* serving = stacks->find("vllm")->find("serving");
  ASSERT_NE(serving, nullptr);
  EXPECT_EQ(serving->entries.size(), serve_slots().size());
  EXPECT_NE(serving->find("layer_overhead")->find("value")->text.find("us"), std::string::npos);
}

TEST(ServeCalibration, NeedsRows) {
  ServeCalibrateQuestion q{.rows = test::served(test::served_text("phase: decode, complete: false"))};
  EXPECT_THROW(calibrate_serving(q, kCatalog), UserError);
}

}  // namespace
}  // namespace scalecalc
