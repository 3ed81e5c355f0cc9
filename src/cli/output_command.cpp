// Takes an answer from a command to all outputs that were asked for, with warnings and exit status.
#include "cli/output_command.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/quoting.h"
#include "base/text.h"
#include "cli/commands.h"
#include "report/json_text.h"
#include "report/page.h"
#include "report/plot_svg.h"
#include "report/plot_text.h"
#include "spec/kept.h"

namespace scalecalc::cli {

AskedText asked_text(const Session& session, bool explain) {
  return {.explain = explain,
          .depth = explain || session.verbosity == Verbosity::kVerbose ? Depth::kFull : Depth::kBrief,
          .headline_alone = session.verbosity == Verbosity::kQuiet && !explain,
          .only = session.only,
          .columns = session.columns};
}

void refuse_parts_of_files(const Session& session, const OutputTargets& outputs) {
  if (outputs.has(OutputFormat::kTable)) return;
  const char* flag = !session.only.empty() ? "--only" : !session.columns.empty() ? "--columns" : nullptr;
  if (flag == nullptr) return;
  throw UserError(fmt::format("{} chooses a part of the text, and none is asked for", flag),
                  "other formats are always complete; leave it out, or ask for the text too: -o table=FILE");
}

std::string render_output(const Output& output, OutputFormat format, TextOptions text, const AskedText& part) {
  constexpr std::size_t kBriefWidth = 100;
  const bool brief = part.depth == Depth::kBrief && part.only.empty();
  if (brief && text.width == 0) text.width = kBriefWidth;
  const AskedText whole{.explain = part.explain};
  switch (format) {
    case OutputFormat::kTable: return render_table(output_report(output, part), text);
    case OutputFormat::kJson: return output_json(output, tool_version(), part.explain);
    case OutputFormat::kJsonl: return output_jsonl(output, tool_version());
    case OutputFormat::kRow: return output_rows(output, false);
    case OutputFormat::kRows: return output_rows(output, true);
    case OutputFormat::kCsv: return render_csv(csv_records(output));
    case OutputFormat::kMarkdown: return render_markdown(output_report(output, whole));
    case OutputFormat::kHtml:
      return render_page({.report = output_report(output, whole),
                          .plots = output.page_plots.empty() ? output.plots : output.page_plots,
                          .question = output.question,
                          .made_by = fmt::format("scalecalc {}", tool_version())});
    case OutputFormat::kPlot: return render_plots(output, text);
    case OutputFormat::kSvg: return render_svg(output);
  }
  return "";
}

bool asks_for_page(const Arguments& arguments) {
  const std::vector<std::string> values = arguments.values("--output");
  return std::any_of(values.begin(), values.end(),
                     [](const std::string& value) { return lower_case(value.substr(0, value.find('='))) == "html"; });
}

void note_no_charts(bool page, Environment& env) {
  if (page && !page_has_charts()) env.err << "note: " << kNoCharts << "\n";
}

void write_formats(const Output& output, const Session& session, OutputTargets& outputs, bool explain,
                   Environment& env) {
  const AskedText part = asked_text(session, explain);
  const TextOptions text = text_options(env, session.color);
  note_no_charts(outputs.has(OutputFormat::kHtml), env);
  if (outputs.has(OutputFormat::kTable)) output_report(output, part);  // a misspelt name, before any file is written
  outputs.write(env, [&](OutputFormat format, bool to_file) {
    return render_output(output, format, to_file ? TextOptions{} : text, part);
  });
}

namespace {

std::string replaced_text(const ReplacedFile& file) {
  return fmt::format("{} {} is read from {}, in the place of the catalog's", file.kind, file.name, file.file);
}

}  // namespace

void note_replaced(Output& output, const Catalog& catalog, const Session& session) {
  output.read_from = catalog.replaced();
  for (const ReplacedFile& file : output.read_from) output.warnings.push_back(replaced_text(file));
  if (output.read_from.empty() || output.question.empty()) return;
  for (const std::string& directory : session.config_directories) {
    const std::string asked = " --config-dir " + shell_quoted(directory);
    if (output.question.find(asked) == std::string::npos) output.question += asked;
  }
}

void say_replaced(const Catalog& catalog, const Session& session, Environment& env) {
  Log log(env.err, session.verbosity, wants_colour(env, session.color, env.err_is_tty));
  for (const ReplacedFile& file : catalog.replaced()) log.failure(replaced_text(file));
}

void say_warnings(Log& log, const Output& output) {
  if (!output.complete) log.failure(std::string(kPartial));
  if (output.nothing_fits) {
    for (const Line& line : output.summary) log.warning(line.text);
  }
  for (const Assumption& assumption : output.assumptions) {
    if (assumption.warning) log.warning(assumption.text);
  }
  for (const std::string& warning : output.warnings) log.failure(warning);
}

namespace {

/// Whether some check of the answer fails; each that does is said.
bool fails(const Output& output, const std::vector<AnswerCheck>& checks, Environment& env) {
  if (checks.empty()) return false;
  const std::string line = output_rows(output, false);
  if (line.empty()) return false;
  const Json row = Json::parse(line);
  std::vector<std::string> names;
  for (const auto& [name, value] : row.items()) names.push_back(name);
  AnswerChecks judged(checks, std::move(names));
  const std::vector<std::size_t> failing = judged.failing(row);
  for (const std::size_t i : failing) {
    env.err << printable(fmt::format("failed: {}: {}", checks[i].said, values_in(checks[i], row))) << "\n";
  }
  return !failing.empty();
}

bool nothing_known(const Output& output) {
  const Block* found = record_block(output);
  return found == nullptr || found->records.empty();
}

}  // namespace

ExitCode status_of(const Output& output, const Session& session, Environment& env) {
  if (!output.complete) return ExitCode::kInterrupted;
  if (output.nothing_fits) return ExitCode::kNothingFits;
  return fails(output, session.checks, env) ? ExitCode::kCheckFailed : ExitCode::kAnswered;
}

ExitCode write_output(const Output& output, const Session& session, OutputTargets& outputs, bool explain, Log& log,
                      Environment& env) {
  if (!output.complete && nothing_known(output)) throw Stopped();
  env.begin_answer();
  if (!for_people(outputs.standard_output())) {
    say_warnings(log, output);
  } else if (session.verbosity == Verbosity::kQuiet) {
    for (const std::string& warning : output.warnings) log.failure(warning);  // not in the headline
  }
  write_formats(output, session, outputs, explain, env);
  return status_of(output, session, env);
}

ExitCode answer_with_output(const Arguments& arguments, Environment& env,
                            const std::function<Output(const Catalog&)>& answer) {
  const Session session = read_session(arguments, env);
  OutputTargets outputs(arguments);
  refuse_parts_of_files(session, outputs);
  const Catalog catalog(session.config_directories, session.remembered);
  const Stopwatch watch;
  Output output = answer(catalog);
  note_replaced(output, catalog, session);
  if (session.perf) output.elapsed_s = watch.seconds();
  if (arguments.command().interruptible && should_stop(env.interrupted)) output.complete = false;
  Log log(env.err, session.verbosity, wants_colour(env, session.color, env.err_is_tty));
  return write_output(output, session, outputs, arguments.has("--explain"), log, env);
}

HardwareSpec hardware_asked_for(const Arguments& arguments, const Catalog& catalog, Unpublished unpublished) {
  const std::optional<std::string> name = arguments.value("--hw");
  if (!name) throw UserError("--hw is missing: on which hardware?", "a catalog name such as tpu-v5p, or a YAML file");
  const std::vector<std::string> sets = arguments.values("--set");
  const auto load = [&] {
    ConfigNode document = catalog.load(CatalogKind::kHardware, *name);
    apply_sets(sets, {{"hw", &document}});
    return load_hardware(document, catalog, unpublished);
  };
  const std::string key =
      fmt::format("hardware\n{}\n{}\n{}", *name, unpublished == Unpublished::kAllowed, join(sets, "\n"));
  return *kept<HardwareSpec>(catalog, key, load);
}

void note_sets(const Arguments& arguments, std::vector<Assumption>& assumptions) {
  for (const std::string& set : arguments.values("--set")) {
    assumptions.push_back(changed_by_set(set));
  }
}

}  // namespace scalecalc::cli
