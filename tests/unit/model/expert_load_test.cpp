#include "model/expert_load.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "base/diagnostic.h"
#include "base/io.h"
#include "support/scratch.h"

namespace scalecalc {
namespace {

MoeSpec experts(std::int64_t count, std::int64_t top_k = 1) { return {.experts = count, .top_k = top_k}; }

/// What is wrong with a file of loads, problem by problem.
std::vector<Diagnostic> problems_of(const std::string& name, const std::string& text, const MoeSpec& moe) {
  const test::Scratch scratch;
  const std::string file = scratch.put(name, text);
  try {
    load_expert_load(file, moe);
  } catch (const UserError& error) {
    return error.diagnostics();
  }
  return {};
}

TEST(ExpertLoad, TheFullestBlockOfNeighboursOverTheMean) {
  const ExpertLoad load({1, 1, 1, 5});
  EXPECT_DOUBLE_EQ(load.fullest(1), 1);
  EXPECT_DOUBLE_EQ(load.fullest(2), 1.5) << "6 of 8 where the mean is 4";
  EXPECT_DOUBLE_EQ(load.fullest(4), 2.5) << "5 where the mean is 2";
  const ExpertLoad apart({5, 1, 1, 5});
  EXPECT_DOUBLE_EQ(apart.fullest(2), 1) << "the same loads, placed evenly";
}

TEST(ExpertLoad, EqualLoadsWaitForNobody) {
  for (const std::int64_t ranks : {1, 2, 4, 8}) {
    EXPECT_DOUBLE_EQ(ExpertLoad(std::vector<double>(8, 7)).fullest(ranks), 1);
    EXPECT_DOUBLE_EQ(ExpertLoad::zipf(experts(8), 0).fullest(ranks), 1);
  }
}

/// n^-1 of four experts: 12, 6, 4 and 3 of 25. With two ranks the first shares its rank with one of the others, each as
/// likely, and that rank is the fullest: (18 + 16 + 15) / 3 of 25 where the mean is half.
TEST(ExpertLoad, APowerLawByHand) {
  const ExpertLoad load = ExpertLoad::zipf(experts(4), 1);
  EXPECT_NEAR(load.fullest(4), 12.0 / 25 * 4, 1e-12);
  EXPECT_NEAR(load.fullest(2), 49.0 / 3 / 25 * 2, 0.01) << "drawn, not enumerated";
  EXPECT_DOUBLE_EQ(load.fullest(1), 1);
}

/// Half, a quarter and twice an eighth of the tokens: of two tokens 3/4 + 7/16 + 2 x 15/64 experts.
TEST(ExpertChances, ExpertsTouchedByHand) {
  const ExpertChances one({4, 2, 1, 1}, 1);
  EXPECT_NEAR(one.touched(1), 1, 1e-12);
  EXPECT_NEAR(one.touched(2), 3.0 / 4 + 7.0 / 16 + 2 * 15.0 / 64, 1e-12);
  EXPECT_NEAR(one.touched(1e9), 4, 1e-9);
  // Two of four, and the first in every token: the others share what is left.
  const ExpertChances two({5, 1, 1, 1}, 2);
  EXPECT_NEAR(two.touched(1), 2, 1e-9);
  EXPECT_NEAR(two.touched(2), 1 + 3 * (1 - 4.0 / 9), 1e-9);
}

TEST(ExpertChances, EvenOnesAreTheClosedForm) {
  for (const double tokens : {1.0, 4.0, 64.0, 1000.0}) {
    const double even = experts_touched(128, 4, tokens);
    EXPECT_NEAR(even, 128 * (1 - std::pow(1 - 4.0 / 128, tokens)), 1e-9);
    EXPECT_NEAR(ExpertChances::zipf(experts(128, 4), 0).touched(tokens), even, 1e-9);
    EXPECT_LE(ExpertChances::zipf(experts(128, 4), 0.8).touched(tokens), even + 1e-9) << "a skewed load touches fewer";
  }
}

/// The copy goes to the first expert, whose tokens then are two quarters: of two tokens 3 x 7/16 + 2 x 15/64.
TEST(ExpertChances, CopiesShareTheTokensOfTheMostLoaded) {
  const ExpertChances one = ExpertChances({4, 2, 1, 1}, 1).copied(1);
  EXPECT_EQ(one.chances().size(), 5U);
  EXPECT_NEAR(one.touched(2), 3 * 7.0 / 16 + 2 * 15.0 / 64, 1e-12);
}

/// Loads of 6, 1 and 1 with one copy are 3, 3, 1 and 1: on two ranks four each.
TEST(ExpertLoad, CopiesEvenOutTheRanks) {
  const ExpertLoad load({6, 1, 1});
  EXPECT_DOUBLE_EQ(load.fullest(3), 2.25);
  EXPECT_DOUBLE_EQ(load.copied(1).fullest(2), 1);
  EXPECT_DOUBLE_EQ(load.copied(1).fullest(4), 1.5);
  EXPECT_DOUBLE_EQ(ExpertLoad({1, 1, 1, 5}).copied(0).fullest(2), 1.5) << "two of a rank: 5 and 1";
}

TEST(ExpertLoad, AnExpertGetsATokenOnce) {
  const ExpertLoad load = ExpertLoad::zipf(experts(8, 2), 10);
  EXPECT_DOUBLE_EQ(load.fullest(8), 4) << "every token, which is half of the choices, where the mean is an eighth";
  EXPECT_LE(load.fullest(2), 2) << "every choice";
}

TEST(ExpertLoad, ASteeperLawIsNeverMoreEven) {
  for (const std::int64_t count : {8, 60, 256}) {
    std::map<std::int64_t, double> before;
    for (double alpha = 0; alpha <= 3; alpha += 0.125) {
      const ExpertLoad load = ExpertLoad::zipf(experts(count, 4), alpha);
      for (const std::int64_t ranks : {1, 2, 4}) {
        EXPECT_GE(load.fullest(ranks), before[ranks]) << count << " experts, " << ranks << " ranks, alpha " << alpha;
        before[ranks] = load.fullest(ranks);
      }
      EXPECT_GE(load.fullest(count), load.fullest(count / 4)) << "fewer experts a rank even out less";
      EXPECT_GE(load.fullest(count), before[count]);
      before[count] = load.fullest(count);
    }
  }
}

TEST(ExpertLoad, FilesOfEveryKind) {
  const test::Scratch scratch;
  for (const auto& [name, text] : {std::pair{"l.csv", "expert,tokens\n3,500\n0,100\n1,100\n\n2,100\n"},
                                   {"l.yaml", "shares: [12.5%, 12.5%, 12.5%, 62.5%]\n"},
                                   {"l.json", "[1, 1, 1, 5]"}}) {
    const ExpertLoad load = load_expert_load(scratch.put(name, text), experts(4));
    EXPECT_DOUBLE_EQ(load.fullest(4), 2.5) << name;
    EXPECT_DOUBLE_EQ(load.fullest(2), 1.5) << name;
  }
}

TEST(ExpertLoad, AWrongFileIsToldWhere) {
  const auto few = problems_of("l.yaml", "tokens: [1, 2, 3]\n", experts(4));
  ASSERT_EQ(few.size(), 1U);
  EXPECT_EQ(few[0].message, "3 loads for the 4 experts of the model");
  EXPECT_EQ(few[0].where.line, 1);
  const auto many = problems_of("l.csv", "expert,tokens\n0,1\n1,-2\n1,3\n9,4\n2,x\n3,1\n", experts(4));
  ASSERT_EQ(many.size(), 4U);
  EXPECT_EQ(many[0].where.line, 3);
  EXPECT_EQ(many[0].where.column, 3) << "the number, not its line";
  EXPECT_EQ(many[1].message, "expert 1 stands twice");
  EXPECT_EQ(many[1].where.line, 4);
  EXPECT_EQ(many[2].message, "'9' is no expert of the model");
  EXPECT_EQ(many[3].where.line, 6);
  const auto impossible = problems_of("l.json", "[7, 1, 1, 1]", experts(4, 2));
  ASSERT_EQ(impossible.size(), 1U);
  EXPECT_NE(impossible[0].message.find("no expert has more than 5"), std::string::npos) << impossible[0].message;
  EXPECT_EQ(problems_of("l.yaml", "[0, 0]", experts(2)).size(), 1U);
  EXPECT_EQ(problems_of("l.yaml", "loads: [1, 1]", experts(2)).size(), 2U) << "an unknown key, and none that counts";
  EXPECT_THROW(load_expert_load("zipf:steep", experts(2)), UserError);
  EXPECT_THROW(load_expert_load("zipf:-1", experts(2)), UserError);
}

/// A token chooses two of three experts, each once, so no expert has more than half of all choices: a load of exactly
/// half is possible, and one of a millionth more is taken for a rounded one.
TEST(ExpertLoad, HalfOfTwoChoicesIsTheMost) {
  EXPECT_TRUE(problems_of("l.json", "[2, 1, 1]", experts(3, 2)).empty());
  EXPECT_TRUE(problems_of("l.json", "[2.000001, 1, 1]", experts(3, 2)).empty());
  EXPECT_EQ(problems_of("l.json", "[2.0001, 1, 1]", experts(3, 2)).size(), 1U);
}

TEST(ExpertLoad, AHeaderOfACsvNamesTheExpertAndItsTokensOrShare) {
  for (const char* header : {"expert,tokens", "expert,share", "expert,shares", "expert, share"}) {
    EXPECT_TRUE(problems_of("l.csv", std::string(header) + "\n0,0.5\n1,0.5\n", experts(2)).empty()) << header;
  }
  for (const char* header : {"expert,load", "id,tokens", "expert"}) {
    const auto found = problems_of("l.csv", std::string(header) + "\n0,0.5\n1,0.5\n", experts(2));
    ASSERT_EQ(found.size(), 1U) << header;
    EXPECT_EQ(found[0].message, "no header expert,tokens");
  }
  EXPECT_EQ(problems_of("l.csv", "0,0.5\n1,0.5\n", experts(2)).size(), 2U) << "no header, and an expert less";
}

/// The heaviest is dealt first: 2, 3, 3, 4 are 6 and 6 on two ranks; in their order they would be 5 and 7.
TEST(ExpertLoad, CopiesAreDealtTheHeaviestFirst) {
  EXPECT_DOUBLE_EQ(ExpertLoad({2, 3, 3, 4}).copied(0).fullest(2), 1);
  EXPECT_DOUBLE_EQ(ExpertLoad({3, 2, 4, 3}).copied(0).fullest(2), 1);
}

}  // namespace
}  // namespace scalecalc
