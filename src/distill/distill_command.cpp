// Runs `scalecalc distill`: reads its flags, asks its question and writes the answer.
#include <array>

#include "cli/commands.h"
#include "cli/output_command.h"
#include "distill/distill_output.h"
#include "jobs/job_options.h"

namespace scalecalc::cli {
namespace {

ExitCode run_distill(const Arguments& arguments, Environment& env) {
  return answer_with_output(arguments, env, [&](const Catalog& catalog) {
    DistillQuestion question = distill_question(arguments);
    const DistillAnswer found = distill_answer(question, catalog, env.interrupted);
    TrainQuestion& student = question.student;
    if (!found.plans.empty()) student = understood(student, found.plans.front().student->resolved->workload);
    return with_query(distill_output(found, arguments.has("--explain")), arguments,
                      {answered(question), answered(student), answered(question.teacher)});
  });
}

constexpr std::array kDistillCommon{
    FlagGroup{"teacher and student",
              "--teacher --loss --teacher-on --teacher-weights --epochs --tokens --prompt --generate"},
    FlagGroup{"the machine", "--hw --chips --price --stack --fix --set"}};

}  // namespace

const Command& distill_command() {
  static const Command kDistill{
      .name = "distill",
      .summary = "Knowledge distillation: teacher's passes and student's training on one budget.",
      .usage = "STUDENT --teacher TEACHER --hw HW --chips N [flags]",
      .examples =
          "  scalecalc distill llama3.1-8b --teacher llama3.1-70b --hw h100-sxm --chips 256 --tokens 100B\n"
          "  scalecalc distill qwen3-1.7b --teacher llama3.1-70b --hw h200 --chips 64 --tokens 10B \\\n"
          "      --loss sequence --prompt 512 --generate 2048\n",
      .notes = "--fix, --max and --stack are of the student; the teacher only passes forward.\n",
      .flags = distill_flags(),
      .run = run_distill,
      .modes = distill_modes(),
      .mode_of = distill_mode,
      .names = CatalogKind::kModel,
      .nothing_fits = "nothing fits",
      .interruptible = true,
      .draws = "a step of the best plan part by part, and steps by where the teacher is",
      .figures = "teacher_on student_layout step_time_s idle_share bound_by",
      .common = kDistillCommon};
  return kDistill;
}

}  // namespace scalecalc::cli
