// Runs `scalecalc sensitivity`: reads the flags of train and what to vary, and writes the answer.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/flag_reader.h"
#include "cli/output_command.h"
#include "economics/run_options.h"
#include "sensitivity/sensitivity_output.h"
#include "serve/serve_options.h"
#include "train/curve_options.h"
#include "train/train_options.h"

namespace scalecalc::cli {
namespace {

constexpr std::array kSensitivityModes{
    Mode{"sensitivity MODEL"},
    Mode{.name = "sensitivity serve MODEL",
         .example = "scalecalc sensitivity serve llama3-70b --hw h100-sxm --chips 8 --prompt 2048 --generate 256"}};
constexpr Modes kOfTraining = 1U << 0U;
constexpr Modes kOfServing = 1U << 1U;

bool is_of_serving(const Arguments& arguments) {
  const std::vector<std::string>& words = arguments.positionals();
  return !words.empty() && words.front() == "serve";
}

std::optional<std::size_t> sensitivity_mode(const Arguments& arguments) { return is_of_serving(arguments) ? 1 : 0; }

/// The flags of train or of serve that choose a plan, and what to vary.
std::span<const Flag> sensitivity_flags() {
  static const std::vector<Flag> kAll = [] {
    std::vector<Flag> out = flags_but(train_flags(), {"--top", "--tie", "--plan", "--explain", "--why-not", "--from",
                                                      "--pareto", "--variants", "--set"});
    std::erase_if(out, [](const Flag& flag) { return is_run_flag(flag.name); });
    out.insert(
        out.end(),
        {text<&TrainQuestion::set>(
             "--set", "KEY=VALUE",
             "replace one field of the model or the hardware; several values (hw.hbm.bandwidth=2TB/s..8TB/s*2) "
             "are swept, those of several flags as a grid",
             "hw.hbm.bandwidth=2TB/s..8TB/s*2")
             .repeatable(),
         share<&SensitivityQuestion::swing>(
             "--swing", "how far each input is moved down and up for the change of the step (default 20%)", "20%"),
         toggle<&SensitivityQuestion::coefficients>("--coefficients", "list the efficiency coefficients too"),
         toggle<&SensitivityQuestion::fixed>(
             "--fixed", "keep the plan: search no better one for 10% more of a rate or at the points of a sweep"),
         kExplainFlag});
    for (Flag& flag : out) flag.modes = kOfTraining;
    for (const Flag& flag :
         flags_but(serve_flags(),
                   {"--trace", "--rate", "--routing", "--prefix-store", "--power", "--pue", "--carbon", "--simulate",
                    "--concurrency", "--tenant", "--requests", "--length-ratio", "--seed", "--prefill-hw", "--top",
                    "--explain", "--batch", "--stream-interval", "--receive-interval"})) {
      const auto same = std::find_if(out.begin(), out.end(),
                                     [&](const Flag& f) { return f.name == flag.name && f.store == flag.store; });
      if (same != out.end()) {
        same->modes = kAllModes;
      } else {
        out.push_back(flag.in(kOfServing));
      }
    }
    out.push_back(toggle<&ServeSensitivityQuestion::fixed>(
                      "--fixed", "keep layout and batch: search no better ones for 10% more of a rate")
                      .in(kOfServing));
    return out;
  }();
  return kAll;
}

void refuse_other_rankings(FlagReader& reader, const TrainQuestion& q) {
  if (q.objective == Objective::kTime || q.objective == Objective::kCost) return;
  reader.problem(fmt::format("--objective {} ranks by no rate, and elasticities are of time and dollars",
                             kObjectiveNames[static_cast<std::size_t>(q.objective)]),
                 "time or cost");
}

void read_sets(FlagReader& reader, SensitivityQuestion& q) {
  std::vector<std::string> single;
  for (std::string& set : q.train.set) {
    if (!is_set_range(set)) {
      single.push_back(std::move(set));
      continue;
    }
    try {
      q.ranges.push_back(parse_set_range(set));
    } catch (const UserError& error) {
      reader.problems(error.diagnostics());
    }
  }
  q.train.set = std::move(single);
}

SensitivityQuestion sensitivity_question(const Arguments& arguments) {
  FlagReader reader(arguments);
  SensitivityQuestion out{.train = read_train_question(reader, arguments)};
  if (const auto chips = arguments.value("--chips"); chips && is_sweep(*chips)) {
    reader.problem(fmt::format("--chips: {} is several counts, and one plan is asked about", in_quotes(*chips)),
                   "one count, such as 8960");
  }
  refuse_other_rankings(reader, out.train);
  read_sets(reader, out);
  reader.read(out);
  if (out.swing <= 0 || out.swing >= 1) {
    reader.problem(fmt::format("--swing {} moves no input to another value above zero", *arguments.value("--swing")),
                   "a share above 0 and below 1, such as 20%");
  }
  reader.finish();
  return out;
}

ServeSensitivityQuestion serving_question(const Arguments& arguments) {
  FlagReader reader(arguments);
  ServeSensitivityQuestion out;
  const std::vector<std::string>& words = arguments.positionals();
  if (words.size() != 2) reader.problem("MODEL is missing: which model is served?", reader.example());
  out.serve = read_engine_question(reader, arguments).question;
  if (words.size() == 2) out.serve.model = words.back();
  out.serve.usual_lengths = !arguments.has("--prompt") && !arguments.has("--generate");
  reader.read(out);
  if (out.serve.hardware.size() > 1) {
    reader.problem("--hw names several machines, and the rates of one are asked about",
                   "one of them, such as h100-sxm");
  }
  check_serving(reader, out.serve);
  reader.finish();
  if (!out.serve.slo_ttft && !out.serve.slo_tpot && !out.serve.slo_request && !arguments.has("--objective")) {
    out.serve.objective = ServeObjective::kKnee;
  }
  return out;
}

ExitCode run_serving(const Arguments& arguments, Environment& env) {
  bool complete = true;
  const ExitCode code = answer_with_output(arguments, env, [&](const Catalog& catalog) {
    const ServeSensitivity found = serving_sensitivity(serving_question(arguments), catalog, env.interrupted);
    complete = found.complete;
    return with_query(sensitivity_output(found), arguments, {answered(found.question), answered(found.question.serve)});
  });
  return complete ? code : ExitCode::kInterrupted;
}

ExitCode run_sensitivity(const Arguments& arguments, Environment& env) {
  if (is_of_serving(arguments)) return run_serving(arguments, env);
  const SensitivityQuestion question = sensitivity_question(arguments);
  bool complete = true;
  const ExitCode code = answer_with_output(arguments, env, [&](const Catalog& catalog) {
    const SensitivityAnswer found = sensitivity(question, catalog, arguments.has("--explain"), env.interrupted);
    complete = found.complete;
    const ResolvedQuestion& as = found.resolved;
    return with_query(sensitivity_output(found), arguments,
                      {answered(question), answered(understood(question.train, as.workload, as.hw, as.model)),
                       answered(question.train.fine_tune)});
  });
  return complete ? code : ExitCode::kInterrupted;
}

constexpr std::array kSensitivityCommon{
    FlagGroup{"the job", "--hw --chips --seq --batch-tokens --tokens --precision"},
    FlagGroup{"the plan and what is moved", "--fix --stack --swing --coefficients --fixed --set"}};

}  // namespace

const Command& sensitivity_command() {
  static const Command kSensitivity{
      .name = "sensitivity",
      .summary = "What a training plan's or a server's time depends on, what to buy next, the balance it wants.",
      .usage = "[serve] MODEL --hw HW --chips N [flags]",
      .examples =
          "  scalecalc sensitivity llama3-70b --hw tpu-v5p --chips 8960\n"
          "  scalecalc sensitivity mixtral-8x7b --hw h100-sxm --chips 256 --fixed --coefficients --explain\n"
          "  scalecalc sensitivity llama3-8b --hw h100-sxm --chips 64 --set hw.hbm.bandwidth=1TB/s..8TB/s*2\n"
          "  scalecalc sensitivity serve llama3-70b --hw h100-sxm --chips 8 --prompt 2048 --generate 256\n",
      .notes =
          "Elasticities are exact derivatives of the step's formulas, of its plan as it is. With 10% more of a\n"
          "rate the layout is searched for again, unless --fixed says not to. Of a server the question is asked\n"
          "again with each rate moved.\n",
      .flags = sensitivity_flags(),
      .run = run_sensitivity,
      .modes = kSensitivityModes,
      .mode_of = sensitivity_mode,
      .names = CatalogKind::kModel,
      .nothing_fits = "nothing fits",
      .interruptible = true,
      .draws = "what each input does to a step, and step time over the ranges of --set",
      .figures = "input elasticity low_change high_change",
      .common = kSensitivityCommon};
  return kSensitivity;
}

}  // namespace scalecalc::cli
