#include "rl/rl.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/diagnostic.h"
#include "jobs/job_part.h"
#include "rl/microbatches.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

RlQuestion question(std::int64_t chips = 16) {
  RlQuestion q;
  q.train.model = "llama3.2-1b";
  q.train.hardware = "h100-sxm";
  q.train.chips = chips;
  q.engine.model = q.train.model;
  q.engine.hardware = {q.train.hardware};
  q.engine.chips = chips;
  q.mix = {.prompt = Lengths::fixed(256), .generate = Lengths({{128, 1024, 1}})};
  q.prompts = 32;
  q.rollouts = 8;
  return q;
}

double sum_of(const RlPlan& plan) { return value_of(sum_of_parts(plan.parts)); }

double part(const RlPlan& plan, std::string_view key) {
  const auto found = std::find_if(plan.parts.begin(), plan.parts.end(), [&](const JobPart& p) { return p.key == key; });
  return found == plan.parts.end() ? 0 : value_of(found->time);
}

bool has(const RlPlan& plan, std::string_view key) {
  return std::any_of(plan.parts.begin(), plan.parts.end(), [&](const JobPart& p) { return p.key == key; });
}

TEST(RlSteps, PartsSumToTheStep) {
  for (const RlAlgorithm algorithm : {RlAlgorithm::kGrpo, RlAlgorithm::kPpo}) {
    for (const std::int64_t depth : {0, 1, 4}) {
      RlQuestion q = question();
      q.algorithm = algorithm;
      q.depth = depth;
      const RlAnswer answer = rl_answer(q, Catalog{});
      ASSERT_FALSE(answer.plans.empty());
      for (const RlPlan& plan : answer.plans) EXPECT_DOUBLE_EQ(sum_of(plan), value_of(plan.step));
      ASSERT_TRUE(answer.run.has_value());
      EXPECT_DOUBLE_EQ(value_of(answer.run->time), 1000 * value_of(answer.plans.front().step));
    }
  }
}

TEST(RlSteps, ThePlansAreOneOfEachPlacementFastestFirst) {
  const RlAnswer answer = rl_answer(question(), Catalog{});
  ASSERT_EQ(answer.plans.size(), 2U);
  EXPECT_NE(answer.plans[0].placement, answer.plans[1].placement);
  EXPECT_LE(value_of(answer.plans[0].step), value_of(answer.plans[1].step));
}

/// Every split asked alone, by hand.
TEST(RlSplits, TheSearchFindsWhatBruteForceFinds) {
  for (const std::int64_t depth : {0, 1}) {
    RlQuestion q = question();
    q.placement = RlPlacement::kSplit;
    q.depth = depth;
    const RlAnswer answer = rl_answer(q, Catalog{});
    ASSERT_EQ(answer.plans.size(), 1U);
    const RlPlan& best = answer.plans.front();
    const RolloutTokens tokens = answer.tokens;
    RlTrainers trainers(answer.question, tokens, Catalog{});
    const ServeQuestion engine = answer.question.engine;
    double least = 1e30;
    ChipSplit at;
    const HardwareSpec& hw = trainers.policy().job().hw;
    for (const ChipSplit& split : chip_splits(hw, q.train.chips).splits) {
      RlQuestion one = q;
      // Only this split's engine: an engine pinned to its chips.
      const auto half = trainers.on(split.second, 0);
      if (!half) continue;
      RlQuestion generator = one;
      generator.placement = RlPlacement::kColocated;
      generator.depth = 0;
      generator.train.chips = split.first;
      generator.engine.chips = split.first;
      generator.state = TrainerState::kOffloaded;
      const RlAnswer alone = rl_answer(generator, Catalog{});
      if (alone.plans.empty()) continue;
      const double generation = part(alone.plans.front(), "generation");
      const double training = value_of(half->time);
      const double step = depth > 0 ? std::max(generation, training) : generation + training;
      if (step < least) least = step, at = split;
    }
    EXPECT_NEAR(value_of(best.step) - part(best, "weight_sync"), least, 0.002 * least);
    EXPECT_EQ(best.generator_chips, at.first);
  }
}

/// 1,500; 700 and 700; 400: the 36 fit where 1,500 are, exactly. 3,336 tokens in three sequences.
TEST(RlMicrobatches, WholeResponsesFillSequencesBestFirst) {
  const PackedResponses packed = pack_responses({400, 700, 36, 1500, 700}, 1536);
  EXPECT_EQ(packed.sequences, 3);
  EXPECT_DOUBLE_EQ(packed.tokens, 1112);
  EXPECT_EQ(pack_responses({1000, 1000, 1000}, 1536).sequences, 3) << "no response is cut";
}

/// Prompts of 256 and responses of 128 to 1,024 tokens: at most 1,280, which is a whole number of 128. A pipeline pads.
TEST(RlMicrobatches, OneSequenceOfTheLongestIsAMicrobatchAndAPipelinePadsIt) {
  RlQuestion q = question();
  q.placement = RlPlacement::kColocated;
  const RlAnswer plain = rl_answer(q, Catalog{});
  const double tokens = 256.0 * (256 + 576);
  EXPECT_NEAR(*plain.question.train.batch_tokens, tokens, 1e-6 * tokens);
  EXPECT_LE(*plain.question.train.seq, 1280);
  EXPECT_EQ(plain.plans.front().policy->ranked.plan.layout.micro_batch_seqs, 1);
  q.train.fix.pp = 2;
  const RlAnswer staged = rl_answer(q, Catalog{});
  EXPECT_EQ(*staged.question.train.seq, 1280);
  EXPECT_EQ(std::fmod(*staged.question.train.batch_tokens, 1280), 0);
  EXPECT_GT(*staged.question.train.batch_tokens, tokens);
  q.pack = 1024;
  EXPECT_THROW(rl_answer(q, Catalog{}), UserError);
}

/// By the framework of the trainer's stack: 2 x (weights and optimizer) at 2.5 GB/s, the weights three times for the
/// reference pass, the engine's out and in, the whole model at 90 GB/s into the engine.
TEST(RlSteps, StateAndWeightsMoveAtTheRatesOfTheFramework) {
  RlQuestion q = question();
  q.train.stack = "nemo";
  q.placement = RlPlacement::kColocated;
  const RlPlan plan = rl_answer(q, Catalog{}).plans.front();
  EXPECT_TRUE(plan.offloaded);
  EXPECT_DOUBLE_EQ(part(plan, "state_swap"), 2 * plan.policy->kept_bytes() / 2.5e9);
  EXPECT_DOUBLE_EQ(part(plan, "reference_weights"), 3 * plan.policy->ranked.plan.memory.weights.value() / 2.5e9);
  EXPECT_DOUBLE_EQ(part(plan, "engine_sleep"), 2 * plan.generation.weight_bytes / 2.5e9);
  EXPECT_NEAR(part(plan, "weight_sync"), 2 * 1.2358144e9 / 90e9, 1e-9);
  q.train.stack = "megatron";
  const RlPlan other = rl_answer(q, Catalog{}).plans.front();
  EXPECT_LT(part(other, "reference_weights"), part(plan, "reference_weights"));
  EXPECT_FALSE(has(other, "engine_sleep"));
}

TEST(RlSteps, AnEngineHasTheChipsMemoryAndSequencesItIsGiven) {
  RlQuestion q = question();
  q.generator_chips = 8;
  q.placement = RlPlacement::kSplit;
  const RlPlan plan = rl_answer(q, Catalog{}).plans.front();
  EXPECT_EQ(plan.generator_chips, 8);
  EXPECT_EQ(plan.trainer_chips, 8);
  q.engine_memory = 0.5;
  const RlPlan half = rl_answer(q, Catalog{}).plans.front();
  ASSERT_EQ(half.generation.layout, plan.generation.layout);
  EXPECT_NEAR(plan.generation.kv_bytes - half.generation.kv_bytes, (0.92 - 0.5) * 85.899e9, 0.001e9);
  q.engine_sequences = 1;
  const RlPlan alone = rl_answer(q, Catalog{}).plans.front();
  EXPECT_DOUBLE_EQ(alone.generation.mean_batch, 1);
  EXPECT_GT(part(alone, "generation"), part(half, "generation"));
}

/// Twice the responses generated and as many trained on.
TEST(RlSteps, DynamicSamplingGeneratesMoreThanItTrainsOn) {
  RlQuestion q = question();
  q.generator_chips = 8;
  q.placement = RlPlacement::kSplit;
  const RlPlan plain = rl_answer(q, Catalog{}).plans.front();
  q.oversample = 2;
  const RlPlan twice = rl_answer(q, Catalog{}).plans.front();
  EXPECT_GT(part(twice, "generation"), part(plain, "generation"));
  EXPECT_DOUBLE_EQ(part(twice, "policy_update"), part(plain, "policy_update"));
}

TEST(RlSteps, WithoutReferenceAndOldLogprobsOnlyTheUpdateIsLeftOfTheTrainingSide) {
  RlQuestion q = question();
  q.placement = RlPlacement::kColocated;
  q.reference = "none";
  q.engine_logprobs = true;
  const RlAnswer answer = rl_answer(q, Catalog{});
  ASSERT_EQ(answer.plans.size(), 1U);
  const RlPlan& plan = answer.plans.front();
  EXPECT_DOUBLE_EQ(value_of(plan.trainer_busy), part(plan, "policy_update"));
  EXPECT_DOUBLE_EQ(part(plan, "policy_update"), plan.policy->step_s);
  EXPECT_FALSE(has(plan, "reference"));
  EXPECT_FALSE(has(plan, "values"));
}

TEST(RlSteps, PpoTrainsACriticAndARewardModelPasses) {
  RlQuestion q = question();
  q.placement = RlPlacement::kColocated;
  const double grpo = value_of(rl_answer(q, Catalog{}).plans.front().step);
  q.algorithm = RlAlgorithm::kPpo;
  q.reward = "llama3.2-3b";
  const RlAnswer answer = rl_answer(q, Catalog{});
  const RlPlan& plan = answer.plans.front();
  EXPECT_GT(value_of(plan.step), grpo);
  EXPECT_GT(part(plan, "critic_update"), 0);
  EXPECT_GT(part(plan, "values"), 0);
  EXPECT_GT(part(plan, "reward"), 0);
}

TEST(RlSteps, AForwardPassTakesAboutAThirdOfAnUpdate) {
  const RlPlan plan = rl_answer(question(), Catalog{}).plans.front();
  const double share = plan.policy->forward_s / plan.policy->step_s;
  EXPECT_GT(share, 0.2);
  EXPECT_LT(share, 0.45);
}

TEST(RlSteps, OneStepAheadIsTheLongerHalf) {
  RlQuestion q = question();
  q.placement = RlPlacement::kSplit;
  q.depth = 1;
  const RlPlan plan = rl_answer(q, Catalog{}).plans.front();
  EXPECT_DOUBLE_EQ(value_of(plan.step),
                   std::max(value_of(plan.generator_busy), value_of(plan.trainer_busy)) + part(plan, "weight_sync"));
  EXPECT_GE(plan.idle_share.value(), 0);
  EXPECT_LT(plan.idle_share.value(), 1);
}

TEST(RlSteps, AStateThatStaysLeavesLessCacheAndMovesNothing) {
  RlQuestion q = question();
  q.placement = RlPlacement::kColocated;
  q.state = TrainerState::kResident;
  const RlPlan resident = rl_answer(q, Catalog{}).plans.front();
  q.state = TrainerState::kOffloaded;
  const RlPlan offloaded = rl_answer(q, Catalog{}).plans.front();
  EXPECT_FALSE(resident.offloaded);
  EXPECT_TRUE(offloaded.offloaded);
  EXPECT_FALSE(has(resident, "state_swap"));
  EXPECT_GT(part(offloaded, "state_swap"), 0);
  EXPECT_LT(resident.generation.kv_bytes, offloaded.generation.kv_bytes);
}

TEST(RlSteps, FormulasGiveTheFiguresThatWereSearchedWith) {
  const RlAnswer answer = rl_answer(question(), Catalog{});
  const RlPlan& plan = answer.plans.front();
  const PlanReading<Traced> trainer = explain_plan(*plan.policy);
  EXPECT_DOUBLE_EQ(value_of(trainer.time.total()), plan.policy->ranked.plan.step_s);
  EXPECT_DOUBLE_EQ(value_of(trainer.memory.total()), plan.policy->total_bytes());
  EXPECT_DOUBLE_EQ(value_of(explain_decode(answer.engine->systems.front().serving, plan.generation)),
                   plan.generation.decode_s);
}

TEST(RlSteps, AnEngineThatGivesItsChipsAwayFinishesWhatItBegan) {
  RlQuestion q = question();
  const auto colocated = [](const RlAnswer& answer) {
    return std::find_if(answer.plans.begin(), answer.plans.end(),
                        [](const RlPlan& p) { return p.placement == RlPlacement::kColocated; })
        ->generation.seconds;
  };
  const double in_step = colocated(rl_answer(q, Catalog{}));
  q.depth = 4;
  EXPECT_DOUBLE_EQ(colocated(rl_answer(q, Catalog{})), in_step);
}

TEST(RlSteps, NothingFitsSaysWhatIsShort) {
  RlQuestion q = question(1);
  q.train.model = q.engine.model = "llama3.1-70b";
  const RlAnswer answer = rl_answer(q, Catalog{});
  EXPECT_TRUE(answer.plans.empty());
  EXPECT_FALSE(answer.run.has_value());
  ASSERT_FALSE(answer.shortages.empty());
  EXPECT_GT(answer.shortages.front().needs, answer.shortages.front().has);
}

}  // namespace
}  // namespace scalecalc
