// A training question to one model of each family of the catalog, and what is answered where a model file is silent.
#include <gtest/gtest.h>

#include <cmath>

#include "base/diagnostic.h"
#include "train/question.h"
#include "train/resolve.h"

namespace scalecalc {
namespace {

TrainQuestion question(const std::string& model, const std::string& hardware = "h100-sxm", std::int64_t chips = 64) {
  TrainQuestion q{.model = model, .hardware = hardware, .chips = chips};
  q.seq = 4096;
  q.batch_tokens = 1 << 20;
  q.precision = "bf16";
  q.optimizer = "adam";
  q.top = 1;
  return q;
}

bool assumes(const TrainAnswer& a, const std::string& words) {
  return std::any_of(a.assumptions.begin(), a.assumptions.end(),
                     [&](const Assumption& x) { return x.text.find(words) != std::string::npos; });
}

struct FamilyCase {
  const char* model;
  const char* hardware = "h100-sxm";
  std::int64_t chips = 64;
};

class Families : public testing::TestWithParam<FamilyCase> {};

/// A plan exists, its causes sum to the step, no figure is out of bounds, and every formula can be explained.
TEST_P(Families, Train) {
  const FamilyCase& f = GetParam();
  TrainQuestion q = question(f.model, f.hardware, f.chips);
  q.explain = true;
  const TrainAnswer a = answer(q, Catalog());
  ASSERT_EQ(a.plans.size(), 1U) << either_of(a.would_fit);
  const auto& [plan, figures] = a.plans.front();
  EXPECT_GT(figures.mfu, 0.05);
  EXPECT_LT(figures.mfu, 1);
  EXPECT_GE(figures.hfu, figures.mfu);
  double step = 0;
  for (const auto& [cause, seconds] : figures.time_s) {
    EXPECT_TRUE(std::isfinite(seconds) && seconds >= 0) << cause;
    step += seconds;
  }
  EXPECT_NEAR(step, plan.step_s, 1e-9 * plan.step_s);
  EXPECT_LE(plan.memory.total().value(), a.hw.hbm_capacity.value());
  EXPECT_LT(figures.step_low_s, plan.step_s);
  EXPECT_GT(figures.step_high_s, plan.step_s);
  ASSERT_GE(a.explanation.size(), 3U);
  for (const ExplainSection& section : a.explanation) {
    for (const ExplainedStep& s : section.steps) EXPECT_TRUE(std::isfinite(s.value)) << s.name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Catalog, Families,
    testing::Values(FamilyCase{"llama3.2-3b"}, FamilyCase{"qwen2.5-7b"}, FamilyCase{"gemma-3-4b", "tpu-v5p"},
                    FamilyCase{"mistral-7b-v0.1"}, FamilyCase{"phi-4"}, FamilyCase{"olmo-2-7b", "mi300x"},
                    FamilyCase{"gpt2-1.5b"}, FamilyCase{"opt-350m"}, FamilyCase{"pythia-6.9b"},
                    FamilyCase{"falcon-40b"}, FamilyCase{"gpt-j-6b"}, FamilyCase{"command-r-plus"},
                    FamilyCase{"palm-62b", "tpu-v4"}, FamilyCase{"gopher-280b", "tpu-v5p", 512},
                    FamilyCase{"bloom-176b", "a100-80g", 128}, FamilyCase{"megatron-korthikanti-22b", "a100-80g"},
                    FamilyCase{"nemotron-4-15b"}, FamilyCase{"dbrx"}, FamilyCase{"grok-1", "h200", 128},
                    FamilyCase{"gpt-oss-20b"}, FamilyCase{"deepseek-v2-lite"}, FamilyCase{"deepseek-v3.2", "b200", 256},
                    FamilyCase{"glm-4.5-air"}, FamilyCase{"llama4-scout", "tpu-v5p"},
                    FamilyCase{"minimax-m1", "b200", 128}, FamilyCase{"qwen3-next-80b-a3b"}, FamilyCase{"jamba-v0.1"},
                    FamilyCase{"nemotron-3-nano-30b-a3b"}, FamilyCase{"nemotron-3-super-120b-a12b", "b200", 64},
                    FamilyCase{"llama3.3-nemotron-super-49b"}, FamilyCase{"moonlight-16b-a3b"},
                    FamilyCase{"book/ch4-quiz", "tpu-v5p"}),
    [](const auto& test) {
      std::string name = test.param.model;
      for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
      return name;
    });

TEST(SilentModelFile, TheBatchIsThatOfModelsOfItsSize) {
  TrainQuestion q = question("qwen3-next-80b-a3b");
  q.batch_tokens.reset();
  const TrainAnswer a = answer(q, Catalog());
  EXPECT_FALSE(a.plans.empty());
  // 3.87B active parameters: 10,500 x 3.87e9^0.245 = 2.35M, and the power of two nearest to it in ratio is 2^21.
  EXPECT_EQ(a.workload.batch_seqs * 4096, 1 << 21);
  EXPECT_TRUE(assumes(a, "batch of 2.1M tokens (512 sequences of 4,096)"));
}

TEST(SilentModelFile, AnAssumedBatchHasASequence) {
  TrainQuestion q = question("pythia-14m");
  q.set = {"model.training.batch_tokens=4Ki", "model.max_seq=8Mi"};
  q.batch_tokens.reset();
  q.seq = 8192;
  EXPECT_THROW(resolve(q, Catalog()), UserError) << "a published batch of less is a wrong question";
  q.model = "qwen2.5-0.5b";
  q.set = {"model.max_seq=8Mi"};
  q.seq = 8 << 20;
  EXPECT_EQ(resolve(q, Catalog()).workload.batch_seqs, 1);
}

// No model of the catalog needs more than a name, a chip and how many.
TEST(SilentModelFile, EveryModelAnswers) {
  const Catalog catalog;
  for (const std::string& model : catalog.names(CatalogKind::kModel)) {
    try {
      const ResolvedQuestion job = resolve({.model = model, .hardware = "h100-sxm", .chips = 64}, catalog);
      EXPECT_GE(job.workload.batch_seqs, 1) << model;
      EXPECT_TRUE(std::any_of(job.assumptions.begin(), job.assumptions.end(), [](const Assumption& a) {
        return a.flag == "--batch-tokens" && !a.source.empty();
      })) << model;
    } catch (const UserError& e) {
      ADD_FAILURE() << model << ": " << e.what();
    }
  }
}

TEST(SilentModelFile, TheRestIsAssumedByName) {
  TrainQuestion q = question("qwen3-next-80b-a3b");
  q.seq.reset();
  q.precision.reset();
  q.optimizer.reset();
  const TrainAnswer a = answer(q, Catalog());
  EXPECT_EQ(a.workload.seq, 8192) << "the model's 262,144, at most 8,192";
  EXPECT_EQ(a.workload.precision.name, "bf16");
  EXPECT_EQ(a.workload.optimizer.name, "adam");
  EXPECT_TRUE(assumes(a, "sequences of 8,192 tokens"));
  EXPECT_TRUE(assumes(a, "precision bf16"));
  EXPECT_TRUE(assumes(a, "optimizer adam"));
  EXPECT_TRUE(assumes(a, "recurrences run at the rates of attention"));
  q.model = "opt-66b";
  EXPECT_EQ(answer(q, Catalog()).workload.precision.name, "fp16") << "published";
  q.model = "opt-1.3b";
  EXPECT_EQ(answer(q, Catalog()).workload.precision.name, "bf16") << "published in fp16, which torchtitan has not";
}

TEST(SilentModelFile, WithoutTokensTheRunIsLeftOut) {
  TrainQuestion q = question("qwen3-next-80b-a3b");
  const TrainAnswer a = answer(q, Catalog());
  ASSERT_FALSE(a.plans.empty());
  EXPECT_FALSE(a.workload.tokens);
  EXPECT_FALSE(a.plans.front().figures.run);
  EXPECT_TRUE(assumes(a, "days, dollars and energy of the run are left out"));
  EXPECT_FALSE(assumes(a, "energy at the full"));
  q.tokens = 1e12;
  const TrainAnswer b = answer(q, Catalog());
  ASSERT_TRUE(b.plans.front().figures.run);
  EXPECT_EQ(b.plans.front().figures.run->tokens, 1e12);
  EXPECT_FALSE(assumes(b, "left out"));
}

}  // namespace
}  // namespace scalecalc
