// Runs `scalecalc trace`: plans as train does and writes the step of one plan block by block.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/flag_reader.h"
#include "cli/output_command.h"
#include "cli/outputs.h"
#include "cli/session.h"
#include "economics/run_options.h"
#include "train/curve_options.h"
#include "train/trace_output.h"
#include "train/train_options.h"

namespace scalecalc::cli {
namespace {

constexpr std::array<std::string_view, 3> kDetailNames{"auto", "blocks", "layers"};

struct TraceQuestion {
  TrainQuestion train;
  TraceDetail detail = TraceDetail::kAuto;
};

/// The flags of train that choose a plan, and how to draw it.
std::span<const Flag> trace_flags() {
  static const std::vector<Flag> kAll = [] {
    std::vector<Flag> out = flags_but(train_flags(), {"--top", "--explain", "--why-not", "--from", "--pareto"});
    std::erase_if(out, [](const Flag& flag) { return is_run_flag(flag.name); });
    out.push_back(word<&TraceQuestion::detail>(
                      "--detail", kDetailNames,
                      "what the JSON draws: forwards and backwards, or their layers too (default: layers up to 50,000)")
                      .like("blocks"));
    return out;
  }();
  return kAll;
}

TraceQuestion trace_question(const Arguments& arguments) {
  FlagReader reader(arguments);
  TraceQuestion out;
  reader.read(out);
  out.train = read_train_question(reader, arguments);
  out.train.top = std::max<std::size_t>(out.train.plan, 1);
  if (const auto chips = arguments.value("--chips"); chips && is_sweep(*chips)) {
    reader.problem(fmt::format("--chips: {} is several counts, and one step is drawn", in_quotes(*chips)),
                   "one count, such as 8960");
  }
  reader.finish();
  return out;
}

std::string rendered_trace(const TracedPlan& traced, const Output& output, OutputFormat format, const TextOptions& text,
                           const AskedText& part) {
  if (format == OutputFormat::kJson) return trace_json(traced, output, tool_version());
  return render_output(output, format, text, part);
}

ExitCode run_trace(const Arguments& arguments, Environment& env) {
  const Session session = read_session(arguments, env);
  const TraceQuestion question = trace_question(arguments);
  OutputTargets outputs(arguments);
  refuse_parts_of_files(session, outputs);
  const Catalog catalog(session.config_directories, session.remembered);
  const Stopwatch watch;
  const TrainAnswer found = answer(question.train, catalog, env.interrupted);
  const bool complete = !(env.interrupted && env.interrupted());
  TracedPlan traced{.answer = &found, .detail = question.detail, .events = outputs.has(OutputFormat::kJson)};
  std::optional<StepTrace> trace;
  if (!found.plans.empty()) {
    traced.plan = detailed_plan(found);
    if (traced.plan == nullptr) {
      throw UserError(fmt::format("--plan {}: only {} {} found", question.train.plan, found.plans.size(),
                                  found.plans.size() == 1 ? "plan was" : "plans were"),
                      "--variants ranks variants of the same degrees too");
    }
    trace = trace_step(found, traced.plan->plan);
    traced.trace = &*trace;
  }
  Output output =
      with_query(trace_output(traced, complete), arguments,
                 {answered(question), answered(understood(question.train, found.workload, found.hw, found.model)),
                  answered(question.train.fine_tune)});
  note_replaced(output, catalog, session);
  if (session.perf) output.elapsed_s = watch.seconds();
  if (!complete && traced.plan == nullptr) throw Stopped();
  env.begin_answer();
  Log log(env.err, session.verbosity, wants_colour(env, session.color, env.err_is_tty));
  if (!for_people(outputs.standard_output())) {
    say_warnings(log, output);
    if (traced.plan == nullptr) {
      for (const Line& line : output.summary) log.warning(line.text);
    }
  }
  const TextOptions text = text_options(env, session.color);
  const AskedText part = asked_text(session, false);
  if (outputs.has(OutputFormat::kTable)) output_report(output, part);  // a misspelt name, before any file is written
  outputs.write(env, [&](OutputFormat format, bool to_file) {
    return rendered_trace(traced, output, format, to_file ? TextOptions{} : text, part);
  });
  return complete && traced.plan == nullptr ? ExitCode::kNothingFits : status_of(output, session, env);
}

constexpr std::array kTraceCommon{FlagGroup{"the job", "--hw --chips --seq --batch-tokens --precision --stack"},
                                  FlagGroup{"the plan", "--fix --plan --objective --remat --detail --set"}};

}  // namespace

const Command& trace_command() {
  static const Command kTrace{
      .name = "trace",
      .summary = "The step of a planned layout block by block, as a table and for Perfetto.",
      .usage = "MODEL --hw HW --chips N [flags]",
      .examples =
          "  scalecalc trace gpt3-175b --hw a100-80g --chips 1024 --fix tp=8,pp=8 -o json=step.json\n"
          "  scalecalc trace llama3-70b --hw h100-sxm --chips 512 --plan 2\n",
      .notes =
          "-o json=FILE is a trace that ui.perfetto.dev and chrome://tracing open; the table says what each\n"
          "stage does with the step.\n",
      .flags = trace_flags(),
      .run = run_trace,
      .names = CatalogKind::kModel,
      .nothing_fits = "nothing fits",
      .interruptible = true,
      .draws = "what each stage does with the step",
      .figures = "stage forward_s backward_s busy_share idle_share activation_bytes",
      .common = kTraceCommon};
  return kTrace;
}

}  // namespace scalecalc::cli
