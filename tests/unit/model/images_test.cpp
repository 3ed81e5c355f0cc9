// Images beside a sequence: positions and tokens by the towers' papers, and what they add.
#include "model/images.h"

#include <gtest/gtest.h>

#include "base/diagnostic.h"
#include "import/named_model.h"
#include "model/accounting.h"
#include "model_card/model_figures.h"
#include "spec/load.h"

namespace scalecalc {
namespace {

ModelSpec with_tower(const std::string& name) {
  return load_model(load_model_document(Catalog(), SCALECALC_SOURCE_DIR "/tests/data/hf/" + name + ".json").document);
}

/// Qwen2-VL: a token for 28 x 28 pixels; 1036 x 1036 is 37 x 37. SigLIP at 896: 256 tokens of 4,096 patches of 14.
/// CLIP at 336: 577 positions, each a token here.
TEST(Images, AreTokensByTheTowersPatches) {
  ModelSpec qwen = with_tower("qwen2-vl-2b");
  ShownImages shown = show_images(qwen, images_of("2x1036x1036"), 8192);
  EXPECT_EQ(shown.tokens, 2 * 37 * 37);
  EXPECT_EQ(shown.positions, 2 * 74 * 74);
  ModelSpec gemma = with_tower("gemma-3-4b");
  shown = show_images(gemma, images_of("3x1024x1024"), 8192);
  EXPECT_EQ(shown.tokens, 3 * 256);
  EXPECT_EQ(shown.positions, 3 * 4096);
  ModelSpec llava = with_tower("llava-1.5-7b");
  EXPECT_EQ(show_images(llava, images_of("1x336x336"), 2048).positions, 577);
}

/// Qwen2-VL's tower by hand: 32 layers of 12 d^2 with d 1280, the stem 1176 d, the merger (4 d)^2 + 4 d x 1536 a token;
/// scores of 4 d a pair in 32 layers.
TEST(Images, AddTheFlopsOfTheTower) {
  ModelSpec model = with_tower("qwen2-vl-2b");
  const double seq = 8192, d = 1280;
  const TrainingFlops before = training_flops(model, seq);
  const ShownImages shown = show_images(model, images_of("2x1036x1036"), seq);
  const TrainingFlops after = training_flops(model, seq);
  const auto positions = static_cast<double>(shown.positions), tokens = static_cast<double>(shown.tokens);
  const double matmuls = 6 * (positions * (32 * 12 * d * d + 1176 * d) + tokens * (16 * d * d + 4 * d * 1536)) / seq;
  EXPECT_NEAR((after.six_n - before.six_n) / matmuls, 1, 1e-9);
  const double scores = 3 * positions * 32 * 4 * d * (positions / 2) / seq;
  EXPECT_NEAR((after.attention_causal - before.attention_causal) / scores, 1, 1e-9);
  EXPECT_EQ(count_parameters(model).total, count_parameters(with_tower("qwen2-vl-2b")).total);
}

/// Weights of towers stand beside the total, in parameters and bytes alike.
TEST(Images, TheirTowersAreBesideTheTotal) {
  const ModelSpec model = with_tower("llama-3.2-11b-vision");
  const ModelFigures f = model_figures(model, {.seq = 1024});
  EXPECT_EQ(f.total.value(), 9775192080);
  EXPECT_EQ(f.bytes.value().value(), 2 * 9775192080.0);
  EXPECT_EQ(total_bytes(f.stored), 2 * 9775192080.0);
  EXPECT_EQ(f.sums.parameters[static_cast<std::size_t>(Part::kTower)].value(), 895028755);
}

/// T5's decoder keeps keys and values of each token that its encoder reads: 12 layers of 2 x 12 heads x 64.
TEST(Towers, CrossCachesGrowWithWhatTheEncoderReads) {
  ModelSpec t5 = with_tower("t5-base");
  const double each = 12.0 * 2 * 12 * 64 * 2;
  at_length(t5, 2048);
  EXPECT_EQ(model_figures(t5, {.seq = 2048}).kv_state_bytes, each * 2048);
  at_length(t5, 512);
  EXPECT_EQ(model_figures(t5, {.seq = 512}).kv_state_bytes, each * 512);
}

/// CLIP's 577 positions attend to each other, with the whole square counted or half of it: 24 layers of 4 d a pair.
TEST(Images, TheirScoresAreNotThoseOfTheSequence) {
  ModelSpec llava = with_tower("llava-1.5-7b");
  show_images(llava, images_of("1x336x336"), 2048);
  const auto scores = [&](bool causal, double layers) {
    const ModelFigures f = model_figures(llava, {.seq = 2048, .causal = causal});
    return f.sums.scores.value().value() - layers * 4 * 4096 * (causal ? 1024 : 2048);
  };
  EXPECT_NEAR(scores(true, 32) / (577.0 / 2048 * 24 * 4 * 1024 * 577), 1, 1e-9);
  EXPECT_NEAR(scores(false, 32) / scores(true, 32), 1, 1e-9);
}

TEST(Images, OfCrossAttentionAreNoTokens) {
  ModelSpec model = with_tower("llama-3.2-11b-vision");
  const ShownImages shown = show_images(model, images_of("2x560x560"), 4096);
  EXPECT_EQ(shown.tokens, 0);
  EXPECT_EQ(model.attention.cross_tokens, 2 * 4 * 1601);
}

/// Sound that is played to Qwen3-Omni: each position is one of eight frames of 128 frequencies, through three
/// convolutions of 3 x 3 over 4 x 64, 2 x 32 and 16 of them, 480 channels each, a projection and 32 layers.
TEST(Images, SoundPassesItsConvolutionsBeforeTheyStride) {
  ModelSpec omni = with_tower("qwen3-omni-30b");
  ASSERT_EQ(omni.towers.size(), 2U);
  TowerSpec& audio = omni.towers.back();
  ASSERT_EQ(audio.name, "audio");
  const auto flops = [&](double per_token) {
    audio.per_token = per_token;
    return training_flops(omni, 1500).six_n;
  };
  const double stem = 256.0 * 9 * 480 + (64.0 + 16) * 9 * 480 * 480 + 7680.0 * 1280;
  const double layers = 32.0 * 12 * 1280 * 1280, ends = 1280.0 * 1280 + 1280 * 2048;
  EXPECT_NEAR((flops(1) - flops(0)) / (6 * (stem + layers + ends)), 1, 1e-9);
}

TEST(Images, WrongOnesAreErrors) {
  for (const char* typed : {"2x1024", "x1x1", "2x1024x1024x3", "0x1x1", "ax1x1", ""}) {
    EXPECT_THROW(images_of(typed), UserError) << typed;
  }
  ModelSpec text = with_tower("llama-3.1-8b");
  EXPECT_THROW(show_images(text, images_of("1x64x64"), 8192), UserError);
  ModelSpec qwen = with_tower("qwen2-vl-2b");
  EXPECT_THROW(show_images(qwen, images_of("9x1036x1036"), 8192), UserError);
}

}  // namespace
}  // namespace scalecalc
