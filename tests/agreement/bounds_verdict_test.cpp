// What `bounds` concludes in words against its own table of one layer, over batches, widths and machines.
#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>

#include "agreement/ask.h"

namespace scalecalc::agreement {
namespace {

/// Whether the verdict that starts so says "is compute-bound"; nothing if there is none.
std::optional<bool> said(const std::string& text, const std::string& start) {
  const std::size_t at = text.find(start + " is ");
  if (at == std::string::npos) return std::nullopt;
  return text.compare(at + start.size() + 4, 13, "compute-bound") == 0;
}

bool computes(const Json& answer, const std::string& pass) {
  for (const Json& layer : answer.at("layers")) {
    if (layer.at("name") == pass) return layer.at("compute_bound").get<bool>();
  }
  throw std::runtime_error("no pass " + pass);
}

std::size_t check(const std::string& words) {
  const std::string command = "bounds " + words + " --for training";
  const Json& answer = ask(command);
  const std::string all = told(command);
  const std::string text = all.substr(0, all.find("\n\n"));  // the title and the verdicts
  SCOPED_TRACE(text);
  std::size_t judged = 0;
  const auto held_to = [&](const std::string& start, const std::string& pass) {
    const std::optional<bool> verdict = said(text, start);
    if (!verdict) return;
    EXPECT_EQ(*verdict, computes(answer, pass + "_forward") && computes(answer, pass + "_backward")) << start;
    ++judged;
  };
  held_to("FSDP alone", "fsdp");
  held_to("FSDP with tensor parallelism", "fsdp_tp");
  held_to("Data parallelism alone", "dp");
  return judged;
}

TEST(BoundsVerdict, SaysWhatItsTableSays) {
  std::size_t judged = 0;
  for (const std::string batch : {"250k", "500k", "1M", "2M", "4M", "8M", "16M"}) {
    for (const std::string width : {"8192", "12288", "20480", "28672", "30000", "53248"}) {
      for (const std::string machine :
           {"book/tpu-v5p --pods 1", "book/tpu-v5p --pods 2", "tpu-v5p --chips 512", "book/tpu-v5e --chips 256",
            "book/tpu-v5p --pods 1 --gradients fp32", "h100-sxm --chips 512", "book/h100 --chips 8"}) {
        judged += check("llama3-70b --hw " + machine + " --batch-tokens " + batch + " --set model.mlp.d_ff=" + width);
      }
    }
  }
  EXPECT_GT(judged, 400U);
}

}  // namespace
}  // namespace scalecalc::agreement
