// Runs `scalecalc export`: writes the launch file of a plan from a saved answer.
#include <fmt/format.h>

#include <array>

#include "base/quoting.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/output_command.h"
#include "cli/read_names.h"
#include "config/fields.h"
#include "config/json_reader.h"
#include "launch/launch_files_options.h"
#include "serve/serve_options.h"
#include "train/reference.h"
#include "train/train_options.h"
#include "train/train_words.h"

namespace scalecalc::cli {
namespace {

std::span<const Flag> export_command_flags() {
  static const std::string kHelp =
      fmt::format("whose launch file: {}; of a server {}", launch_framework_names(LaunchJob::kTraining),
                  launch_framework_names(LaunchJob::kServing));
  static const std::vector<Flag> kAll{
      text("--to", "FRAMEWORK", kHelp, "megatron").asking("for which framework?"),
      word("--cluster", kLaunchClusterNames, "and around it what starts it on a cluster").like("slurm")};
  return kAll;
}

/// A saved answer: whose it is, and the question that asks the same again.
struct SavedAnswer {
  std::string file;
  std::size_t rank = 0;  ///< as ReferenceLayout::rank
  const Command* command = nullptr;
  std::vector<std::string> question;  ///< its words
  std::string line;
};

SavedAnswer saved_answer(FlagReader& reader, const std::string& word) {
  SavedAnswer out;
  const std::size_t hash = word.rfind('#');
  out.file = word.substr(0, hash);
  if (hash != std::string::npos) {
    if (const auto rank = reader.count_of("PLAN.json#N", word.substr(hash + 1), kTopRange)) {
      out.rank = static_cast<std::size_t>(*rank);
    }
  }
  reader.finish();
  constexpr const char* kExpected = "the document that scalecalc train --json or serve --json writes";
  const ConfigNode document = read_json(read_text_file(out.file), out.file);
  const auto member = [&](std::string_view key) -> const ConfigNode& {
    const ConfigNode* found = document.find(key);
    if (found != nullptr && found->kind == ConfigNode::Kind::kScalar) return *found;
    throw UserError({Diagnostic{document.span, fmt::format("this is no answer: it has no '{}'", key), kExpected}});
  };
  const ConfigNode& schema = member("schema");
  for (const char* known : {"scalecalc/train/1", "scalecalc/serve/1"})
    refuse_other_version(schema.text, schema.span, known);
  if (schema.text == "scalecalc/train/1") out.command = &train_command();
  if (schema.text == "scalecalc/serve/1") out.command = &serve_command();
  if (out.command == nullptr) {
    throw UserError(
        {Diagnostic{schema.span, fmt::format("{} has no plan to launch", in_quotes(schema.text)), kExpected}});
  }
  const ConfigNode& question = member("question");
  out.line = question.text;
  out.question = shell_words(out.line);
  if (out.question.size() < 3 || out.question[1] != out.command->name) {
    throw UserError({Diagnostic{question.span, "this is no command line of scalecalc", kExpected}});
  }
  out.question.erase(out.question.begin(), out.question.begin() + 2);
  return out;
}

Output export_output(const LaunchFile& file, const SavedAnswer& saved, std::vector<Figure> figures) {
  Output out{.command = "export", .title = fmt::format("{} for {}", saved.file, file.framework->title)};
  Record record{{text_figure("framework", "framework", file.framework->name),
                 text_figure("title", "", file.framework->title),
                 datum("release", file.release.empty() ? Cell{} : Cell(file.release)),
                 text_figure("arguments_source", "", file.framework->source)}};
  for (Figure& figure : figures) record.figures.push_back(std::move(figure));
  record.figures.push_back(read_by(Readers::kJson, text_figure("file", "", file.text)));
  out.blocks.push_back({.key = "launch", .is_list = false, .records = {std::move(record)}});
  out.query = {{datum("plan_question", saved.line),
                datum("plan", saved.rank == 0 ? Cell{} : Cell(static_cast<double>(saved.rank)))}};
  return out;
}

Output export_training(const SavedAnswer& saved, const ExportAsked& asked, const Catalog& catalog, const Stop& stop,
                       std::string& text) {
  Arguments arguments = parse_arguments(saved.question, *saved.command);
  read_names(arguments, catalog);
  TrainQuestion q = train_question(arguments);
  q.fix = read_reference({.pins = {}, .file = saved.file, .rank = saved.rank}).pins;
  q.max = {};
  q.top = 1;
  q.plan = 1;
  q.explain = false;
  q.why_not.clear();
  q.from.reset();
  const TrainAnswer found = answer(q, catalog, stop);
  if (should_stop(stop)) throw Stopped();  // a plan is exported whole or not at all
  if (found.plans.empty()) {
    throw UserError(fmt::format("the plan of {} is no plan of this release of scalecalc", saved.file),
                    "ask again: " + saved.line);
  }
  const RankedPlan& plan = found.plans.front();
  const LaunchFile file = exported(asked, catalog, found, plan, saved.line);
  text = file.text;
  return export_output(file, saved,
                       {text_figure("layout", "plan", layout_words(plan.plan.layout)),
                        count_figure("chips", plan.plan.layout.chips(), "chips"),
                        number_figure("step_time_s", "step", Format::kSeconds, plan.plan.step_s),
                        number_figure("mfu", "MFU", Format::kFraction, plan.figures.mfu),
                        number_figure("memory_bytes", "mem/chip", Format::kBytes, sum_of(plan.figures.memory_bytes))});
}

Output export_serving(const SavedAnswer& saved, const ExportAsked& asked, const Catalog& catalog, const Stop& stop,
                      std::string& text) {
  Arguments arguments = parse_arguments(saved.question, *saved.command);
  read_names(arguments, catalog);
  const ServeAnswer found = serve_answer(serve_asked(arguments).question, catalog, stop);
  if (should_stop(stop)) throw Stopped();
  const bool listed = saved.rank > 0 && saved.rank <= found.points.size();
  if (saved.rank > 0 && !listed) {
    throw UserError(fmt::format("there is no point {}: the answer has {}", saved.rank, found.points.size()), "");
  }
  if (saved.rank == 0 && !found.best) throw UserError("nothing meets the limits of this question", "");
  const ServePoint& point = listed ? found.points[saved.rank - 1] : *found.best;
  const LaunchFile file = exported(asked, catalog, found, point, saved.line);
  text = file.text;
  return export_output(
      file, saved,
      {text_figure("layout", "layout", describe(point.layout)), count_figure("chips", point.chips, "chips"),
       number_figure("tpot_s", "time per token", Format::kSeconds, point.tpot_s),
       number_figure("tokens_per_s_per_chip", "tokens/s per chip", Format::kCount, point.tokens_per_s_per_chip()),
       number_figure("memory_bytes", "mem/chip", Format::kBytes, point.memory.total())});
}

ExitCode run_export(const Arguments& arguments, Environment& env) {
  const Session session = read_session(arguments, env);
  FlagReader reader(arguments);
  const std::string word = reader.only_word("PLAN.json", "which answer's plan?");
  const SavedAnswer saved = saved_answer(reader, word);
  ExportAsked asked;
  const Catalog catalog(session.config_directories, session.remembered);
  asked.framework = known_framework(reader.text("--to"), catalog);
  if (const auto cluster = reader.word("--cluster")) asked.cluster = static_cast<LaunchCluster>(*cluster);
  const bool training = saved.command == &train_command();
  if ((asked.framework->job == LaunchJob::kTraining) != training) {
    throw UserError(
        fmt::format("--to {}: {} is an answer of {}", asked.framework->name, saved.file, saved.command->name),
        launch_framework_names(training ? LaunchJob::kTraining : LaunchJob::kServing));
  }
  OutputTargets outputs(arguments);
  refuse_parts_of_files(session, outputs);
  const Stopwatch watch;
  std::string text;
  Output output = training ? export_training(saved, asked, catalog, env.interrupted, text)
                           : export_serving(saved, asked, catalog, env.interrupted, text);
  output = with_query(std::move(output), arguments);
  note_replaced(output, catalog, session);
  if (session.perf) output.elapsed_s = watch.seconds();
  env.begin_answer();
  Log log(env.err, session.verbosity, wants_colour(env, session.color, env.err_is_tty));
  for (const std::string& warning : output.warnings) log.failure(warning);
  const AskedText part = asked_text(session, false);
  const TextOptions options = text_options(env, session.color);
  outputs.write(env, [&](OutputFormat format, bool to_file) {
    if (format == OutputFormat::kTable) return text;
    return render_output(output, format, to_file ? TextOptions{} : options, part);
  });
  return status_of(output, session, env);
}

constexpr std::array kExportCommon{FlagGroup{"the file", "--to --cluster"}};

}  // namespace

const Command& export_command() {
  static const Command kExport{
      .name = "export",
      .summary = "A plan of a saved answer as the file that launches it.",
      .usage = "PLAN.json[#N] --to FRAMEWORK [--cluster CLUSTER]",
      .examples =
          "  scalecalc export plan.json --to megatron > run.sh\n"
          "  scalecalc export plan.json#2 --to torchtitan -o table=train.toml\n",
      .notes =
          "PLAN.json is what train --json or serve --json printed, #N its Nth plan listed. The text is the file\n"
          "itself. What a framework cannot run or say is an error that cites the rule.\n",
      .flags = export_command_flags(),
      .run = run_export,
      .interruptible = true,
      .figures = "framework layout chips step_time_s mfu",
      .common = kExportCommon};
  return kExport;
}

}  // namespace scalecalc::cli
