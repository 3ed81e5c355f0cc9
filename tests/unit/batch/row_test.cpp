#include "batch/row.h"

#include <gtest/gtest.h>

#include "support/studies.h"

namespace scalecalc {
namespace {

TEST(Row, SaysWhatWasAskedAndAnswered) {
  const Study study = test::small_study(2, 1);
  const Cases cases(study);
  test::FakeCommand command;
  const std::string head = row_head("1.0", "ask");
  const auto row = [&](std::uint64_t number) {
    const StudyQuestion question = cases.question(cases.point(number));
    return rows_of(head, number, cases, cases.point(number), question, command.ask()(question), false);
  };
  EXPECT_EQ(row(1),
            R"({"schema":"scalecalc/batch-row/1","tool_version":"1.0","command":"ask","case":1,"status":"ok",)"
            R"("in_a":3,"in_b":"b0","word":"b0","half":1.5,"nested_deep_n":0,"nested_list":[1,"two",{"x":[3]}],)"
            R"("odd":true,"warnings":"mind the gap","question":"scalecalc ask w3 --a 3 --b b0"})"
            "\n");
  RowColumns columns;
  const auto facts = read_row(std::string_view(row(1)).substr(0, row(1).size() - 1), head, columns);
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->number, 1U);
  EXPECT_EQ(facts->status, RowStatus::kOk);
  EXPECT_EQ(columns.sorted().size(), 14U);
}

TEST(Row, WithoutAnAnswerHasAReason) {
  Study study = test::small_study(1, 1);
  study.axes[0] = test::axis("a", {"1"});
  const Cases cases(study);
  test::FakeCommand command;
  const StudyQuestion question = cases.question({0, 0});
  const std::string row = rows_of(row_head("1.0", "ask"), 0, cases, {0, 0}, question, command.ask()(question), false);
  EXPECT_NE(row.find(R"("status":"infeasible")"), std::string::npos);
  EXPECT_NE(row.find(R"("reason":"nothing fits \"at all\"")"), std::string::npos);
}

TEST(Row, CutLinesAreNoRows) {
  const std::string head = row_head("1.0", "ask");
  RowColumns columns;
  EXPECT_TRUE(read_row(head + R"(12,"status":"ok"})", head, columns));
  EXPECT_FALSE(read_row(head + R"(12,"status":"ok")", head, columns));
  EXPECT_FALSE(read_row(head + "12", head, columns));
  EXPECT_FALSE(read_row(head, head, columns));
  EXPECT_FALSE(read_row("", head, columns));
}

TEST(RowColumns, AreInTheOrderOfTheCases) {
  RowColumns late;
  late.start(5);
  late.see("case", ColumnKind::kInteger);
  late.see("new", ColumnKind::kText);
  RowColumns early;
  early.start(1);
  early.see("case", ColumnKind::kInteger);
  early.see("old", ColumnKind::kInteger);
  early.start(2);
  early.see("case", ColumnKind::kInteger);
  early.see("old", ColumnKind::kReal);
  RowColumns both;
  both.merge(late.sorted());
  both.merge(columns_from(columns_json(early.sorted())));
  const auto sorted = both.sorted();
  ASSERT_EQ(sorted.size(), 3U);
  EXPECT_EQ(sorted[1].name, "old");
  EXPECT_EQ(sorted[1].kind, ColumnKind::kReal);
  EXPECT_EQ(sorted[2].name, "new");
}

}  // namespace
}  // namespace scalecalc
