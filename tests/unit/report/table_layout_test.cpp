#include "report/table_layout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/check.h"

namespace scalecalc {
namespace {

using Lines = std::vector<std::string>;

Lines texts(const TableText& table) {
  Lines out;
  for (const Line& line : table.lines) out.push_back(line.text);
  return out;
}

Table sample() {
  Table table;
  table.columns = {{.title = "#", .key = "rank", .format = Format::kInteger},
                   {.title = "layout", .key = "layout", .flexible = true},
                   {.title = "time", .key = "time_s", .format = Format::kSeconds},
                   {.title = "memory", .key = "memory_bytes", .format = Format::kBytes, .importance = 1},
                   {.title = "note", .key = "note", .importance = 5}};
  table.rows = {{{1.0, std::string("fsdp 1120, tp 4, cp 2, pp 16"), 1.1, 71.25e9, std::string("first")}},
                {{2.0, std::string("dp 8"), 0.017, 24e9, Cell{}}}};
  return table;
}

TEST(TableLayout, AlignsNumbersRightAndTextsLeft) {
  EXPECT_EQ(texts(lay_out(sample(), 0)), (Lines{"#  layout                           time   memory  note",
                                                "1  fsdp 1120, tp 4, cp 2, pp 16   1.10 s  71.2 GB  first",
                                                "2  dp 8                          17.0 ms  24.0 GB"}));
}

TEST(TableLayout, LeavesOutTheLeastImportantColumnFirst) {
  const TableText laid = lay_out(sample(), 50);
  EXPECT_EQ(texts(laid), (Lines{"#  layout                           time   memory",
                                "1  fsdp 1120, tp 4, cp 2, pp 16   1.10 s  71.2 GB",
                                "2  dp 8                          17.0 ms  24.0 GB"}));
  EXPECT_EQ(laid.dropped, Lines{"note"});
}

TEST(TableLayout, BreaksAFlexibleColumnBeforeLeavingOutAnImportantOne) {
  const TableText laid = lay_out(sample(), 44);
  EXPECT_EQ(texts(laid),
            (Lines{"#  layout                      time   memory", "1  fsdp 1120, tp 4, cp 2,    1.10 s  71.2 GB",
                   "   pp 16", "2  dp 8                     17.0 ms  24.0 GB"}));
  EXPECT_EQ(laid.dropped, Lines{"note"});
}

TEST(TableLayout, KeepsWhatHasNoImportance) {
  const TableText laid = lay_out(sample(), 20);
  EXPECT_EQ(texts(laid), (Lines{"#  layout       time", "1  fsdp       1.10 s", "   1120, tp", "   4, cp 2,",
                                "   pp 16", "2  dp 8      17.0 ms"}));
  EXPECT_EQ(laid.dropped, (Lines{"memory", "note"}));
}

TEST(TableLayout, NeverExceedsTheWidthWhileItCanHelpIt) {
  for (std::size_t width = 20; width < 70; ++width) {
    EXPECT_LE(lay_out(sample(), width).width, width);
  }
}

TEST(TableLayout, DoesNotShowEmptyColumns) {
  Table table = sample();
  table.rows.erase(table.rows.begin());
  EXPECT_EQ(texts(lay_out(table, 0)), (Lines{"#  layout     time   memory", "2  dp 8    17.0 ms  24.0 GB"}));
  EXPECT_TRUE(lay_out(Table{}, 80).lines.empty());
}

TEST(TableLayout, CountsWideCharactersTwice) {
  Table table;
  table.columns = {{.title = "name"}, {.title = "n", .format = Format::kInteger}};
  table.rows = {{{std::string("\u8BAD\u7EC3"), 1.0}}, {{std::string("abcde"), 12.0}}};
  EXPECT_EQ(texts(lay_out(table, 0)), (Lines{"name    n", "\u8BAD\u7EC3    1", "abcde  12"}));
}

TEST(FoldText, BreaksWordsWiderThanALine) {
  EXPECT_EQ(fold_text("see aaaaaaaaaabbbbbbbbbbcc now", 12, 2), "see\n  aaaaaaaaaa\n  bbbbbbbbbb\n  cc now");
  EXPECT_EQ(fold_text("no width breaks only\nat newlines", 0, 2), "no width breaks only\n  at newlines");
  EXPECT_EQ(fold_text("", 10, 0), "");
}

TEST(CellText, GivesThreeDigitsInNaturalUnits) {
  EXPECT_EQ(text_of(8960.0, Format::kInteger), "8,960");
  EXPECT_EQ(text_of(4194304.0, Format::kCount), "4.19M");
  EXPECT_EQ(text_of(512.0, Format::kCount), "512");
  EXPECT_EQ(text_of(2200.0, Format::kCount), "2.20k");
  EXPECT_EQ(text_of(0.65, Format::kFraction), "65.0%");
  EXPECT_EQ(text_of(1.0, Format::kFraction), "100%");
  EXPECT_EQ(text_of(-0.475, Format::kFraction), "-47.5%");
  EXPECT_EQ(text_of(-0.5, Format::kFraction), "-50.0%");
  EXPECT_EQ(text_of(0.0, Format::kSeconds), "0 s");
  EXPECT_EQ(text_of(0.999, Format::kUsd), "$1.00");
  EXPECT_EQ(text_of(2.4e6, Format::kUsd), "$2.40M");
  EXPECT_EQ(text_of(Cell{}, Format::kBytes), "");
  EXPECT_EQ(energy_text(878.4e9), "244 MWh");
  EXPECT_THROW(text_of(std::numeric_limits<double>::infinity(), Format::kSeconds), InternalError);
}

TEST(CellText, GivesMachinesEveryDigit) {
  EXPECT_EQ(raw_text_of(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(raw_text_of(15e12), "15000000000000");
  EXPECT_EQ(raw_text_of(std::string("x")), "x");
  EXPECT_EQ(raw_text_of(Cell{}), "");
  EXPECT_THROW(raw_text_of(std::nan("")), InternalError);
}

}  // namespace
}  // namespace scalecalc
