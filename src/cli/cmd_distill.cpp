// `scalecalc distill`: a student and its teacher on one budget.
#include "cli/commands.h"
#include "cli/job_options.h"
#include "cli/sheet_command.h"
#include "report/distill_sheet.h"

namespace scalecalc::cli {
namespace {

ExitCode run_distill(const Arguments& arguments, Environment& env) {
  return answer_with_sheet(arguments, env, [&](const Catalog& catalog) {
    return distill_sheet(distill_answer(distill_question(arguments), catalog), arguments.has("--explain"));
  });
}

constexpr std::string_view kExamples =
    "  scalecalc distill llama3.1-8b --teacher llama3.1-70b --hw h100-sxm --chips 256 --tokens 100B\n"
    "  scalecalc distill qwen3-1.7b --teacher llama3.1-70b --hw h200 --chips 64 --tokens 10B \\\n"
    "      --loss sequence --prompt 512 --generate 2048\n";

constexpr std::string_view kNotes =
    "--fix, --max and --stack are of the student; the teacher only passes forward.\n"
    "\n"
    "exit status: 0 answered, 2 the question is wrong, 3 nothing fits, 70 a bug of ours,\n"
    "             74 the output could not be written\n";

}  // namespace

const Command& distill_command() {
  static const Command kDistill{"distill",
                                "Knowledge distillation: teacher's passes and student's training on one budget.",
                                "STUDENT --teacher TEACHER --hw HW --chips N [flags]",
                                kExamples,
                                kNotes,
                                distill_flags(),
                                run_distill};
  return kDistill;
}

}  // namespace scalecalc::cli
