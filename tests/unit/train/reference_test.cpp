// A layout from elsewhere on another question.
#include "train/reference.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "plan/dimensions.h"
#include "unit/train/train_texts.h"

namespace scalecalc {
namespace {

TrainQuestion asked_on(std::int64_t chips) {
  return {.model = "llama3-8b", .hardware = "h100-sxm", .chips = chips, .stack = "megatron", .top = 3};
}

ReferenceVerdict from(TrainQuestion question, const LayoutFilter& pins) {
  question.from = ReferenceLayout{.pins = pins};
  return *answer(question, Catalog()).from;
}

class SavedAnswer {
 public:
  explicit SavedAnswer(const std::string& text) {
    path_ = std::filesystem::path(testing::TempDir()) /
            (std::string("scalecalc_") + testing::UnitTest::GetInstance()->current_test_info()->name() + ".json");
    std::ofstream(path_) << text;
  }
  ~SavedAnswer() { std::filesystem::remove(path_); }
  SavedAnswer(const SavedAnswer&) = delete;
  SavedAnswer& operator=(const SavedAnswer&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

std::string problem_of(const std::string& text, std::size_t rank = 1) {
  const SavedAnswer file(text);
  try {
    read_reference({.pins = {}, .file = file.path(), .rank = rank});
  } catch (const UserError& error) {
    return error.diagnostics().at(0).message;
  }
  return "";
}

TEST(Reference, LegalAsItStandsIsTakenAsItStands) {
  const ReferenceVerdict r = from(asked_on(64), {.dp = 8, .fsdp = 1, .tp = 8, .cp = 1, .pp = 1});
  EXPECT_TRUE(r.adapted.empty());
  EXPECT_EQ(r.verdict.outcome, LayoutOutcome::kOutranked);
  EXPECT_EQ(r.verdict.plan->plan.layout.dp, 8);
  EXPECT_FALSE(r.chosen.empty());  // mb, ga and more were left open
  EXPECT_FALSE(r.recorded.has_value());
}

TEST(Reference, DataRanksAndMicrobatchesTakeUpTheChangeInChips) {
  const TrainAnswer large = answer(asked_on(128), Catalog());
  const Layout& layout = large.plans.front().plan.layout;
  const ReferenceVerdict r = from(asked_on(64), pins_of(layout));
  ASSERT_TRUE(r.verdict.plan.has_value());
  const Layout& there = r.verdict.plan->plan.layout;
  EXPECT_EQ(there.data() * 2, layout.data());
  EXPECT_EQ(there.grad_accum, layout.grad_accum * 2);
  EXPECT_EQ(there.tp, layout.tp);
  EXPECT_EQ(there.micro_batch_seqs, layout.micro_batch_seqs);
  EXPECT_EQ(there.remat, layout.remat);
  EXPECT_EQ(r.adapted.size(), 2u);
  EXPECT_TRUE(r.chosen.empty());
}

TEST(Reference, ALayoutThatCannotBeScaledSaysWhy) {
  const ReferenceVerdict r = from(asked_on(64), {.dp = 4, .fsdp = 1, .tp = 8, .cp = 1, .pp = 3});
  EXPECT_EQ(r.verdict.outcome, LayoutOutcome::kIllegal);
  ASSERT_FALSE(r.verdict.obstacles.empty());
}

TEST(Reference, StandsByItselfBesideThePinsOfTheQuestion) {
  TrainQuestion q = asked_on(64);
  q.fix = {.tp = 8};
  const ReferenceVerdict r = from(q, {.dp = 32, .tp = 1});
  EXPECT_EQ(r.verdict.outcome, LayoutOutcome::kBetter);
  EXPECT_LT(r.verdict.against_best->slower, 0);
  const TrainAnswer free = answer(asked_on(64), Catalog());
  EXPECT_EQ(r.verdict.plan->plan.layout, free.plans.front().plan.layout);
}

TEST(Reference, ASavedAnswerGivesItsPlanAndWhatItRecorded) {
  const TrainAnswer saved = answer(asked_on(64), Catalog());
  nlohmann::ordered_json document = nlohmann::ordered_json::parse(train_json(saved, "1.0.0"));
  document["query"].update({{"hardware", saved.hw.name},
                            {"chips", saved.question.chips},
                            {"seq", saved.workload.seq},
                            {"batch_tokens", saved.workload.batch_seqs * static_cast<double>(saved.workload.seq)}});
  const SavedAnswer file(document.dump());
  for (const std::size_t rank : {1u, 2u}) {
    TrainQuestion q = asked_on(64);
    q.from = ReferenceLayout{.pins = {}, .file = file.path(), .rank = rank};
    const ReferenceVerdict r = *answer(q, Catalog()).from;
    EXPECT_EQ(r.verdict.rank, rank);
    EXPECT_EQ(r.verdict.plan->plan.layout, saved.plans.at(rank - 1).plan.layout);
    ASSERT_TRUE(r.recorded.has_value());
    EXPECT_EQ(r.recorded->model, "llama3-8b");
    EXPECT_EQ(r.recorded->hardware, "h100-sxm");
    EXPECT_DOUBLE_EQ(r.recorded->step_s, saved.plans.at(rank - 1).plan.step_s);
    EXPECT_TRUE(r.adapted.empty());
  }
}

TEST(Reference, OtherFilesAreRefusedWithTheirPlace) {
  EXPECT_EQ(problem_of("{}"), "this is no answer of train: there is no schema");
  EXPECT_EQ(problem_of(R"({"schema": "scalecalc/bounds/1"})"),
            "this is no answer of train: its schema is 'scalecalc/bounds/1'");
  EXPECT_EQ(problem_of(R"({"schema": "scalecalc/train/1", "plans": []})"),
            "nothing fitted in this answer: it has no plan");
  EXPECT_EQ(problem_of(R"({"schema": "scalecalc/train/1", "plans": [{}]})", 3), "there is no plan 3: the answer has 1");
  EXPECT_EQ(problem_of(R"({"schema": "scalecalc/train/1", "query": {}, "plans": [{"layout": {"tp": "many"}}]})"),
            "'tp' cannot be 'many'");
}

}  // namespace
}  // namespace scalecalc
