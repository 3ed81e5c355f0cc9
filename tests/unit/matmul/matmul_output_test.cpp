#include "matmul/matmul_output.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/render.h"
#include "support/fixtures.h"
#include "support/matmul_input.h"

namespace scalecalc {
namespace {

using nlohmann::ordered_json;

MatmulQuestion question(const std::string& expression) {
  MatmulQuestion out;
  out.input = test::matmul_input(expression, {{"X", 8}}, {{"I", 64}, {"J", 4096}, {"K", 8192}});
  if (expression.find('*') == std::string::npos) out.input.sizes.pop_back();
  return out;
}

Output output_of(const MatmulQuestion& asked, std::size_t top) {
  static const HardwareSpec kHw = test::torus_chip();
  return matmul_output(answer(asked, &kHw), &kHw, top);
}

TEST(MatmulOutput, JsonHoldsTheContract) {
  const ordered_json json =
      ordered_json::parse(output_json(output_of(question("A[I, J] * B[J_X, K]"), 10), "1", false));
  EXPECT_EQ(json["schema"], "scalecalc/matmul/1");
  EXPECT_EQ(json["case"], 2);
  EXPECT_EQ(json["output"], "C[I, K]");
  EXPECT_EQ(json["best"], json["strategies"][0]["name"]);
  EXPECT_EQ(json["query"]["dims"]["J"], 4096);
  const auto& collective = json["strategies"][0]["collectives"][0];
  EXPECT_EQ(collective["op"], "all-reduce");
  EXPECT_EQ(collective["axis"], "X");
  EXPECT_EQ(collective["bytes"], 2 * 64 * 8192);
  EXPECT_EQ(json["products"][0]["axes"][0]["case"], 2);
  EXPECT_EQ(json["arrays"][1]["local_shape"], ordered_json::parse("[512, 8192]"));
  EXPECT_TRUE(json["thresholds"][0]["holds"].is_boolean());
  EXPECT_FALSE(json.contains("measured"));
}

TEST(MatmulOutput, TextbookStrategiesAreListedWhateverTheirRank) {
  const ordered_json json = ordered_json::parse(output_json(output_of(question("A[I, J] * B[J_X, K]"), 1), "1", false));
  ASSERT_EQ(json["strategies"].size(), 2);
  EXPECT_EQ(json["strategies"][1]["name"], "all-gather B over X, multiply");
  EXPECT_GT(json["strategies"][1]["rank"], 2);
  EXPECT_NE(json["notes"].dump().find("2 of 4 strategies are listed"), std::string::npos) << json["notes"];
}

TEST(MatmulOutput, AChainHasNoCaseOfItsOwn) {
  MatmulQuestion asked = question("A[I, J] * B[J_X, K] * D[K, I2]");
  asked.input.sizes.push_back({"I2", 64, false});
  const ordered_json json = ordered_json::parse(output_json(output_of(asked, 3), "1", false));
  EXPECT_TRUE(json["case"].is_null());
  EXPECT_EQ(json["products"].size(), 2);
  EXPECT_FALSE(json.contains("thresholds"));
}

TEST(MatmulOutput, ASingleArrayIsATableOfItsOwn) {
  const Output output = output_of(question("A[I_X, J]"), 10);
  const std::string text = render_table(output_report(output, false), {});
  EXPECT_NE(text.find("8 x 4,096"), std::string::npos) << text;
  const std::string csv = render_csv(csv_records(output));
  EXPECT_NE(csv.find("local_bytes"), std::string::npos) << csv;
  EXPECT_FALSE(ordered_json::parse(output_json(output, "1", false)).contains("strategies"));
}

TEST(MatmulOutput, TheTextSaysWhatBindsAndWhatToRead) {
  MatmulQuestion asked = question("A[I_X, J] * B[J, K]");
  const std::string silent = render_table(output_report(output_of(asked, 10), false), {});
  EXPECT_NE(silent.find("Case 1 of the book: no axis cuts a contracted dimension"), std::string::npos) << silent;
  EXPECT_NE(silent.find("nothing is sent"), std::string::npos) << silent;
  asked = question("A[I, J_X] * B[J_X, K]");
  const std::string text = render_table(output_report(output_of(asked, 10), true), {});
  EXPECT_NE(text.find("Case 3 of the book: axis X cuts the contracted J of both"), std::string::npos) << text;
  EXPECT_NE(text.find("Collectives of the best strategy"), std::string::npos) << text;
  EXPECT_NE(text.find("time #1 = max(compute time #1, "), std::string::npos) << text;
}

}  // namespace
}  // namespace scalecalc
