#include "book/book.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>

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
  EXPECT_EQ(select_of_book(book, "ch5-fsdp-bcrit-v5p").only.front()->id, "ch5-fsdp-bcrit-v5p");
  EXPECT_EQ(error_of(book, "5.99"), "chapter 5 has no section '5.99' / 5.1 to " + book[4].sections.back().number);
  EXPECT_EQ(error_of(book, "11").substr(0, 24), "the book has no '11' / c");
  EXPECT_EQ(error_of(book, "ch5-fsdp-bcrit-v5"),
            "the book has no 'ch5-fsdp-bcrit-v5' / did you mean 'ch5-fsdp-bcrit-v5p'?");
}

/// Whether the place is the whole of what the title stands for, or an error names it among others.
void expect_accepted(const std::vector<BookChapter>& book, const std::string& title, const BookChapter& chapter,
                     const BookSection* section, const BookCase* item, const std::string& name) {
  SCOPED_TRACE(title);
  BookSelection found;
  try {
    found = select_of_book(book, title);
  } catch (const UserError& error) {
    const Diagnostic& problem = error.diagnostics().front();
    EXPECT_NE(problem.message.find(" places of the book"), std::string::npos) << problem.message;
    const bool all_listed = problem.hint.find(" more") == std::string::npos;
    EXPECT_TRUE(!all_listed || problem.hint.find(name) != std::string::npos) << problem.hint;
    return;
  }
  // A chapter may be called as one of its sections is, and a section as one of its questions is.
  EXPECT_EQ(found.chapter, &chapter);
  EXPECT_TRUE(found.section == nullptr || found.section == section);
  EXPECT_TRUE(found.only.empty() || (item != nullptr && found.names(*item)));
}

TEST(Book, TakesEveryTitleThatItPrints) {
  const std::vector<BookChapter> book = scaling_book();
  const auto shouted = [](std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
    return text;
  };
  std::size_t exercises = 0;
  for (const BookChapter& chapter : book) {
    const std::string number = std::to_string(chapter.number);
    for (const std::string& title : {number, chapter.title, shouted(chapter.title), number + " " + chapter.title,
                                     "Chapter " + number + ": " + chapter.title}) {
      const BookSelection found = select_of_book(book, title);
      EXPECT_EQ(found.chapter, &chapter) << title;
      EXPECT_EQ(found.section, nullptr) << title;
    }
    for (const BookSection& section : chapter.sections) {
      EXPECT_EQ(select_of_book(book, section.number + " " + shouted(section.title)).section, &section);
      expect_accepted(book, section.title, chapter, &section, nullptr, section.number);
      for (const BookCase& item : section.cases) {
        EXPECT_EQ(select_of_book(book, item.id).only, std::vector<const BookCase*>{&item});
        expect_accepted(book, item.question, chapter, &section, &item, item.id);
        expect_accepted(book, section.number + ", " + item.where, chapter, &section, &item, item.id);
        if (item.exercise.empty()) continue;
        ++exercises;
        const std::string name = section.number + " " + item.exercise;
        const BookSelection found = select_of_book(book, shouted(name));
        EXPECT_EQ(found.section, &section) << name;
        EXPECT_TRUE(found.names(item)) << name;
        expect_accepted(book, item.exercise, chapter, &section, &item, name);
      }
    }
  }
  EXPECT_GT(exercises, 100U);
}

TEST(Book, TakesTheBeginningOfOneTitleAndListsSeveral) {
  const std::vector<BookChapter> book = scaling_book();
  EXPECT_EQ(select_of_book(book, "sharded mat").chapter->number, 3);
  EXPECT_EQ(select_of_book(book, "training llama").chapter->number, 6);
  // "Training" is a whole title; "train" begins two chapters' and more.
  EXPECT_EQ(select_of_book(book, "training").chapter->number, 5);
  const std::string several = error_of(book, "train");
  EXPECT_NE(several.find("5 (Training)"), std::string::npos) << several;
  EXPECT_NE(several.find("6 (Training LLaMA 3 on TPUs)"), std::string::npos) << several;
  EXPECT_EQ(error_of(book, "no such title").substr(0, 33), "the book has no 'no such title' /");
}

TEST(Book, HasASentenceForEveryExercise) {
  for (const BookChapter& chapter : scaling_book()) {
    for (const BookSection& section : chapter.sections) {
      for (const BookCase& item : section.cases) {
        if (item.exercise.empty()) continue;
        EXPECT_GE(std::count(item.note.begin(), item.note.end(), ' '), 4) << item.id << ": " << item.note;
      }
    }
  }
}

TEST(Book, RefusesACaseThatAsksOrExpectsNothing) {
  const std::string text =
      "chapter: 3\ntitle: t\npage: p\nsections:\n  - title: s\n    cases:\n"
      "      - {id: ch3-a, where: w, kind: quiz, question: q, expect: [{at: /x, value: 1}]}\n"
      "      - {id: ch3-b, where: w, kind: quizz, question: q, run: scalecalc hw, expect: []}\n"
      "      - {id: ch3-d, where: w, exercise: Question 1, kind: quiz, question: q, run: scalecalc hw, "
      "expect: [{at: /x, value: 1}]}\n"
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
    EXPECT_NE(all.find("an exercise says in its note"), std::string::npos) << all;
    EXPECT_NE(all.find("'one' is not a number"), std::string::npos) << all;
  }
}

}  // namespace
}  // namespace scalecalc
