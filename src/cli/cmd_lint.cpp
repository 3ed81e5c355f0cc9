// `scalecalc lint`: a launch file and what is wrong with it.
#include <fmt/format.h>

#include <array>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/launch_files.h"
#include "cli/output_command.h"
#include "cli/read_names.h"
#include "cli/shared_flags.h"
#include "cli/train_options.h"
#include "report/lint_output.h"
#include "train/resolve.h"

namespace scalecalc::cli {
namespace {

std::span<const Flag> lint_flags() {
  static const std::vector<Flag> kAll{
      kHwFlag, count("--chips", kChipRange, "N", "chips it runs on (default: as the file says)", "1024"),
      text("--model", "MODEL", "the model it trains: a catalog name or a file (default: as the file names it)",
           "llama3-70b"),
      kStackFlag.explained("release of the software whose rules hold (default: the framework's newest)"), kSetFlag};
  return kAll;
}

/// The model that a file names itself.
std::string named_model(const LaunchInput& input) {
  for (const LaunchSetting& setting : input.settings) {
    if (setting.key == "model_name" && !setting.values.empty()) return setting.values.front();
  }
  return "";
}

/// The question of train that the file is of.
Arguments asked_of_train(const LaunchInput& input, const std::string& model, const Arguments& arguments) {
  Arguments::Values flags{{"--from", {input.file}}};
  for (const std::string_view flag : {"--hw", "--chips", "--stack", "--set"}) {
    if (arguments.has(flag)) flags[std::string(flag)] = arguments.values(flag);
  }
  return Arguments::of(train_command(), {model}, std::move(flags));
}

LintReport lint_training(const LaunchInput& input, Arguments asked, const Catalog& catalog, const Environment& env) {
  read_names(asked, catalog);
  const std::optional<LaunchInput> launched = take_launch_file(asked, catalog);
  TrainQuestion q = train_question(asked);
  q.from.reset();
  ResolvedQuestion resolved = resolve(q, catalog);
  LintReport out{
      .file = input.file, .framework = input.framework->title, .lint = {}, .chips = q.chips, .assumptions = {}};
  const ImportedLayout layout = imported_layout(input, q, catalog);
  if (const auto said = layout.reading.terms.number("chips"); said && *said != q.chips) {
    throw UserError(fmt::format("{} is of {} chips, and --chips {} is another machine", input.file, *said, q.chips),
                    "leave --chips out; scalecalc train --from says what the layout becomes there");
  }
  out.lint = lint_layout(layout, q, resolved, input.file, env.interrupted);
  if (launched) launched->note(resolved.assumptions);
  out.assumptions = std::move(resolved.assumptions);
  return out;
}

ExitCode run_lint(const Arguments& arguments, Environment& env) {
  return answer_with_output(arguments, env, [&](const Catalog& catalog) {
    FlagReader reader(arguments);
    const std::string file = reader.only_word("FILE", "which launch file?");
    reader.text("--hw");
    reader.finish();
    const std::optional<LaunchInput> input = launch_input(file);
    if (!input || input->framework->job != LaunchJob::kTraining) {
      throw UserError(fmt::format("{} is no launch file of training", in_quotes(file)),
                      input ? "scalecalc serve MODEL --from FILE says what such a server does" : "");
    }
    const std::string model = arguments.value("--model").value_or(named_model(*input));
    if (model.empty()) {
      throw UserError("--model is missing: which model does the file train?", "a catalog name such as llama3-70b");
    }
    const LintReport report = lint_training(*input, asked_of_train(*input, model, arguments), catalog, env);
    return with_query(lint_output(report), arguments);
  });
}

constexpr std::array kLintCommon{FlagGroup{"the job", "--hw --chips --model --stack --set"}};

}  // namespace

const Command& lint_command() {
  static const Command kLint{
      .name = "lint",
      .summary = "What is illegal, too large or wasteful in a launch file, by line.",
      .usage = "FILE --hw HW [--chips N] [--model M]",
      .examples =
          "  scalecalc lint run.sh --hw h100-sxm --model llama3-70b\n"
          "  scalecalc lint config.yml --hw tpu-v5p --chips 256 --stack maxtext@2026-06\n",
      .notes =
          "Rules are those of the framework's release (--stack), memory and time those of train. Faster\n"
          "neighbours change one argument and what must move with it.\n",
      .flags = lint_flags(),
      .run = run_lint,
      .interruptible = true,
      .figures = "where kind about text",
      .common = kLintCommon};
  return kLint;
}

}  // namespace scalecalc::cli
