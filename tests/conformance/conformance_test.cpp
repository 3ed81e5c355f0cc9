// Asks every case of configs/book through the program's entry point and compares the JSON it prints with the exact
// figures, and these with what the book prints.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "base/diagnostic.h"
#include "base/quoting.h"
#include "book/book.h"
#include "book/book_output.h"
#include "cli/run.h"

namespace scalecalc::conformance {
namespace {

struct Case {
  int chapter = 0;
  BookCase item;
};

void PrintTo(const Case& item, std::ostream* out) { *out << "chapter " << item.chapter << ", " << item.item.where; }

BookReply ask(const std::string& command) {
  std::vector<std::string> words = shell_words(command);
  EXPECT_FALSE(words.empty());
  EXPECT_EQ(words.front(), "scalecalc");
  words.erase(words.begin());
  words.emplace_back("--json");
  std::ostringstream out;
  std::ostringstream err;
  cli::Environment env{.out = out, .err = err};
  BookReply reply;
  reply.exit = cli::run(words, env);
  reply.problems = err.str();
  reply.document = out.str();
  return reply;
}

class Book : public testing::TestWithParam<Case> {};

TEST_P(Book, Case) {
  const BookCase& item = GetParam().item;
  std::map<std::string, BookReply> replies;
  AnswerReader reader;
  for (const BookFigure& expected : item.figures) {
    SCOPED_TRACE("$ " + expected.run);
    if (!replies.contains(expected.run)) replies[expected.run] = ask(expected.run);
    const BookReply& reply = replies[expected.run];
    ASSERT_EQ(reply.exit, item.exit) << reply.problems;
    const auto found = reader.find(reply.document, expected.at);
    ASSERT_TRUE(found) << expected.at << " is no figure of the answer";
    EXPECT_LE(std::fabs(found->value - expected.value), expected.tolerance * std::fabs(expected.value))
        << expected.at << " is " << found->value << ", expected " << expected.value;
    if (!expected.book) continue;
    EXPECT_TRUE(agrees(found->value, *expected.book) || !item.disagreement.empty())
        << expected.at << " is " << found->value << ", the book prints " << expected.book->text
        << ", and no disagreement is named";
  }
}

std::vector<Case> cases() {
  std::vector<Case> out;
  try {
    for (const BookChapter& chapter : scaling_book()) {
      for (const BookSection& section : chapter.sections) {
        for (const BookCase& item : section.cases) out.push_back({chapter.number, item});
      }
    }
  } catch (const UserError& error) {
    std::string text;
    for (const Diagnostic& problem : error.diagnostics()) text += render(problem);
    throw std::runtime_error(text);
  }
  return out;
}

std::string test_name(const testing::TestParamInfo<Case>& info) {
  std::string out = "chapter" + std::string(info.param.chapter < 10 ? "0" : "") + std::to_string(info.param.chapter);
  out += "_" + info.param.item.id;
  std::replace_if(
      out.begin(), out.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return out;
}

INSTANTIATE_TEST_SUITE_P(Conformance, Book, testing::ValuesIn(cases()), test_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Book);

}  // namespace
}  // namespace scalecalc::conformance
