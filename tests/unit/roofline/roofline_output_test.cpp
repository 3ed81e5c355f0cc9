#include "roofline/roofline_output.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "report/render.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

using nlohmann::ordered_json;

RooflineQuestion roofline_question() {
  return {.operations = {Matmul{.rows = 64, .contraction = 1000, .columns = 1000}}};
}

Output output_of(const RooflineQuestion& q) {
  const HardwareSpec hw = test::torus_chip();
  return roofline_output(q, answer(q, hw), hw, {{"said before", "--before", "", false}});
}

ordered_json roofline_json(const RooflineQuestion& q) {
  return ordered_json::parse(output_json(output_of(q), "1.0", false));
}

std::string table_of(const RooflineQuestion& q) { return render_table(output_report(output_of(q), false), {}); }

TEST(RooflineOutput, HoldsTheFiguresOfTheContract) {
  const ordered_json json = roofline_json(roofline_question());
  EXPECT_EQ(json["schema"], "scalecalc/roofline/1");
  const auto& point = json["points"][0];
  EXPECT_EQ(point["batch"], 64);
  EXPECT_EQ(point["flops"], 128000000);
  EXPECT_EQ(point["bytes"], 2256000);
  EXPECT_NEAR(point["intensity_flops_per_byte"].get<double>(), 128e6 / 2256e3, 1e-9);
  EXPECT_NEAR(point["compute_time_s"].get<double>(), 1.28e-6, 1e-18);
  EXPECT_NEAR(point["memory_time_s"].get<double>(), 2.256e-6, 1e-18);
  EXPECT_EQ(point["time_s"], point["memory_time_s"]);
  EXPECT_NEAR(point["upper_time_s"].get<double>(), 3.536e-6, 1e-18);
  EXPECT_EQ(point["bound_by"], "memory");
  EXPECT_EQ(point["memory_bound"], true);
  EXPECT_EQ(point["compute_bound"], false);
  EXPECT_NEAR(point["attained_flops_per_s"].get<double>(), 128e6 / 2.256e-6, 1);
  EXPECT_NEAR(json["critical_batch"].get<double>(), 100 * 2e6 / (2e6 - 100 * 4e3), 1e-9);
  EXPECT_EQ(json["critical_batch_exists"], true);
  EXPECT_TRUE(json["critical_batch_reason"].is_null());
  EXPECT_EQ(json["critical_batch_approximate"], 100);
  EXPECT_EQ(json["machine"]["critical_intensity_flops_per_byte"]["hbm"], 100);
  EXPECT_EQ(json["assumptions"][0]["text"], "said before");
}

TEST(RooflineOutput, ACriticalBatchThatDoesNotExistIsNullWithItsReason) {
  RooflineQuestion q = roofline_question();
  q.operations = {Matmul{.rows = 64, .contraction = 100, .columns = 100}};
  const ordered_json json = roofline_json(q);
  EXPECT_TRUE(json["critical_batch"].is_null());
  EXPECT_EQ(json["critical_batch_exists"], false);
  EXPECT_NE(json["critical_batch_reason"].get<std::string>().find("no batch is compute-bound"), std::string::npos);
  EXPECT_NE(table_of(q).find("critical batch                        no batch is compute-bound"), std::string::npos)
      << table_of(q);
}

TEST(RooflineOutput, OnlyMatmulsHaveACriticalBatch) {
  RooflineQuestion q = roofline_question();
  q.operations = {DotProduct{1000}};
  EXPECT_FALSE(roofline_json(q).contains("critical_batch"));
  q.operations = {Attention{.heads = 8, .kv_heads = 8, .head_dim = 64, .query = 64, .kv = 64}};
  EXPECT_FALSE(roofline_json(q).contains("critical_batch"));
  EXPECT_EQ(roofline_json(q)["critical_prompt"], 200);
}

TEST(RooflineOutput, ShowsColumnsForWhatIsDone) {
  EXPECT_EQ(table_of(roofline_question()).find("link "), std::string::npos);
  EXPECT_EQ(table_of(roofline_question()).find("overhead"), std::string::npos);
  EXPECT_NE(table_of(roofline_question()).find("compute      HBM     time"), std::string::npos)
      << table_of(roofline_question());
  RooflineQuestion load = roofline_question();
  load.operations = {ParameterLoad{1e9}};
  EXPECT_EQ(table_of(load).find("FLOP"), std::string::npos) << table_of(load);
  RooflineQuestion split = roofline_question();
  split.sharing = {4, MatmulSplit::kOutput};
  split.over = Fabric::kIci;
  split.counted = Counted::kNone;
  EXPECT_NE(table_of(split).find("compute     link     time"), std::string::npos) << table_of(split);
  EXPECT_EQ(roofline_json(split)["query"]["over"], "ici");
  EXPECT_EQ(roofline_json(split)["machine"]["critical_intensity_flops_per_byte"]["ici"], 1000);
}

TEST(RooflineOutput, ASweepHasAColumnForWhatVaries) {
  RooflineQuestion q = roofline_question();
  for (double rows = 128; rows <= 8192; rows *= 2) {
    q.operations.emplace_back(Matmul{.rows = rows, .contraction = 1000, .columns = 1000});
  }
  q.swept = "batch";
  EXPECT_NE(table_of(q).find("batch  "), std::string::npos);
  EXPECT_NE(table_of(q).find("bf16[B,1000]"), std::string::npos);
  EXPECT_EQ(table_of(roofline_question()).find("\nbatch"), std::string::npos);
  EXPECT_EQ(output_explanation(output_of(q))[0].remarks.size(), 0U);
  // Far points of a long curve have no working, and the same figures.
  for (int i = 0; i < 20; ++i) q.operations.push_back(q.operations.back());
  const Output curve = output_of(q);
  EXPECT_EQ(output_explanation(curve)[0].remarks.size(), 1U);
  EXPECT_TRUE(curve.blocks[0].records.back().figures[1].steps().empty());
  const ordered_json json = ordered_json::parse(output_json(curve, "1.0", false));
  EXPECT_EQ(json["points"][7], json["points"][27]);
}

TEST(RooflineOutput, MeasuredTimesStandBesideTheRoofline) {
  RooflineQuestion q = roofline_question();
  q.measured = {4.512e-6, 2.256e-6 * 1.25};
  const ordered_json rows = roofline_json(q)["measured"];
  EXPECT_NEAR(rows[0]["roofline_fraction"].get<double>(), 0.5, 1e-12);
  EXPECT_TRUE(rows[0]["speedup_over_first"].is_null());
  EXPECT_NEAR(rows[1]["speedup_over_first"].get<double>(), 1.6, 1e-12);
  EXPECT_NE(table_of(q).find("Measured"), std::string::npos);
  EXPECT_FALSE(roofline_json(roofline_question()).contains("measured"));
}

// What is said to be needed is needed: a shape that reaches less of the peak is compute-bound at fewer FLOPs a byte.
TEST(RooflineOutput, TheSentenceContradictsNoVerdict) {
  HardwareSpec hw = test::torus_chip();
  hw.efficiency.matmul_half_dim = {2000, 0, "test"};
  for (const double rows : {8.0, 64.0, 150.0, 600.0, 5000.0}) {
    RooflineQuestion q{.operations = {Matmul{.rows = rows, .contraction = 1000, .columns = 1000}}, .calibrated = true};
    const RooflineAnswer found = answer(q, hw);
    const std::string text = roofline_output(q, found, hw, {}).summary.front().text;
    double has = 0, needs = 0;
    const std::size_t colon = text.find(": ");
    ASSERT_EQ(std::sscanf(text.c_str() + colon, ": %lf FLOP/byte, and %lf", &has, &needs), 2) << text;
    const std::string_view bound = found.points.front().bound_by;
    EXPECT_TRUE(bound == "memory" ? has <= needs : bound != "compute" || has >= needs) << text;
  }
}

}  // namespace
}  // namespace scalecalc
