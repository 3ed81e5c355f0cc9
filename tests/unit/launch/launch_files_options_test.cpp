// --export, --from of launch files, export and lint, as they are asked on the command line.
#include "launch/launch_files_options.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/run.h"
#include "support/scratch.h"

namespace scalecalc::cli {
namespace {

struct LaunchReply {
  int exit = 0;
  std::string out, err;
};

LaunchReply ask_launch(const std::vector<std::string>& words) {
  std::ostringstream out;
  std::ostringstream err;
  Environment env{.out = out, .err = err};
  LaunchReply reply{run(words, env), "", ""};
  reply.out = std::move(out).str();
  reply.err = std::move(err).str();
  return reply;
}

nlohmann::json answer_of(const std::vector<std::string>& words) {
  std::vector<std::string> with = words;
  with.emplace_back("--json");
  const LaunchReply reply = ask_launch(with);
  EXPECT_EQ(reply.exit, 0) << reply.err;
  return nlohmann::json::parse(reply.out);
}

const std::vector<std::string> kJob{
    "train", "llama3-8b", "--hw=h100-sxm", "--chips=16", "--fix=tp=2,sp=1,pp=2", "--stack=megatron", "--top=1"};

TEST(LaunchFiles, WhatIsExportedIsTheSamePlanWhenItIsReadBack) {
  const test::Scratch scratch;
  const std::string file = scratch.path("run.sh");
  std::vector<std::string> words = kJob;
  words.insert(words.end(), {"--plan=1", "--export=megatron:" + file});
  ASSERT_EQ(ask_launch(words).exit, 0);
  words = kJob;
  words.emplace_back("--plan=1");
  const nlohmann::json plan = answer_of(words)["plans"][0];
  const nlohmann::json from =
      answer_of({"train", "llama3-8b", "--hw=h100-sxm", "--from=" + file, "--top=1"})["from"]["plan"];
  for (const char* key : {"tp", "pp", "cp", "dp", "fsdp", "zero", "remat", "micro_batch_seqs", "grad_accum"}) {
    EXPECT_EQ(from["layout"][key], plan["layout"][key]) << key;
  }
  EXPECT_EQ(from["step_time_s"], plan["step_time_s"]);
}

// Moments in 16 bits take 4 bytes a parameter less. A file that says nothing of them leaves the model's optimizer.
TEST(LaunchFiles, WhatIsReadOfAFileIsAskedWhateverTheFieldOfTheQuestion) {
  const test::Scratch scratch;
  const std::string file = scratch.path("run.sh");
  std::vector<std::string> words = kJob;
  words.insert(words.end(), {"--plan=1", "--optimizer=adam-bf16", "--export=megatron:" + file});
  ASSERT_EQ(ask_launch(words).exit, 0);
  const auto query = [&] { return answer_of({"train", "llama3-8b", "--hw=h100-sxm", "--from=" + file})["query"]; };
  EXPECT_EQ(query()["optimizer"], "adam-bf16");
  words = kJob;
  words.insert(words.end(), {"--plan=1", "--export=megatron:" + file});
  ASSERT_EQ(ask_launch(words).exit, 0);
  EXPECT_EQ(query()["optimizer"], "adam");
}

// A stack file of the user's with the lines that differ.
constexpr const char* kFork = R"(schema: scalecalc-stack/1
name: ourtron
extends: megatron
launch:
  ourtron:
    extends: megatron
    title: "Ourtron"
    stack: megatron
    source: "ours/ourtron: arguments.py"
    script: "pretrain_ours.py"
    rows:
      - --our-fused-layers 'on' written
    neutral: [--our-log-*]
)";

TEST(LaunchFiles, AForkOfAFrameworkIsAFile) {
  const test::Scratch scratch;
  std::filesystem::create_directories(scratch.path("own/stacks"));
  scratch.put("own/stacks/ourtron.yaml", kFork);
  const std::string own = "--config-dir=" + scratch.path("own"), file = scratch.path("run.sh");
  std::vector<std::string> words{
      "train",   "llama3-8b", "--hw=h100-sxm",           "--chips=16", "--fix=tp=2,sp=1,pp=2", own,
      "--top=1", "--plan=1",  "--export=ourtron:" + file};
  const LaunchReply written = ask_launch(words);
  ASSERT_EQ(written.exit, 0) << written.err;
  std::string script = scratch.text("run.sh");
  EXPECT_NE(script.find("a launch file of Ourtron"), std::string::npos) << script;
  EXPECT_NE(script.find("pretrain_ours.py"), std::string::npos) << script;
  EXPECT_NE(script.find("--our-fused-layers"), std::string::npos) << script;
  EXPECT_NE(script.find("--tensor-model-parallel-size 2"), std::string::npos) << script;
  script.insert(script.rfind('\n'), " --our-log-level 3");
  scratch.put("run.sh", script);
  const std::vector<std::string> lint{"lint", file, "--hw=h100-sxm", "--model=llama3-8b", "--json"};
  std::vector<std::string> with = lint;
  with.push_back(own);
  const LaunchReply ours = ask_launch(with), theirs = ask_launch(lint);
  EXPECT_NE(ours.out.find("Ourtron"), std::string::npos) << ours.out << ours.err;
  EXPECT_EQ(ours.out.find("--our-"), std::string::npos) << ours.out;
  EXPECT_NE(theirs.out.find("Megatron-LM"), std::string::npos) << theirs.out << theirs.err;
  EXPECT_NE(theirs.out.find("--our-fused-layers"), std::string::npos) << theirs.out;
}

TEST(LaunchFiles, ExportSaysTheSameAsTheAnswerItIsOf) {
  const test::Scratch scratch;
  std::vector<std::string> words = kJob;
  words.emplace_back("--json");
  const std::string file = scratch.put("plan.json", ask_launch(words).out);
  const nlohmann::json answer = nlohmann::json::parse(std::ifstream(file));
  const nlohmann::json launch = answer_of({"export", file, "--to=megatron"})["launch"];
  EXPECT_EQ(launch["step_time_s"], answer["best"]["plan"]["step_time_s"]);  // as --export writes it
  EXPECT_EQ(answer_of({"export", file + "#1", "--to=megatron"})["launch"]["step_time_s"],
            answer["plans"][0]["step_time_s"]);
  EXPECT_EQ(launch["chips"], 16);
  EXPECT_EQ(ask_launch({"export", file, "--to=megatron"}).out, launch["file"].get<std::string>());
}

/// The model that lint takes a written file to be of, where nobody says.
std::string linted_model(const std::vector<std::string>& job, const std::string& framework, const std::string& hw) {
  const test::Scratch scratch;
  const std::string file = scratch.path(framework + ".launch");
  std::vector<std::string> words = job;
  words.insert(words.end(), {"--hw=" + hw, "--top=1", "--export=" + framework + ":" + file});
  EXPECT_EQ(ask_launch(words).exit, 0);
  const nlohmann::json lint = answer_of({"lint", file, "--hw=" + hw, "--chips=16"});
  for (const nlohmann::json& assumption : lint["assumptions"]) {
    if (assumption["key"] == "model") return assumption["value"];
  }
  return "";
}

TEST(LaunchFiles, LintKnowsTheModelByTheFrameworksNameOrByItsShapes) {
  EXPECT_EQ(linted_model({"train", "qwen3-8b", "--chips=16"}, "megatron", "h100-sxm"), "qwen3-8b");
  EXPECT_EQ(linted_model({"train", "llama3-8b", "--chips=16"}, "torchtitan", "h100-sxm"), "llama3.1-8b");  // one flavor
  EXPECT_EQ(linted_model({"train", "gemma-2-9b", "--chips=16"}, "maxtext", "tpu-v5p"), "gemma-2-9b");
  EXPECT_EQ(linted_model({"train", "llama3-8b", "--chips=16"}, "accelerate", "h100-sxm"), "llama3-8b");
}

TEST(LaunchFiles, WhatAFrameworkCannotRunIsRefusedByItsOwnRule) {
  const LaunchReply reply = ask_launch({"train", "llama3-8b", "--hw=h100-sxm", "--chips=16", "--stack=any",
                                        "--fix=pp=4,schedule=dualpipe", "--export=megatron"});
  EXPECT_EQ(reply.exit, 2);
  EXPECT_NE(reply.err.find("schedule is 1f1b or interleaved, not dualpipe"), std::string::npos) << reply.err;
  EXPECT_NE(reply.err.find("core/pipeline_parallel/schedules.py"), std::string::npos) << reply.err;
}

TEST(LaunchFiles, AFileSaysChipsLengthAndBatchWhereNobodyElseDoes) {
  const test::Scratch scratch;
  const std::string file =
      scratch.put("run.sh",
                  "torchrun --nnodes 2 --nproc_per_node 8 pretrain_gpt.py \\\n"
                  "  --tensor-model-parallel-size 4 --sequence-parallel --micro-batch-size 1 \\\n"
                  "  --global-batch-size 64 --seq-length 4096 --bf16 --use-distributed-optimizer\n");
  const nlohmann::json query = answer_of({"train", "llama3-8b", "--hw=h100-sxm", "--from=" + file, "--top=1"})["query"];
  EXPECT_EQ(query["chips"], 16);
  EXPECT_EQ(query["seq"], 4096);
  EXPECT_EQ(query["batch_seqs"], 64);
  EXPECT_EQ(query["stack"], "megatron");
}

TEST(LaunchFiles, AFileThatContradictsItselfOrTheModelIsRefusedByLine) {
  const test::Scratch scratch;
  const std::string file = scratch.put("run.sh",
                                       "torchrun --nnodes 1 --nproc_per_node 8 pretrain_gpt.py \\\n"
                                       "  --tensor-model-parallel-size 8 \\\n"
                                       "  --pipeline-model-parallel-size 16 \\\n  --num-layers 33\n");
  const LaunchReply reply = ask_launch({"lint", file, "--hw=h100-sxm", "--model=llama3-8b"});
  EXPECT_EQ(reply.exit, 2);
  EXPECT_NE(reply.err.find(file + ":4:3: error: --num-layers 33 does not go with layers 32"), std::string::npos)
      << reply.err;
}

TEST(LaunchFiles, WhatIsNotReadIsSaidByLine) {
  const test::Scratch scratch;
  const std::string file =
      scratch.put("run.sh",
                  "torchrun --nnodes 1 --nproc_per_node $GPUS pretrain_gpt.py \\\n"
                  "  --tensor-model-parallel-size 2 --sequence-parallel \\\n  --some-new-flag 3\n");
  const nlohmann::json lint = answer_of({"lint", file, "--hw=h100-sxm", "--model=llama3-8b", "--chips=8"});
  std::map<std::string, nlohmann::json> found;
  for (const nlohmann::json& finding : lint["findings"]) found[finding["about"]] = finding;
  EXPECT_EQ(found["--some-new-flag"]["kind"], "unread");
  EXPECT_EQ(found["--some-new-flag"]["line"], 3);
  EXPECT_EQ(found["--nproc_per_node"]["kind"], "open");
}

TEST(LaunchFiles, LintNamesTheRuleAndTheLineOfWhatIsIllegal) {
  const test::Scratch scratch;
  const std::string file = scratch.put("run.sh",
                                       "torchrun --nnodes 2 --nproc_per_node 8 pretrain_gpt.py \\\n"
                                       "  --tensor-model-parallel-size 2 \\\n  --expert-model-parallel-size 8 \\\n"
                                       "  --micro-batch-size 1 --global-batch-size 64 --seq-length 4096 --bf16\n");
  const nlohmann::json lint = answer_of({"lint", file, "--hw=h100-sxm", "--model=mixtral-8x7b"});
  EXPECT_EQ(lint["query"]["legal"], false);
  const nlohmann::json& first = lint["findings"][0];
  EXPECT_EQ(first["kind"], "illegal");
  EXPECT_NE(first["text"].get<std::string>().find("experts beside tensor ranks need --sequence-parallel"),
            std::string::npos);
}

TEST(LaunchFiles, AServersCommandIsReadWithItsLimits) {
  const test::Scratch scratch;
  const std::string file = scratch.put("serve.sh",
                                       "vllm serve deepseek-ai/DeepSeek-V3 -tp 1 -dp 16 -ep --max-num-seqs 256 "
                                       "--max-model-len 8192 --kv-cache-dtype auto\n");
  const nlohmann::json answer =
      answer_of({"serve", "deepseek-v3", "--hw=h200", "--from=" + file, "--prompt=4096", "--generate=256", "--top=1"});
  EXPECT_EQ(answer["best"]["layout"]["attention_dp"], 16);
  EXPECT_EQ(answer["best"]["layout"]["ep"], 16);
  EXPECT_EQ(answer["query"]["max_num_seqs"], 256);
  EXPECT_EQ(answer["query"]["chips"], 16);
}

TEST(LaunchFiles, AServerIsExportedAndReadBack) {
  const test::Scratch scratch;
  for (const std::string engine : {"vllm", "sglang", "trtllm"}) {
    const std::string file = scratch.path(engine + ".sh");
    const std::vector<std::string> job{"serve", "mixtral-8x7b", "--hw=h100-sxm", "--chips=8", "--engine=" + engine};
    std::vector<std::string> words = job;
    words.push_back("--export=" + engine + ":" + file);
    const LaunchReply reply = ask_launch(words);
    ASSERT_EQ(reply.exit, 0) << reply.err;
    const nlohmann::json best = answer_of(job)["best"];
    const nlohmann::json back = answer_of({"serve", "mixtral-8x7b", "--hw=h100-sxm", "--from=" + file});
    EXPECT_EQ(back["best"]["layout"], best["layout"]) << engine;
  }
}

TEST(LaunchFiles, BothPoolsAreDeployedAndReadBack) {
  const test::Scratch scratch;
  const std::vector<std::string> job{"serve",      "deepseek-v3",       "--hw=h200",
                                     "--chips=32", "--disaggregate=on", "--slo-tpot=50ms"};
  const nlohmann::json asked = answer_of(job);
  for (const std::string framework : {"dynamo", "llm-d"}) {
    const std::string file = scratch.path(framework + ".yaml");
    std::vector<std::string> words = job;
    words.push_back("--export=" + framework + ":" + file);
    const LaunchReply reply = ask_launch(words);
    ASSERT_EQ(reply.exit, 0) << reply.err;
    const nlohmann::json back = answer_of({"serve", "deepseek-v3", "--hw=h200", "--slo-tpot=50ms", "--from=" + file});
    EXPECT_EQ(back["best"]["layout"], asked["best"]["layout"]) << framework;
    for (const char* key : {"prefill_layout", "prefill_replicas", "decode_replicas"}) {
      EXPECT_EQ(back["disaggregation"][key], asked["disaggregation"][key]) << framework << key;
    }
  }
}

// A script that writes the pools of a server and starts another is a script; its document is that script's text.
TEST(LaunchFiles, AScriptThatWritesPoolsIsAScript) {
  const test::Scratch scratch;
  const std::string pools =
      "context_servers:\n  num_instances: 1\n  tensor_parallel_size: 2\n"
      "generation_servers:\n  num_instances: 1\n  tensor_parallel_size: 4\n";
  const std::string script = scratch.put("serve.sh", "#!/bin/bash\ncat > pools.yaml <<EOF\n" + pools +
                                                         "EOF\nvllm serve meta-llama/Meta-Llama-3-8B -tp 2\n");
  const nlohmann::json served = answer_of({"serve", "llama3-8b", "--hw=h100-sxm", "--from=" + script, "--chips=2"});
  EXPECT_EQ(served["query"]["engine"], "vllm");
  EXPECT_EQ(served["best"]["layout"]["tp"], 2);
  const std::string document = scratch.put("pools.yaml", pools);  // its first line is a key
  const nlohmann::json pooled = answer_of({"serve", "llama3-8b", "--hw=h100-sxm", "--from=" + document});
  EXPECT_EQ(pooled["best"]["layout"]["tp"], 4);
  EXPECT_EQ(pooled["disaggregation"]["prefill_layout"]["tp"], 2);
}

TEST(LaunchFiles, ProjectionsTypedOtherwiseThanTheFileSaysAreADifference) {
  const test::Scratch scratch;
  const std::string file = scratch.put(
      "run.sh",
      "accelerate launch --num_machines 1 --num_processes 8 train.py --model_name_or_path m --max_length 2048 \\\n"
      "  --per_device_train_batch_size 2 --use_peft --lora_r 16 --lora_target_modules all-linear\n");
  const auto differs = [&](const std::string& targets) {
    const nlohmann::json answer =
        answer_of({"train", "llama3-8b", "--hw=h100-sxm", "--from=" + file, "--top=1", "--lora-targets=" + targets});
    return answer.dump().find("asked otherwise than the file: --lora-targets " + targets) != std::string::npos;
  };
  EXPECT_TRUE(differs("q,v"));
  EXPECT_FALSE(differs("all"));
  EXPECT_FALSE(differs("attention,mlp"));
}

TEST(LaunchFiles, AdaptersTypedBesideAFileWithoutThemAreADifference) {
  const test::Scratch scratch;
  const std::string file = scratch.put("run.sh",
                                       "accelerate launch --num_processes 8 train.py --model_name_or_path m \\\n"
                                       "  --max_length 2048 --per_device_train_batch_size 2\n");
  const nlohmann::json answer =
      answer_of({"train", "llama3-8b", "--hw=h100-sxm", "--from=" + file, "--top=1", "--lora=16", "--base=nf4"});
  for (const std::string flag : {"--lora", "--base"}) {
    EXPECT_NE(answer.dump().find("asked otherwise than the file: " + flag + ", which"), std::string::npos) << flag;
  }
}

// Limits of a file are of the lengths that were asked for, which its stamp says.
TEST(LaunchFiles, LengthsOfTheStampAreAskedAgain) {
  const test::Scratch scratch;
  const std::vector<std::string> job{"serve",           "llama3-8b",         "--hw=h100-sxm", "--chips=8",
                                     "--engine=trtllm", "--disaggregate=on", "--prompt=700",  "--generate=100"};
  const std::string file = scratch.path("pools.yaml");
  std::vector<std::string> words = job;
  words.push_back("--export=trtllm:" + file);
  const LaunchReply reply = ask_launch(words);
  ASSERT_EQ(reply.exit, 0) << reply.err;
  const nlohmann::json asked = answer_of(job);
  const nlohmann::json back = answer_of({"serve", "llama3-8b", "--hw=h100-sxm", "--from=" + file});
  EXPECT_EQ(back["best"]["layout"], asked["best"]["layout"]);
  EXPECT_EQ(back["query"]["prompt"], asked["query"]["prompt"]);
  EXPECT_EQ(back.dump().find("asked otherwise"), std::string::npos) << back.dump();
}

// Dynamo's servers of TensorRT-LLM read their arguments from files of a ConfigMap (ai-dynamo/dynamo 416ff06
// components/backends/trtllm/deploy/disagg-multinode.yaml).
TEST(LaunchFiles, DynamoMountsTheFilesOfTensorRtLlm) {
  const test::Scratch scratch;
  for (const std::string pools : {"on", "off"}) {
    const std::vector<std::string> job{"serve",     "mixtral-8x7b",    "--hw=h100-sxm",
                                       "--chips=8", "--engine=trtllm", "--disaggregate=" + pools};
    const std::string file = scratch.path("dynamo.yaml");
    std::vector<std::string> words = job;
    words.push_back("--export=dynamo:" + file);
    const LaunchReply reply = ask_launch(words);
    ASSERT_EQ(reply.exit, 0) << reply.err;
    const nlohmann::json asked = answer_of(job);
    const nlohmann::json back = answer_of({"serve", "mixtral-8x7b", "--hw=h100-sxm", "--from=" + file});
    EXPECT_EQ(back["best"]["layout"], asked["best"]["layout"]);
    EXPECT_EQ(back.dump().find("not read, and perhaps"), std::string::npos) << back.dump();
    if (pools == "off") continue;
    for (const char* key : {"prefill_layout", "prefill_replicas", "decode_replicas"}) {
      EXPECT_EQ(back["disaggregation"][key], asked["disaggregation"][key]) << key;
    }
  }
}

// The shape of that example: 8 ranks; what is not read stands at its line of the file.
TEST(LaunchFiles, FilesOfAConfigMapAreReadAtTheirLines) {
  const test::Scratch scratch;
  const std::string text =
      "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: nvidia-config\ndata:\n  agg.yaml: |\n"
      "    tensor_parallel_size: 8\n    strange_key: 1\n---\n"
      "apiVersion: nvidia.com/v1alpha1\nkind: DynamoGraphDeployment\nmetadata:\n  name: a\nspec:\n  services:\n"
      "    worker:\n      replicas: 1\n      extraPodSpec:\n        mainContainer:\n"
      "          command: [python3, -m, dynamo.trtllm]\n"
      "          args: [--model-path, m, --extra-engine-args, /workspace/agg.yaml]\n";
  const std::string file = scratch.put("agg.yaml", text);
  const nlohmann::json back = answer_of({"serve", "llama3-8b", "--hw=h100-sxm", "--from=" + file});
  EXPECT_EQ(back["best"]["layout"]["tp"], 8);
  EXPECT_NE(back.dump().find("agg.yaml:8:"), std::string::npos) << back.dump();
  const std::string bare = scratch.put("bare.yaml", text.substr(text.find("---\n") + 4));
  const LaunchReply reply = ask_launch({"serve", "llama3-8b", "--hw=h100-sxm", "--from=" + bare});
  EXPECT_EQ(reply.exit, 2);
  EXPECT_NE(reply.err.find("bare.yaml:12:"), std::string::npos) << reply.err;
}

TEST(LaunchFiles, AnEngineThatIsNotDeployedIsRefusedByItsRule) {
  const LaunchReply reply = ask_launch(
      {"serve", "llama3-8b", "--hw=h100-sxm", "--chips=8", "--engine=sglang", "--disaggregate=on", "--export=llm-d"});
  EXPECT_EQ(reply.exit, 2);
  EXPECT_NE(reply.err.find("llm-d-modelservice 024c0f2"), std::string::npos) << reply.err;
}

TEST(LaunchFiles, AdaptersOfFusedProjectionsAreWrittenByTheirNames) {
  const std::vector<std::string> job{
      "train",     "phi-4",           "--hw=h100-sxm", "--chips=8",          "--stack=accelerate",
      "--lora=16", "--batch-seqs=32", "--seq=4096",    "--export=accelerate"};
  std::vector<std::string> all = job;
  all.push_back("--lora-targets=q,k,v,o");
  const LaunchReply reply = ask_launch(all);
  ASSERT_EQ(reply.exit, 0) << reply.err;
  EXPECT_NE(reply.out.find("--lora_target_modules o_proj qkv_proj"), std::string::npos) << reply.out;
  std::vector<std::string> part = job;
  part.push_back("--lora-targets=q,v");
  const LaunchReply refused = ask_launch(part);
  EXPECT_NE(refused.exit, 0);
  EXPECT_NE(refused.err.find("qkv_proj (q,k,v)"), std::string::npos) << refused.err;
}

/// A step in fp8 by each recipe is the same step when its file is read back, and another one than the next recipe's.
TEST(LaunchFiles, ScalesOfEightBitOperandsAreThoseThatWereAsked) {
  const test::Scratch scratch;
  for (const std::string recipe : {"delayed", "tensorwise", "blockwise"}) {
    const std::string file = scratch.path(recipe + ".sh");
    std::vector<std::string> words = kJob;
    words.insert(words.end(), {"--precision=fp8", "--fp8-recipe=" + recipe});
    const nlohmann::json plan = answer_of(words)["plans"][0];
    words.insert(words.end(), {"--plan=1", "--export=megatron:" + file});
    ASSERT_EQ(ask_launch(words).exit, 0);
    const std::vector<std::string> back{"train", "llama3-8b", "--hw=h100-sxm", "--from=" + file, "--top=1"};
    EXPECT_EQ(answer_of(back)["from"]["plan"]["step_time_s"], plan["step_time_s"]) << recipe;
    std::vector<std::string> otherwise = back;
    otherwise.emplace_back("--precision=bf16");  // whose operands have no scales
    EXPECT_NE(answer_of(otherwise).dump().find("asked otherwise than the file: --precision bf16"), std::string::npos);
  }
  std::vector<std::string> rows = kJob;
  rows.insert(rows.end(), {"--precision=fp8", "--fp8-recipe=rowwise", "--plan=1", "--export=megatron"});
  const LaunchReply refused = ask_launch(rows);
  EXPECT_EQ(refused.exit, 2);
  EXPECT_NE(refused.err.find("--fp8-recipe tensorwise"), std::string::npos) << refused.err;
}

TEST(LaunchFiles, TwoTextsDoNotGoToStandardOutput) {
  const LaunchReply reply =
      ask_launch({"train", "llama3-8b", "--hw=h100-sxm", "--chips=8", "--export=megatron", "--json"});
  EXPECT_EQ(reply.exit, 2);
  EXPECT_NE(reply.err.find("--export megatron:FILE"), std::string::npos) << reply.err;
}

/// A family read as another's keeps the names of its own modules: EXAONE 3 has Llama's shapes.
TEST(LaunchFiles, AdaptersGoByTheFilesOwnModelType) {
  const auto exported = [](const std::string& file) {
    return ask_launch({"train", SCALECALC_SOURCE_DIR "/tests/data/hf/" + file + ".json", "--hw=h100-sxm", "--chips=8",
                       "--stack=accelerate", "--lora=16", "--lora-targets=attention", "--batch-seqs=32", "--seq=2048",
                       "--top=1", "--export=accelerate"});
  };
  const LaunchReply exaone = exported("exaone-3-7.8b");
  ASSERT_EQ(exaone.exit, 0) << exaone.err;
  EXPECT_NE(exaone.out.find("--lora_target_modules q_proj k_proj v_proj out_proj"), std::string::npos) << exaone.out;
}

/// nanotron's own model is Llama: others would be trained as what they are not.
TEST(LaunchFiles, NanotronTrainsLlamaAlone) {
  for (const char* model : {"gpt2-124m", "qwen3-8b", "qwen2.5-7b", "mixtral-8x7b", "opt-350m", "gemma-2-9b"}) {
    const LaunchReply reply =
        ask_launch({"train", model, "--hw=h100-sxm", "--chips=16", "--batch-seqs=32", "--seq=1024", "--top=1",
                    "--stack=nanotron", "--plan=1", "--export=nanotron"});
    EXPECT_EQ(reply.exit, 2) << model;
    EXPECT_NE(reply.err.find("LlamaConfig"), std::string::npos) << model << ": " << reply.err;
  }
}

/// Norms without weights, and activation functions with them, are no model of Megatron's arguments.
TEST(LaunchFiles, ModelsThatArgumentsDoNotSayAreNotWritten) {
  for (const char* file : {"olmo-1b", "apertus-8b", "rwkv-7-1.5b"}) {
    const LaunchReply reply = ask_launch({"train", SCALECALC_SOURCE_DIR "/tests/data/hf/" + std::string(file) + ".json",
                                          "--hw=h100-sxm", "--chips=8", "--top=1", "--export=megatron"});
    EXPECT_EQ(reply.exit, 2) << file;
    EXPECT_NE(reply.err.find("layers of other kinds"), std::string::npos) << file << ": " << reply.err;
  }
}

}  // namespace
}  // namespace scalecalc::cli
