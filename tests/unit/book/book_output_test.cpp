#include "book/book_output.h"

#include <gtest/gtest.h>

#include "base/diagnostic.h"
#include "report/render.h"

namespace scalecalc {
namespace {

TEST(BookFigureNames, AreTheEndOfThePointer) {
  const auto name = [](const char* at) { return name_of_figure(at).label; };
  EXPECT_EQ(name("/points/0/time_s"), "time");
  EXPECT_EQ(name_of_figure("/points/0/time_s").format, Format::kSeconds);
  EXPECT_EQ(name("/points/1/time_s"), "points 2 time");
  EXPECT_EQ(name("/bounds/name=fsdp_limit/value"), "fsdp limit");
  EXPECT_EQ(name("/machine/critical_intensity_flops_per_byte/hbm"), "machine critical intensity hbm");
  EXPECT_EQ(name("/parameters/total"), "parameters total");
  EXPECT_EQ(name("/critical_batch"), "critical batch");
  EXPECT_EQ(name_of_figure("/chips/0/topology/memory_bytes").format, Format::kBytes);
}

TEST(BookFigureNames, AreFoundInAnAnswer) {
  AnswerReader reader;
  const std::string document = R"({"points": [{"time_s": 2.5, "fits": true, "name": "x"}],
    "bounds": [{"name": "a", "value": 1, "unit": "chips"}, {"name": "b", "value": 7, "unit": "s"}]})";
  EXPECT_EQ(reader.find(document, "/points/0/time_s")->value, 2.5);
  EXPECT_EQ(reader.find(document, "/points/0/fits")->value, 1);
  EXPECT_TRUE(reader.find(document, "/points/0/fits")->is_flag);
  EXPECT_EQ(reader.find(document, "/bounds/name=b/value")->value, 7);
  EXPECT_EQ(reader.find(document, "/bounds/name=b/value")->unit, "s");
  EXPECT_FALSE(reader.find(document, "/bounds/name=c/value"));
  EXPECT_FALSE(reader.find(document, "/points/1/time_s"));
  EXPECT_FALSE(reader.find(document, "/points/x/time_s"));
  EXPECT_FALSE(reader.find(document, "/points/0/name"));
  EXPECT_FALSE(reader.find("no document", "/points/0/time_s"));
}

BookChapter chapter() {
  const auto figure = [](double value, const char* text) {
    return BookFigure{"scalecalc roofline flops 1", "/time_s", value, 1e-6,
                      PrintedNumber{text, std::strtod(text, nullptr), {}}};
  };
  BookCase worked{.id = "ch3-worked", .where = "a section", .kind = "worked", .question = "How long?"};
  worked.figures = {figure(2, "2.0")};
  BookCase wrong = worked;
  wrong.id = "ch3-wrong";
  wrong.disagreement = "it divides by three";
  wrong.figures = {figure(2, "3.2")};
  BookCase exercise = worked;
  exercise.id = "ch3-exercise";
  exercise.exercise = "Question 1";
  exercise.question = "How long does it take?";
  return {3, "Sharding", "page", {{"3.1", "A section", {worked, wrong, exercise}}}};
}

std::string text_of_view(const BookView& view, const std::vector<BookChapter>& book) {
  int asked = 0;
  const AskCommand ask = [&](const std::string&) {
    ++asked;
    return BookReply{0, R"({"time_s": 2})", ""};
  };
  const Output out = book_output(book, view, ask, {});
  EXPECT_LE(asked, 1) << "a command that several figures share is asked once";
  return render_table(output_report(out, false), TextOptions{});
}

TEST(BookOutput, ExercisesStayQuestionsUntilTheyAreToBeSolved) {
  const std::vector<BookChapter> book{chapter()};
  const BookView section{{&book[0], &book[0].sections[0], {}}, false};
  const std::string text = text_of_view(section, book);
  EXPECT_NE(text.find("2.00 s  2.00 s    yes"), std::string::npos) << text;
  EXPECT_NE(text.find("erratum: it divides by three"), std::string::npos) << text;
  EXPECT_NE(text.find("3.20 s    no"), std::string::npos) << text;
  EXPECT_NE(text.find("Question 1"), std::string::npos) << text;
  EXPECT_NE(text.find("--solve"), std::string::npos) << text;
  const std::string solved = text_of_view({section.selected, true}, book);
  EXPECT_EQ(solved.find("--solve"), std::string::npos) << solved;
  EXPECT_NE(solved.find("How long does it take?"), std::string::npos) << solved;
  // One that is asked for by name is answered.
  const BookView one{{&book[0], &book[0].sections[0], {&book[0].sections[0].cases[2]}}, false};
  EXPECT_NE(text_of_view(one, book).find("2.00 s"), std::string::npos);
}

/// What a student should know of a command stands once below the answers, with figures of the chips asked about.
TEST(BookOutput, SaysHowFarTheVendorsChipIsFromTheBooks) {
  std::vector<BookChapter> book{chapter()};
  BookFigure& figure = book[0].sections[0].cases[0].figures[0];
  figure.run = "scalecalc roofline flops 1 --hw book/tpu-v9";
  figure.label = "how long it takes";
  const AskCommand ask = [&](const std::string& command) {
    if (command != "scalecalc hw book/tpu-v9 tpu-v9") return BookReply{0, R"({"time_s": 2})", ""};
    return BookReply{0, R"({"chips": [{"memory_bytes": 16e9, "bandwidth_bytes_per_s": {"ici_one_way": 45e9}},
                                      {"memory_bytes": 17e9, "bandwidth_bytes_per_s": {"ici_one_way": 54e9}}]})",
                     ""};
  };
  const Output out = book_output(book, {{&book[0], &book[0].sections[0], {}}, true}, ask, {});
  const std::string text = render_table(output_report(out, false), TextOptions{});
  EXPECT_NE(text.find("how long it takes  2.00 s"), std::string::npos) << text;
  EXPECT_NE(text.find("--explain after a command shows the formula"), std::string::npos) << text;
  EXPECT_NE(text.find("book/tpu-v9 has the book's rounded rates, tpu-v9 the vendor's: a link one way 45.0 GB/s against "
                      "54.0 GB/s (+20"),
            std::string::npos)
      << text;
}

TEST(BookOutput, ACommandThatFailsOrGivesNoSuchFigureIsSaid) {
  const std::vector<BookChapter> book{chapter()};
  const BookView section{{&book[0], &book[0].sections[0], {}}, false};
  const auto error = [&](const BookReply& reply) -> std::string {
    try {
      book_output(book, section, [&](const std::string&) { return reply; }, {});
    } catch (const UserError& e) {
      return e.diagnostics().front().message;
    }
    return "";
  };
  EXPECT_EQ(error({2, "{}", "error: no such chip"}),
            "'scalecalc roofline flops 1' ends with exit status 2: error: no such chip");
  EXPECT_EQ(error({0, "{}", ""}), "'scalecalc roofline flops 1' gives no /time_s");
  EXPECT_THROW(book_output(
                   book, section, [](const std::string&) { return BookReply{}; }, [] { return true; }),
               Stopped);
}

}  // namespace
}  // namespace scalecalc
