// The serving rules on canonical chips: C = 100 TFLOP/s, W_hbm = 1 TB/s, 32 GB, W_ici = 100 GB/s.
#include "bounds/bounds.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/diagnostic.h"
#include "config/catalog.h"
#include "model/accounting.h"
#include "model/kv_cache.h"
#include "support/bound_of.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

using test::find;
using test::holds;
using test::value;

/// 8e9 dense parameters in bf16: 16 GB of weights.
BoundsQuestion sized(double parameters = 8e9) {
  BoundsQuestion q;
  q.parameters = parameters;
  q.hw = test::torus_chip();
  q.scope = BoundScope::kServing;
  return q;
}

BoundsQuestion with_model(ModelSpec model, HardwareSpec hw = test::torus_chip()) {
  BoundsQuestion q;
  q.model = std::move(model);
  q.hw = std::move(hw);
  q.scope = BoundScope::kServing;
  return q;
}

/// 64 sequences of 1,000 tokens at 100 kB: 0.1 GB each.
BoundsQuestion decoding() {
  BoundsQuestion q = sized();
  q.chips = 8;
  q.serving.batches = {64};
  q.serving.context = 1000;
  q.serving.kv_bytes_per_token = 1e5;
  return q;
}

bool says(const std::vector<LeftOut>& lines, const std::string& text) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const LeftOut& line) { return line.needs.find(text) != std::string::npos; });
}

bool mentions(const BoundsAnswer& answer, const std::string& text) {
  return std::any_of(answer.assumptions.begin(), answer.assumptions.end(),
                     [&](const Assumption& a) { return a.text.find(text) != std::string::npos; });
}

/// What lies beside the model in memory is counted wherever memory is: a tower of 5 layers, in bf16 while serving, ten
/// bytes a parameter while training.
TEST(Bounds, TowersAreHeldBesideTheModel) {
  const ModelSpec text = test::dense_model(8);
  ModelSpec seeing = text;
  seeing.towers.emplace_back().network = test::dense_model(5);
  const double towers = count_parameters(seeing).towers;
  ASSERT_GT(towers, 5 * 3 * 1024.0 * 4096);
  const auto more = [&](BoundScope scope, const char* bound, std::optional<DType> weights = {}) {
    BoundsQuestion with = with_model(seeing), without = with_model(text);
    with.weights = without.weights = weights;
    with.scope = without.scope = scope;
    return value(bounds(with), bound) - value(bounds(without), bound);
  };
  EXPECT_EQ(more(BoundScope::kServing, "weight_bytes"), 2 * towers);
  EXPECT_EQ(more(BoundScope::kServing, "weight_bytes", DType::kFp8), 2 * towers) << "no quantizer touches them";
  EXPECT_EQ(more(BoundScope::kServing, "latency_floor"), 0) << "no step that decodes reads them";
  EXPECT_EQ(more(BoundScope::kTraining, "state_bytes"), 10 * towers);
  EXPECT_EQ(more(BoundScope::kTraining, "parameters"), 0);
}

TEST(ServingBounds, AnEncoderHasNone) {
  ModelSpec encoder = test::dense_model(8);
  encoder.attention.causal = false;
  const BoundsAnswer a = bounds(with_model(encoder));
  EXPECT_TRUE(says(a.left_out, "is an encoder"));
  EXPECT_EQ(find(a, "critical_batch"), nullptr);
}

/// Each request keeps the keys and values of the encoder's output, which no rule of the book counts.
TEST(ServingBounds, ADecoderBesideAnEncoderHasNone) {
  ModelSpec model = test::dense_model(8);
  for (LayerKind& kind : model.kinds) kind.mixer = MixerKind::kFullCross;
  model.towers.emplace_back().network = test::dense_model(5);
  model.towers.front().counted = true;
  const BoundsAnswer a = bounds(with_model(model));
  EXPECT_TRUE(says(a.left_out, "has an encoder"));
  EXPECT_EQ(find(a, "latency_floor"), nullptr);
}

TEST(ServingBounds, CriticalBatchFollowsTheFormats) {
  EXPECT_DOUBLE_EQ(value(bounds(sized()), "critical_batch"), 100);  // C / W_hbm = 100 in bf16
  BoundsQuestion q = sized();
  q.weights = DType::kInt8;
  EXPECT_DOUBLE_EQ(value(bounds(q), "critical_batch"), 50);
  q.hw.matmul_peak[static_cast<std::size_t>(DType::kInt8)] = FlopsPerSecond(200e12);
  q.serving.compute = DType::kInt8;
  EXPECT_DOUBLE_EQ(value(bounds(q), "critical_batch"), 100);
  EXPECT_DOUBLE_EQ(value(bounds(with_model(test::moe_model())), "critical_batch"), 100 * 8.0 / 2);
}

TEST(ServingBounds, TheStepAddsCacheAndTheLongerOfWeightsAndFlops) {
  const BoundsAnswer answer = bounds(decoding());
  ASSERT_EQ(answer.points.size(), 1U);
  const ServingPoint& p = answer.points.front();
  EXPECT_DOUBLE_EQ(p.kv_bytes->value().value(), 6.4e9);
  EXPECT_DOUBLE_EQ(p.total_bytes->value().value(), 22.4e9);
  EXPECT_DOUBLE_EQ(p.kv_time->value().value(), 0.8e-3);
  EXPECT_DOUBLE_EQ(p.load_time->value().value(), 2e-3);
  EXPECT_DOUBLE_EQ(p.compute_time->value().value(), 1.28e-3);
  EXPECT_DOUBLE_EQ(p.mlp_time->value().value(), 2e-3);
  EXPECT_DOUBLE_EQ(p.step->value().value(), 2.8e-3);
  EXPECT_DOUBLE_EQ(p.tokens_per_s_per_chip->value().value(), 64 / 2.8e-3 / 8);
  EXPECT_EQ(p.bound_by, "weights");
  EXPECT_EQ(p.fits, true);
}

TEST(ServingBounds, BeyondTheCriticalBatchFlopsTakeOver) {
  BoundsQuestion q = decoding();
  q.serving.batches = {64, 200, 3000};
  q.serving.kv_bytes_per_token = 1e4;
  const BoundsAnswer answer = bounds(q);
  ASSERT_EQ(answer.points.size(), 3U);
  EXPECT_EQ(answer.points[0].bound_by, "weights");
  EXPECT_EQ(answer.points[1].bound_by, "compute");
  EXPECT_EQ(answer.points[1].mlp_compute_bound, true);
  EXPECT_LT(answer.points[1].bandwidth_step->value().value(), answer.points[1].step->value().value());
  EXPECT_EQ(answer.points[2].fits, true);
  EXPECT_EQ(find(answer, "decode_tp_limit"), nullptr);  // a rule for one batch
}

TEST(ServingBounds, RequestsFollowFromTheStep) {
  BoundsQuestion q = decoding();
  q.serving.prompt = 900;
  q.serving.generate = 100;
  q.training.price = 3.6;
  q.training.mfu = 0.5;
  const BoundsAnswer answer = bounds(q);
  const ServingPoint& p = answer.points.front();
  EXPECT_DOUBLE_EQ(p.answer_time->value().value(), 0.28);
  EXPECT_DOUBLE_EQ(p.requests_per_s->value().value(), 64 / 0.28);
  EXPECT_DOUBLE_EQ(p.finished_per_step->value(), 0.64);
  EXPECT_DOUBLE_EQ(p.evicted_per_step->value(), 640);
  const double prefill = 2 * 8e9 * 900 / (8 * 100e12 * 0.5);
  EXPECT_DOUBLE_EQ(value(answer, "prefill_time"), prefill);
  EXPECT_DOUBLE_EQ(p.prefill_servers->value(), prefill * 64 / 0.28);
  EXPECT_DOUBLE_EQ(p.usd_per_million_tokens->value().value(), 1e6 * 8 * 0.001 / (64 / 2.8e-3));
  EXPECT_DOUBLE_EQ(value(answer, "flops_per_usd"), 1e17);
}

TEST(ServingBounds, FiguresGivenOutrightAreUsedAndSaid) {
  BoundsQuestion q = decoding();
  q.serving.step_time = 0.02;
  q.serving.weight_bytes = 10e9;
  q.serving.prefill_time = 0.5;
  q.serving.generate = 10;
  const BoundsAnswer answer = bounds(q);
  EXPECT_DOUBLE_EQ(value(answer, "weight_bytes"), 10e9);
  EXPECT_DOUBLE_EQ(answer.points.front().tokens_per_s->value().value(), 3200);
  EXPECT_FALSE(answer.points.front().kv_time.has_value());  // the parts of another step
  EXPECT_DOUBLE_EQ(answer.points.front().prefill_servers->value(), 0.5 * 320);
  for (const char* text : {"weights 10 GB, as given", "KV cache per token 100 kB, as given",
                           "decode step 20 ms, as given", "prefill 500 ms, as given"}) {
    EXPECT_TRUE(mentions(answer, text)) << text;
  }
}

TEST(ServingBounds, TotalBytesAreWeightsAndCache) {
  BoundsQuestion q = decoding();
  q.serving.total_bytes = 24e9;
  EXPECT_DOUBLE_EQ(bounds(q).points.front().kv_time->value().value(), 1e-3);
  q.serving.total_bytes = 15e9;
  EXPECT_THROW(bounds(q), UserError);
}

TEST(ServingBounds, MemorySaysWhatFits) {
  const BoundsAnswer answer = bounds(decoding());
  EXPECT_DOUBLE_EQ(value(answer, "chips_for_weights_exact"), 0.5);
  EXPECT_DOUBLE_EQ(value(answer, "slice_for_weights"), 1);
  EXPECT_DOUBLE_EQ(value(answer, "free_hbm"), 240e9);
  EXPECT_DOUBLE_EQ(value(answer, "max_batch"), 2400);
  EXPECT_EQ(holds(answer, "max_batch"), true);
  EXPECT_DOUBLE_EQ(value(answer, "sequences_outweighing_weights"), 161);
  EXPECT_DOUBLE_EQ(value(answer, "chips_for_batch_exact"), 0.7);
}

TEST(ServingBounds, ModelsThatDoNotFitHaveNoRoom) {
  BoundsQuestion q = sized(40e9);
  q.chips = 1;
  q.serving.context = 1000;
  q.serving.kv_bytes_per_token = 1e5;
  const BoundsAnswer answer = bounds(q);
  EXPECT_EQ(holds(answer, "free_hbm"), false);
  EXPECT_DOUBLE_EQ(value(answer, "max_batch"), 0);
}

TEST(ServingBounds, WithoutChipsTheSmallestSliceThatHoldsTheWeightsIsTaken) {
  const BoundsAnswer answer = bounds(sized(80e9));  // 160 GB: five chips, so a slice of eight
  EXPECT_DOUBLE_EQ(value(answer, "chips_for_weights"), 5);
  EXPECT_DOUBLE_EQ(value(answer, "slice_for_weights"), 8);
  EXPECT_DOUBLE_EQ(value(answer, "total_hbm"), 256e9);
  EXPECT_TRUE(mentions(answer, "8 chips: the smallest slice that holds the weights"));
  const BoundsAnswer huge = bounds(sized(1e15));
  EXPECT_EQ(find(huge, "slice_for_weights"), nullptr);
  EXPECT_TRUE(says(huge.left_out, "--chips"));
}

TEST(ServingBounds, LatencyLimitsChipsAndBatch) {
  BoundsQuestion q = decoding();
  q.serving.latency = 4e-3;
  const BoundsAnswer answer = bounds(q);
  EXPECT_DOUBLE_EQ(value(answer, "chips_for_latency_exact"), 4);
  EXPECT_EQ(holds(answer, "chips_for_latency_exact"), true);
  // A sequence takes 12.5 us of cache and 20 us of FLOPs; FLOPs beyond the weights' 2 ms bind before the cache does.
  EXPECT_DOUBLE_EQ(value(answer, "max_batch_for_latency"), 123);
  q.serving.latency = 1e-3;
  EXPECT_DOUBLE_EQ(value(bounds(q), "max_batch_for_latency"), 0);
}

TEST(ServingBounds, LongContextsAreBoundByTheirCache) {
  BoundsQuestion q = decoding();
  EXPECT_DOUBLE_EQ(value(bounds(q), "kv_over_flops_context"), 1600);
  EXPECT_EQ(holds(bounds(q), "kv_over_flops_context"), false);
  q.serving.context = 2000;
  EXPECT_EQ(holds(bounds(q), "kv_over_flops_context"), true);
  EXPECT_DOUBLE_EQ(value(bounds(q), "kv_throughput_plateau"), 8e12 / 0.2e9);
  EXPECT_DOUBLE_EQ(value(bounds(q), "throughput_plateau"), 1 / (25e-6 + 20e-6));
}

TEST(ServingBounds, SlidingLayersStopGrowing) {
  ModelSpec model = test::dense_model(2);
  model.kinds = {{MixerKind::kFull, FfnKind::kDense}, {MixerKind::kSliding, FfnKind::kDense}};
  model.layer_kind = {0, 1};
  model.attention.window = 100;
  BoundsQuestion q = with_model(model);
  q.serving.context = 1000;
  const BoundsAnswer answer = bounds(q);
  const double width = 2 * 4 * 64 * 2;  // K and V of 4 heads of 64, two bytes
  EXPECT_DOUBLE_EQ(value(answer, "kv_bytes_per_token"), 2 * width);
  EXPECT_DOUBLE_EQ(value(answer, "kv_bytes_per_sequence"), width * 1100);
  EXPECT_EQ(find(answer, "kv_over_flops_context"), nullptr);
  EXPECT_TRUE(mentions(answer, "at most 100 tokens"));
}

TEST(ServingBounds, TheCacheIsThatOfTheModelWhateverItsLayers) {
  for (const std::string& name : Catalog().names(CatalogKind::kModel)) {
    BoundsQuestion q = with_model(test::shipped_model(name));
    q.serving.context = 20000;
    const double expected = kv_cache(*q.model).sequence_bytes(20000, {});
    EXPECT_NEAR(value(bounds(q), "kv_bytes_per_sequence") / expected, 1, 1e-12) << name;
  }
}

TEST(ServingBounds, TensorParallelismHasALimitInEachPhase) {
  BoundsQuestion q = with_model(test::dense_model());
  q.chips = 8;
  q.serving.batches = {32};
  BoundsAnswer answer = bounds(q);
  EXPECT_DOUBLE_EQ(value(answer, "serving_link_intensity"), 1000);
  EXPECT_DOUBLE_EQ(value(answer, "prefill_tp_limit"), 4.096);  // F / alpha
  EXPECT_EQ(holds(answer, "prefill_tp_limit"), false);
  EXPECT_DOUBLE_EQ(value(answer, "decode_tp_limit"), 12.8);  // F / (B x 10)
  EXPECT_EQ(holds(answer, "decode_tp_limit"), true);
  EXPECT_DOUBLE_EQ(value(answer, "matmul_link_time"), 2.0 * 32 * 1024 / 100e9);
  EXPECT_DOUBLE_EQ(value(answer, "matmul_hbm_time"), 2.0 * 1024 * 4096 / 8e12);
  EXPECT_DOUBLE_EQ(value(answer, "matmul_compute_time"), 2.0 * 32 * 1024 * 4096 / 8e14);
  EXPECT_DOUBLE_EQ(value(answer, "kv_shards_over_heads"), 4);
  EXPECT_DOUBLE_EQ(value(answer, "kv_shards_over_batch"), 2);
  q.tensor_axes = 2;
  q.activations = DType::kInt8;
  answer = bounds(q);
  EXPECT_DOUBLE_EQ(value(answer, "prefill_tp_limit"), 4 * 4.096);
  EXPECT_DOUBLE_EQ(value(answer, "decode_tp_limit"), 2 * 12.8);
}

TEST(ServingBounds, BehindSwitchesTheNodesCardCountsForWideGroups) {
  BoundsQuestion q = with_model(test::dense_model(), test::switched_chip());
  q.chips = 8;
  EXPECT_DOUBLE_EQ(value(bounds(q), "serving_link_intensity"), 100e12 / 400e9);
  q.chips = 16;
  EXPECT_DOUBLE_EQ(value(bounds(q), "serving_link_intensity"), 100e12 / (8 * 50e9));
  EXPECT_EQ(find(bounds(q), "two_d_threshold"), nullptr);
}

TEST(ServingBounds, TwoDimensionalShardingWinsOnManyChips) {
  BoundsQuestion q = with_model(test::dense_model());
  q.chips = 512;
  q.serving.batches = {256};
  BoundsAnswer answer = bounds(q);
  EXPECT_DOUBLE_EQ(value(answer, "two_d_threshold"), 72);  // 2 x 3^2 x F / D
  EXPECT_EQ(holds(answer, "two_d_threshold"), true);
  EXPECT_DOUBLE_EQ(value(answer, "two_d_x"), 8);
  EXPECT_DOUBLE_EQ(value(answer, "two_d_yz"), 64);
  EXPECT_DOUBLE_EQ(value(answer, "two_d_time"), 2 * (2.0 * 256 * 1024 / 8) / 100e9);
  EXPECT_DOUBLE_EQ(value(answer, "one_d_time"), 4.0 * 256 * 1024 / 300e9);
  EXPECT_EQ(holds(answer, "one_d_time"), true);
  q.chips = 64;
  EXPECT_EQ(holds(bounds(q), "one_d_time"), false);
}

TEST(ServingBounds, SpeculationPaysWhileWeightsBind) {
  BoundsQuestion q = decoding();
  q.serving.speculation = BoundSpeculation{.drafted = 4, .accept = 0.8, .cost = 0.05};
  BoundsAnswer answer = bounds(q);
  EXPECT_NEAR(value(answer, "speculative_tokens_per_step"), 3.3616, 1e-12);
  EXPECT_NEAR(value(answer, "speculative_speedup"), 3.3616 / 1.2, 1e-12);
  EXPECT_DOUBLE_EQ(value(answer, "speculative_batch_limit"), 20);
  EXPECT_EQ(holds(answer, "speculative_speedup"), false);  // 64 sequences
  q.serving.speculation = BoundSpeculation{.drafted = 3, .accept = 1, .draft_parameters = 8e8};
  answer = bounds(q);
  EXPECT_DOUBLE_EQ(value(answer, "speculative_tokens_per_step"), 4);  // nothing is rejected
  EXPECT_NEAR(value(answer, "speculative_speedup"), 4 / 1.3, 1e-12);
  q.serving.speculation = BoundSpeculation{.drafted = 3, .accept = 1};
  EXPECT_EQ(find(bounds(q), "speculative_speedup"), nullptr);
}

TEST(ServingBounds, CachedTokensAreNotComputed) {
  BoundsQuestion q = decoding();
  q.serving.prompt = 10000;
  const double whole = value(bounds(q), "prefill_time");
  EXPECT_TRUE(mentions(bounds(q), "MFU of 40 % in prefill"));
  q.serving.cached = 7500;
  EXPECT_DOUBLE_EQ(value(bounds(q), "prefill_compute_left"), 0.25);
  EXPECT_DOUBLE_EQ(value(bounds(q), "prefill_time"), whole / 4);
  q.serving.cached.reset();
  q.serving.prefix_hit = 0.75;
  EXPECT_DOUBLE_EQ(value(bounds(q), "prefill_time"), whole / 4);
  q.serving.prefix_hit.reset();
  q.serving.cached = 10001;
  EXPECT_THROW(bounds(q), UserError);
}

TEST(ServingBounds, ShortPromptsWaitForTheWeights) {
  BoundsQuestion q = decoding();
  q.serving.prompt = 10;
  EXPECT_DOUBLE_EQ(value(bounds(q), "prefill_time"), 2e-3);
  EXPECT_EQ(holds(bounds(q), "critical_prompt"), false);
}

TEST(ServingBounds, ChunksRideFreeUpToTheCriticalBatch) {
  EXPECT_DOUBLE_EQ(value(bounds(decoding()), "free_chunk_tokens"), 36);
  BoundsQuestion q = decoding();
  q.serving.batches = {300};
  EXPECT_DOUBLE_EQ(value(bounds(q), "free_chunk_tokens"), 0);
}

TEST(ServingBounds, ExpertsAreHeldWholeAndUsedInPart) {
  BoundsQuestion q = with_model(test::moe_model());
  q.chips = 8;
  q.serving.batches = {1};
  const BoundsAnswer answer = bounds(q);
  const ParameterCount count = count_parameters(*q.model);
  EXPECT_DOUBLE_EQ(value(answer, "weight_bytes"), 2 * count.total);
  EXPECT_TRUE(mentions(answer, "every expert's weights are read"));
  EXPECT_DOUBLE_EQ(value(answer, "mlp_layer_parameters"), 3.0 * 1024 * 8 * 1024);
  EXPECT_DOUBLE_EQ(value(answer, "decode_activation_bytes"), 2.0 * 2 * 1024);
}

TEST(ServingBounds, WhatIsNotKnownIsLeftOutByName) {
  const BoundsAnswer answer = bounds(sized());
  EXPECT_TRUE(answer.points.empty());
  for (const char* flag : {"--batch", "--prompt", "--kv-bytes-per-token"}) {
    EXPECT_TRUE(says(answer.left_out, flag)) << flag;
  }
  EXPECT_EQ(find(answer, "max_batch"), nullptr);
}

TEST(ServingBounds, WhatTheHardwareFileDoesNotSayLeavesOutWhatNeedsIt) {
  BoundsQuestion q = with_model(test::dense_model());
  q.chips = 1;
  q.serving.batches = {4};
  q.serving.context = 1000;
  q.hw.network.clear();  // a chip that stands alone
  BoundsAnswer answer = bounds(q);
  EXPECT_TRUE(answer.points.front().step.has_value());
  EXPECT_EQ(find(answer, "prefill_tp_limit"), nullptr);
  EXPECT_TRUE(says(answer.left_out, "a network between chips"));
  q.hw.unpublished = {{"hbm.capacity", {}, ""}};
  answer = bounds(q);
  EXPECT_TRUE(answer.points.front().step.has_value());
  EXPECT_FALSE(answer.points.front().fits.has_value());
  EXPECT_EQ(find(answer, "max_batch"), nullptr);
  EXPECT_TRUE(says(answer.left_out, "hbm.capacity"));
  q.hw.unpublished = {{"hbm.bandwidth", {}, ""}};
  EXPECT_TRUE(bounds(q).bounds.empty());
  EXPECT_TRUE(says(bounds(q).left_out, "hbm.bandwidth"));
}

TEST(ServingBounds, EveryFigureCanBeComputedAgainFromItsWorking) {
  BoundsQuestion q = with_model(test::moe_model());
  q.chips = 64;
  q.serving.batches = {16};
  q.serving.prompt = 2048;
  q.serving.generate = 256;
  q.serving.latency = 1e-3;
  q.serving.speculation = BoundSpeculation{.drafted = 4, .accept = 0.8, .cost = 0.05};
  const BoundsAnswer answer = bounds(q);
  EXPECT_GT(answer.bounds.size(), 40U);
  for (const Bound& bound : answer.bounds) {
    EXPECT_EQ(reevaluate(bound.value), bound.value.value()) << bound.name;
    EXPECT_FALSE(bound.source.empty()) << bound.name;
    EXPECT_FALSE(bound.condition.empty()) << bound.name;
  }
}

}  // namespace
}  // namespace scalecalc
