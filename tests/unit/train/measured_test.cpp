#include "train/measured.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/diagnostic.h"
#include "config/catalog.h"

namespace scalecalc {
namespace {

MeasuredSpeed speed_of(const char* text) { return std::get<MeasuredSpeed>(parse_measured_speed(text)); }

TEST(Measured, EveryWayToSayASpeed) {
  using Kind = MeasuredSpeed::Kind;
  const auto check = [](const char* text, Kind kind, double value, const char* convention = "") {
    const auto parsed = parse_measured_speed(text);
    ASSERT_TRUE(std::holds_alternative<MeasuredSpeed>(parsed)) << text;
    const MeasuredSpeed& speed = std::get<MeasuredSpeed>(parsed);
    EXPECT_EQ(speed.kind, kind) << text;
    EXPECT_NEAR(speed.value, value, 1e-9 * value) << text;
    EXPECT_EQ(speed.convention, convention) << text;
  };
  check("41s", Kind::kStep, 41);
  check("820ms", Kind::kStep, 0.82);
  check("14k tokens/s", Kind::kTokens, 14'000);
  check("14000tok/s", Kind::kTokens, 14'000);
  check("895.5 tokens/s/GPU", Kind::kTokensPerChip, 895.5);
  check("38%", Kind::kMfu, 0.38);
  check("38.5%:megatron-2024", Kind::kMfu, 0.385, "megatron-2024");
  for (const char* wrong : {"", "fast", "41", "0s", "-3s", "120%", "9 tokens", "9 tokens/h", "% ", "nan s"}) {
    EXPECT_TRUE(std::holds_alternative<UnitError>(parse_measured_speed(wrong))) << wrong;
  }
}

class MeasuredStep : public testing::Test {
 protected:
  static const TrainAnswer& job() {
    static const TrainAnswer kJob = [] {
      TrainQuestion q{.model = "llama3-8b", .hardware = "h100-sxm", .chips = 16};
      q.fix = {.tp = 2, .cp = 1, .pp = 1};
      return answer(q, Catalog());
    }();
    return kJob;
  }
  static const RankedPlan& plan() { return job().plans.front(); }
};

// The same run said in four ways is one step.
TEST_F(MeasuredStep, AllWaysSayTheSame) {
  const double step = 1.25 * plan().plan.step_s;
  const double tokens = plan().plan.batch_seqs * static_cast<double>(job().workload.seq);
  const MeasuredVerdict by_step = judge_measured(job(), plan(), {.value = step});
  EXPECT_DOUBLE_EQ(by_step.tokens_per_s, tokens / step);
  EXPECT_NEAR(by_step.over, 0.25, 1e-12);
  for (const auto& [kind, value, convention] :
       {std::tuple{MeasuredSpeed::Kind::kTokens, tokens / step, ""},
        std::tuple{MeasuredSpeed::Kind::kTokensPerChip, tokens / step / 16, ""},
        std::tuple{MeasuredSpeed::Kind::kMfu, by_step.mfu, ""},
        std::tuple{MeasuredSpeed::Kind::kMfu, by_step.conventions.front().mfu, "6n"}}) {
    const MeasuredVerdict other =
        judge_measured(job(), plan(), {.kind = kind, .value = value, .convention = convention});
    EXPECT_NEAR(other.step_s, step, 1e-9 * step);
  }
  // 6 x 8.03e9 parameters without the input embedding (128,256 x 4,096), of 989.4 TFLOP/s.
  const double six_n = 6 * (8'030'261'248.0 - 128'256.0 * 4'096) * tokens / (step * 16 * 989.4e12);
  EXPECT_NEAR(by_step.conventions.front().mfu / six_n, 1, 1e-3);
}

TEST_F(MeasuredStep, OneTermAloneMakesUpTheDifference) {
  const double step = 1.1 * plan().plan.step_s;
  const MeasuredVerdict slower = judge_measured(job(), plan(), {.value = step});
  ASSERT_FALSE(slower.terms.empty());
  double room = INFINITY;
  for (const TermOffPrediction& term : slower.terms) {
    EXPECT_NEAR(term.needed_s - term.predicted_s, step - plan().plan.step_s, 1e-9 * step);
    EXPECT_LE(term.low_s, term.predicted_s);
    EXPECT_GE(term.high_s, term.predicted_s);
    EXPECT_EQ(term.within, term.needed_s <= term.high_s);
    EXPECT_LE(term.high_s - term.predicted_s, room);
    room = term.high_s - term.predicted_s;
    EXPECT_FALSE(term.remedy.empty()) << term.cause;
  }
  // Half the predicted step is missing: no term smaller than that can be why.
  const MeasuredVerdict faster = judge_measured(job(), plan(), {.value = 0.5 * plan().plan.step_s});
  for (const TermOffPrediction& term : faster.terms) EXPECT_GE(term.predicted_s, 0.5 * plan().plan.step_s);
  EXPECT_FALSE(faster.in_band);
  EXPECT_TRUE(judge_measured(job(), plan(), {.value = plan().plan.step_s}).in_band);
}

TEST_F(MeasuredStep, NoneIsAboveThePeak) {
  const double least = plan().plan.step_s * plan().figures.hfu;
  refuse_above_peak(judge_measured(job(), plan(), {.value = 1.01 * least}), "--measured", "");
  EXPECT_THROW(refuse_above_peak(judge_measured(job(), plan(), {.value = 0.99 * least}), "--measured", ""), UserError);
}

TEST_F(MeasuredStep, AnUnknownConventionIsNamed) {
  try {
    judge_measured(job(), plan(), speed_of("38%:megatorn"));
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(error.diagnostics().front().hint.find("did you mean 'megatron'"), std::string::npos);
  }
}

}  // namespace
}  // namespace scalecalc
