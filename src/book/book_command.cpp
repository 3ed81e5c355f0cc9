// Runs `scalecalc book`: asks this program for the scaling book's worked numbers and shows the comparison.
#include <array>
#include <sstream>

#include "base/quoting.h"
#include "base/text.h"
#include "book/book.h"
#include "book/book_output.h"
#include "cli/commands.h"
#include "cli/flag_reader.h"
#include "cli/output_command.h"
#include "cli/run.h"

namespace scalecalc::cli {
namespace {

struct BookAsked {
  bool solve = false;
};

constexpr std::array kBookCommon{FlagGroup{"what is shown", "--solve"}};

constexpr std::array kBookFlags{
    toggle<&BookAsked::solve>("--solve", "the exercises with their answers"),
};

/// The built-in catalog alone answers: the book's figures do not depend on the user's files.
AskCommand ask_the_program(const Environment& env) {
  const auto remembered = std::make_shared<Remembered>();
  return [remembered, interrupted = env.interrupted](const std::string& command) -> BookReply {
    std::vector<std::string> words = shell_words(command);
    if (!words.empty()) words.erase(words.begin());
    words.emplace_back("--json");
    std::ostringstream out;
    std::ostringstream err;
    Environment inner{.out = out, .err = err, .interrupted = interrupted, .remembered = remembered};
    BookReply reply;
    reply.exit = run(words, inner);
    reply.document = std::move(out).str();
    reply.problems = std::move(err).str();
    return reply;
  };
}

ExitCode run_book(const Arguments& arguments, Environment& env) {
  FlagReader reader(arguments);
  BookAsked asked;
  reader.read(asked);
  reader.finish();
  const std::string place = join(arguments.positionals(), " ");  // a title need not be quoted
  return answer_with_output(arguments, env, [&](const Catalog&) {
    const std::vector<BookChapter> book = scaling_book();
    const BookView view{select_of_book(book, place), asked.solve};
    return with_query(book_output(book, view, ask_the_program(env), env.interrupted), arguments, {answered(asked)});
  });
}

}  // namespace

const Command& book_command() {
  static const Command kBook{
      .name = "book",
      .summary = "The scaling book's worked numbers and exercises, with commands, figures and errata.",
      .usage = "[CHAPTER|SECTION|TITLE|ID] [--solve]",
      .examples =
          "  scalecalc book 5.2\n"
          "  scalecalc book training\n"
          "  scalecalc book 4.9 question 2\n"
          "  scalecalc book 4 --solve\n",
      .notes = "Sections are numbered as they stand in the book, those with figures alone.\n",
      .flags = kBookFlags,
      .run = run_book,
      .interruptible = true,
      .figures = "id label value book",
      .common = kBookCommon};
  return kBook;
}

}  // namespace scalecalc::cli
