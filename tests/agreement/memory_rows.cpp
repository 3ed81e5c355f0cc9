// What a chip holds, and a step and a token of runs as `validate` asks about them.
#include "agreement/row.h"
#include "support/scratch.h"

namespace scalecalc::agreement {
namespace {

const test::Scratch& files() {
  static const test::Scratch kFiles;
  return kFiles;
}

/// `bounds` and `train` under one recipe: one sequence at a time, every layer run again, weights sharded.
void least(const std::string& words, const std::string& degrees, const std::string& pins, const std::string& efficiency,
           Rows& rows) {
  const std::string asked = words + " --efficiency " + efficiency;
  const std::string fix = degrees.empty() ? "" : " --fix " + degrees;
  rows.push_back({"least memory of a plan",
                  asked + fix,
                  {{"bounds " + asked + fix + " --for training", "bounds[name=least_bytes_per_chip].value"},
                   {"train " + asked + " --top 1 --fix " + pins + ",mb=1,remat=full,remat_layers=0,zero=3,offload=none",
                    "plans[0].memory_bytes.total"}}});
}

void least_rows(Rows& rows) {
  const std::string batch = " --batch-tokens 4Mi --seq 8192";
  const std::string on_h100 = "llama3-70b --hw h100-sxm --chips 64" + batch;
  const std::string on_tpu = "llama3-70b --hw tpu-v5p --chips 64" + batch;
  for (const std::string efficiency : {"ideal", "calibrated"}) {
    least(on_h100, "tp=8", "dp=1,fsdp=8,tp=8,cp=1,pp=1,sp=1", efficiency, rows);
    least(on_tpu, "", "dp=1,fsdp=64,tp=1,cp=1,pp=1", efficiency, rows);
  }
  least("llama3-70b --hw h100-sxm --chips 128" + batch, "tp=4,pp=4",
        "dp=1,fsdp=8,tp=4,cp=1,pp=4,sp=1,vpp=1,schedule=1f1b", "ideal", rows);
  least("mixtral-8x7b --hw h100-sxm --chips 64" + batch, "ep=8", "dp=1,fsdp=64,tp=1,cp=1,pp=1,ep=8", "calibrated",
        rows);
  // A model that drops out under its stack.
  least("gpt3-175b --hw h100-sxm --chips 128 --batch-tokens 4Mi --seq 2048", "tp=8,dp=2,fsdp=8",
        "dp=2,fsdp=8,tp=8,cp=1,pp=1,sp=1", "calibrated", rows);
}

void state_rows(Rows& rows) {
  for (const std::string model : {"llama3.2-1b", "qwen3-4b", "gpt2-1.5b"}) {
    const std::string train = "train " + model +
                              " --hw h200 --chips 1 --batch-seqs 4 --seq 1024 --top 1 --efficiency ideal --fix "
                              "dp=1,fsdp=1,tp=1,cp=1,pp=1,zero=0,mb=1";
    const std::string bounds = "bounds " + model + " --hw h200";
    const std::string held = "plans[0].memory_bytes.";
    rows.push_back({"weights, gradients and optimizer state",
                    model,
                    {{"model " + model, "parameters.total * 18"},  // arXiv:1910.02054: 2 + 4 + 12
                     {bounds, "bounds[name=framework_bytes_per_parameter].value * bounds[name=parameters].value"},
                     {train, held + "weights + " + held + "gradients + " + held + "optimizer"}}});
    // The book keeps no fp32 copy of the weights: 4 bytes less, twice what the 16-bit ones take.
    rows.push_back({"weights and moments",
                    model,
                    {{bounds, "bounds[name=state_bytes].value"},
                     {train, held + "optimizer + " + held + "weights - 2 * " + held + "weights"}}});
    rows.push_back({"bytes of the weights",
                    model,
                    {{"model " + model, "parameter_bytes.total"},
                     {bounds + " --for serving", "bounds[name=weight_bytes].value"},
                     {train, held + "weights"},
                     {"serve " + model + " --hw h200 --chips 1 --batch 1 --prompt 512 --generate 64",
                      "points[0].memory_bytes.weights"}}});
  }
}

/// As checkpoints store them, several formats in one: openai/gpt-oss by the headers of its files.
void stored_rows(Rows& rows) {
  for (const auto& [model, bytes] : {std::pair<std::string, std::string>{"gpt-oss-20b", "13761264768"},
                                     std::pair<std::string, std::string>{"gpt-oss-120b", "65248815744"}}) {
    rows.push_back({"stored bytes of the weights",
                    model,
                    {by_hand(bytes),
                     {"model " + model, "parameter_bytes.total"},
                     {"model " + model, "stored[part=experts].bytes / stored[part=experts].share"},
                     {"bounds " + model + " --hw b300 --for serving", "bounds[name=weight_bytes].value"},
                     {"serve " + model + " --hw b300 --chips 1 --batch 1 --prompt 512 --generate 64",
                      "points[0].memory_bytes.weights"}}});
  }
}

/// Sequences that the weights leave room for.
void room_rows(Rows& rows) {
  for (const std::string model : {"llama3-8b", "llama3-70b"}) {
    const std::string words = model + " --hw h100-sxm --chips 8 --batch 16 --context 8192";
    rows.push_back({"most sequences of 8192 tokens",
                    words,
                    {{"bounds " + words + " --for serving", "bounds[name=max_batch].value"},
                     {"serve " + words + " --prompt 8192 --generate 1 --efficiency ideal --fix tp=8,dp=1",
                      "points[0].max_batch"}}});
  }
}

/// A plan lies in memory as the stack it is timed under keeps it.
void stack_rows(Rows& rows) {
  struct Usual {
    std::string words, stack;
  };
  for (const Usual& usual :
       {Usual{"llama3-8b --hw h100-sxm --chips 64", "torchtitan"},
        Usual{"llama3-70b --hw tpu-v5p --chips 64", "maxtext"},
        Usual{"gpt3-175b --hw h100-sxm --chips 256 --seq 2048 --tokens 300B --batch-seqs 1536", "megatron-lm"},
        Usual{"mixtral-8x7b --hw mi300x --chips 64 --batch-tokens 4M", "megatron"}}) {
    const std::string train = "train " + usual.words + " --top 1";
    for (const std::string figure : {"memory_bytes.total", "step_time_s"}) {
      rows.push_back({figure + " under the usual stack",
                      usual.words,
                      {{train, "plans[0]." + figure}, {train + " --stack " + usual.stack, "plans[0]." + figure}}});
    }
  }
}

void run_row(Rows& rows, const std::string& id, const std::string& model, const std::string& words,
             const std::string& pins, const std::string& measured, const std::string& stack = "megatron") {
  const std::string path = files().put(
      id + ".yaml",
      "schema: scalecalc-measurements/1\nsources:\n  ours: \"what was measured stands for nothing\"\nrows:\n  - {id: " +
          id + ", source: ours, framework: " + stack + ", model: " + model +
          ", chip: h100-sxm, chips: 8, global_batch_seqs: 64, micro_batch: 1, precision: bf16, optimizer: adam, "
          "date: \"2026-11\", measured: {step_time_s: 10, memory_gib_per_chip: 50}, memory_kind: nvidia-smi, " +
          measured + "}\n");
  const std::string train = "train " + model + " --hw h100-sxm --chips 8 --top 1 --batch-seqs 64 --precision bf16 " +
                            words + " --fix cp=1,mb=1,offload=none," + pins;
  for (const auto& [train_says, validate_says] :
       {std::pair{"memory_bytes.total", "predicted"}, std::pair{"memory_low_bytes", "low"},
        std::pair{"memory_high_bytes", "high"}}) {
    const std::string figure = std::string("plans[0].") + train_says;
    Row row{"memory of a measured run", id, {{train + " --stack " + stack, figure}}};
    if (stack == "torchtitan") row.cells.push_back({train, figure});  // the usual one
    row.cells.push_back({"validate " + path + " --memory", std::string("rows[0].") + validate_says});
    rows.push_back(std::move(row));
  }
  if (stack != "megatron") return;
  rows.push_back({"step of a measured run",
                  id,
                  {{train + " --stack " + stack, "plans[0].step_time_s"}, {"validate " + path, "rows[0].predicted"}}});
}

void served_row(Rows& rows, const std::string& id, const std::string& model, const std::string& chip,
                const std::string& tp, const std::string& format, bool stated = false) {
  const std::string path = files().put(
      id + ".yaml",
      "schema: scalecalc-measurements/1\nsources:\n  ours: \"what was measured stands for nothing\"\nrows:\n  - {id: " +
          id + ", source: ours, date: \"2025-09\", engine: vllm, model: " + model + ", chip: " + chip +
          ", chips: " + tp + ", parallel: {tp: " + tp + "}, weights_dtype: " + format +
          ", kv_dtype: bf16, phase: decode, batch: 64, input_len: 2048, output_len: 1, measured: {decode_step_ms: "
          "20}}\n");
  const std::string weights = stated ? "" : " --weights " + format + ",embedding=bf16,head=bf16,router=bf16";
  rows.push_back(
      {"decode step of a measured run",
       id,
       {{"serve " + model + " --hw " + chip + " --chips " + tp +
             " --batch 64 --prompt 2048 --generate 256 --context 2048 --engine vllm --fix dp=1,ep=1,tp=" + tp + weights,
         "points[0].decode_step_s"},
        {"validate " + path, "rows[0].predicted"}}});
}

}  // namespace

void memory_rows(Rows& rows) {
  least_rows(rows);
  state_rows(rows);
  stored_rows(rows);
  room_rows(rows);
  stack_rows(rows);
  run_row(rows, "llama", "llama3-8b", "--seq 8192", "dp=1,fsdp=1,tp=8,pp=1,sp=1,zero=1,remat=selective,remat_layers=0",
          "seq_len: 8192, recompute: selective, parallel: {dp: 1, tp: 8, pp: 1, cp: 1, sp: true, zero_stage: 1}");
  run_row(rows, "gpt-drops-out", "gpt3-6.7b", "--seq 2048 --optimizer adam",
          "dp=1,fsdp=1,tp=8,pp=1,sp=1,zero=1,remat=none",
          "seq_len: 2048, recompute: none, parallel: {dp: 1, tp: 8, pp: 1, cp: 1, sp: true, zero_stage: 1}");
  run_row(rows, "fsdp", "llama3-8b", "--seq 8192", "dp=1,fsdp=8,tp=1,pp=1,zero=3,remat=full",
          "seq_len: 8192, recompute: full, parallel: {dp: 8, fsdp: 8, tp: 1, pp: 1, cp: 1, zero_stage: 3}",
          "torchtitan");
  served_row(rows, "mxfp4-where-chips-have-4-bits", "gpt-oss-120b", "b200", "1", "mxfp4", true);
  served_row(rows, "mxfp4-where-they-have-not", "gpt-oss-120b", "h100-sxm", "8", "mxfp4", true);
  served_row(rows, "fp8", "llama3-70b", "h100-sxm", "8", "fp8");
  served_row(rows, "int8", "llama3-8b", "a100-80g", "1", "int8");
  served_row(rows, "nvfp4", "llama3-70b", "b200", "1", "nvfp4");
}

}  // namespace scalecalc::agreement
