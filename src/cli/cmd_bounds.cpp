// `scalecalc bounds`: flags to a question, the rules to the outputs asked for.
#include "cli/bounds_options.h"
#include "cli/commands.h"
#include "cli/sheet_command.h"
#include "report/bounds_sheet.h"

namespace scalecalc::cli {
namespace {

ExitCode run_bounds(const Arguments& arguments, Environment& env) {
  return answer_with_sheet(arguments, env, [&](const Catalog& catalog) {
    const BoundsQuestion question = bounds_question(arguments, catalog);
    BoundsAnswer answer = bounds(question);
    answer.assumptions.insert(answer.assumptions.begin(), question.read.begin(), question.read.end());
    note_sets(arguments, answer.assumptions);
    return bounds_sheet(question, answer);
  });
}

constexpr std::string_view kExamples =
    "  scalecalc bounds llama3-70b --hw tpu-v5p --chips 8960\n"
    "  scalecalc bounds 70B --hw book/h100 --for training\n";

constexpr std::string_view kNotes =
    "A rule that needs more than was said is left out and named below the tables, with what it needs.\n"
    "\n"
    "exit status: 0 answered, 2 the question is wrong, 70 a bug of ours,\n"
    "             74 the output could not be written\n";

}  // namespace

const Command& bounds_command() {
  static const Command kBounds{"bounds",
                               "The rules of thumb with this model's and this chip's numbers in them.",
                               "MODEL --hw HW [flags]",
                               kExamples,
                               kNotes,
                               bounds_flags(),
                               run_bounds};
  return kBounds;
}

}  // namespace scalecalc::cli
