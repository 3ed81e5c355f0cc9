// Runs `scalecalc compare`: one job on several systems, with its checks and exit status.
#include <fmt/format.h>

#include <array>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/output_command.h"
#include "cli/session.h"
#include "compare/compare_options.h"
#include "compare/compare_output.h"
#include "import/named_model.h"

namespace scalecalc::cli {
namespace {

/// An interrupted comparison that knows nothing of any system.
template <class Comparison>
void require_something_known(const Comparison& found) {
  const bool nothing = std::all_of(found.systems.begin(), found.systems.end(),
                                   [](const ComparedSystem& s) { return s.status == ComparedStatus::kInterrupted; });
  if (nothing) throw Stopped();
}

/// Exit status 1, and a line for each that does not hold.
ExitCode judged(const std::vector<ExpectationResult>& results, const Arguments& arguments, const Environment& env) {
  const Session session = read_session(arguments, env);
  Log log(env.err, session.verbosity, wants_colour(env, session.color, env.err_is_tty));
  bool holds = true;
  for (const ExpectationResult& r : results) {
    if (!r.unpriced.empty()) {
      log.failure(fmt::format("--expect {} was judged among the systems with a price; none is known for {}", r.text,
                              join_and(r.unpriced)));
    }
    if (r.holds) continue;
    log.failure(fmt::format("--expect {} does not hold: {}", r.text, r.found.empty() ? "none is" : r.found));
    holds = false;
  }
  return holds ? ExitCode::kAnswered : ExitCode::kCheckFailed;
}

/// Names of one model of the catalog would be compared with each other.
void refuse_one_model_twice(const Catalog& catalog, const std::vector<SystemAsked>& systems) {
  std::map<std::string, std::string> asked;  // by the catalog's name
  for (const SystemAsked& system : systems) {
    const auto name = catalog.name_of(CatalogKind::kModel, system.model);
    if (system.model.empty() || !name) continue;
    const auto [known, is_new] = asked.emplace(*name, system.model);
    if (is_new || known->second == system.model) continue;
    throw UserError(
        fmt::format("{} and {} are one model, {}", in_quotes(known->second), in_quotes(system.model), *name),
        "name each of several models once");
  }
}

ExitCode run_compare(const Arguments& arguments, Environment& env) {
  std::vector<ExpectationResult> expectations;
  const ExitCode code = answer_with_output(arguments, env, [&](const Catalog& catalog) {
    const CompareAsked asked = compare_asked(arguments);
    // Of several models a wrong name is no system that cannot do the job.
    for (const SystemAsked& system : asked.serve ? asked.serve->systems : asked.train->systems) {
      if (!system.model.empty()) load_model_document(catalog, system.model, arguments.value("--assume").value_or(""));
    }
    refuse_one_model_twice(catalog, asked.serve ? asked.serve->systems : asked.train->systems);
    const bool explain = arguments.has("--explain");
    if (asked.serve) {
      const ServeComparison found = compare_serving(*asked.serve, catalog, env.interrupted);
      require_something_known(found);
      expectations = found.expectations;
      const ServeQuestion& serve = asked.serve->serve;
      return with_query(compare_serve_output(found, explain), arguments,
                        {answered(serve), answered(serve.power), answered(asked.serve->prices)});
    }
    const TrainComparison found = compare_training(*asked.train, catalog, env.interrupted);
    require_something_known(found);
    expectations = found.expectations;
    TrainQuestion train = understood(asked.train->train, found.workload);
    train.attention = asked.train->train.attention;  // systems have kernels of their own
    return with_query(compare_output(found, explain), arguments,
                      {answered(asked.train), answered(train), answered(train.fine_tune), answered(train.run),
                       answered(train.run.power), answered(asked.train->prices)});
  });
  if (env.interrupted && env.interrupted()) return ExitCode::kInterrupted;
  return code == ExitCode::kAnswered ? judged(expectations, arguments, env) : code;
}

constexpr std::array kCompareCommon{
    FlagGroup{"the systems and their limits",
              "--hw --chips --deadline --budget --cloud --price-kind --price --rank --expect"},
    FlagGroup{"what is trained or served",
              "--seq --batch-tokens --tokens --serve --prompt --generate --slo-ttft --slo-tpot"}};

}  // namespace

const Command& compare_command() {
  static const Command kCompare{
      .name = "compare",
      .summary = "One job on several systems: time, dollars, energy, chips needed, break-even prices.",
      .usage = "MODELS --hw SYSTEMS [--chips N | --deadline TIME | --budget USD] [flags]",
      .examples =
          "  scalecalc compare llama3-70b --hw h100-sxm,tpu-v5p,tpu-v5e --chips 256 --cloud GCP\n"
          "  scalecalc compare llama3-70b --hw h100-sxm,tpu-v5p --deadline 60d --price h100-sxm=2.5\n"
          "  scalecalc compare llama3-8b --hw h100-sxm:512,h200:512 --budget 1M --expect fastest=h200\n"
          "  scalecalc compare llama3-70b,qwen3-32b --hw h100-sxm:512\n"
          "  scalecalc compare llama3-70b --serve --hw h100-sxm,tpu-v6e --chips 8 --slo-tpot 50ms\n",
      .notes =
          "Flags that say how a model is trained belong to train, those that say how it is served to serve;\n"
          "scalecalc train --help and scalecalc serve --help explain them.\n",
      .flags = compare_flags(),
      .run = run_compare,
      .modes = compare_modes(),
      .mode_of = compare_mode,
      .names = CatalogKind::kModel,
      .nothing_fits = "no system can do it",
      .interruptible = true,
      .draws = "time and cost of each system",
      .figures =
          "system chips layout_text step_time_s mfu run_time_s run_cost_usd request_time_s "
          "usd_per_million_output_tokens",
      .common = kCompareCommon};
  return kCompare;
}

}  // namespace scalecalc::cli
