#include <gtest/gtest.h>

#include "config/yaml_reader.h"
#include "spec/law_spec.h"
#include "support/errors.h"

namespace scalecalc {
namespace {

ScalingLaw law(const std::string& body) {
  return load_law(read_yaml("schema: scalecalc-law/1\nname: a\ntitle: A\ncounts: all\n" + body, "a.yaml"));
}

std::string problem(const std::string& body) {
  return test::problems_of([&] { law(body); });
}

TEST(LoadLaw, ReadsALossAndAFrontier) {
  const ScalingLaw loss =
      law("loss: {irreducible: 1.7, parameters: {scale: 400, exponent: 0.34}, tokens: {scale: 410, exponent: 0.28}}\n"
          "largest_fit: {parameters: 16B, flops: 1e22}\nsource: [s]\nsources: {s: a paper}\n");
  ASSERT_TRUE(loss.loss);
  EXPECT_EQ(loss.loss->token_exponent, 0.28);
  EXPECT_EQ(loss.source, "a paper");
  EXPECT_EQ(loss.largest_parameters, 16e9);
  EXPECT_EQ(loss.largest_flops, 1e22);
  EXPECT_FALSE(loss.largest_tokens);
  const ScalingLaw frontier = law("frontier: {tokens: 20, flops: 120, exponent: 0.5}\n");
  ASSERT_TRUE(frontier.frontier);
  EXPECT_TRUE(frontier.frontier->of_tokens);
  EXPECT_TRUE(frontier.counts_embeddings);
}

TEST(LoadLaw, SaysWhatIsWrong) {
  EXPECT_NE(problem("").find("a scaling law has either loss or frontier"), std::string::npos);
  EXPECT_NE(problem("frontier: {tokens: 20, parameters: 1, flops: 120, exponent: 0.5}\n").find("either tokens or"),
            std::string::npos);
  EXPECT_NE(problem("frontier: {tokens: 20, flops: 120, exponent: 1.5}\n").find("a.yaml:5"), std::string::npos);
  EXPECT_NE(problem("frontier: {token: 20, flops: 120, exponent: 0.5}\n").find("tokens"), std::string::npos);
}

}  // namespace
}  // namespace scalecalc
