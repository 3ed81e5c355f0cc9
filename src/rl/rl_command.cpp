// Runs `scalecalc rl`: reads its flags, asks its question and writes the answer.
#include <array>

#include "cli/commands.h"
#include "cli/output_command.h"
#include "jobs/job_options.h"
#include "rl/rl_output.h"

namespace scalecalc::cli {
namespace {

ExitCode run_rl(const Arguments& arguments, Environment& env) {
  return answer_with_output(arguments, env, [&](const Catalog& catalog) {
    RlQuestion question = rl_question(arguments);
    const RlAnswer found = rl_answer(question, catalog, env.interrupted);
    if (!found.plans.empty()) {
      question.train = understood(question.train, found.plans.front().policy->resolved->workload);
    }
    return with_query(rl_output(found, arguments.has("--explain")), arguments,
                      {answered(question), answered(question.train), answered(question.engine)});
  });
}

constexpr std::array kRlCommon{
    FlagGroup{"the step", "--prompt --generate --algorithm --prompts --rollouts --steps --placement --async"},
    FlagGroup{"the machine", "--hw --chips --engine --stack --price --fix --gen-fix --set"}};

}  // namespace

const Command& rl_command() {
  static const Command kRl{
      .name = "rl",
      .summary = "Reinforcement learning: generation, scoring and training of a step on one budget.",
      .usage = "MODEL --hw HW --chips N --prompt LENGTHS --generate LENGTHS [flags]",
      .examples =
          "  scalecalc rl llama3.1-8b --hw h100-sxm --chips 64 --prompt 512 --generate 1024..8192\n"
          "  scalecalc rl qwen3-32b --hw h200 --chips 128 --prompt 512 --generate 4096 --async 1\n"
          "  scalecalc rl llama3.1-8b --hw h100-sxm --chips 32 --prompt 512 --generate 1024 --algorithm ppo \\\n"
          "      --reward llama3.1-8b\n",
      .notes =
          "--fix, --max and --stack are of the trainer; --gen-fix and --gen-max of the engine.\n"
          "A synchronous step lasts until the longest response ends: give lengths, not a mean.\n",
      .flags = rl_flags(),
      .run = run_rl,
      .names = CatalogKind::kModel,
      .nothing_fits = "nothing fits",
      .interruptible = true,
      .draws = "a step of the best plan part by part, and steps by the placement",
      .figures = "placement trainer_layout step_time_s tokens_per_s_per_chip generation_share idle_share",
      .common = kRlCommon};
  return kRl;
}

}  // namespace scalecalc::cli
