#include "model/kv_cache.h"

#include <gtest/gtest.h>

#include "support/fixtures.h"

namespace scalecalc {
namespace {

TEST(KvCache, GrowsByKeysAndValuesOfTheKvHeads) {
  const KvCache cache = kv_cache(test::dense_model(8));
  ASSERT_EQ(cache.kinds.size(), 1U);
  EXPECT_EQ(cache.kinds[0], (LayerCache{.layers = 8, .token_elements = 2 * 4 * 64, .ways = 4}));
  EXPECT_EQ(cache.elements_per_token(), 8 * 512);
  EXPECT_EQ(cache.sequence_bytes(1000, {}), 8 * 512 * 2 * 1000.0);
  EXPECT_EQ(cache.sequence_bytes(1000, {.token_bytes = 1}), 8 * 512 * 1000.0);
}

TEST(KvCache, DividesOverTensorRanksUpToTheKvHeads) {
  const KvCache cache = kv_cache(test::dense_model(8));
  EXPECT_EQ(cache.sequence_bytes(1000, {}, 4), cache.sequence_bytes(1000, {}) / 4);
  EXPECT_EQ(cache.sequence_bytes(1000, {}, 16), cache.sequence_bytes(1000, {}) / 4) << "4 KV heads, repeated";
}

TEST(KvCache, LayersThatDifferInTheirFfnAloneAreOneKind) {
  const KvCache cache = kv_cache(test::moe_model(8));
  ASSERT_EQ(cache.kinds.size(), 1U);
  EXPECT_EQ(cache.kinds[0].layers, 8);
}

TEST(KvCache, WindowsAndChunksStopGrowing) {
  ModelSpec model = test::dense_model(4);
  model.attention.window = 100;
  model.attention.chunk = 300;
  model.attention.local = AttentionShape{.heads = 16, .kv_heads = 2, .head_dim = 32, .v_head_dim = 16};
  model.kinds = {{MixerKind::kFull}, {MixerKind::kSliding}, {MixerKind::kChunked}};
  model.layer_kind = {0, 1, 1, 2};
  const KvCache cache = kv_cache(model);
  const double full = 512, sliding = 2 * (32 + 16);
  EXPECT_EQ(cache.elements_per_token(), 2 * full + 2 * sliding);
  EXPECT_EQ(cache.unlimited_elements_per_token(), full);
  EXPECT_EQ(cache.sequence_bytes(1000, {}), 2 * (1000 * full + 2 * 100 * sliding + 300 * full));
  EXPECT_EQ(cache.sequence_bytes(50, {}), 2 * 50 * cache.elements_per_token()) << "before any limit is reached";
}

/// DeepSeek-V2, arXiv:2405.04434: 512 + 64 elements a layer; V3.2 adds index keys of 128.
TEST(KvCache, TheLatentAndIndexKeysStayWhole) {
  const KvCache v3 = kv_cache(test::shipped_model("deepseek-v3"));
  EXPECT_EQ(v3.elements_per_token(), 61 * 576);
  EXPECT_EQ(v3.sequence_bytes(10, {}, 8), v3.sequence_bytes(10, {}));
  const KvCache v32 = kv_cache(test::shipped_model("deepseek-v3.2"));
  EXPECT_EQ(v32.elements_per_token(), 61 * (576 + 128));
  EXPECT_EQ(v32.sequence_bytes(10, {.token_bytes = 1, .index_bytes = 2}), 10 * 61 * (576 + 2 * 128));
  EXPECT_EQ(v32.bytes_per_token({}), 61 * (2 * 576 + 132)) << "index keys are 128 bytes of fp8 and a scale of four";
}

/// States by hand: gdn 32 x 128 x 128 and 3 x (2 x 16 + 32) x 128 of convolution; mamba2 64 x 64 x 128 and
/// 3 x (64 x 64 + 2 x 8 x 128); mamba1 8192 x 16 and 3 x 8192; lightning 64 x 128 x 128.
TEST(KvCache, RecurrencesKeepAStateOfConstantSize) {
  struct Case {
    const char* model;
    double layers, state, conv, kv;
  };
  const Case cases[] = {{"qwen3-next-80b-a3b", 36, 32 * 128 * 128, 3 * 64 * 128, 12 * 2 * 2 * 256},
                        {"nemotron-3-nano-30b-a3b", 23, 64 * 64 * 128, 3 * (4096 + 2048), 6 * 2 * 2 * 128},
                        {"jamba-v0.1", 28, 8192 * 16, 3 * 8192, 4 * 2 * 8 * 128},
                        {"minimax-m1", 70, 64 * 128 * 128, 0, 10 * 2 * 8 * 128}};
  for (const Case& c : cases) {
    const KvCache cache = kv_cache(test::shipped_model(c.model));
    EXPECT_EQ(cache.elements_per_token(), c.kv) << c.model;
    const double constant = c.layers * (4 * c.state + 2 * c.conv);
    EXPECT_EQ(cache.sequence_bytes(0, {}), constant) << c.model;
    EXPECT_EQ(cache.sequence_bytes(4096, {}), constant + 4096 * 2 * c.kv) << c.model;
    EXPECT_EQ(cache.sequence_bytes(0, {}, 2), constant / 2) << c.model;
  }
}

}  // namespace
}  // namespace scalecalc
