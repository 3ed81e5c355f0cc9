// Plans a study, runs its shards and reports what became of them, for all actions of `scalecalc batch`.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/progress.h"
#include "base/text.h"
#include "batch/batch_actions_command.h"
#include "batch/cases.h"
#include "batch/files.h"
#include "batch/run_shard.h"
#include "cli/ask_command.h"
#include "cli/comma_list.h"
#include "cli/commands.h"
#include "cli/flag_reader.h"
#include "cli/output_command.h"
#include "plan/threads.h"
#include "report/answer_fields.h"

namespace scalecalc::cli {
namespace {

constexpr std::uint64_t kManyCases = 10'000'000;
constexpr std::uint64_t kSampled = 16;
/// A plan is for a large machine and wants a good estimate; a study that is asked at once shows its progress.
constexpr double kPlanSampleSeconds = 1;
constexpr double kSampleSeconds = 0.1;

struct FormatWord {
  std::string_view word;
  std::string_view ending;
  ResultFormat format;
};
constexpr std::array kResultFormats{
    FormatWord{"jsonl", ".jsonl", ResultFormat::kJsonl},    FormatWord{"csv", ".csv", ResultFormat::kCsv},
    FormatWord{"sqlite", ".db", ResultFormat::kSqlite},     FormatWord{"sqlite", ".sqlite", ResultFormat::kSqlite},
    FormatWord{"json", ".json", ResultFormat::kJson},       FormatWord{"table", ".txt", ResultFormat::kTable},
    FormatWord{"markdown", ".md", ResultFormat::kMarkdown}, FormatWord{"html", ".html", ResultFormat::kHtml}};

ResultTarget target_of(const std::string& value) {
  const std::size_t equals = value.find('=');
  const std::string word = value.substr(0, equals);
  for (const FormatWord& format : kResultFormats) {
    if (word != format.word) continue;
    const std::string path = equals == std::string::npos ? "" : value.substr(equals + 1);
    return {format.format, path == "-" ? "" : path};
  }
  for (const FormatWord& format : kResultFormats) {
    if (value.ends_with(format.ending)) return {format.format, value};
  }
  throw UserError(fmt::format("cannot tell the format of {}", in_quotes(value)),
                  "jsonl, csv, sqlite, json, table, markdown or html, as -o csv=FILE, or a file that ends in .jsonl, "
                  ".csv, .db, .json, .md or .html");
}

void refuse_huge(const Study& study) {
  if (grid_size(study)) return;
  throw UserError("the study has more than 9,223,372,036,854,775,808 points",
                  "no machine will answer that; name fewer");
}

void ask_leave(std::uint64_t cases, double seconds) {
  if (cases <= kManyCases) return;
  throw UserError(fmt::format("the study has {} points, about {} on this machine", grouped(cases),
                              format_quantity(seconds, UnitKind::kSeconds, 2)),
                  "--yes asks them all the same");
}

/// Whether the directory holds the beginning of this very study.
bool begun_with(const std::string& directory, const StudyManifest& manifest) {
  try {
    return manifest_to_run(directory, tool_version()).hash == manifest.hash;
  } catch (const UserError&) {
    return false;
  }
}

}  // namespace

double estimated_seconds(const StudySample& sample, std::uint64_t cases, unsigned jobs) {
  return sample.seconds_each * sample.kept_share * static_cast<double>(cases) / jobs;
}

std::string only_positional(const Arguments& arguments, std::string_view what, std::size_t skip) {
  const std::vector<std::string>& words = arguments.positionals();
  if (words.size() <= skip)
    throw UserError(fmt::format("{} is missing", what), "scalecalc batch --help shows examples");
  if (words.size() > skip + 1) {
    throw UserError(fmt::format("unexpected argument {}: {} is one", in_quotes(words[skip + 1]), what),
                    "scalecalc batch --help shows examples");
  }
  return words[skip];
}

std::vector<ResultTarget> result_targets(const Arguments& arguments) {
  if (arguments.has("--only")) {
    throw UserError("--only chooses a part of the text, and results of a study are complete", "leave it out");
  }
  std::vector<ResultTarget> out;
  for (const std::string& value : arguments.values("--output")) out.push_back(target_of(value));
  if (arguments.has("--json")) out.push_back({ResultFormat::kJson, ""});
  if (out.empty()) out.push_back({ResultFormat::kJsonl, ""});
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i].format == ResultFormat::kSqlite && out[i].path.empty()) {
      throw UserError("a database cannot go to standard output", "-o sqlite=results.db");
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (out[i].path == out[j].path) {
        throw UserError(out[i].path.empty() ? "two outputs go to standard output"
                                            : fmt::format("two outputs go to {}", in_quotes(out[i].path)),
                        "");
      }
    }
  }
  std::vector<std::unique_ptr<ClaimedOutput>> claims;
  for (const ResultTarget& target : out) {
    // An unwritable place is better known before the work than after it.
    if (!target.path.empty()) claims.push_back(check_result_place(target.path));
  }
  return out;
}

unsigned jobs_of(const Arguments& arguments) {
  FlagReader reader(arguments);
  const auto jobs = reader.count("--jobs");
  reader.finish();
  return jobs ? static_cast<unsigned>(*jobs) : usable_cores();
}

namespace {

/// What a row of the study may have.
std::vector<std::string> names_of_rows(const Study& study) {
  std::vector<std::string> names = answer_fields(study.command);
  for (const std::string& name : input_names(study)) names.push_back(name);
  for (const std::string_view name : kRowMembers) names.emplace_back(name);
  return names;
}

/// Columns of a table behind what was asked: those named, else the command's.
std::vector<std::string> figures_of_table(const Arguments& arguments, const Study& study) {
  const auto asked = arguments.value("--columns");
  if (!asked) return parts_between(find_command(study.command)->figures, ' ');
  const std::vector<std::string> known = names_of_rows(study);
  std::vector<std::string> out = comma_parts(*asked);
  for (const std::string& name : out) {
    if (is_known_name(name, known)) continue;
    const std::string hint = did_you_mean(nearest(name, known));
    throw UserError(fmt::format("--columns: no row has {}", in_quotes(name)),
                    hint.empty() ? "-o jsonl shows the names" : hint);
  }
  return out;
}

/// The head of one document of all rows.
Output study_output(const Arguments& arguments, const StudyManifest& manifest) {
  Output out{.command = "batch",
             .title = fmt::format("{} questions of {}", grouped(manifest.cases), manifest.study.command)};
  out.blocks.push_back({.is_list = false,
                        .records = {{{datum("command", manifest.study.command), count_figure("cases", manifest.cases),
                                      datum("manifest_sha256", manifest.hash)}}}});
  return with_query(std::move(out), arguments);
}

}  // namespace

PlannedStudy prepared_study(StudyManifest manifest, const std::string& directory, const Environment& env,
                            bool starts_again) {
  PlannedStudy out{.manifest = std::move(manifest)};
  out.ask = ask_commands(env, out.manifest.study.config_directories, out.manifest.study.all_records);
  out.deaths = deaths_in(directory, out.manifest);
  for (const auto& [number, signal] : out.deaths) out.known.emplace(number, reply_of_death(signal));
  if (env.words_of_process) {
    out.faults =
        std::make_unique<FaultWatch>(directory, out.manifest, starts_again ? env.words_of_process : std::nullopt);
  }
  return out;
}

PlannedStudy planned_study(const std::string& path, const std::string& directory, const Arguments& arguments,
                           const Session& session, Environment& env, std::uint64_t shards) {
  // Parts of some thousand rows: a killed run reads no more than one of them again.
  constexpr std::uint64_t kRows = 4096;
  constexpr std::uint64_t kMostShards = 64;
  Study study = read_study(path, command_forms(), session.config_directories);
  refuse_huge(study);
  // A misspelt name is found before the first question.
  checks_asked_for(arguments, names_of_rows(study));
  figures_of_table(arguments, study);
  const double seconds_for_sample = shards == 0 ? kSampleSeconds : kPlanSampleSeconds;
  if (shards == 0) shards = std::clamp<std::uint64_t>(*grid_size(study) / kRows, 1, kMostShards);
  // What came through a pipe cannot be read again.
  const bool starts_again = std::filesystem::is_regular_file(path);
  PlannedStudy out =
      prepared_study(make_manifest(std::move(study), tool_version(), shards), directory, env, starts_again);
  if (has_manifest(directory)) {
    if (begun_with(directory, out.manifest)) return out;
    throw UserError(fmt::format("{} holds the results of another study, or of another version of this one", directory),
                    "name another place, or --restart without batch plan forgets them");
  }
  const Cases cases(out.manifest.study);
  out.sample = sample_study(out.manifest.study, cases, out.ask, kSampled, seconds_for_sample, out.known);
  out.known.insert(out.sample->replies.begin(), out.sample->replies.end());
  const double seconds = estimated_seconds(*out.sample, cases.size(), jobs_of(arguments));
  if (!arguments.has("--yes")) ask_leave(cases.size(), seconds);
  env.begin_line();
  Log log(env.err, session.verbosity, wants_colour(env, session.color, env.err_is_tty));
  if (!out.sample->wrong.empty()) {
    const auto& first = out.sample->wrong.front();
    log.warning(fmt::format("{} of a sample of {} questions are wrong, the first: {}: {}", out.sample->wrong.size(),
                            out.sample->asked, first.question, first.reason));
  }
  const std::string size =
      fmt::format("{} points, about {}", grouped(cases.size()), format_quantity(seconds, UnitKind::kSeconds, 2));
  if (env.err_is_tty && session.verbosity == Verbosity::kNormal) env.err << size << std::endl;
  log.info(size);
  write_manifest(out.manifest, directory);
  return out;
}

namespace {

/// Questions of these shards in which the program died.
void say_deaths(const PlannedStudy& planned, const std::vector<std::uint64_t>& shards, Environment& env) {
  constexpr std::size_t kMostSaid = 3;
  const Cases cases(planned.manifest.study);
  std::vector<std::string> said;
  std::uint64_t deaths = 0;
  for (const auto& [number, signal] : planned.deaths) {
    const std::uint64_t shard = number % planned.manifest.shards;
    if (std::find(shards.begin(), shards.end(), shard) == shards.end()) continue;
    if (++deaths > kMostSaid) continue;
    said.push_back(fmt::format("\n  signal {}: {}", signal, command_line(cases.question(cases.point(number)))));
  }
  if (deaths == 0) return;
  env.begin_line();
  env.err << fmt::format(
      "warning: the program died in {} of the questions; the study went on, and each is a row of status bug. Please "
      "report:{}{}\n",
      grouped(deaths), fmt::join(said, ""), deaths > kMostSaid ? "\n  ..." : "");
}

}  // namespace

ExitCode run_shards(const PlannedStudy& planned, const std::string& directory, const std::vector<std::uint64_t>& shards,
                    const Arguments& arguments, Environment& env) {
  const StudyManifest& manifest = planned.manifest;
  std::uint64_t cases = 0;
  for (const std::uint64_t shard : shards) cases += (manifest.cases - shard + manifest.shards - 1) / manifest.shards;
  Progress progress("questions", cases, Progress::Pace::kEven);
  bool first = false;
  const RunOptions options{.jobs = jobs_of(arguments),
                           .strict = arguments.has("--strict"),
                           .stop = env.interrupted,
                           .tell =
                               [&](std::uint64_t landed) {
                                 if (std::exchange(first, false)) {
                                   progress.found_done(landed);
                                 } else {
                                   progress.add(landed);
                                 }
                               },
                           .known = &planned.known};
  bool bug = false;
  for (const std::uint64_t shard : shards) {
    first = true;
    const ShardRun run = run_shard(manifest, directory, shard, planned.ask, options);
    if (run.end == RunEnd::kStopped) return ExitCode::kInterrupted;
    if (run.end == RunEnd::kFailed) {
      throw UserError(
          fmt::format("stopped at a question without an answer: {}: {}", run.failed_question, run.failed.reason),
          "without --strict it would be a row", static_cast<ExitCode>(run.failed.exit));
    }
    bug = bug || run.statuses[static_cast<std::size_t>(RowStatus::kBug)] > 0;
  }
  say_deaths(planned, shards, env);
  return bug ? ExitCode::kBug : ExitCode::kAnswered;
}

ExitCode merge_results(const StudyManifest& manifest, const std::string& directory, const Arguments& arguments,
                       const Session& session, Environment& env) {
  env.begin_answer();
  const Output document = study_output(arguments, manifest);
  constexpr std::size_t kPipeWidth = 100;  // reasons of rows without an answer are long
  TextOptions shown = text_options(env, session.color);
  if (shown.width == 0) shown.width = kPipeWidth;
  const ResultStyle style{.document = output_json(document, tool_version(), false),
                          .title = document.title,
                          .figures = figures_of_table(arguments, manifest.study),
                          .text = shown,
                          .made_by = fmt::format("scalecalc {}", tool_version())};
  const std::vector<ResultTarget> targets = result_targets(arguments);
  note_no_charts(std::any_of(targets.begin(), targets.end(),
                             [](const ResultTarget& t) { return t.format == ResultFormat::kHtml; }),
                 env);
  const auto violations =
      write_results(manifest, directory, targets, style, checks_asked_for(arguments, names_of_rows(manifest.study)),
                    [&](std::string_view text) { write_result(env.out, std::string(text)); });
  ExitCode out = ExitCode::kAnswered;
  Log log(env.err, session.verbosity, wants_colour(env, session.color, env.err_is_tty));
  for (const Violations& found : violations) {
    if (found.rows == 0) continue;
    out = ExitCode::kCheckFailed;
    std::string text = fmt::format("{} {} {} rows:", found.check.said,
                                   found.check.expected ? "is not so in" : "holds for", grouped(found.rows));
    for (const std::string& question : found.questions) text += "\n  " + question;
    if (found.rows > found.questions.size()) text += "\n  ...";
    log.failure(text);
  }
  return out;
}

}  // namespace scalecalc::cli
