// Runs `scalecalc lint`: reads a launch file and reports what is wrong with it.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/output_command.h"
#include "cli/read_names.h"
#include "cli/shared_flags.h"
#include "launch/launch_files_options.h"
#include "launch/lint_output.h"
#include "launch/lint_serving_command.h"
#include "spec/load.h"
#include "train/resolve.h"
#include "train/train_options.h"

namespace scalecalc::cli {
namespace {

std::span<const Flag> lint_flags() {
  static const std::vector<Flag> kAll{
      kHwFlag, count("--chips", kChipRange, "N", "chips it runs on (default: as the file says)", "1024"),
      text("--model", "MODEL",
           "the model it is of: a catalog name or a file (default: as the file names it, or by the shapes it says)",
           "llama3-70b"),
      kStackFlag.explained("release of the software whose rules hold (default: the framework's newest)"), kSetFlag};
  return kAll;
}

std::string value_in(const LaunchInput& input, std::initializer_list<std::string_view> keys) {
  for (const LaunchSetting& setting : input.settings) {
    const bool asked = std::find(keys.begin(), keys.end(), setting.key) != keys.end();
    if (asked && setting.open.empty() && setting.values.size() == 1) return setting.values.front();
  }
  return "";
}

/// Models of the catalog with the shapes that a file says.
std::vector<std::string> models_by_shape(const LaunchInput& input, const Catalog& catalog) {
  std::vector<std::string> out;
  try {
    const LaunchTerms said = import_training(*input.framework, input.settings, nullptr, nullptr, {}, 1).reading.terms;
    for (const std::string& name : catalog.names(CatalogKind::kModel)) {
      if (has_shape(load_model(catalog.load(CatalogKind::kModel, name)), said)) out.push_back(name);
    }
  } catch (const UserError&) {
    return {};  // with the model named it is said at its line what is wrong with the file
  }
  return out;
}

struct NamedModel {
  std::string name;  ///< as `train` takes it
  std::string how;   ///< where it was not typed
};

/// The model that a file is of: by the framework's name, by a repository, by its shapes.
NamedModel model_of(const LaunchInput& input, const Arguments& arguments, const Catalog& catalog) {
  if (const auto typed = arguments.value("--model")) return {*typed, ""};
  const std::string name = value_in(input, {"model_name", "model.name", "--model_name_or_path", "model_name_or_path"});
  if (!name.empty()) {
    const std::string_view ours = catalog_name(*input.framework, name, value_in(input, {"model.flavor"}));
    const auto known = ours.empty() ? catalog.name_of(CatalogKind::kModel, name) : std::optional(std::string(ours));
    if (known) return {*known, fmt::format("the model is {}: {} calls it {}", *known, input.file, name)};
  }
  const std::vector<std::string> alike = models_by_shape(input, catalog);
  if (alike.empty()) {
    throw UserError("--model is missing: which model does the file train?", "a catalog name such as llama3-70b");
  }
  const ModelSpec first = load_model(catalog.load(CatalogKind::kModel, alike.front()));
  for (const std::string& other : alike) {  // what a file does not say may tell them apart
    const ModelSpec model = load_model(catalog.load(CatalogKind::kModel, other));
    if (model.vocab == first.vocab && model.tied_embeddings == first.tied_embeddings &&
        model.mtp_layers == first.mtp_layers && model.kinds.size() == first.kinds.size()) {
      continue;
    }
    throw UserError("--model is missing: which model does the file train?",
                    fmt::format("by its shapes one of {}", join_and(alike)));
  }
  std::string how = fmt::format("the model is {}, by its shapes", alike.front());
  if (alike.size() > 1) {
    how += fmt::format(" ({} too)", join_and(std::vector<std::string>(alike.begin() + 1, alike.end())));
  }
  return {alike.front(), std::move(how)};
}

/// The model that a server is started with: of a flag, or the word behind the command.
NamedModel served_model(const LaunchInput& input, const Arguments& arguments, const Catalog& catalog) {
  if (const auto typed = arguments.value("--model")) return {*typed, ""};
  const std::string flag = value_in(input, {"--model", "--model-path"});
  const std::string& name = flag.empty() ? input.served : flag;
  if (const auto known = catalog.name_of(CatalogKind::kModel, name); !name.empty() && known) {
    return {*known, fmt::format("the model is {}: {} calls it {}", *known, input.file, name)};
  }
  throw UserError(
      "--model is missing: which model does the file serve?",
      name.empty() ? "a catalog name such as llama3-70b" : fmt::format("{} is none of the catalog", in_quotes(name)));
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
    const std::optional<LaunchInput> input = launch_input(file, catalog);
    if (!input)
      throw UserError(fmt::format("{} is no launch file", in_quotes(file)), "scripts and files of frameworks");
    const bool serves = input->framework->job == LaunchJob::kServing;
    const NamedModel model = serves ? served_model(*input, arguments, catalog) : model_of(*input, arguments, catalog);
    LintReport report = serves ? lint_serving(*input, model.name, arguments, catalog, env)
                               : lint_training(*input, asked_of_train(*input, model.name, arguments), catalog, env);
    if (!model.how.empty()) {
      report.assumptions.push_back(
          Assumption{model.how, "--model", std::string(input->framework->source), false}.as("model").is(model.name));
    }
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
          "  scalecalc lint config.yml --hw tpu-v5p --chips 256 --stack maxtext@2026-06\n"
          "  scalecalc lint serve.sh --hw h200 --model deepseek-v3\n",
      .notes =
          "Rules are those of the framework's release (--stack), memory and time those of train or serve.\n"
          "Faster neighbours change one argument and what must move with it.\n",
      .flags = lint_flags(),
      .run = run_lint,
      .interruptible = true,
      .figures = "where kind about text",
      .common = kLintCommon};
  return kLint;
}

}  // namespace scalecalc::cli
