#include "report/side_by_side.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace scalecalc {
namespace {

Figure text(const char* label, const char* value) { return figure(label, label, Format::kText, Cell(value)); }

/// The first column of the table, without its margin.
std::vector<std::string> lines(const Table& table) {
  std::vector<std::string> out;
  for (const Row& row : table.rows) {
    const std::string& label = std::get<std::string>(row.cells.front());
    out.push_back(label.substr(std::min(label.find_first_not_of(' '), label.size())));
  }
  return out;
}

TEST(SideBySide, WhatOnlyALaterRecordHasStandsWhereItHasIt) {
  const Record first{{text("name", "a"), heading("Rates"), text("bf16", "1"), text("memory", "2"), heading("Price"),
                      text("usd", "3")}};
  const Record second{{text("name", "b"), heading("Rates"), text("bf16", "4"), text("fp8", "5"), text("memory", "6"),
                       heading("Links"), text("node", "7"), heading("Price"), text("usd", "8")}};
  const Table table = side_by_side({first, second});
  EXPECT_EQ(lines(table),
            (std::vector<std::string>{"Rates", "bf16", "fp8", "memory", "", "Links", "node", "", "Price", "usd"}));
  EXPECT_EQ(std::get<std::string>(table.rows[2].cells[1]), "");
  EXPECT_EQ(std::get<std::string>(table.rows[2].cells[2]), "5");
  EXPECT_EQ(std::get<std::string>(table.rows[9].cells[1]), "3");
}

TEST(SideBySide, ColumnsAreNamedByTheFirstFigure) {
  const Table table = side_by_side({Record{{text("name", "a"), text("x", "1")}}, Record{{text("name", "b")}}});
  ASSERT_EQ(table.columns.size(), 3u);
  EXPECT_EQ(table.columns[1].title, "a");
  EXPECT_EQ(table.columns[2].title, "b");
}

}  // namespace
}  // namespace scalecalc
