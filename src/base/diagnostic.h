// What is wrong with a user's question: where, what was found, what was expected, the nearest valid name.
#pragma once

#include <cstddef>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "base/shared_text.h"

namespace scalecalc {

/// Problems told of one file: more help nobody.
inline constexpr std::size_t kMostProblems = 20;

/// A place in a file, or on the command line (file "<command line>"). Lines and columns count from 1; 0 = none. A
/// document has thousands, which share the texts.
struct SourceSpan {
  SharedText file;
  int line = 0;
  int column = 0;
  int length = 1;        ///< characters to underline
  SharedText line_text;  ///< the whole source line, for the caret display
};

struct Diagnostic {
  SourceSpan where;
  std::string message;  ///< what was found and what was expected, one sentence without a final stop
  std::string hint;     ///< the next thing to try; may be empty
};

/// Exit statuses of the command-line contract.
enum class ExitCode : int {
  kAnswered = 0,
  kCheckFailed = 1,
  kQuestionWrong = 2,
  kNothingFits = 3,
  kBug = 70,
  kOutputFailed = 74,
  kInterrupted = 130,
};

/// The question cannot be answered as asked. Carries every problem found in one document, in file order.
class UserError : public std::exception {
 public:
  explicit UserError(std::vector<Diagnostic> diagnostics, ExitCode code = ExitCode::kQuestionWrong);
  /// One problem with no place in a file, such as a bad flag.
  UserError(std::string message, std::string hint, ExitCode code = ExitCode::kQuestionWrong);

  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }
  ExitCode exit_code() const { return code_; }
  const char* what() const noexcept override;

 private:
  std::vector<Diagnostic> diagnostics_;
  ExitCode code_;
};

/// Human form of one diagnostic, ending with a newline:
///   file:line:column: error: message
///     14 |   bandwidth: 2.8 TBs
///        |              ^~~~~~~
///   hint: ...
std::string render(const Diagnostic& diagnostic);

}  // namespace scalecalc
