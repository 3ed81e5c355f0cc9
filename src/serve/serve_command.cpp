// Runs `scalecalc serve`: reads its flags, asks its question and writes the answer.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/commands.h"
#include "cli/output_command.h"
#include "economics/run_options.h"
#include "launch/launch_files_options.h"
#include "serve/serve_options.h"
#include "serve/serve_output.h"
#include "serve/serve_plots_output.h"
#include "serve/traffic_output.h"

namespace scalecalc::cli {
namespace {

/// Energy without the watts of any chip.
void refuse_power_flags(const Arguments& arguments, const ServeAnswer& answer) {
  const auto powered = [](const ServeSystem& system) { return system.hw->tdp.has_value(); };
  if (std::any_of(answer.systems.begin(), answer.systems.end(), powered)) return;
  FlagReader reader(arguments, serve_flags());
  for (const Flag& flag : power_flags()) {
    if (!arguments.has(flag.name)) continue;
    reader.problem(fmt::format("{} has no meaning: {} publishes no power", flag.name, answer.systems.front().hw->name),
                   "give the watts of a chip: --set hw.power.tdp=450W");
  }
  reader.finish();
}

Output serve_answer_output(const Arguments& arguments, const Catalog& catalog, const Environment& env,
                           const LaunchInput* launched, const ExportAsked* exporting, std::string& launch_text) {
  const ServeAsked asked = serve_asked(arguments);
  ServeAnswer answer = serve_answer(asked.question, catalog, env.interrupted);
  if (launched != nullptr) launched->note(answer.assumptions);
  refuse_power_flags(arguments, answer);
  Output output = serve_output(answer, arguments.has("--explain"));
  if (asks_for_page(arguments)) output.page_plots = serve_page_plots(answer);
  if (!asked.mix.is_fixed())
    output.notes.push_back("the points are of the mean lengths; --rate and --concurrency take each request's");
  for (const std::string& note : asked.mix.notes) output.notes.push_back(note);
  if (asked.traffic && answer.best) {
    try {
      add_traffic(output, answer, *asked.traffic, answer_traffic(answer, *asked.traffic, env.interrupted));
    } catch (const Stopped&) {
      output.warnings.emplace_back("interrupted before the requests were served");
    }
  }
  const ServeQuestion& q = asked.question;
  output = with_query(std::move(output), arguments, {answered(q), answered(q.power), answered(asked.traffic)});
  if (exporting != nullptr && answer.best && !should_stop(env.interrupted)) {
    launch_text = exported(*exporting, catalog, answer, *answer.best, output.question).text;
  }
  return output;
}

ExitCode run_serve(const Arguments& typed, Environment& env) {
  if (!typed.has("--export") && !typed.has("--from")) {
    return answer_with_output(typed, env, [&](const Catalog& catalog) {
      std::string none;
      return serve_answer_output(typed, catalog, env, nullptr, nullptr, none);
    });
  }
  const Session session = read_session(typed, env);
  const Catalog places(session.config_directories, session.remembered);
  const auto exporting = export_asked(typed, LaunchJob::kServing, places);
  Arguments arguments = typed;
  const std::optional<LaunchInput> launched = take_serving_file(arguments, places);
  if (exporting) plan_for_framework(*exporting, arguments);
  std::string text;
  const auto answered_with = [&](const Catalog& catalog) {
    return serve_answer_output(arguments, catalog, env, launched ? &*launched : nullptr,
                               exporting ? &*exporting : nullptr, text);
  };
  if (!exporting || !exporting->path.empty() || arguments.has("--output")) {
    const ExitCode status = answer_with_output(arguments, env, answered_with);
    if (exporting && !text.empty()) {
      exporting->file ? exporting->file->commit(text) : write_result(env.out, text);
    }
    return status;
  }
  OutputTargets outputs(arguments);
  refuse_parts_of_files(session, outputs);
  Output output = answered_with(places);
  note_replaced(output, places, session);
  if (should_stop(env.interrupted)) output.complete = false;
  Log log(env.err, session.verbosity, wants_colour(env, session.color, env.err_is_tty));
  if (text.empty()) return write_output(output, session, outputs, arguments.has("--explain"), log, env);
  env.begin_answer();
  say_warnings(log, output);
  write_result(env.out, text);
  return status_of(output, session, env);
}

std::span<const Flag> serve_command_flags() {
  static const std::vector<Flag> kAll = [] {
    std::vector<Flag> out(serve_flags().begin(), serve_flags().end());
    out.push_back(text("--from", "FILE",
                       "the layout and the limits of a launch file: a command of vLLM or SGLang, a configuration of "
                       "TensorRT-LLM, pools of Dynamo or llm-d",
                       "serve.sh"));
    const auto more = export_flags();
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }();
  return kAll;
}

constexpr std::array kServeCommon{
    FlagGroup{"the requests", "--prompt --generate --rate --concurrency --slo-ttft --slo-tpot --batch"},
    FlagGroup{"the server", "--hw --chips --weights --kv --engine --fix --disaggregate --speculative --price --set"}};

}  // namespace

const Command& serve_command() {
  static const Command kServe{
      .name = "serve",
      .summary = "Latency, throughput and dollars per token of a model server, for any layout.",
      .usage = "MODEL --hw HW [--chips N] [flags]",
      .examples =
          "  scalecalc serve llama3-70b --hw h100-sxm --chips 8 --prompt 2048 --generate 256\n"
          "  scalecalc serve deepseek-v3 --hw h200 --chips 16 --slo-ttft 2s --slo-tpot 50ms\n"
          "  scalecalc serve llama3-70b --hw h100-sxm,tpu-v6e,mi300x --objective cost\n"
          "  scalecalc serve llama3-8b --hw h100-sxm --prompt 256..4096 --generate 300 --rate 20 --slo-ttft 1s\n",
      .notes =
          "A batch is the sequences in flight over all chips. Times are those of steady state; TTFT has no\n"
          "waiting for a slot in it.\n",
      .flags = serve_command_flags(),
      .run = run_serve,
      .names = CatalogKind::kModel,
      .nothing_fits = "nothing fits or meets the limits",
      .interruptible = true,
      .draws = "tokens/s per chip over tokens/s per user",
      .figures = "layout_text chips batch ttft_s tpot_s tokens_per_s_per_chip usd_per_million_output_tokens bound_by",
      .common = kServeCommon};
  return kServe;
}

}  // namespace scalecalc::cli
