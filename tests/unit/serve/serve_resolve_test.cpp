#include "serve/serve_question.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/diagnostic.h"
#include "spec/load.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

DType computed(const HardwareSpec& hw, WeightFormat weights, std::optional<WeightFormat> experts = {}) {
  QuantizationSpec stored;
  stored.weights = weights;
  stored.parts[static_cast<std::size_t>(WeightPart::kExperts)] = experts;
  return usual_compute(stored, hw);
}

TEST(UsualCompute, FloatsComputeAsSuchWhereTheChipCan) {
  const HardwareSpec hopper = test::shipped_chip("h100-sxm");  // bf16, fp8, int8
  EXPECT_EQ(computed(hopper, WeightFormat::kFp8), DType::kFp8);
  EXPECT_EQ(computed(hopper, WeightFormat::kNvfp4), DType::kBf16);
  EXPECT_EQ(computed(test::shipped_chip("b200"), WeightFormat::kNvfp4), DType::kFp4);
  EXPECT_EQ(computed(test::shipped_chip("a100-80g"), WeightFormat::kFp8), DType::kBf16);
}

TEST(UsualCompute, IntegersAreWidened) {
  EXPECT_EQ(computed(test::shipped_chip("h100-sxm"), WeightFormat::kInt8), DType::kBf16);
  EXPECT_EQ(computed(test::shipped_chip("h100-sxm"), WeightFormat::kInt4), DType::kBf16);
}

TEST(UsualCompute, ExpertsOfTheirOwnFormatDecide) {
  EXPECT_EQ(computed(test::shipped_chip("b200"), WeightFormat::kBf16, WeightFormat::kMxfp4), DType::kFp8);
  EXPECT_EQ(computed(test::shipped_chip("h100-sxm"), WeightFormat::kBf16, WeightFormat::kMxfp4), DType::kBf16);
}

const std::string kDraft = SCALECALC_SOURCE_DIR "/tests/data/hf/llama-3-8b-eagle3.json";

std::string refusal(const ServeQuestion& question) {
  try {
    resolve_serving(question, Catalog());
    return "";
  } catch (const UserError& error) {
    return error.diagnostics().front().message;
  }
}

TEST(ServeResolve, AFormatThatNoWeightsAreMultipliedInIsRefused) {
  const auto asked = [](DType compute, WeightFormat weights) {
    ServeQuestion q;
    q.model = "llama3-8b";
    q.hardware = {"h100-sxm"};
    q.chips = 1;
    q.compute = compute;
    q.weights = QuantizationSpec{.weights = weights, .bits_per_weight = bits_of(weights), .source = "test"};
    return q;
  };
  EXPECT_NE(refusal(asked(DType::kFp8, WeightFormat::kBf16)).find("--flops fp8"), std::string::npos);
  EXPECT_NE(refusal(asked(DType::kInt8, WeightFormat::kFp16)).find("--flops int8"), std::string::npos);
  EXPECT_EQ(refusal(asked(DType::kInt8, WeightFormat::kInt8)), "");
  EXPECT_EQ(refusal(asked(DType::kFp16, WeightFormat::kBf16)), "");
  ServeQuestion prompts = asked(DType::kFp8, WeightFormat::kBf16);
  prompts.mfu = 0.4;  // of that format's rate
  EXPECT_EQ(refusal(prompts), "");
  // No part of a dense model is an expert's.
  ServeQuestion absent = asked(DType::kFp8, WeightFormat::kBf16);
  absent.weights->parts[static_cast<std::size_t>(WeightPart::kExperts)] = WeightFormat::kFp8;
  EXPECT_NE(refusal(absent), "");
  absent.model = "mixtral-8x7b";
  EXPECT_EQ(refusal(absent), "");
}

/// The system that one chip is where no engine is named.
ServingSystem usually_served(const std::string& chip) {
  ServeQuestion question;
  question.model = "llama3-8b";
  question.hardware = {chip};
  question.chips = 1;
  return resolve_serving(question, Catalog()).systems.front().serving;
}

TEST(UsualEngine, IsTheChipsElseItsFamilysElseVllm) {
  EXPECT_EQ(usually_served("groq-lpu").engine.name, "groq");
  EXPECT_EQ(usually_served("epyc-9965").engine.name, "cpu");
  EXPECT_EQ(usually_served("tpu-v5e").engine.name, "jetstream");
  EXPECT_EQ(usually_served("inferentia2").engine.name, "transformers-neuronx") << "a ring, and no TPU";
  EXPECT_EQ(usually_served("gaudi3").engine.name, "vllm-gaudi");
  EXPECT_EQ(usually_served("h100-sxm").engine.name, "vllm");
}

/// No CUDA graphs and no sampler's copies where nothing is launched: the cache gets all that weights, activations and
/// the program leave. macOS lets the GPU have three quarters.
TEST(UsualEngine, MachinesThatAreNoGpusHaveTheirOwnMemoryRule) {
  for (const char* chip : {"groq-lpu", "cerebras-wse3", "graphcore-bow", "sambanova-sn40l", "epyc-9965"}) {
    const EngineRules rules = usually_served(chip).engine;
    EXPECT_EQ(rules.rule, CacheRule::kAll) << chip;
    EXPECT_EQ(rules.graph_bytes + rules.sampler_copies, 0) << chip;
  }
  const EngineRules mlx = usually_served("apple-m2-ultra").engine;
  EXPECT_DOUBLE_EQ(mlx.share_of({}), 0.75);
  EXPECT_EQ(mlx.graph_bytes, 0);
}

/// 70.6B weights of 8 bits are 292 chips of 230 MiB: 64 do not hold them, so up to 512 are asked (1,024 are more than
/// the 576 that Groq joins); 64 H100 hold them 77 times.
TEST(ResolveServing, AsksForAsManyChipsAsHoldTheWeights) {
  ServeQuestion question;
  question.model = "llama3.1-70b";
  question.weights.emplace().weights = WeightFormat::kInt8;
  const auto most = [&](const char* chip) {
    question.hardware = {chip};
    return resolve_serving(question, Catalog()).systems.front().chip_counts.back();
  };
  EXPECT_EQ(most("groq-lpu"), 512);
  EXPECT_EQ(most("h100-sxm"), 64);
  EXPECT_EQ(most("sambanova-sn40l"), 1) << "no rate between chips is published";
}

/// Its matrix unit multiplies fp8 and fp4 alone.
TEST(ResolveServing, SaysWhatAChipWithout16BitsCannotCost) {
  ServeQuestion question;
  question.model = "llama3-8b";
  question.hardware = {"maia-200"};
  EXPECT_EQ(refusal(question).find("maia-200 publishes no rate for bf16 or fp16, in one of which bf16 weights"), 0U)
      << refusal(question);
  question.weights.emplace().weights = WeightFormat::kFp8;
  question.weights->bits_per_weight = 8;
  const ServeAnswer answer = resolve_serving(question, Catalog());
  EXPECT_TRUE(std::any_of(answer.assumptions.begin(), answer.assumptions.end(), [](const Assumption& a) {
    return a.warning && a.text.find("publishes no 16-bit matmul rate") != std::string::npos;
  }));
}

/// Of TPU 8t neither pod nor slices are published.
TEST(ResolveServing, SaysWhereNoCountOfChipsIsKnown) {
  ServeQuestion question;
  question.model = "llama3-8b";
  question.hardware = {"tpu-8t"};
  question.weights.emplace().weights = WeightFormat::kNvfp4;
  question.weights->bits_per_weight = 4.5;
  EXPECT_EQ(refusal(question).find("tpu-8t does not say which counts of its chips there are"), 0U) << refusal(question);
}

TEST(DraftModel, OfEagle3FitsItsTargetAlone) {
  const SpeculationAsked asked{kDraft, 4, 0.7};
  const ModelSpec target = load_model(Catalog().load(CatalogKind::kModel, "llama3-8b"));
  EXPECT_EQ(draft_model(asked, target, Catalog()).head_width(), 32000);
  const ModelSpec large = load_model(Catalog().load(CatalogKind::kModel, "llama3-70b"));
  EXPECT_THROW(draft_model(asked, large, Catalog()), UserError) << "states of 4096 from a model of 8192";
}

/// vLLM 0.11.0 is of 2025-10-02, 0.12.0 of 2025-12-03 (its releases on GitHub).
TEST(ResolveServing, TheEngineMayBeThatOfADate) {
  ServeQuestion question;
  question.hardware = {"h100-sxm"};
  question.model = "llama3-8b";
  question.engine = "vllm";
  question.as_of = "2025-11-15";
  EXPECT_EQ(resolve_serving(question, Catalog()).systems.front().serving.engine.version, "0.11");
  question.engine = "vllm@0.12";
  EXPECT_NE(refusal(question).find("both say which release"), std::string::npos) << refusal(question);
  question.engine = "vllm";
  question.as_of = "autumn";
  EXPECT_NE(refusal(question).find("is not a date"), std::string::npos) << refusal(question);
}

TEST(ResolveServing, RefusesADraftAlone) {
  ServeQuestion question;
  question.hardware = {"h100-sxm"};
  question.model = kDraft;
  EXPECT_NE(refusal(question).find("is a draft: it decodes from states of its target"), std::string::npos)
      << refusal(question);
}

}  // namespace
}  // namespace scalecalc
