#include "train/train_curve_output.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/render.h"
#include "train/train_page_command.h"
#include "unit/train/sample_answer.h"
#include "unit/train/train_texts.h"

namespace scalecalc {
namespace {

using Json = nlohmann::ordered_json;

CurvePoint planned(std::int64_t chips, double tokens_per_s) {
  CurvePoint out{.chips = chips, .plan = sample_plan()};
  out.plan->figures.tokens_per_s = tokens_per_s;
  out.plan->plan.layout.dp = chips / out.plan->plan.layout.chips();
  out.plan->plan.slice.chips = chips;
  return out;
}

/// 32, 64 and 256 chips with plans, the last of which adds little; 100 are not built.
TrainCurve sample_curve() {
  TrainCurve out{.job = sample_answer()};
  out.job.plans.clear();
  out.points = {planned(32, 1000), planned(64, 1900), {.chips = 100}, planned(256, 2000)};
  out.points[2].status = PointStatus::kNotBuilt;
  out.points[2].reason = "no slice has 100 chips";
  out.points[3].plan->figures.time_s = {{"compute", 0.5}, {"bubble", 1.5}};
  compare_points(out.points, true);
  out.end = linear_end(out.points);
  return out;
}

std::string table(const TrainCurve& curve) { return render_table(train_curve_report(curve), {}); }

TEST(TrainCurveReport, SaysWhereScalingEndsAndWhy) {
  const std::string text = table(sample_curve());
  EXPECT_NE(text.find("Up to 64 chips: each chip does 95.0% of the work it does at 32; linear is at least 90.0%."),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("At 256 chips it is 25.0%. Grown most: pipeline bubble, 0% -> 75.0% of the machine's time."),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("As many tokens per chip as at 64 chips (8.19k) would take --batch-tokens 2.1M."),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("100 chips, not built: no slice has 100 chips."), std::string::npos) << text;
  EXPECT_EQ(text.find("  used  "), std::string::npos) << text;
}

TEST(TrainCurveReport, IdleChipsAreShown) {
  TrainCurve curve = sample_curve();
  curve.points[3] = planned(256, 1800);
  compare_points(curve.points, true);
  EXPECT_NE(table(curve).find("  used  "), std::string::npos);
}

TEST(TrainCurveReport, AFrontOfOneMachineSaysThatThereIsNoChoice) {
  TrainCurve curve = sample_curve();
  curve.points.resize(1);
  curve.end.reset();
  curve.pareto = true;
  curve.front = {*curve.points[0].plan};
  curve.machine_sizes = 1;
  const std::string text = table(curve);
  EXPECT_NE(text.find("time and cost are one axis"), std::string::npos) << text;
  EXPECT_EQ(text.find("efficiency"), text.rfind("efficiency")) << text;
}

TEST(TrainCurveJson, EveryPointHasEveryKey) {
  const Json json = Json::parse(output_json(train_curve_output(sample_curve()), "1", false));
  EXPECT_EQ(json["schema"], "scalecalc/train-curve/1");
  EXPECT_EQ(json["query"]["chips"], (Json{32, 64, 100, 256}));
  for (const Json& point : json["curve"]) {
    for (const char* key : {"chips", "status", "reason", "speed_up", "efficiency", "plan", "search"}) {
      EXPECT_TRUE(point.contains(key)) << key;
    }
  }
  EXPECT_EQ(json["curve"][2]["status"], "not_built");
  EXPECT_TRUE(json["curve"][2]["plan"].is_null());
  EXPECT_EQ(json["curve"][1]["plan"]["idle_chips"], 0);
  EXPECT_EQ(json["linear"]["chips"], 64);
  EXPECT_EQ(json["linear"]["cause"], "bubble");
  EXPECT_FALSE(json.contains("pareto"));
}

TEST(TrainCurveCsv, ACountWithoutAPlanIsALine) {
  const std::string csv = render_csv(csv_records(train_curve_output(sample_curve())));
  EXPECT_TRUE(csv.starts_with("chips,reason,speed_up,efficiency,chips_used,"));
  EXPECT_NE(csv.find("\n100,no slice has 100 chips,,,,"), std::string::npos) << csv;
}

TEST(TrainPage, ItsCurveKeepsWhatIsAskedOfRemat) {
  TrainAnswer answer = sample_answer();
  EXPECT_EQ(page_curve_question(answer)->train.fix.remat, std::nullopt);
  answer.question.fix.remat = Remat::kFull;
  answer.question.fix.remat_layers = 0;
  const std::optional<CurveQuestion> asked = page_curve_question(answer);
  EXPECT_EQ(asked->train.fix.remat, Remat::kFull);
  EXPECT_EQ(asked->train.fix.remat_layers, 0);
}

}  // namespace
}  // namespace scalecalc
