// Verdicts in words, and what was cut, on a made-up answer with round numbers.
#include "train/train_why_output.h"

#include <gtest/gtest.h>

#include "report/render.h"
#include "train/compare_layouts.h"
#include "train/train_words.h"
#include "unit/train/sample_answer.h"
#include "unit/train/train_texts.h"

namespace scalecalc {
namespace {

/// The sample's best plan, with tp 8, 1 s more of tensor traffic and 0.5 s less compute.
LayoutVerdict slower_verdict(const TrainAnswer& answer) {
  LayoutVerdict v;
  v.pins.tp = 8;
  v.outcome = LayoutOutcome::kOutranked;
  v.plan = sample_plan();
  v.plan->plan.layout.tp = 8;
  v.plan->plan.step_s = 2.5;
  v.plan->figures.time_s = {{"compute", 1.0}, {"hbm", 0.25}, {"tp_exposed", 1.25}, {"dp_exposed", 0}};
  v.plan->figures.memory_bytes = {{"weights", 10e9}, {"optimizer", 45e9}, {"logits", 0}, {"reserve", 1e9}};
  v.against_best = compare_plans(answer.plans.front(), *v.plan);
  return v;
}

TEST(VerdictText, NamesTheDistanceTheMainCauseAndThePlace) {
  const TrainAnswer a = sample_answer();
  LayoutVerdict v = slower_verdict(a);
  EXPECT_EQ(verdict_text(a, v),
            "fits, step 2.5 s, 25% slower per token than plan 1, mainly tensor-parallel communication (+1 s); all "
            "causes together +500 ms a step; not among the plans shown");
  v.rank = 4;
  EXPECT_TRUE(verdict_text(a, v).ends_with("; it is plan 4 above"));
}

TEST(VerdictText, ASecondCauseNearlyAsLargeIsNamedToo) {
  const TrainAnswer a = sample_answer();
  LayoutVerdict v = slower_verdict(a);
  v.plan->figures.time_s = {{"compute", 1.5}, {"hbm", 0.5}, {"tp_exposed", 0.5}, {"dp_exposed", 0}};
  v.against_best = compare_plans(a.plans.front(), *v.plan);
  EXPECT_NE(verdict_text(a, v).find("mainly memory-bound work (+250 ms) and tensor-parallel communication (+250 ms)"),
            std::string::npos);
}

TEST(VerdictText, EachObjectiveSaysWhatItRanks) {
  TrainAnswer a = sample_answer();
  LayoutVerdict v = slower_verdict(a);
  a.question.objective = Objective::kMemory;
  EXPECT_NE(verdict_text(a, v).find("needs 5 GB a chip more than plan 1, mainly optimizer (+15 GB)"),
            std::string::npos);
  a.question.objective = Objective::kCost;
  EXPECT_NE(verdict_text(a, v).find("costs 25% more per token than plan 1: 32 chips against 32"), std::string::npos);
  a.question.objective = Objective::kChips;
  EXPECT_NE(verdict_text(a, v).find("takes the chips of plan 1 and is 25% slower"), std::string::npos);
  v.plan->plan.slice.chips = 64;
  EXPECT_NE(verdict_text(a, v).find("takes 64 chips, plan 1 takes 32"), std::string::npos);
}

TEST(VerdictText, ATieIsLessThanIsKnown) {
  const TrainAnswer a = sample_answer();
  LayoutVerdict v = slower_verdict(a);
  v.outcome = LayoutOutcome::kTied;
  EXPECT_NE(verdict_text(a, v).find("less than any coefficient is known to"), std::string::npos);
}

TEST(VerdictText, OutOfMemorySaysByHowMuchAndWhichPart) {
  const TrainAnswer a = sample_answer();
  LayoutVerdict v = slower_verdict(a);
  v.outcome = LayoutOutcome::kOutOfMemory;
  v.plan->figures.memory_bytes = {{"weights", 20e9}, {"optimizer", 90e9}, {"logits", 0}, {"reserve", 1e9}};
  v.against_best = compare_plans(a.plans.front(), *v.plan);
  EXPECT_EQ(verdict_text(a, v),
            "out of memory: it needs at least 111 GB of the 100 GB on each chip, 11 GB too many; against plan 1 mainly "
            "optimizer (90 GB, there 30 GB)");
}

TEST(WhySections, ReadersOfAReferenceStartFromIt) {
  TrainAnswer a = sample_answer();
  a.from = ReferenceVerdict{.name = "tp=8", .verdict = slower_verdict(a)};
  const std::string text = render_table(train_report(a), {});
  EXPECT_NE(text.find("dimension      the reference  plan 1"), std::string::npos);
  EXPECT_NE(text.find("  tensor-parallel communication         1.25 s  250 ms  -1.00 s"), std::string::npos) << text;
  a.from.reset();
  a.why_not = {slower_verdict(a)};
  EXPECT_NE(render_table(train_report(a), {}).find("dimension      plan 1   this layout"), std::string::npos);
}

TEST(WhySections, ScaledTimesAreSaidToBe) {
  TrainAnswer a = sample_answer();
  LayoutVerdict v = slower_verdict(a);
  v.plan->plan.batch_seqs = 32;
  v.against_best = compare_plans(a.plans.front(), *v.plan);
  a.why_not = {v};
  EXPECT_NE(render_table(train_report(a), {})
                .find("times of this layout are scaled to the 524k tokens a step of plan 1; it runs 262k"),
            std::string::npos);
}

TEST(Excluded, TheLargestCountsInALineAndAllOnRequest) {
  TrainAnswer a = sample_answer();
  a.search.rejected = {};
  a.search.rejected[static_cast<std::size_t>(Reject::kHeads)] = 7;
  a.search.rejected[static_cast<std::size_t>(Reject::kMemory)] = 900;
  a.search.rejected[static_cast<std::size_t>(Reject::kStages)] = 50;
  a.search.rejected[static_cast<std::size_t>(Reject::kWidth)] = 2;
  const std::string text = render_table(train_report(a), {});
  EXPECT_NE(text.find("one count may stand for many layouts: 900 x out of memory; 50 x more pipeline chunks"),
            std::string::npos);
  EXPECT_NE(text.find("; 1 more with --verbose"), std::string::npos);
  EXPECT_EQ(text.find("batch_small"), std::string::npos);
  const std::string all = render_table(train_report(a, true, true), {});
  EXPECT_NE(all.find("Excluded, by constraint"), std::string::npos);
  EXPECT_NE(all.find("layer widths do not divide by tp"), std::string::npos);
  EXPECT_NE(all.find("counted where the search cut"), std::string::npos);
}

}  // namespace
}  // namespace scalecalc
