#include "report/people_tables.h"

#include <gtest/gtest.h>

#include "base/diagnostic.h"
#include "report/render.h"

namespace scalecalc {
namespace {

Record measured_row(const char* name, double time, double chips) {
  return {{text_figure("name", "name", name), number_figure("time_s", "time", Format::kSeconds, time, 1),
           number_figure("chips", "chips", Format::kInteger, chips, 2), datum("hidden", 2 * time),
           object_figure("layout", Record{{count_figure("tp", 4)}})}};
}

Block measured_rows() {
  return {.key = "rows",
          .title = "Rows",
          .records = {measured_row("a", 1, 8), measured_row("b", 2, 8), measured_row("c", 3, 8)}};
}

std::string brief_text(const Output& output, AskedText asked = {.depth = Depth::kBrief}) {
  return render_table(output_report(output, asked), {});
}

TEST(PeopleTables, WhatIsEqualInEveryRowMovesIntoTheHeading) {
  Output output{.command = "x", .title = "T"};
  output.blocks = {measured_rows()};
  output.blocks[0].brief_rows = 2;
  EXPECT_EQ(brief_text(output),
            "T\n\nRows (2 of 3, all with --verbose; all chips 8)\n  name    time\n  a     1.00 s\n  b     2.00 s\n");
  EXPECT_EQ(brief_text(output, {}),
            "T\n\nRows\n  name    time  chips\n  a     1.00 s      8\n  b     2.00 s      8\n  c     3.00 s      8\n");
}

TEST(PeopleTables, PartsThatEveryRowHasMoveIntoTheHeading) {
  Table table{.columns = {{"#", "rank"}, {"recipe", "recipe", Format::kText, 5}},
              .rows = {{{Cell(1.0), Cell(std::string("mb 1, remat none, zero 1"))}},
                       {{Cell(2.0), Cell(std::string("mb 2, remat none, zero 2"))}}}};
  EXPECT_EQ(fold_equal(table), "remat none");
  EXPECT_EQ(table.rows[0].cells[1], Cell(std::string("mb 1, zero 1")));
  Table bare{
      .columns = {{"stage", "stage"}, {"holds", "holds", Format::kText, 5}},
      .rows = {{{Cell(0.0), Cell(std::string("12 layers, head"))}}, {{Cell(1.0), Cell(std::string("12 layers"))}}}};
  EXPECT_EQ(fold_equal(bare), "") << "a row would be left without a word";
  EXPECT_EQ(bare.rows[0].cells[1], Cell(std::string("12 layers, head")));
}

TEST(PeopleTables, ARowMayBeOfTheWholeTableAlone) {
  Block block = measured_rows();
  block.brief_rows = 2;
  block.records[0].brief = false;
  const Block brief = brief_block(block);
  ASSERT_EQ(brief.records.size(), 2U);
  EXPECT_EQ(std::get<std::string>(brief.records[0].figures[0].value), "b");
}

TEST(PeopleTables, KeysOfABriefObjectAreWholeOrEndInADot) {
  Block block{.is_list = false,
              .records = {{{datum("time_s", 1.0), datum("time_s.a", 2.0), datum("time", 3.0), datum("b.c", 4.0)}}},
              .brief_keys = {"time", "b."}};
  const Block brief = brief_block(block);
  ASSERT_EQ(brief.records[0].figures.size(), 2U);
  EXPECT_EQ(brief.records[0].figures[0].key, "time");
  EXPECT_EQ(brief.records[0].figures[1].key, "b.c");
}

TEST(PeopleTables, ColumnsAreFoundByPathAndByColumn) {
  const Table table = chosen_table(measured_rows(), {"layout.tp", "name", "hidden"});
  ASSERT_EQ(table.columns.size(), 3U);
  EXPECT_EQ(table.columns[0].title, "layout.tp");
  EXPECT_EQ(table.columns[1].title, "name");
  EXPECT_EQ(table.columns[2].title, "hidden");
  EXPECT_EQ(std::get<double>(table.rows[1].cells[0]), 4);
  EXPECT_EQ(std::get<double>(table.rows[1].cells[2]), 4);
}

TEST(PeopleTables, AMisspeltColumnIsAnsweredWithTheNearest) {
  try {
    check_columns(measured_rows(), {"name", "tmie_s"});
    FAIL() << "found";
  } catch (const UserError& error) {
    EXPECT_EQ(error.diagnostics().front().message, "--columns: the table has no 'tmie_s'");
    EXPECT_NE(error.diagnostics().front().hint.find("did you mean 'time_s'?"), std::string::npos);
  }
}

TEST(PeopleTables, TheHeadlineOfAnAnswerWithoutOneIsItsFirstRow) {
  Output output{.command = "x", .title = "T"};
  output.blocks = {measured_rows()};
  const std::vector<Line> lines = headline_of(output);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0].text, "name a");
  output.headline = {{"said"}};
  EXPECT_EQ(headline_of(output)[0].text, "said");
}

}  // namespace
}  // namespace scalecalc
