// `scalecalc model` of checkpoints: formats that their config.json says.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/io.h"
#include "cli/run.h"
#include "support/scratch.h"

namespace scalecalc::cli {
namespace {

nlohmann::json model_answer_of(std::vector<std::string> words) {
  words.insert(words.begin(), "model");
  words.emplace_back("--json");
  std::ostringstream out, err;
  Environment env{.out = out, .err = err};
  EXPECT_EQ(run(words, env), 0) << err.str();
  return nlohmann::json::parse(out.str());
}

TEST(ModelCommand, TheCacheIsInTheFormatOfTheCheckpoint) {
  const test::Scratch scratch;
  nlohmann::json config =
      nlohmann::json::parse(read_text_file(SCALECALC_SOURCE_DIR "/tests/data/hf/llama-3.1-8b.json"));
  constexpr double kElements = 32 * 2 * 8 * 128;  // layers x keys and values x KV heads x width
  EXPECT_EQ(model_answer_of({scratch.put("plain.json", config.dump())})["kv_bytes_per_token"], 2 * kElements);
  const auto checkpoint = [&](const char* cache) {
    config["quantization_config"] = {
        {"quant_method", "modelopt"}, {"quant_algo", "FP8"}, {"kv_cache_quant_algo", cache}};
    return scratch.put(std::string(cache) + ".json", config.dump());
  };
  const std::string fp8 = checkpoint("FP8");
  const nlohmann::json stored = model_answer_of({fp8});
  EXPECT_EQ(stored["kv_bytes_per_token"], kElements);
  EXPECT_EQ(stored["query"]["kv"], "fp8");
  EXPECT_EQ(model_answer_of({fp8, "--kv", "bf16"})["kv_bytes_per_token"], 2 * kElements);
  // Four bits an element, and one e4m3 scale for 16.
  EXPECT_EQ(model_answer_of({checkpoint("NVFP4")})["kv_bytes_per_token"], (4 + 8 / 16.0) / 8 * kElements);
}

}  // namespace
}  // namespace scalecalc::cli
