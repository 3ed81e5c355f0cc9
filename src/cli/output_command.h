// What the small commands share: the way from an Output to the targets asked for. docs/howto/add-command.md shows a
// whole command.
#pragma once

#include <chrono>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "batch/study.h"
#include "cli/environment.h"
#include "cli/log.h"
#include "cli/options.h"
#include "cli/outputs.h"
#include "cli/session.h"
#include "cli/shared_flags.h"
#include "config/catalog.h"
#include "report/output.h"
#include "report/render.h"
#include "spec/hardware_spec.h"
#include "spec/load.h"

namespace scalecalc::cli {

/// Runs from when it is made.
class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Opens the outputs, calls `answer`, writes what it returns in every format asked for, says warnings on standard
/// error when nobody reads a table.
ExitCode answer_with_output(const Arguments& arguments, Environment& env,
                            const std::function<Output(const Catalog&)>& answer);

/// A question that was answered, by its kind; nullptr if there was none of that kind.
struct Answered {
  const void* kind = nullptr;
  const void* question = nullptr;
};
template <class Question>
Answered answered(const Question& question) {
  return {&FlagReader::kTag<Question>, &question};
}
template <class Question>
Answered answered(const std::optional<Question>& question) {
  return {&FlagReader::kTag<Question>, question ? &*question : nullptr};
}

/// "batch_tokens", "serving.slo_tpot_s": the key a flag gives itself, else its name and unit.
std::string query_key(const Flag& flag);
/// The question as Arguments::of() takes it, without the flags that say how the answer is given.
StudyQuestion question_asked(const Arguments& arguments);

/// The output with its question and a member of its query for each flag of the mode or of these questions, behind its
/// own figures, which no flag says; one of a flag's key stands for the flag. Values are those of the questions'
/// members, defaults filled in; of a flag that goes into none of them what was typed.
Output with_query(Output output, const Arguments& arguments, std::initializer_list<Answered> questions = {});

/// What of a text the flags ask for.
AskedText asked_text(const Session& session, bool explain);
/// UserError if the flags choose a part of a text, and no text is asked for.
void refuse_parts_of_files(const Session& session, const OutputTargets& outputs);
/// The formats other than text are complete, whatever of it is read.
std::string render_output(const Output& output, OutputFormat format, TextOptions text, const AskedText& part);
/// Whether some output is a page: pictures that only pages have need not be made otherwise.
bool asks_for_page(const Arguments& arguments);
/// If there is a page among the outputs and the program cannot draw, says so.
void note_no_charts(bool page, Environment& env);
/// Writes an output in every format asked for. UserError before anything is written if the text has no such part.
void write_formats(const Output& output, const Session& session, OutputTargets& outputs, bool explain,
                   Environment& env);

/// What a table would have said, for those who read something else.
void say_warnings(Log& log, const Output& output);
/// Says in every form of the answer which of the user's files were read in the place of the catalog's, and names their
/// directories in the question, which would be another one without them.
void note_replaced(Output& output, const Catalog& catalog, const Session& session);
/// The same on standard error, for a command that writes a file of its own.
void say_replaced(const Catalog& catalog, const Session& session, Environment& env);

/// Interrupted, nothing fits, a check failed (each is said), or answered.
ExitCode status_of(const Output& output, const Session& session, Environment& env);

/// Writes an output to the targets, its warnings to standard error when nobody reads a table. status_of() it.
ExitCode write_output(const Output& output, const Session& session, OutputTargets& outputs, bool explain, Log& log,
                      Environment& env);

/// The hardware of --hw with --set hw.KEY=VALUE applied. UserError if --hw is missing, or, unless allowed, if the file
/// leaves figures unpublished.
HardwareSpec hardware_asked_for(const Arguments& arguments, const Catalog& catalog,
                                Unpublished unpublished = Unpublished::kRefused);

/// One assumption for each --set, so that no answer hides what was changed.
void note_sets(const Arguments& arguments, std::vector<Assumption>& assumptions);

}  // namespace scalecalc::cli
