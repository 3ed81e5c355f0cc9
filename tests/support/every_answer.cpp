#include "support/every_answer.h"

namespace scalecalc::test {

const std::vector<AskedAnswer>& every_answer() {
  static const std::set<std::string> kTrain{"model",     "model_title", "hardware_title", "slice",
                                            "fine_tune", "documents",   "stack_release"};
  static const std::set<std::string> kCollective{"op", "hardware_title"};
  static const std::set<std::string> kCompare{"model", "model_title"};
  static const std::vector<AskedAnswer> kAll{
      {{"train", "llama3-8b", "--hw=h100-sxm", "--chips=8"}, kTrain},
      {{"train", "llama3-8b", "--hw=h100-sxm", "--chips=8,16"}, kTrain},
      {{"train", "llama3-8b", "--hw=h100-sxm", "--chips=8", "--pareto"}, kTrain},
      {{"trace", "llama3-8b", "--hw=h100-sxm", "--chips=8"}, {"model", "rank", "layers_drawn"}},
      {{"profile", std::string(SCALECALC_SOURCE_DIR) + "/tests/data/profiles/kineto.json", "--hw=h100-sxm"},
       {"files", "hardware_title"}},
      {{"profile", std::string(SCALECALC_SOURCE_DIR) + "/tests/data/profiles/step.hlo", "--hw=h100-sxm"},
       {"files", "hardware_title"}},
      {{"sensitivity", "llama3-8b", "--hw=h100-sxm", "--chips=8", "--fixed"}, {"model", "sweep"}},
      {{"sensitivity", "serve", "llama3-8b", "--hw=h100-sxm", "--chips=1", "--fixed"}, {"model"}},
      {{"compare", "llama3-8b", "--hw=h100-sxm:8,h200:8"}, kCompare},
      {{"compare", "llama3-8b", "--serve", "--hw=h100-sxm,h200", "--chips=8"}, kCompare},
      {{"serve", "llama3-8b", "--hw=h100-sxm", "--chips=1"}, {"model"}},
      {{"bounds", "70B", "--hw=h100-sxm", "--for=training"}, {"model"}},
      {{"bounds", "70B", "--hw=h100-sxm", "--for=serving"}, {"model", "serving.weights", "serving.activations"}},
      {{"bounds", "llama3-8b", "--hw=h100-sxm"}, {"model", "serving.weights", "serving.activations"}},
      {{"roofline", "matmul", "8x8x8", "--hw=h100-sxm"}, {"operation", "hardware_title"}},
      {{"collective", "all-gather", "--hw=h100-sxm", "--group=8", "--bytes=1MiB"}, kCollective},
      {{"collective", "permute", "--hw=tpu-v5e", "--mesh=X=4", "--bytes=1MiB"}, kCollective},
      {{"matmul", "A[I] * B[I]", "--hw=tpu-v5e", "--mesh=X=4", "--dims=I=8"}, {"expression", "chips"}},
      {{"matmul", "A[I]", "--mesh=X=4", "--dims=I=8"}, {"expression", "chips"}},
      {{"matmul", "A[I_X] -> A[I]", "--hw=tpu-v5e", "--mesh=X=4", "--dims=I=8"}, {"expression", "chips"}},
      {{"book"}, {"chapter", "section", "id"}},
      {{"book", "1.1"}, {"chapter", "section", "id"}},
      {{"hw", "list"}, {"filters"}},
      {{"hw", "h100-sxm"}, {"hardware"}},
      {{"hw", "tpu-v5e", "--load=1MiB"}, {"hardware", "load_elements"}},
      {{"hw", "h100-sxm", "--keys"}, {"name"}},
      {{"model", "llama3-8b"}, {"model", "model_title"}},
      {{"model", "llama3-8b", "--keys"}, {"name"}},
      {{"model", "list", "llama3"}, {"filters"}},
      {{"model", "design", "--hw=h100-sxm", "--chips=8", "--deadline=1d"}, {"top_k"}},
      {{"scaling-law", "--flops=1e24"}, {"model", "model_parameters", "model_tokens"}},
      {{"scaling-law", "llama3-8b"}, {"model", "model_parameters", "model_tokens"}},
      {{"distill", "llama3.2-1b", "--teacher=llama3-8b", "--hw=h100-sxm", "--chips=8", "--batch-seqs=64",
        "--tokens=1B"},
       {"student"}},
      {{"distill", "llama3.2-1b", "--teacher=llama3-8b", "--hw=h100-sxm", "--chips=8", "--batch-seqs=64", "--tokens=1B",
        "--loss=sequence", "--prompt=64", "--generate=64"},
       {"student"}},
      {{"rl", "llama3.2-1b", "--hw=h100-sxm", "--chips=8", "--prompt=64", "--generate=64", "--prompts=8"},
       {"model", "prompt_tokens", "response_tokens", "longest_response"}},
      {{"export", SCALECALC_SOURCE_DIR "/tests/data/launch/plan.json", "--to=accelerate"}, {"plan_question", "plan"}},
      {{"lint", SCALECALC_SOURCE_DIR "/tests/data/launch/megatron.sh", "--hw=h100-sxm", "--model=llama3-8b"},
       {"framework", "legal"}},
      {{"validate", "memory"}, {"files"}},
      {{"validate", "serve", "--only=chip=h200"}, {"files"}},
      {{"calibrate", "serve", "--only=chip=h200", "--folds=2"}, {"files"}},
      {{"calibrate", "train", "--hw=h100-sxm", "--half=all"},
       {"degrees_of_freedom", "kernels", "small_messages", "files", "rows", "sources", "other_chips", "relatives",
        "other_stacks", "coverage"}}};
  return kAll;
}

}  // namespace scalecalc::test
