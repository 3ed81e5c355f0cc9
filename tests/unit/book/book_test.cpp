#include "book/book.h"

#include <gtest/gtest.h>

#include "config/yaml_reader.h"

namespace scalecalc {
namespace {

PrintedNumber printed(const std::string& text) { return {text, std::strtod(text.c_str(), nullptr), std::nullopt}; }

/// Less than one in the last digit that is printed, up or down: the book cuts off as often as it rounds.
TEST(BookFigures, AgreeWithinTheLastDigitPrinted) {
  EXPECT_TRUE(agrees(11.65, printed("11")));
  EXPECT_FALSE(agrees(12.1, printed("11")));
  EXPECT_TRUE(agrees(2.33e-5, printed("2.3e-05")));
  EXPECT_FALSE(agrees(2.45e-5, printed("2.3e-05")));
  EXPECT_TRUE(agrees(4377.8, printed("4377")));
  EXPECT_TRUE(agrees(406406, printed("400000")));
  EXPECT_FALSE(agrees(406406, printed("406000.0")) && agrees(407500, printed("406000.0")));
  EXPECT_TRUE(agrees(0.2162, printed("0.217")));
  EXPECT_TRUE(agrees(295.5, printed("295")));
  EXPECT_FALSE(agrees(297, printed("295")));
  EXPECT_TRUE(agrees(0, printed("0")));
  EXPECT_FALSE(agrees(0.0, printed("2")));
}

TEST(BookFigures, MayBeOffByAStatedShare) {
  PrintedNumber number = printed("64000");
  EXPECT_FALSE(agrees(65536, number));
  number.within = 0.03;
  EXPECT_TRUE(agrees(65536, number));
  EXPECT_FALSE(agrees(66000, number));
}

TEST(Book, HasEveryChapterWithNumbersAndNumbersItsSections) {
  const std::vector<BookChapter> book = scaling_book();
  std::vector<int> numbers;
  for (const BookChapter& chapter : book) {
    numbers.push_back(chapter.number);
    for (std::size_t i = 0; i < chapter.sections.size(); ++i) {
      EXPECT_EQ(chapter.sections[i].number, std::to_string(chapter.number) + "." + std::to_string(i + 1));
      for (const BookCase& item : chapter.sections[i].cases) {
        EXPECT_TRUE(item.id.starts_with("ch" + std::to_string(chapter.number) + "-")) << item.id;
        EXPECT_GT(item.question.size(), 5U) << item.id;
      }
    }
  }
  EXPECT_EQ(numbers, (std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12}));
}

std::string error_of(const std::vector<BookChapter>& book, const std::string& place) {
  try {
    select_of_book(book, place);
  } catch (const UserError& error) {
    return error.diagnostics().front().message + " / " + error.diagnostics().front().hint;
  }
  return "";
}

TEST(Book, IsAskedByChapterSectionOrId) {
  const std::vector<BookChapter> book = scaling_book();
  EXPECT_EQ(select_of_book(book, "").chapter, nullptr);
  EXPECT_EQ(select_of_book(book, "5").chapter->title, "Training");
  EXPECT_EQ(select_of_book(book, "5").section, nullptr);
  EXPECT_EQ(select_of_book(book, "5.2").section->title, "Fully-Sharded Data Parallelism (FSDP)");
  EXPECT_EQ(select_of_book(book, "ch5-fsdp-bcrit-v5p").only->id, "ch5-fsdp-bcrit-v5p");
  EXPECT_EQ(error_of(book, "5.99"), "chapter 5 has no section '5.99' / 5.1 to " + book[4].sections.back().number);
  EXPECT_EQ(error_of(book, "11").substr(0, 24), "the book has no '11' / c");
  EXPECT_EQ(error_of(book, "ch5-fsdp-bcrit-v5"),
            "the book has no 'ch5-fsdp-bcrit-v5' / did you mean 'ch5-fsdp-bcrit-v5p'?");
}

TEST(Book, RefusesACaseThatAsksOrExpectsNothing) {
  const std::string text =
      "chapter: 3\ntitle: t\npage: p\nsections:\n  - title: s\n    cases:\n"
      "      - {id: ch3-a, where: w, kind: quiz, question: q, expect: [{at: /x, value: 1}]}\n"
      "      - {id: ch3-b, where: w, kind: quizz, question: q, run: scalecalc hw, expect: []}\n"
      "      - {id: ch3-c, where: w, kind: quiz, question: q, run: scalecalc hw, expect: [{at: /x, value: one}]}\n";
  Problems problems;
  load_book_chapter(read_yaml(text, "book.yaml"), problems);
  try {
    problems.throw_if_any();
    FAIL();
  } catch (const UserError& error) {
    std::string all;
    for (const Diagnostic& found : error.diagnostics()) all += render(found);
    EXPECT_NE(all.find("book.yaml:7"), std::string::npos) << all;
    EXPECT_NE(all.find("neither the case nor this figure has a command line"), std::string::npos) << all;
    EXPECT_NE(all.find("quiz"), std::string::npos) << all;
    EXPECT_NE(all.find("a case expects something"), std::string::npos) << all;
    EXPECT_NE(all.find("'one' is not a number"), std::string::npos) << all;
  }
}

}  // namespace
}  // namespace scalecalc
