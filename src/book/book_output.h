// The answer of `scalecalc book` (docs/schema/book.schema.json).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/stop.h"
#include "book/book.h"
#include "report/output.h"

namespace scalecalc {

/// What a command line with --json printed.
struct BookReply {
  int exit = 0;
  std::string document;
  std::string problems;
};
using AskCommand = std::function<BookReply(const std::string& command)>;

/// A figure in the document of an answer; booleans are 1 and 0.
struct FoundFigure {
  double value = 0;
  bool is_flag = false;
  std::string unit;  ///< in words, where the document says it beside the figure
};
/// Of `/points/0/time_s`, or `/bounds/name=fsdp_limit/value`; nothing if no number stands there. Keeps the last
/// document.
class AnswerReader {
 public:
  AnswerReader();
  ~AnswerReader();
  AnswerReader(const AnswerReader&) = delete;
  AnswerReader& operator=(const AnswerReader&) = delete;
  std::optional<FoundFigure> find(const std::string& document, const std::string& pointer);

 private:
  struct Parsed;
  std::unique_ptr<Parsed> last_;
};

/// "time" in seconds of /points/0/time_s.
struct FigureName {
  std::string label;
  Format format = Format::kNumber;
};
FigureName name_of_figure(const std::string& pointer);

struct BookView {
  BookSelection selected;
  bool solve = false;  ///< the exercises with their answers
};
/// Asks what is to be shown. UserError if a command answers otherwise than it should; Stopped if asked to end.
Output book_output(const std::vector<BookChapter>& book, const BookView& view, const AskCommand& ask, const Stop& stop);

}  // namespace scalecalc
