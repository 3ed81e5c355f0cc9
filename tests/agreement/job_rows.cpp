// What a job takes: the step of the best plan, days, dollars, energy; a server's figures.
#include "agreement/row.h"

namespace scalecalc::agreement {
namespace {

struct Job {
  std::string model, hw, chips;
  std::string more;      ///< flags
  bool compared = true;  ///< compare has the flags
  bool by_law = true;    ///< and scaling-law
  std::string tokens = "15e12";
};

void training_rows(const Job& job, Rows& rows) {
  const std::string words = job.model + " --hw " + job.hw + job.chips + job.more;
  const std::string train = "train " + words + " --top 1";
  const std::string sensitivity = "sensitivity " + words;
  Row step{"step", words, {{train, "plans[0].step_time_s"}, {sensitivity, "plan.step_time_s"}}};
  step.cells.push_back({"trace --plan 1 " + words, "step_time_s"});
  Row usd{"dollars of a run",
          words,
          {{train, "plans[0].run.cost_usd"}, {sensitivity, "plan.usd_per_million_tokens * " + job.tokens + " / 1e6"}}};
  Row days{"seconds of a run",
           words,
           {{train, "plans[0].run.time_s"},
            {train, "plans[0].run.steps * plans[0].step_time_s"},
            {train, "plans[0].run.chip_hours * 3600 / plans[0].chips"}}};
  Row memory{"memory of a plan", words, {{train, "plans[0].memory_bytes.total"}}};
  if (job.by_law) usd.cells.push_back({"scaling-law " + words, "allocations[kind=model].training_usd"});
  if (job.compared) {
    const std::string compare = "compare " + words;
    step.cells.push_back({compare, "systems[0].step_time_s"});
    usd.cells.push_back({compare, "systems[0].run.cost_usd"});
    days.cells.push_back({compare, "systems[0].run.time_s"});
    memory.cells.push_back({compare, "systems[0].memory_bytes.total"});
    rows.push_back(std::move(memory));
  }
  rows.push_back(std::move(step));
  rows.push_back(std::move(usd));
  rows.push_back(std::move(days));
}

void server_rows(const std::string& model, const std::string& machine, Rows& rows) {
  const std::string words = " --hw " + machine + " --prompt 2048 --generate 256 --batch 64";
  const std::string serve = "serve " + model + words;
  const std::string compare = "compare " + model + " --serve" + words;
  for (const std::string figure : {"tokens_per_s", "usd_per_million_output_tokens", "memory_bytes.total"}) {
    rows.push_back({figure + " of a server",
                    model + " on " + machine,
                    {{serve, "best." + figure}, {compare, "systems[0]." + figure}}});
  }
}

/// A saved plan, exported, and a launch file, linted: the figures of train.
void launch_rows(Rows& rows) {
  const std::string data = SCALECALC_SOURCE_DIR "/tests/data/launch/";
  const std::string train = "train llama3-8b --chips 16 --hw h100-sxm --top ";
  const std::string layout =
      "dp=4,fsdp=1,tp=2,sp=1,cp=1,pp=2,vpp=2,split=default,mb=1,ga=128,zero=0,remat=none,"
      "offload=none,loss=whole,schedule=interleaved";
  const std::string lint = "lint " + data + "megatron.sh --hw h100-sxm --model llama3-8b";
  for (const std::string figure : {"step_time_s", "mfu"}) {
    rows.push_back(
        {figure + " of an exported plan",
         "plan 1",
         {{train + "2", "plans[0]." + figure}, {"export " + data + "plan.json --to accelerate", "launch." + figure}}});
    rows.push_back({figure + " of a launch file",
                    "megatron.sh",
                    {{train + "1 --stack megatron --fix " + layout, "plans[0]." + figure}, {lint, "plan." + figure}}});
  }
}

/// What a question that says nothing of it takes.
void default_rows(const std::string& model, const std::string& machine, Rows& rows) {
  const std::string words = model + " --hw " + machine;
  for (const std::string key : {"batch_tokens", "seq", "tokens"}) {
    rows.push_back({key + " by default",
                    words,
                    {{"bounds " + words, "query." + key},
                     {"train " + words + " --top 1", "query." + key},
                     {"compare " + words, "query." + key}}});
  }
}

}  // namespace

void job_rows(Rows& rows) {
  const std::string measured = "train llama3-8b --hw h100-sxm --chips 64 --plan 1 --measured 10s";
  rows.push_back({"MFU of a step as long as predicted",
                  "llama3-8b on 64 x h100-sxm",
                  {{measured, "plans[0].mfu"}, {measured, "measured.mfu * 10 / plans[0].step_time_s"}}});
  const std::string oversubscribed = " --set hw.network.leaf.oversubscription=4";
  for (const Job& job :
       {Job{"llama3-8b", "h100-sxm", " --chips 64", ""}, Job{"llama3-8b", "h100-sxm", " --chips 64", oversubscribed},
        Job{"llama3-8b", "h100-sxm", " --chips 64", " --set hw.hbm.bandwidth=2TB/s"},
        Job{"llama3-8b", "h100-sxm", " --chips 64", " --efficiency ideal", true, false},
        Job{"llama3-8b", "tpu-v5p", " --chips 64", ""}, Job{"llama3-70b", "gb200-nvl72", " --chips 64", " --price 9"},
        Job{"llama3-70b", "tpu-v4", "", " --topology 4x4x8 --price 3", false, false},        // a twisted torus
        Job{"llama3-8b", "tpu-v5e", " --chips 512", " --slices 2 --price 1", false, false},  // two slices
        Job{"mixtral-8x7b", "h100-sxm", " --chips 64", " --batch-tokens 4M --tokens 1T", true, false, "1e12"},
        Job{"deepseek-v3", "h100-sxm", " --chips 2048", " --fix tp=1,ep=64,pp=8 --tokens 1T", true, false, "1e12"}}) {
    training_rows(job, rows);
  }
  const std::string train = "train llama3-8b --hw h100-sxm --chips 64 --top 1";
  rows.push_back({"energy of a run",
                  "llama3-8b on 64 h100-sxm",
                  {{train, "plans[0].run.energy_j"},
                   {train, "plans[0].run.power.energy_j_per_token * plans[0].run.tokens"},
                   {"compare llama3-8b --hw h100-sxm --chips 64", "systems[0].run.energy_j"}}});
  default_rows("llama3-8b", "h100-sxm --chips 64", rows);
  default_rows("chinchilla-70b", "tpu-v5p --chips 256", rows);
  // One price for prompts and answers, 2048 + 256 tokens of a request.
  rows.push_back({"dollars of a million tokens served",
                  "llama3-8b on h100-sxm",
                  {{"serve llama3-8b --hw h100-sxm --prompt 2048 --generate 256 --objective cost",
                    "6.88 * best.chips / 3600 / best.requests_per_s / 2304 * 1e6"},
                   {"scaling-law llama3-8b --hw h100-sxm --mfu 40% --inference-tokens 10T --prompt 2048 --generate 256",
                    "query.serve_usd_per_million_tokens"}}});
  server_rows("llama3-8b", "h100-sxm --chips 4", rows);
  server_rows("gpt-oss-120b", "b200 --chips 2", rows);
  launch_rows(rows);
}

}  // namespace scalecalc::agreement
