// One machine, one collective, one answer: commands that meet on the network say the same.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/run.h"

namespace scalecalc {
namespace {

nlohmann::json ask(std::vector<std::string> words) {
  words.emplace_back("--json");
  std::ostringstream out;
  std::ostringstream err;
  cli::Environment env{.out = out, .err = err};
  EXPECT_EQ(cli::run(words, env), 0) << err.str();
  return nlohmann::json::parse(out.str(), nullptr, false);
}

double collective_s(const std::string& group, const std::string& bytes, std::vector<std::string> flags) {
  std::vector<std::string> words{"collective", "all-reduce", "--hw", "h100-sxm", "--group", group, "--bytes", bytes};
  words.insert(words.end(), flags.begin(), flags.end());
  return ask(words)["points"][0]["time_s"];
}

double matmul_s(const std::string& convention) {
  return ask({"matmul", "A[I, J_X] * B[J_X, K] -> C[I, K]", "--dims", "I=4096,J=16384,K=8192", "--mesh", "X=4", "--hw",
              "h100-sxm", "--convention", convention})["strategies"][0]["collectives"][0]["time_s"];
}

double roofline_s(const std::string& convention) {
  return ask({"roofline", "matmul", "4096x16384x8192", "--hw", "h100-sxm", "--chips", "4", "--split", "contraction",
              "--over", "scale-up", "--convention", convention})["points"][0]["link_time_s"];
}

/// 64 MiB summed over four chips of a node whose switches reduce: one pass at 450 GB/s, 149.13 us; exact counts the
/// 10 us that an operation waits.
TEST(OneNetwork, AnAllReduceIsOneInThreeCommands) {
  const double pass = 64.0 * 1024 * 1024 / 450e9;
  for (const std::string convention : {"book", "exact"}) {
    const double expected = convention == "exact" ? pass + 10e-6 : pass;
    EXPECT_DOUBLE_EQ(collective_s("4", "64MiB", {"--convention", convention}), expected);
    EXPECT_DOUBLE_EQ(matmul_s(convention), expected);
    EXPECT_DOUBLE_EQ(roofline_s(convention), expected);
  }
}

/// What small all-reduces of eight H100 were measured to take (aiconfigurator comm tables, 8 KiB): NCCL 16.4 us, the
/// kernels of engines 3.6 (TensorRT-LLM) and 5.0 us (vLLM).
TEST(OneNetwork, SmallAllReducesTakeWhatWasMeasured) {
  EXPECT_NEAR(collective_s("8", "8KiB", {"--convention", "exact", "--efficiency", "calibrated"}), 16.4e-6, 1e-6);
  const double engine =
      collective_s("8", "8KiB", {"--convention", "exact", "--efficiency", "calibrated", "--stack", "vllm"});
  EXPECT_GT(engine, 3e-6);
  EXPECT_LT(engine, 9e-6);
}

double fsdp_limit(const std::vector<std::string>& flags) {
  std::vector<std::string> words{"bounds", "llama3-70b", "--hw", "h100-sxm", "--chips", "64"};
  words.insert(words.end(), flags.begin(), flags.end());
  const nlohmann::json answer = ask(words);
  for (const nlohmann::json& bound : answer["bounds"]) {
    if (bound["name"] == "fsdp_limit") return bound["value"];
  }
  return 0;
}

/// C / W with C 989.4 TFLOP/s and W the 8 x 50 GB/s of a node: 2,473.5 tokens per chip; a quarter of W, four times
/// that.
TEST(OneNetwork, OversubscriptionReachesTheRulesOfThumb) {
  EXPECT_DOUBLE_EQ(fsdp_limit({}), 989.4e12 / 400e9);
  EXPECT_DOUBLE_EQ(fsdp_limit({"--set", "hw.network.leaf.oversubscription=4"}), 989.4e12 / 100e9);
}

TEST(OneNetwork, StacksOfCollectives) {
  std::ostringstream out;
  std::ostringstream err;
  cli::Environment env{.out = out, .err = err};
  EXPECT_EQ(cli::run({"collective", "all-reduce", "--hw", "h100-sxm", "--bytes", "1MiB", "--stack", "vllm"}, env), 2);
  EXPECT_NE(err.str().find("--efficiency calibrated"), std::string::npos) << err.str();
  err.str("");
  EXPECT_EQ(cli::run({"collective", "all-reduce", "--hw", "h100-sxm", "--bytes", "1MiB", "--efficiency", "calibrated",
                      "--stack", "vlmm"},
                     env),
            2);
  EXPECT_NE(err.str().find("vlmm"), std::string::npos) << err.str();
}

}  // namespace
}  // namespace scalecalc
