// `scalecalc serve`: flags to a question, the answer to the outputs asked for.
#include "cli/commands.h"
#include "cli/serve_options.h"
#include "cli/sheet_command.h"
#include "report/serve_sheet.h"

namespace scalecalc::cli {
namespace {

ExitCode run_serve(const Arguments& arguments, Environment& env) {
  return answer_with_sheet(arguments, env, [&](const Catalog& catalog) {
    return serve_sheet(serve_answer(serve_question(arguments), catalog), arguments.has("--explain"));
  });
}

constexpr std::string_view kExamples =
    "  scalecalc serve llama3-70b --hw h100-sxm --chips 8 --prompt 2048 --generate 256\n"
    "  scalecalc serve deepseek-v3 --hw h200 --chips 16 --slo-ttft 2s --slo-tpot 50ms\n"
    "  scalecalc serve llama3-70b --hw h100-sxm,tpu-v6e,mi300x --objective cost\n";

constexpr std::string_view kNotes =
    "A batch is the sequences in flight over all chips. Times are those of steady state; TTFT has no\n"
    "waiting for a slot in it.\n"
    "\n"
    "exit status: 0 answered, 2 the question is wrong, 3 nothing fits or meets the limits,\n"
    "             70 a bug of ours, 74 the output could not be written\n";

}  // namespace

const Command& serve_command() {
  static const Command kServe{"serve",
                              "Latency, throughput and dollars per token of a model server, for any layout.",
                              "MODEL --hw HW [--chips N] [flags]",
                              kExamples,
                              kNotes,
                              serve_flags(),
                              run_serve};
  return kServe;
}

}  // namespace scalecalc::cli
