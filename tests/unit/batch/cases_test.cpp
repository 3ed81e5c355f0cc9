#include "batch/cases.h"

#include <gtest/gtest.h>

#include "support/studies.h"

namespace scalecalc {
namespace {

TEST(Cases, FirstAxisIsSlowest) {
  const Study study = test::small_study(2, 3);
  const Cases cases(study);
  ASSERT_EQ(cases.size(), 6U);
  EXPECT_EQ(cases.point(0), (GridPoint{0, 0}));
  EXPECT_EQ(cases.point(1), (GridPoint{0, 1}));
  EXPECT_EQ(cases.point(3), (GridPoint{1, 0}));
}

TEST(Cases, AQuestionIsACommandLine) {
  Study study = test::small_study(1, 2);
  study.flags.push_back({"--loud", {}});
  study.axes[1].columns[0].values[1] = "it's {x}";
  const Cases cases(study);
  EXPECT_EQ(command_line(cases.question({0, 0})), "scalecalc ask w2 --a 2 --b b0 --loud");
  EXPECT_EQ(command_line(cases.question({0, 1})), R"(scalecalc ask w2 --a 2 --b 'it'\''s {x}' --loud)");
}

TEST(Cases, InputsAreTyped) {
  const Study study = test::small_study(1, 1);
  std::string json;
  Cases(study).write_inputs({0, 0}, json);
  EXPECT_EQ(json, R"(,"in_a":2,"in_b":"b0")");
}

TEST(Cases, ZippedColumnsShareTheirPosition) {
  Study study = test::small_study(2, 1);
  study.axes[0].columns.push_back(test::axis("c-d", {"x", "y"}).columns.front());
  const Cases cases(study);
  EXPECT_EQ(cases.size(), 2U);
  std::string json;
  cases.write_inputs(cases.point(1), json);
  EXPECT_EQ(json, R"(,"in_a":3,"in_c_d":"y","in_b":"b0")");
}

TEST(Cases, AGridMayBeTooLarge) {
  Study study = test::small_study(1000, 1000);
  for (int i = 0; i < 6; ++i)
    study.axes.push_back(test::axis("x" + std::to_string(i), std::vector<std::string>(1000, "1")));
  EXPECT_EQ(grid_size(study), std::nullopt);
  study.axes.resize(4);
  EXPECT_EQ(grid_size(study), 1'000'000'000'000U);
}

TEST(Cases, ConditionsKeepPoints) {
  Study study = test::small_study(3, 2);
  study.where = "a >= 3 AND b <> 'b1'";
  const Cases cases(study);
  PointFilter filter(study, cases);
  std::vector<std::uint64_t> kept;
  for (std::uint64_t i = 0; i < cases.size(); ++i) {
    if (filter.keeps(cases.point(i))) kept.push_back(i);
  }
  EXPECT_EQ(kept, (std::vector<std::uint64_t>{2, 4}));
}

}  // namespace
}  // namespace scalecalc
