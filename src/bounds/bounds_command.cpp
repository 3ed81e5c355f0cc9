// Runs `scalecalc bounds`: reads the flags, evaluates the rules and writes the answer.
#include <array>

#include "bounds/bounds_options.h"
#include "bounds/bounds_output.h"
#include "cli/commands.h"
#include "cli/output_command.h"

namespace scalecalc::cli {
namespace {

ExitCode run_bounds(const Arguments& arguments, Environment& env) {
  return answer_with_output(arguments, env, [&](const Catalog& catalog) {
    const BoundsQuestion question = bounds_question(arguments, catalog);
    BoundsAnswer answer = bounds(question, env.interrupted);
    answer.assumptions.insert(answer.assumptions.begin(), question.read.begin(), question.read.end());
    note_sets(arguments, answer.assumptions);
    const Answered serving = question.scope != BoundScope::kTraining ? answered(question.serving) : Answered{};
    return with_query(bounds_output(question, answer), arguments,
                      {answered(question), answered(question.training), serving});
  });
}

constexpr std::array kBoundsCommon{
    FlagGroup{"the job", "--hw --for --chips --pods --fix --precision --set"},
    FlagGroup{"training and serving",
              "--seq --batch-tokens --tokens --prompt --generate --batch --weights --kv --slo-tpot"}};

}  // namespace

const Command& bounds_command() {
  static const Command kBounds{
      .name = "bounds",
      .summary = "The rules of thumb with this model's and this chip's numbers in them.",
      .usage = "[MODEL] --hw HW [flags]",
      .examples =
          "  scalecalc bounds llama3-70b --hw tpu-v5p --chips 8960\n"
          "  scalecalc bounds 70B --hw book/h100 --for training\n"
          "  scalecalc bounds --hw book/tpu-v5p --for training\n",
      .notes =
          "Without MODEL the limits of the chip that hold for any.\n"
          "A rule that needs more than was said is left out and named below the tables, with what it needs.\n",
      .flags = bounds_flags(),
      .run = run_bounds,
      .modes = bounds_modes(),
      .mode_of = bounds_mode,
      .names = CatalogKind::kModel,
      .interruptible = true,
      .figures = "name value unit holds",
      .common = kBoundsCommon};
  return kBounds;
}

}  // namespace scalecalc::cli
