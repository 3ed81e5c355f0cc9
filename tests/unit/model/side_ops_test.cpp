// Operations beside attention and MLP by hand, with d_model 64: residual streams, earlier blocks, compressed caches,
// prediction modules, poolers.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "model/accounting.h"
#include "model/op_list.h"
#include "model/ops.h"
#include "model/sharding.h"
#include "unit/model/small_model.h"

namespace scalecalc {
namespace {

ModelSpec model_of_64() {
  ModelSpec model = test::small_model();
  model.kinds = {{MixerKind::kFull, FfnKind::kDense}};
  model.layer_kind.assign(8, 0);
  return model;
}

std::vector<Op<double>> layer_of(const ModelSpec& model, const LayerKind& kind) {
  return layer_ops(model, kind, read_dims(Reader<double>{}, model));
}

const Op<double>& op_named(const std::vector<Op<double>>& ops, std::string_view name) {
  for (const Op<double>& op : ops) {
    if (op.name == name) return op;
  }
  throw std::out_of_range(std::string(name));
}

/// Four blocks of two layers: in the mean two stand before a layer, and its own input. A score is 8 FLOPs an element.
TEST(SideOps, ResidualsOverEarlierBlocks) {
  ModelSpec model = model_of_64();
  model.residual_block = 2;
  const Op<double> op = op_named(layer_of(model, model.kinds[0]), "residual over earlier blocks");
  EXPECT_EQ(op.reads, 64 * 3);
  EXPECT_EQ(op.writes, 64);
  EXPECT_EQ(op.flops, 64 * 3 * 8);
  EXPECT_EQ(op.extra_parameters, 2 * 64);
}

/// Two streams: one more is kept, (2 + 2) x 2 weights mix both before each part, read and written once each way; a sum
/// of both for each element of both.
TEST(SideOps, StreamsAreMixed) {
  for (const std::int64_t count : {2, 4}) {
    ModelSpec model = model_of_64();
    model.streams = {.count = count};
    const auto m = static_cast<double>(count);
    const std::vector<Op<double>> ops = layer_of(model, model.kinds[0]);
    EXPECT_EQ(op_named(ops, "residual streams").saved, 64 * (m - 1));
    const Op<double> mixer = op_named(ops, "stream mixer");
    EXPECT_EQ(mixer.k, 64 * m);
    EXPECT_EQ(mixer.n, (2 + m) * m);
    EXPECT_EQ(mixer.extra_parameters, (2 + m) * m + 3);
    const Op<double> sums = op_named(ops, "stream mixing");
    EXPECT_EQ(sums.reads, 64 * m * 2);
    EXPECT_EQ(sums.writes, 64 * m);
    EXPECT_EQ(sums.flops, 64 * m * m * 2);
  }
}

TEST(SideOps, PerLayerVectorsAreGated) {
  ModelSpec model = model_of_64();
  model.per_layer_embedding = PerLayerEmbedding{.width = 16, .vocab = 50};
  const Op<double> gate = op_named(layer_of(model, model.kinds[0]), "per-layer gate");
  EXPECT_EQ(gate.reads, 32);
  EXPECT_EQ(gate.writes, 16);
  EXPECT_EQ(gate.flops, 8 * 16);
  EXPECT_EQ(gate.saved, 16);
}

/// Four heads of 16, an entry for four tokens from windows of eight: two vectors and two gates of 16 of a token, a
/// position bias for each of four tokens, and a norm. An index head of 8 scores entries, of which there are a quarter.
TEST(SideOps, CompressedCaches) {
  ModelSpec model = model_of_64();
  model.attention.compressed =
      CompressedSpec{.q_lora_rank = 32, .o_lora_rank = 16, .o_groups = 2, .csa_ratio = 4, .hca_ratio = 8};
  model.attention.indexer = IndexerSpec{.heads = 3, .head_dim = 8, .top_k = 5};
  model.attention.window = 10;
  const std::vector<Op<double>> csa = layer_of(model, {MixerKind::kCsa, FfnKind::kNone});
  const Op<double> entry = op_named(csa, "compressor projection");
  EXPECT_EQ(entry.k, 64);
  EXPECT_EQ(entry.n, 2 * 2 * 16);
  EXPECT_EQ(entry.extra_parameters, 4 * 2 * 16 + 16);
  const Op<double> compression = op_named(csa, "compression");
  EXPECT_EQ(compression.reads, 2 * 2 * 16);
  EXPECT_EQ(compression.writes, 16.0 / 4);
  EXPECT_EQ(compression.flops, 6 * 2 * 16);
  const Op<double> scores = op_named(csa, "index scores");
  EXPECT_EQ(scores.qk_width, 3 * 8.0 / 4);
  EXPECT_EQ(scores.shared, 8.0 / 4);
  EXPECT_EQ(scores.saved, 2 * 5);
  EXPECT_EQ(op_named(csa, "index compressor projection").n, 2 * 2 * 8);
  const Op<double> chosen = op_named(csa, "chosen attention");
  EXPECT_EQ(chosen.span, 5 * 4);
  EXPECT_EQ(chosen.qk_width, 64.0 / 4);
  EXPECT_EQ(chosen.shared, 16.0 / 4);
  EXPECT_EQ(op_named(csa, "window attention").span, 10);
  const std::vector<Op<double>> hca = layer_of(model, {MixerKind::kHca, FfnKind::kNone});
  EXPECT_EQ(op_named(hca, "compressor projection").n, 2 * 16);
  EXPECT_EQ(op_named(hca, "compressor projection").extra_parameters, 8 * 16 + 16);
  EXPECT_EQ(op_named(hca, "compression").writes, 16.0 / 8);
  EXPECT_EQ(op_named(hca, "compressed attention").qk_width, 64.0 / 8);
}

/// Index queries come from the query latent where there is one, else from the token.
TEST(SideOps, AnIndexerReadsTheLatentOrTheToken) {
  ModelSpec model = model_of_64();
  model.attention.indexer = IndexerSpec{.heads = 3, .head_dim = 8, .top_k = 5};
  const auto source = [&](MixerKind mixer) {
    return op_named(layer_of(model, {mixer, FfnKind::kNone}), "index query projection").k;
  };
  EXPECT_EQ(source(MixerKind::kFull), 64);
  model.attention.mla =
      MlaSpec{.q_lora_rank = 24, .kv_lora_rank = 32, .qk_nope_head_dim = 16, .qk_rope_head_dim = 8, .v_head_dim = 16};
  EXPECT_EQ(source(MixerKind::kMla), 24);
  model.attention.mla->q_lora_rank = 0;
  EXPECT_EQ(source(MixerKind::kMla), 64);
}

/// Keys and values of what is attended to divide over its two KV heads, not four tensor ranks.
TEST(SideOps, CrossAttentionHasItsKvHeads) {
  const ModelSpec model = model_of_64();
  const Op<double> kv = op_named(layer_of(model, {MixerKind::kCross, FfnKind::kNone}), kCrossKeysValues);
  EXPECT_EQ(kv.groups, 2);
  EXPECT_EQ(kv.n, 2 * 2 * 16);
  EXPECT_EQ(kv.values, 2 * 16);
}

/// Norms of the state before, the next embedding and the result; the head is used once more by each module.
TEST(SideOps, PredictionModules) {
  ModelSpec model = model_of_64();
  model.mtp_layers = 2;
  const std::vector<Op<double>> ops = mtp_ops(model, read_dims(Reader<double>{}, model));
  const Op<double> norms = op_named(ops, "mtp norms");
  EXPECT_EQ(norms.reads, 3 * 64);
  EXPECT_EQ(norms.writes, 3 * 64);
  EXPECT_EQ(norms.flops, 12 * 64);
  EXPECT_EQ(norms.saved, 3 * 64);
  EXPECT_EQ(norms.extra_parameters, 3 * 64);
  EXPECT_EQ(op_named(ops, "mtp projection").k, 2 * 64);
  EXPECT_DOUBLE_EQ(training_flops(model, 128, true).ends, 3 * training_flops(model, 128, false).ends);
}

TEST(SideOps, PoolersAndTransformsHaveTheirNames) {
  ModelSpec model = model_of_64();
  const auto head = [&] { return head_ops(model, read_dims(Reader<double>{}, model)); };
  model.head_dense = HeadDense::kPooler;
  EXPECT_EQ(op_named(head(), "pooler").n, 64);
  EXPECT_EQ(op_named(head(), "pooler").rows, 0);
  model.head_dense = HeadDense::kTransform;
  EXPECT_EQ(op_named(head(), "head transform").n, 64);
  EXPECT_EQ(op_named(head(), "head transform").rows, 1);
}

TEST(SideOps, WidthsThatDoNotDivideAreNamed) {
  ModelSpec model = model_of_64();
  model.d_model = 100;
  const std::vector<std::string> found = undivided_widths(model, 8);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(found[0].find("d_model 100"), std::string::npos) << found[0];
  model.mlp.d_ff = 132;
  EXPECT_EQ(undivided_widths(model, 8).size(), 2U);
  EXPECT_TRUE(undivided_widths(model, 4).empty());
}

}  // namespace
}  // namespace scalecalc
