// `scalecalc serve`: flags to a question, the answer to the targets asked for.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/commands.h"
#include "cli/output_command.h"
#include "cli/run_options.h"
#include "cli/serve_options.h"
#include "report/answer_plots.h"
#include "report/serve_output.h"
#include "report/traffic_output.h"

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

ExitCode run_serve(const Arguments& arguments, Environment& env) {
  return answer_with_output(arguments, env, [&](const Catalog& catalog) {
    const ServeAsked asked = serve_asked(arguments);
    const ServeAnswer answer = serve_answer(asked.question, catalog, env.interrupted);
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
    return with_query(std::move(output), arguments, {answered(q), answered(q.power), answered(asked.traffic)});
  });
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
      .flags = serve_flags(),
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
