// What a model is: parameters, FLOPs of a token and of a run, bytes of its KV cache.
#include "agreement/row.h"

namespace scalecalc::agreement {
namespace {

const std::string kTrain8b = "train llama3-8b --hw h100-sxm --chips 64 --top 1";

/// FLOPs of a token as the first plan's row of that convention has them.
std::string flops_by(const std::string& rate) {
  return rate + " * 1e12 * plans[0].chips * plans[0].step_time_s / plans[0].batch_tokens";
}
std::string flops_under(const std::string& convention) {
  return flops_by("plans[0].mfu_conventions[name=" + convention + "].tflops_per_chip");
}

void parameter_rows(Rows& rows) {
  rows.push_back(
      {"parameters",
       "llama3-8b",
       {by_hand("8030261248"),  // the checkpoint's own count
        {"model llama3-8b", "parameters.total"},
        {"model list llama3-8b", "models[0].parameters"},
        {"bounds llama3-8b --hw h100-sxm", "bounds[name=parameters].value"},
        {"scaling-law llama3-8b", "query.model_parameters"},
        {"serve llama3-8b --hw h100-sxm --chips 1 --batch 16", "points[0].memory_bytes.weights / 2"},
        {kTrain8b, "plans[0].memory_bytes.weights / 2"},
        {"train llama3-8b --hw h100-sxm --chips 8 --batch-tokens 1M --lora 16", "query.fine_tune.frozen_parameters"},
        {"distill llama3-8b --teacher llama3-70b --hw h100-sxm --chips 64 --tokens 100B --fix dp=64 --zero 2",
         "student.memory_bytes.weights / 2"},
        {"rl llama3-8b --hw h100-sxm --chips 16 --prompts 64 --rollouts 8 --prompt 256 --generate 512 --gen-fix dp=16",
         "rollouts.memory_bytes.weights / 2"}}});
  rows.push_back({"parameters",
                  "llama3-70b",
                  {by_hand("70553706496"),
                   {"model llama3-70b", "parameters.total"},
                   {"model list llama3-70b", "models[0].parameters"},
                   {"bounds llama3-70b --hw h100-sxm", "bounds[name=parameters].value"},
                   {"scaling-law llama3-70b", "query.model_parameters"},
                   {"serve llama3-70b --hw mi325x --chips 1 --batch 1 --prompt 128 --generate 128",
                    "points[0].memory_bytes.weights / 2"}}});
  // Tied embeddings, learned positions, several query groups.
  for (const std::string model : {"gpt3-175b", "gemma-2-9b", "falcon-40b"}) {
    rows.push_back({"parameters",
                    model,
                    {{"model " + model, "parameters.total"},
                     {"model list " + model, "models[0].parameters"},
                     {"bounds " + model + " --hw h100-sxm", "bounds[name=parameters].value"},
                     {"scaling-law " + model + " --tokens 1T", "query.model_parameters"}}});
  }
  for (const std::string model :
       {"deepseek-v3", "mixtral-8x7b", "gpt-oss-120b", "qwen3-235b-a22b", "jamba-v0.1", "llama3-8b"}) {
    const std::string bounds = "bounds " + model + " --hw h100-sxm";
    const std::string law = "scaling-law " + model + " --tokens 1T";
    rows.push_back({"parameters",
                    model + ", in all",
                    {{"model " + model, "parameters.total"},
                     {"model list " + model, "models[0].parameters"},
                     {bounds, "query.parameters"}}});
    rows.push_back({"parameters a token uses",
                    model,
                    {{"model " + model, "parameters.active"},
                     {"model list " + model, "models[0].active"},
                     {bounds, "query.active_parameters"},
                     {law, "query.model_parameters"}}});
    rows.push_back({"6 N of a token",
                    model,
                    {{"model " + model, "flops_per_token.six_n"},
                     {bounds, "bounds[name=flops_per_token].value"},
                     {law, "allocations[kind=model].training_flops / 1e12"}}});
    rows.push_back({"2 N of a token",
                    model,
                    {{"model " + model, "flops_per_token.two_n"},
                     {bounds + " --for serving", "bounds[name=forward_flops_per_token].value"}}});
  }
  // Two norms, the module's own, the projection of two tokens' states (2 x 7168 x 7168) and a layer of its kind.
  rows.push_back({"parameters of MTP modules",
                  "deepseek-v3",
                  {{"model deepseek-v3", "parameters.mtp"},
                   {"model deepseek-v3", "layers[kind=mla/moe].parameters.total + 102760448 + 3 * 7168"}}});
}

void flops_rows(Rows& rows) {
  rows.push_back({"6 N of a token",
                  "llama3-8b, by hand",
                  {by_hand("48181567488"),  // 6 x 8030261248
                   {"model llama3-8b", "flops_per_token.six_n"},
                   {kTrain8b + " --explain", rule("training FLOPs") + " / 15e12"}}});
  struct Run {
    std::string model, machine, pins;
  };
  for (const Run& run :
       {Run{"llama3-70b", "--hw tpu-v5p --chips 8960", ""}, Run{"llama3-70b", "--hw h100-sxm --chips 1024", ""},
        Run{"deepseek-v3", "--hw h100-sxm --chips 2048", " --fix tp=1,ep=64,pp=8"}}) {
    const std::string words = run.model + " " + run.machine + " --tokens 15T --precision bf16";
    const std::string bounds = "bounds " + words;
    const std::string train = "train " + words + " --top 1 --explain" + run.pins;
    const std::string machine = run.model + " " + run.machine;
    rows.push_back({"FLOPs of a run of 15T tokens",
                    machine,
                    {{bounds, "bounds[name=training_flops].value"},
                     {train, rule("training FLOPs")},
                     {"scaling-law " + run.model + " --tokens 15T", "allocations[kind=model].training_flops"}}});
    rows.push_back({"run of 15T tokens at 40 % MFU",
                    machine,
                    {{bounds, "bounds[name=run_time].value"},
                     {bounds, "bounds[name=run_days].value * 86400"},
                     {train, rule("time at 40 % MFU")}}});
    rows.push_back({"chip-years at the peak",
                    machine,
                    {{bounds, "bounds[name=chip_years].value"}, {train, rule("chip-years at peak")}}});
  }
  const std::string chosen = flops_by("plans[0].tflops_per_chip");
  rows.push_back({"matmul FLOPs of a token",
                  "llama3-8b",
                  {{kTrain8b, flops_under("6n")},
                   {"model llama3-8b", "flops_per_token.six_n - 6 * parameters.embedding - 6 * parameters.norms"}}});
  rows.push_back(
      {"FLOPs of a token, scores of the whole square",
       "llama3-8b",
       {{kTrain8b, flops_under("torchtitan")}, {"model llama3-8b --attention full", "flops_per_token.training"}}});
  rows.push_back(
      {"FLOPs of a token, causal scores",
       "llama3-8b",
       {{kTrain8b, flops_under("maxtext")}, {kTrain8b, chosen}, {"model llama3-8b", "flops_per_token.training"}}});
  rows.push_back({"FLOPs of a token, MTP modules trained",
                  "deepseek-v3",
                  {{"train deepseek-v3 --hw h100-sxm --chips 2048 --top 1 --fix tp=1,ep=64,pp=8", chosen},
                   {"model deepseek-v3", "flops_per_token.training + 3 * parts[part~MTP].forward_flops"}}});
}

/// Latents, windows, index keys, recurrent states.
void cache_rows(Rows& rows) {
  struct Cache {
    std::string model, kv, pins;
    std::string chips;  ///< of the server
    std::string each;   ///< caches of 8 sequences from a chip's
  };
  const std::string whole = "tp=1,pp=2,dp=1";
  for (const Cache& c :
       {Cache{"llama3-8b", "bf16", whole, "2", " * 2 / 8"}, Cache{"llama3-70b", "fp8", whole, "2", " * 2 / 8"},
        Cache{"gemma-3-27b", "bf16", whole, "2", " * 2 / 8"}, Cache{"gpt-oss-20b", "bf16", whole, "2", " * 2 / 8"},
        Cache{"jamba-v0.1", "bf16", whole, "2", " * 2 / 8"},
        Cache{"qwen3-next-80b-a3b", "bf16", whole, "2", " * 2 / 8"},
        // Stages of it have one or two of its ten layers of full attention: an eighth of the heads on each of eight
        // ranks.
        Cache{"minimax-m1", "bf16", "tp=8", "8", " * 8 / 8"}, Cache{"deepseek-v3", "bf16", "tp=8", "8", " / 8"},
        Cache{"deepseek-v3.2", "bf16", "tp=8", "8", " / 8"}}) {
    rows.push_back({"KV bytes of a sequence of 8192, " + c.kv,
                    c.model,
                    {{"model " + c.model + " --seq 8192 --kv " + c.kv, "kv_bytes_per_sequence"},
                     {"bounds " + c.model + " --hw b300 --context 8192 --for serving --kv " + c.kv,
                      "bounds[name=kv_bytes_per_sequence].value"},
                     {"serve " + c.model + " --hw b300 --batch 8 --context 8192 --kv " + c.kv + " --chips " + c.chips +
                          " --fix " + c.pins,
                      "points[0].memory_bytes.kv" + c.each}}});
  }
}

}  // namespace

void model_rows(Rows& rows) {
  parameter_rows(rows);
  flops_rows(rows);
  cache_rows(rows);
}

}  // namespace scalecalc::agreement
