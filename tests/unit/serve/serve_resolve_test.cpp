#include "serve/serve_question.h"

#include <gtest/gtest.h>

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

TEST(DraftModel, OfEagle3FitsItsTargetAlone) {
  const SpeculationAsked asked{kDraft, 4, 0.7};
  const ModelSpec target = load_model(Catalog().load(CatalogKind::kModel, "llama3-8b"));
  EXPECT_EQ(draft_model(asked, target, Catalog()).head_width(), 32000);
  const ModelSpec large = load_model(Catalog().load(CatalogKind::kModel, "llama3-70b"));
  EXPECT_THROW(draft_model(asked, large, Catalog()), UserError) << "states of 4096 from a model of 8192";
}

TEST(ResolveServing, RefusesWhatDecodesNoVocabulary) {
  ServeQuestion question;
  question.hardware = {"h100-sxm"};
  question.model = kDraft;
  EXPECT_NE(refusal(question).find("is a draft: it decodes from states of its target"), std::string::npos)
      << refusal(question);
  question.model = "llama3-8b";
  question.set = {"model.head_outputs=0"};
  EXPECT_NE(refusal(question).find("has no head over its vocabulary to decode with, but none at all"),
            std::string::npos)
      << refusal(question);
}

}  // namespace
}  // namespace scalecalc
