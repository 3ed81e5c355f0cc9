// Answers on terminals: what two transcripts pin of the train and hw answers holds of all commands at any width.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "base/text.h"
#include "golden/transcript.h"

namespace scalecalc::golden {
namespace {

const std::vector<std::string>& on_terminals() {
  static const std::vector<std::string> kAll{
      "bounds 30B --hw book/tpu-v5e --for serving --weights int8 --kv-bytes-per-token 100kB --context "
      "8192 --batch 4 --chips 16",
      "bounds 70B --for serving --hw book/tpu-v5e --weights int8 --chips 16 --batch 8..512*4 --context "
      "8192 --kv-bytes-per-token 160kB --plot",
      "bounds 70B --hw book/h100 --for training",
      "bounds llama3-70b --hw book/h100 --chips 4096 --batch-tokens 4M --fix tp=8,pp=8 --for training",
      "bounds llama3-70b --hw book/tpu-v5e --for serving --params stated --weights int8 --kv int8 "
      "--chips 16 --batch 32 --prompt 8192 --generate 512 --slo-tpot 15ms --speculative "
      "draft=llama3-8b,k=4,accept=0.7",
      "bounds llama3-70b --hw book/tpu-v5p --chips 8960 --for training --params stated",
      "bounds mixtral-8x7b --hw book/h100 --for serving --batch 1..256*4 --context 4096 --generate 256",
      "calibrate train --half all --hw mi355x --stack primus --plot",
      "collective all-gather --hw book/h100 --mesh X=64,Y=16 --axes X --sharded Y --bytes 1GB",
      "collective all-gather --hw book/tpu-v4p --mesh X=4,Y=4,Z=4 --axes X --array bf16[1024_X,4096_Y]",
      "collective all-reduce --hw book/h100 --group 8,16,256 --bytes 1MiB,1GiB",
      "collective all-reduce --hw book/tpu-v5e --group 16 --bytes 1KiB..1GiB*16",
      "collective all-reduce --hw h100-sxm --group 8 --bytes 1kB..1GB*10 --convention exact --plot",
      "collective all-to-all --hw book/h100 --bytes 64MiB --top-k 4 --convention exact --explain",
      "collective permute --hw book/tpu-v5e --mesh X=4,Y=4 --from 0,0 --to 3,3 --array "
      "bf16[8,128,8192]",
      "compare llama3-8b --hw h100-sxm,tpu-v5p --budget 200k --tokens 1T --chips 256",
      "compare llama3-8b --hw h100-sxm,tpu-v5p --deadline 100d --equal-time --tokens 1T",
      "compare llama3-8b --hw h100-sxm,tpu-v5p --price-kind on-demand,spot --chips 64 --rank cost",
      "compare llama3-8b --hw h100-sxm,tpu-v5p,gaudi3,tpu-v5e:300 --chips 64 --cloud GCP --price "
      "gaudi3=3",
      "compare llama3-8b --hw h100-sxm,tpu-v5p,tpu-v5e:300 --chips 64",
      "compare llama3-8b --hw h100-sxm:64,tpu-v5p:64,a100-80g:64 --plot",
      "compare llama3-8b --serve --hw h100-sxm,h200 --chips 4 --plot",
      "compare llama3-8b --serve --hw h100-sxm,t4 --chips 4 --prompt 2048 --generate 256 --slo-tpot "
      "10ms",
      "compare llama3-8b --serve --hw h100-sxm,tpu-v6e --chips 4 --prompt 2048 --generate 256 "
      "--slo-tpot 20ms",
      "distill llama3.2-1b --batch-tokens 1M --seq 4096 --teacher llama3.1-8b --hw h100-sxm --chips 16 "
      "--tokens 10B",
      "distill llama3.2-1b --teacher llama3.1-8b --hw h100-sxm --chips 32 --tokens 10B --plot",
      "hw a100-80g v100",
      "hw b200 --dtype fp8",
      "hw h100-sxm --plot",
      "hw h200 tpu-v7 mi355x",
      "hw list --family amd",
      "hw list --sort matmul --sold",
      "hw tpu-v6e --pad 1000x3000",
      "matmul \"A[I_X, J] * B[J, K]\" --hw book/tpu-v5e --mesh X=4 --dims I=1024,J=8192,K=8192 --top 1 "
      "--explain",
      "matmul \"A[I_X, J] * B[J, K_X]\" --hw h100-sxm --mesh X=8 --dims I=4096,J=8192,K=16384 "
      "--efficiency calibrated",
      "matmul \"A[I_X, J_Y] * B[J_Y, K] -> C[I_X, K]\" --hw book/tpu-v5e --mesh X=4,Y=4 --dims "
      "I=1024,J=8192,K=8192 --top 4",
      "matmul \"In[B, D_XY] * W_in[D, F_XY] * W_out[F_XY, D] -> Out[B, D_XY]\" --hw book/tpu-v5e "
      "--mesh X=2,Y=2 --ring 4 --dims B=128,D=8192,F=32768 --top 1",
      "matmul \"X[B, D] * Y[D_X, F] -> Z[B, F]\" --hw book/tpu-v5p --mesh X=8 --dims "
      "B=1024,D=8192,F=32768 --top 3 --measured 900us,800us",
      "matmul \"int8[I_XY, J]\" --mesh X=2,Y=8,Z=2 --dims I=128,J=2048",
      "model deepseek-v3 --kv fp8 --against llama3-70b --contexts 4Ki,128Ki",
      "model design --hw h100-sxm --chips 1024 --deadline 30d",
      "model design --hw h100-sxm --chips 1024 --deadline 30d --top 2",
      "model gemma-3-27b --seq 256Ki --batch-tokens 4Mi",
      "model jamba-v0.1 --set model.layers=64",
      "model list qwen3",
      "model llama3-70b --seq 8192",
      "model llama3-8b --plot",
      "rl llama3.2-1b --hw h100-sxm --chips 16 --prompt 256 --generate 128..1024 --prompts 32 "
      "--rollouts 8 --plot",
      "rl llama3.2-1b --hw h100-sxm --chips 16 --prompts 64 --rollouts 8 --prompt 256 --generate "
      "128..1024",
      "roofline load 1M..1G*10 --hw h100-sxm --plot",
      "roofline matmul 8192x28672 --batch 8..2048*4 --hw book/tpu-v5e --weight int8",
      "roofline matmul 8192x28672 --batch 8..2048*4 --hw book/tpu-v5e --weight int8 --plot",
      "scaling-law llama3-70b --inference-tokens 20T",
      "scaling-law llama3-70b --inference-tokens 20T --hw h100-sxm --mfu 40%",
      "scaling-law llama3-8b --plot",
      "sensitivity gpt2-1.5b --hw h100-sxm --chips 8 --batch-seqs 64",
      "sensitivity gpt2-1.5b --hw h100-sxm --chips 8 --batch-seqs 64 --fixed --swing 50% "
      "--coefficients --set hw.hbm.bandwidth=1TB/s..4TB/s*2 --set "
      "hw.compute.matmul.bf16=500TFLOP/s,2PFLOP/s",
      "sensitivity llama3-70b --hw h100-sxm --chips 4 --offload none",
      "sensitivity llama3-8b --hw h100-sxm --chips 64 --fixed --set hw.hbm.bandwidth=1TB/s..8TB/s*2 "
      "--plot",
      "serve llama3-70b --hw h100-sxm --chips 8 --slo-tpot 50ms --plot",
      "serve llama3-8b --hw h100-sxm --batch 1,4,16,64 --plot",
      "trace gpt3-175b --hw a100-80g --chips 1024 --fix tp=8,pp=8",
      "trace gpt3-175b --hw a100-80g --chips 1024 --fix tp=8,pp=8,vpp=1 --batch-seqs 192 --plot",
      "trace llama3-8b --hw h100-sxm --chips 64 --plan 2",
      "train llama3-70b --hw tpu-v5p --chips 1024..16384*2 --pareto",
      "train llama3-70b --hw tpu-v5p --chips 8960",
      "train llama3-8b --hw h100-sxm --chips 16..256*2 --tokens 1T --plot",
      "train llama3-8b --hw h100-sxm --chips 16..64*2 --tokens 1T --pareto --plot",
      "train llama3-8b --hw h100-sxm --chips 4096 --pareto",
      "train llama3-8b --hw h100-sxm --chips 64 --pareto --fix dp=64",
      "train llama3-8b --hw h100-sxm --chips 64 --top 1 --why-not tp=8,pp=2",
      "train llama3-8b --hw h100-sxm --chips 64 --top 1 --why-not tp=8,pp=2 --why-not tp=64",
      "train llama3-8b --hw h100-sxm --chips 64 --top 3",
      "train llama3-8b --hw h100-sxm --chips 64 --top 4 --plot",
      "train llama3-8b --hw h100-sxm --chips 8..8192*4 --batch-seqs 64",
      "train llama3.1-405b --hw h100-sxm --chips 256..65536*4",
      "validate memory --only chip=h100-sxm --plot",
      "validate serve --only chip=h200 --plot",
      "validate train --only chip=h200,mi325x --plot"};
  return kAll;
}

Case shown(const std::string& command, std::size_t columns, bool colour) {
  Transcript transcript;
  transcript.tty = columns;
  transcript.utf8 = true;
  transcript.variables[colour ? "TERM" : "NO_COLOR"] = colour ? "xterm" : "1";
  transcript.cases = {{"scalecalc " + command, {}, "", "", 0}};
  return run_transcript(transcript).front();
}

/// The first line that is wider than the terminal; a command to copy is one line, however long.
std::string too_wide(const std::string& text, std::size_t columns) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    if (!line.starts_with("  scalecalc ") && display_width(line) > columns) return line;
    at = end + 1;
  }
  return "";
}

/// Tables that keep all their columns on a terminal of 60; of 100 they fit.
bool keeps_columns(const std::string& command) {
  return command.starts_with("sensitivity gpt2-1.5b") || command.find("--measured") != std::string::npos;
}

class Terminal : public testing::TestWithParam<std::string> {};

TEST_P(Terminal, FitsAndSaysTheSameInColour) {
  static const std::regex kColour("\x1b\\[[0-9;]*m");
  for (const std::size_t columns : {60U, 100U}) {
    const Case plain = shown(GetParam(), columns, false);
    ASSERT_TRUE(plain.exit == 0 || plain.exit == 3) << plain.err;
    EXPECT_FALSE(plain.out.empty());
    if (columns >= 100 || !keeps_columns(GetParam())) {
      EXPECT_EQ(too_wide(plain.out, columns), "");
    }
    EXPECT_EQ(plain.out.find('\x1b'), std::string::npos);
    const Case coloured = shown(GetParam(), columns, true);
    EXPECT_NE(coloured.out.find('\x1b'), std::string::npos);
    EXPECT_EQ(std::regex_replace(coloured.out, kColour, ""), plain.out);
  }
}

INSTANTIATE_TEST_SUITE_P(Answers, Terminal, testing::ValuesIn(on_terminals()));

}  // namespace
}  // namespace scalecalc::golden
