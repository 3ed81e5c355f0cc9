#include "distill/distill.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/diagnostic.h"
#include "jobs/job_part.h"

namespace scalecalc {
namespace {

DistillQuestion question(std::int64_t chips = 32) {
  DistillQuestion q;
  q.student.model = "llama3.2-1b";
  q.student.hardware = "h100-sxm";
  q.student.chips = chips;
  q.student.tokens = 1e10;
  q.student.seq = 4096;
  q.student.batch_tokens = 1 << 20;
  q.teacher.model = "llama3.1-8b";
  q.teacher.hardware = {"h100-sxm"};
  q.teacher.chips = chips;
  q.teacher.suggest = false;
  return q;
}

DistillPlan best_of(DistillQuestion q, TeacherPlace place) {
  q.place = place;
  const DistillAnswer answer = distill_answer(q, Catalog{});
  EXPECT_EQ(answer.plans.size(), 1U);
  return answer.plans.at(0);
}

TEST(Distillation, PartsSumToTheStepInEveryWay) {
  DistillQuestion q = question();
  q.storage = 1e12;
  const DistillAnswer answer = distill_answer(q, Catalog{});
  ASSERT_EQ(answer.plans.size(), 3U);
  for (const DistillPlan& plan : answer.plans) {
    EXPECT_DOUBLE_EQ(value_of(sum_of_parts(plan.parts)), value_of(plan.step));
    EXPECT_GE(value_of(plan.step), value_of(answer.plans.front().step));
  }
  EXPECT_DOUBLE_EQ(answer.over_alone->value(), value_of(answer.plans.front().step) / answer.alone->step_s);
  EXPECT_GT(answer.over_alone->value(), 1);
  EXPECT_DOUBLE_EQ(value_of(answer.run->time), value_of(answer.plans.front().step) * 1e10 / (1 << 20));
}

TEST(Distillation, ATinyTeacherLeavesPlainTraining) {
  DistillQuestion q = question();
  q.student.model = "llama3.1-8b";
  q.teacher.model = "llama3.2-1b";
  q.top_k = 1;
  const DistillAnswer answer = distill_answer(q, Catalog{});
  ASSERT_FALSE(answer.plans.empty());
  EXPECT_LT(answer.over_alone->value(), 1.1);
  EXPECT_GE(answer.over_alone->value(), 1);
}

TEST(Distillation, TheSplitIsTheBestOfAll) {
  const DistillQuestion q = question();
  const DistillPlan best = best_of(q, TeacherPlace::kSplit);
  EXPECT_DOUBLE_EQ(value_of(best.step),
                   std::max({value_of(best.student_time), value_of(best.teacher_time), value_of(best.transfer_time)}));
  // By hand: the student's and the teacher's times on each pool.
  JobTrainer students(q.student, Catalog{});
  double least = 1e30;
  for (const ChipSplit& split : chip_splits(students.job().hw, q.student.chips).splits) {
    const auto student = students.on(split.second);
    if (!student) continue;
    DistillQuestion alone = q;
    alone.student.chips = split.first;
    alone.teacher.chips = split.first;
    const DistillAnswer shared = [&] {
      alone.place = TeacherPlace::kShared;
      return distill_answer(alone, Catalog{});
    }();
    if (shared.plans.empty()) continue;
    least = std::min(least, std::max(student->step_s, value_of(shared.plans.front().teacher_time)));
  }
  EXPECT_NEAR(value_of(best.step), least, 0.01 * least);
}

TEST(Distillation, StoredLogitsAreCutAndPaidOnceOverTheEpochs) {
  DistillQuestion q = question();
  q.storage = 1e15;
  const DistillPlan once = best_of(q, TeacherPlace::kStored);
  EXPECT_DOUBLE_EQ(value_of(*once.stored_bytes), 1e10 * 64 * 6);
  q.epochs = 4;
  const DistillPlan four = best_of(q, TeacherPlace::kStored);
  EXPECT_DOUBLE_EQ(value_of(*four.stored_pass) * 4, value_of(*once.stored_pass));
  EXPECT_LT(value_of(four.step), value_of(once.step));
}

TEST(Distillation, SlowStorageBinds) {
  DistillQuestion q = question();
  q.storage = 1e6;
  EXPECT_EQ(best_of(q, TeacherPlace::kStored).bound_by, "storage");
}

TEST(Distillation, LogitsTakeTheirBytes) {
  EXPECT_DOUBLE_EQ(logit_bytes_per_token(128'256, std::nullopt), 256'512);
  EXPECT_DOUBLE_EQ(logit_bytes_per_token(128'256, 100), 600);
}

TEST(Distillation, VocabulariesMustBeTheSameForLogitsAlone) {
  DistillQuestion q = question();
  q.teacher.model = "qwen2.5-7b";
  try {
    distill_answer(q, Catalog{});
    FAIL() << "accepted";
  } catch (const UserError& error) {
    EXPECT_NE(error.diagnostics().front().message.find("vocabulary"), std::string::npos);
    EXPECT_NE(error.diagnostics().front().hint.find("--loss sequence"), std::string::npos);
  }
  q.loss = DistillLoss::kSequence;
  q.teacher.prompt = 256;
  q.teacher.generate = 512;
  const DistillAnswer answer = distill_answer(q, Catalog{});
  ASSERT_EQ(answer.plans.size(), 1U);
  EXPECT_EQ(answer.plans.front().place, TeacherPlace::kStored);
}

TEST(Distillation, NothingFitsSaysWhatIsShort) {
  DistillQuestion q = question(1);
  q.teacher.model = "llama3.1-405b";
  const DistillAnswer answer = distill_answer(q, Catalog{});
  EXPECT_TRUE(answer.plans.empty());
  ASSERT_FALSE(answer.shortages.empty());
  EXPECT_EQ(answer.shortages.back().who, "teacher");
  EXPECT_GT(answer.shortages.back().needs, answer.shortages.back().has);
}

}  // namespace
}  // namespace scalecalc
