// Operation lists of every kind of layer against counts by hand. The small model of these tests: d_model 64, d_ff 128.
#include "model/ops.h"

#include <gtest/gtest.h>

#include <numeric>

#include "model/accounting.h"
#include "unit/model/small_model.h"

namespace scalecalc {
namespace {

using test::small_model;

std::vector<Op<double>> ops_of(const ModelSpec& model, const LayerKind& kind) {
  return layer_ops(model, kind, read_dims(Reader<double>{}, model));
}

double parameters(const ModelSpec& model, MixerKind mixer, FfnKind ffn = FfnKind::kNone) {
  double out = 0;
  for (const Op<double>& op : ops_of(model, {mixer, ffn})) {
    if (op.part != Part::kNorm) out += op.parameters();
  }
  return out;
}

const Op<double>& named(const std::vector<Op<double>>& ops, std::string_view name) {
  for (const Op<double>& op : ops) {
    if (op.name == name) return op;
  }
  throw std::out_of_range(std::string(name));
}

double kept(const std::vector<Op<double>>& ops, Keep keep) {
  return std::accumulate(ops.begin(), ops.end(), 0.0,
                         [&](double sum, const Op<double>& op) { return sum + (op.keep == keep ? op.saved : 0); });
}

/// A model of one layer, so that differences of training FLOPs are the layer's.
TrainingFlops flops(ModelSpec model, const LayerKind& kind, double seq) {
  model.kinds = {kind};
  return training_flops(model, seq);
}

TEST(AttentionOps, ProjectionsFollowTheHeads) {
  ModelSpec model = small_model();
  EXPECT_EQ(parameters(model, MixerKind::kFull), 64 * 64 + 64 * 64 + 64 * 64);
  model.attention.v_head_dim = 8;
  EXPECT_EQ(parameters(model, MixerKind::kFull), 64 * 64 + 64 * 2 * (16 + 8) + 4 * 8 * 64);
}

TEST(AttentionOps, NormsOfQueriesAndKeys) {
  ModelSpec model = small_model();
  const double plain = parameters(model, MixerKind::kFull);
  model.attention.qk_norm = QkNorm::kHeadDim;
  EXPECT_EQ(parameters(model, MixerKind::kFull) - plain, 2 * 16);
  model.attention.qk_norm = QkNorm::kFull;
  EXPECT_EQ(parameters(model, MixerKind::kFull) - plain, 4 * 16 + 2 * 16);
}

TEST(AttentionOps, AnOutputGateIsAsWideAsTheOutput) {
  ModelSpec model = small_model();
  const double plain = parameters(model, MixerKind::kFull);
  model.attention.output_gate = true;
  EXPECT_EQ(parameters(model, MixerKind::kFull) - plain, 64 * 64);
}

TEST(AttentionOps, SlidingLayersMayHaveAShapeOfTheirOwn) {
  ModelSpec model = small_model();
  model.attention.window = 32;
  EXPECT_EQ(parameters(model, MixerKind::kSliding), parameters(model, MixerKind::kFull));
  model.attention.local = AttentionShape{.heads = 2, .kv_heads = 1, .head_dim = 8, .v_head_dim = 4};
  EXPECT_EQ(parameters(model, MixerKind::kSliding), 64 * 16 + 64 * (8 + 4) + 2 * 4 * 64);
  const Op<double> op = named(ops_of(model, {MixerKind::kSliding, FfnKind::kNone}), "attention");
  EXPECT_EQ(op.qk_width, 16);
  EXPECT_EQ(op.v_width, 8);
  EXPECT_EQ(op.groups, 1);
  EXPECT_EQ(op.shared, 8 + 4) << "keys and values of one KV head";
}

TEST(AttentionOps, RelativePositionsAddAProjectionAndASecondSetOfScores) {
  ModelSpec model = small_model();
  const double plain = parameters(model, MixerKind::kFull);
  const double scores = flops(model, {MixerKind::kFull, FfnKind::kNone}, 256).attention_full;
  model.relative_positions = true;
  EXPECT_EQ(parameters(model, MixerKind::kFull) - plain, 64 * 64);
  EXPECT_EQ(flops(model, {MixerKind::kFull, FfnKind::kNone}, 256).attention_full, 1.5 * scores);
}

/// Three times forward, 2 x context x (qk + v widths).
TEST(AttentionOps, ContextIsBoundByWindowChunkAndChoice) {
  ModelSpec model = small_model();
  model.attention.window = 100;
  model.attention.chunk = 100;
  const double each = 3 * 2 * (64 + 64);
  const auto causal = [&](MixerKind kind) {
    const TrainingFlops f = flops(model, {kind, FfnKind::kNone}, 1000);
    EXPECT_EQ(f.attention_full, each * 1000) << "windows are ignored";
    return f.attention_causal;
  };
  EXPECT_EQ(causal(MixerKind::kFull), each * 500);
  EXPECT_EQ(causal(MixerKind::kSliding), each * 95);
  EXPECT_EQ(causal(MixerKind::kChunked), each * 50);
}

/// DeepSeek-V3.2: heads x head_dim from the query latent, one key head and a weight per head from d_model, and a key
/// norm with bias; 13,959,424 weights a layer in its published shape.
TEST(AttentionOps, AnIndexerScoresEverythingAndBoundsTheAttention) {
  ModelSpec model = small_model();
  model.attention = {.heads = 4, .kv_heads = 4, .head_dim = 24, .v_head_dim = 16};
  model.attention.mla =
      MlaSpec{.q_lora_rank = 32, .kv_lora_rank = 16, .qk_nope_head_dim = 16, .qk_rope_head_dim = 8, .v_head_dim = 16};
  const double plain = parameters(model, MixerKind::kMla);
  model.attention.indexer = IndexerSpec{.heads = 2, .head_dim = 8, .top_k = 100};
  EXPECT_EQ(parameters(model, MixerKind::kMla) - plain, 32 * 2 * 8 + 64 * 8 + 64 * 2 + 2 * 8);
  const TrainingFlops f = flops(model, {MixerKind::kMla, FfnKind::kNone}, 1000);
  const double chosen = 95 * 2 * 4 * (24 + 16), scored = 500 * 2 * 2 * 8;
  EXPECT_EQ(f.attention_causal, 3 * (chosen + scored));
  const auto ops = ops_of(model, {MixerKind::kMla, FfnKind::kNone});
  EXPECT_EQ(named(ops, "index scores").tp, TpRule::kWhole) << "the choice must be one";
  EXPECT_EQ(named(ops, "index scores").shared, 8);
}

/// Heads that attend to 100 tokens before them and to every fourth block further back: a quarter of all scores, and of
/// the keys and values as many quarters as the two heads of a group.
TEST(AttentionOps, StridedHeadsReadWhatTheirGroupReads) {
  ModelSpec model = small_model();
  model.attention.strided = StridedSpec{.local = 100, .stride = 4};
  EXPECT_EQ(parameters(model, MixerKind::kStrided), parameters(model, MixerKind::kFull));
  const double each = 3 * 2 * (64 + 64);
  EXPECT_EQ(flops(model, {MixerKind::kStrided, FfnKind::kNone}, 1000).attention_causal,
            each * (0.75 * 95 + 0.25 * 500));
  const auto ops = ops_of(model, {MixerKind::kStrided, FfnKind::kNone});
  EXPECT_EQ(named(ops, "strided attention").shared, 0.5 * 2 * (16 + 16));
  EXPECT_EQ(named(ops, "local attention").shared, 0.5 * 2 * (16 + 16));
}

/// DeBERTa: queries against keys of 2 x 8 positions and keys against their queries, from matrices of their own or not.
TEST(AttentionOps, PositionsAreScoredApart) {
  ModelSpec model = small_model();
  model.attention = {.heads = 4, .kv_heads = 4, .head_dim = 16, .causal = false};
  const LayerKind kind{MixerKind::kFull, FfnKind::kNone};
  const double plain = parameters(model, MixerKind::kFull), scores = flops(model, kind, 256).attention_causal;
  model.attention.disentangled = DisentangledSpec{.positions = 16};
  EXPECT_EQ(parameters(model, MixerKind::kFull), plain);
  EXPECT_EQ(flops(model, kind, 256).attention_causal - scores, 3 * 2 * 16 * 2 * 64);
  const double matmuls = flops(model, kind, 256).six_n;
  model.attention.disentangled->own_projections = true;
  EXPECT_EQ(parameters(model, MixerKind::kFull) - plain, 64 * 2 * 64 + 64);
  EXPECT_EQ(flops(model, kind, 256).six_n, matmuls) << "once for a batch";
}

/// Weights of a layer by the papers' sums: 5 D^2 and 6 D; with the output's gate 5 D^2 and 8 D; RWKV-6 beside them
/// mixes and decays by low rank; RWKV-7 has four adapters, the first layer three.
TEST(RecurrenceOps, RwkvByVersion) {
  ModelSpec model = small_model();
  const double d = 64;
  model.rwkv = RwkvSpec{.version = 4, .width = 64};
  EXPECT_EQ(parameters(model, MixerKind::kRwkv), 4 * d * d + 5 * d);
  model.rwkv = RwkvSpec{.version = 5, .width = 64, .head_dim = 16};
  EXPECT_EQ(parameters(model, MixerKind::kRwkv), 5 * d * d + 8 * d);
  model.rwkv = RwkvSpec{.version = 6, .width = 64, .head_dim = 16, .mix_rank = 4, .decay_rank = 8};
  EXPECT_EQ(parameters(model, MixerKind::kRwkv), 5 * d * d + (6 + 2 * 5 * 4 + 1 + 2 * 8 + 1 + 2) * d);
  model.rwkv = RwkvSpec{
      .version = 7, .width = 64, .head_dim = 16, .decay_rank = 4, .rate_rank = 5, .value_rank = 6, .gate_rank = 7};
  const double first = parameters(model, MixerKind::kRwkv);
  EXPECT_EQ(first, 4 * d * d + (2 * (4 + 5 + 7) + 6 + 2 + 3 + 2) * d);
  double later = 0;
  for (const Op<double>& op : ops_of(model, {.mixer = MixerKind::kRwkv, .ffn = FfnKind::kNone, .reuse = true})) {
    if (op.part != Part::kNorm) later += op.parameters();
  }
  EXPECT_EQ(later - first, 2 * 6 * d + d);
  EXPECT_EQ(named(ops_of(model, {MixerKind::kRwkv, FfnKind::kNone}), "wkv recurrence").state, 64 * 16);
}

/// Griffin: two branches with biases, a convolution with one, gates from blocks of 8 channels, a decay a channel.
TEST(RecurrenceOps, RealGatedLinearRecurrence) {
  ModelSpec model = small_model();
  model.rglru = RglruSpec{.width = 32, .blocks = 4, .conv_kernel = 4};
  EXPECT_EQ(parameters(model, MixerKind::kRglru),
            64 * 2 * 32 + 2 * 32 + 32 * 5 + 8 * 2 * 32 + 2 * 32 + 32 + 32 * 64 + 64);
}

TEST(RecurrenceOps, GatedDeltaNet) {
  ModelSpec model = small_model();
  model.gdn = {.key_heads = 2, .key_head_dim = 8, .value_heads = 4, .value_head_dim = 16, .conv_kernel = 4};
  // Keys 16 wide, values 64: q, k, v, gate; decay and strength; convolution of q, k, v; decay rate and step bias; one
  // norm weight per value dimension; output.
  EXPECT_EQ(parameters(model, MixerKind::kGdn), 64 * 160 + 64 * 8 + 96 * 4 + 8 + 16 + 64 * 64);
  const auto ops = ops_of(model, {MixerKind::kGdn, FfnKind::kNone});
  const Op<double>& scan = named(ops, "gated delta rule");
  EXPECT_EQ(scan.state, 4 * 8 * 16);
  EXPECT_EQ(scan.recurrence, 8 * 512) << "as Megatron-LM counts";
  EXPECT_EQ(scan.flops, 4 * 2 * 64 * (3 * 8 + 2 * 16) + 6 * 512)
      << "read, outer product, read of the state, and the products inside chunks of 64";
  EXPECT_EQ(flops(model, {MixerKind::kGdn, FfnKind::kNone}, 1000).scan, 3 * 8 * 512);
  // Kept: the layer's input; projections, output and the chunks' triangles; norm, convolution and gated norm again.
  EXPECT_EQ(kept(ops, Keep::kAlways), 64);
  EXPECT_EQ(kept(ops, Keep::kSelective), 160 + 8 + 64 + 4 * 64);
  EXPECT_EQ(kept(ops, Keep::kWithoutRemat), 64 + 96 + 64);
}

TEST(RecurrenceOps, LightningAttention) {
  ModelSpec model = small_model();
  model.lightning = {.heads = 2, .head_dim = 8};
  EXPECT_EQ(parameters(model, MixerKind::kLightning), 64 * 48 + 64 * 16 + 16 + 16 * 64);
  const auto ops = ops_of(model, {MixerKind::kLightning, FfnKind::kNone});
  const Op<double>& scan = named(ops, "lightning attention");
  EXPECT_EQ(scan.state, 2 * 8 * 8);
  EXPECT_EQ(scan.recurrence, 4 * 128);
  EXPECT_EQ(scan.flops, 4 * 256 * 16 + 4 * 128);
}

TEST(RecurrenceOps, MambaOne) {
  ModelSpec model = small_model();
  model.mamba1 = {.d_inner = 128, .d_state = 4, .d_conv = 4, .dt_rank = 8};
  // Input and gate; convolution with bias; step and both states; their norms; step with bias; decay and skip; output.
  EXPECT_EQ(parameters(model, MixerKind::kMamba1),
            64 * 256 + 128 * 5 + 128 * 16 + 16 + 8 * 128 + 128 + 128 * 4 + 128 + 128 * 64);
  const auto ops = ops_of(model, {MixerKind::kMamba1, FfnKind::kNone});
  EXPECT_EQ(named(ops, "selective scan").state, 128 * 4);
  EXPECT_EQ(named(ops, "selective scan").recurrence, 9 * 128 * 4);
  EXPECT_TRUE(named(ops, "selective scan").by_element);
  EXPECT_EQ(named(ops, "step and state projection").summed, 16) << "every channel needs all of it";
}

TEST(RecurrenceOps, MambaTwo) {
  ModelSpec model = small_model();
  model.mamba2 = {.heads = 8, .head_dim = 16, .groups = 2, .d_state = 32, .d_conv = 4};
  // Input, gate and step; state projections of two groups; convolution with bias over both; decay, step bias and skip
  // per head; norm; output.
  EXPECT_EQ(parameters(model, MixerKind::kMamba2),
            64 * (256 + 8) + 64 * 128 + (128 + 128) * 5 + 3 * 8 + 128 + 128 * 64);
  const auto ops = ops_of(model, {MixerKind::kMamba2, FfnKind::kNone});
  const Op<double>& scan = named(ops, "state space scan");
  EXPECT_EQ(scan.state, 8 * 16 * 32);
  EXPECT_EQ(scan.recurrence, 7 * 8 * 16 * 32) << "as Megatron-LM counts";
  EXPECT_EQ(scan.flops, 2 * 256 * 2 * 32 + 8 * 2 * 256 * 16 + 4 * 4096) << "products of groups and heads in chunks";
  EXPECT_EQ(named(ops, "state projection").groups, 2);
  model.mamba2->chunk = 128;
  EXPECT_EQ(named(ops_of(model, {MixerKind::kMamba2, FfnKind::kNone}), "state space scan").flops,
            2 * 128 * 2 * 32 + 8 * 2 * 128 * 16 + 4 * 4096);
}

TEST(FfnOps, GroupsOfLayersHaveWidthsOfTheirOwn) {
  const ModelSpec model = small_model();
  EXPECT_EQ(parameters(model, MixerKind::kNone, FfnKind::kDense), 3 * 64 * 128);
  const auto ops = ops_of(model, {MixerKind::kNone, FfnKind::kDense, false, 32});
  EXPECT_EQ(named(ops, "mlp down projection").parameters(), 32 * 64);
}

TEST(FfnOps, LatentExpertsWorkInTheirWidth) {
  ModelSpec model = small_model();
  model.moe = MoeSpec{.experts = 8, .top_k = 2, .d_ff = 32, .shared_experts = 1, .shared_d_ff = 48};
  EXPECT_EQ(parameters(model, MixerKind::kNone, FfnKind::kMoe), 64 * 8 + 8 * 3 * 64 * 32 + 3 * 64 * 48);
  model.moe->latent = 16;
  EXPECT_EQ(parameters(model, MixerKind::kNone, FfnKind::kMoe), 64 * 8 + 2 * 64 * 16 + 8 * 3 * 16 * 32 + 3 * 64 * 48);
  model.kinds = {{MixerKind::kNone, FfnKind::kMoe}};
  const ParameterCount count = count_parameters(model);
  EXPECT_EQ(count.experts, 8 * 3 * 16 * 32) << "the projections are visited by every token";
  EXPECT_EQ(count.total - count.active, 6 * 3 * 16 * 32);
}

TEST(LayerOps, NormsStandWhereTheLayerHasParts) {
  ModelSpec model = small_model();
  const auto norms = [&](const LayerKind& kind) {
    double weights = 0;
    for (const Op<double>& op : ops_of(model, kind)) weights += op.part == Part::kNorm ? op.parameters() : 0;
    return weights / 64;
  };
  for (const std::int64_t n : {0, 1, 2, 3, 4}) {
    EXPECT_EQ(norms({MixerKind::kFull, FfnKind::kDense, false, std::nullopt, n}), n);
    model.parallel_block = true;
    EXPECT_EQ(norms({MixerKind::kFull, FfnKind::kDense, false, std::nullopt, n}), n) << "parallel";
    model.parallel_block = false;
    if (n > 2) continue;
    EXPECT_EQ(norms({MixerKind::kFull, FfnKind::kNone, false, std::nullopt, n}), n) << "mixer alone";
    EXPECT_EQ(norms({MixerKind::kNone, FfnKind::kDense, false, std::nullopt, n}), n) << "FFN alone";
  }
}

TEST(LayerOps, EveryLayerKeepsItsInputOnce) {
  ModelSpec model = small_model();
  for (const bool parallel : {false, true}) {
    model.parallel_block = parallel;
    for (const std::int64_t n : {0, 1, 2}) {
      EXPECT_EQ(kept(ops_of(model, {MixerKind::kFull, FfnKind::kDense, false, std::nullopt, n}), Keep::kAlways), 64);
      EXPECT_EQ(kept(ops_of(model, {MixerKind::kNone, FfnKind::kDense, false, std::nullopt, n}), Keep::kAlways), 64);
    }
  }
}

TEST(LayerOps, AParallelBlockAddsBothPartsAtOnce) {
  ModelSpec model = small_model();
  const auto residuals = [&] {
    double reads = 0;
    for (const Op<double>& op : ops_of(model, {MixerKind::kFull, FfnKind::kDense})) {
      if (op.name.ends_with("residual")) reads += op.reads;
    }
    return reads;
  };
  EXPECT_EQ(residuals(), 2 * 2 * 64);
  model.parallel_block = true;
  EXPECT_EQ(residuals(), 3 * 64);
}

TEST(EndOps, AFactorisedEmbeddingHasTwoProjections) {
  ModelSpec model = small_model();
  model.tied_embeddings = true;
  model.embedding_dim = 16;
  ParameterCount count = count_parameters(model);
  EXPECT_EQ(count.embedding, 100 * 16 + 16 * 64);
  EXPECT_EQ(count.head, 64 * 16) << "the table is the embedding's";
  const TrainingFlops f = training_flops(model, 256);
  EXPECT_EQ(f.ends, 6 * (16 * 64 + 64 * 16 + 16 * 100));
  model.tied_embeddings = false;
  EXPECT_EQ(count_parameters(model).head, 64 * 16 + 16 * 100);
}

/// Of the tables of n-grams a token reads a row each.
TEST(EndOps, NgramTablesAreNotActive) {
  ModelSpec model = small_model();
  const ParameterCount plain = count_parameters(model);
  model.ngram_embedding = NgramEmbedding{.tables = 4, .rows = 1000, .width = 16};
  const ParameterCount count = count_parameters(model);
  EXPECT_EQ(count.embedding - plain.embedding, 1000 * 16 + 4 * 16 * 64);
  EXPECT_EQ(count.active - plain.active, 4 * 16 * 64);
}

/// ELECTRA's generator: tables, norm and transform as narrow as the embedding, a projection with a bias behind them.
TEST(EndOps, ANarrowEmbeddingIsNormedBeforeItIsProjected) {
  ModelSpec model = small_model();
  model.tied_embeddings = model.embedding_norm = model.norm_bias = model.embedding_bias = true;
  model.embedding_dim = 16;
  model.input_tokens = 10;
  model.head_dense = HeadDense::kTransform;
  model.mlp.bias = true;
  const ParameterCount count = count_parameters(model);
  EXPECT_EQ(count.embedding, 110 * 16 + 2 * 16 + 16 * 64 + 64);
  EXPECT_EQ(count.head, 64 * 16 + 16);
}

TEST(EndOps, NormsMayHaveNoWeights) {
  ModelSpec model = small_model();
  model.norm_weights = false;
  EXPECT_EQ(count_parameters(model).norms, 0);
}

TEST(EndOps, HeadBiasAndFinalNorm) {
  ModelSpec model = small_model();
  const double plain = count_parameters(model).total;
  model.head_bias = true;
  EXPECT_EQ(count_parameters(model).total - plain, 100);
  model.final_norm = false;
  EXPECT_EQ(count_parameters(model).total - plain, 100 - 64);
}

}  // namespace
}  // namespace scalecalc
