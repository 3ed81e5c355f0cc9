#include "serve/serving_cost.h"

#include <gtest/gtest.h>

#include <cmath>

#include "network/collective_time.h"
#include "serve/serve_search.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

struct Subject {
  ModelSpec model;
  HardwareSpec hw;
  ServingSystem system;

  explicit Subject(ModelSpec m, HardwareSpec h = test::switched_chip()) : model(std::move(m)), hw(std::move(h)) {
    system.model = &model;
    system.hw = &hw;
    system.efficiency = ideal_efficiency(hw.efficiency);
    system.engine.counts_runtime = false;
  }
  ServingCost<double> cost(const ServeLayout& layout) const {
    return serving_cost(system, layout, slices_of(hw, layout.chips(), 1).front());
  }
};

// d_model 1024, 16 heads of 64, 4 KV heads, d_ff 4096, vocab 32000, 8 layers.
constexpr double kLayerWeights = 1024 * (1024 + 512 + 1024) + 3 * 1024 * 4096.0;
constexpr double kHeadWeights = 1024 * 32000.0;

TEST(ServingCost, OneSequenceReadsWeightsAndItsCache) {
  const Subject s(test::dense_model());
  const ServeTime<double> t = s.cost({}).decode_step(1, 1000);
  const double weights = 2 * (8 * kLayerWeights + kHeadWeights) / 1e12;
  const double kv = 8 * 1000 * 2.0 * 4 * (64 + 64) / 1e12;
  EXPECT_NEAR(t.weights.value(), weights, weights * 0.01);
  EXPECT_NEAR(t.kv.value(), kv, kv * 0.01);
  EXPECT_NEAR(t.total().value(), weights + kv, (weights + kv) * 0.02);
}

/// A prompt of 2,000 tokens with an image of 1,000 positions, through five layers of a tower as wide as the model's:
/// their matmuls, and 4 x 1024 FLOPs for each pair of positions. Decoding sees no image.
TEST(ServingCost, ImagesPassTheirTowerWithTheirPrompt) {
  ModelSpec seeing = test::dense_model();
  TowerSpec& tower = seeing.towers.emplace_back();
  tower.network = test::dense_model(5);
  tower.network.vocab = 0;  // it reads what it is given
  tower.network.attention.causal = false;
  tower.tokens = 1000;
  tower.positions = 1000;
  tower.per_token = 0.5;
  const Subject with(seeing), without(test::dense_model());
  const double more = with.cost({}).prefill(2000).compute.value() - without.cost({}).prefill(2000).compute.value();
  EXPECT_NEAR(more / (1000 * 5 * (2 * kLayerWeights + 4 * 1024 * 1000.0) / 100e12), 1, 1e-6);
  EXPECT_EQ(with.cost({}).decode_step(8, 1000).total().value(), without.cost({}).decode_step(8, 1000).total().value());
}

TEST(ServingCost, CausesSumToTheStep) {
  const Subject s(test::moe_model());
  const ServeTime<double> t = s.cost({.tp = 2, .ep = 4, .etp = 1, .attention_dp = 2}).decode_step(64, 1000);
  const double sum = t.compute.value() + t.weights.value() + t.kv.value() + t.activations.value() +
                     t.collectives.value() + t.pipeline.value() + t.overhead.value();
  EXPECT_DOUBLE_EQ(sum, t.total().value());
}

/// Every rank waits for the fullest one, to which 1.25 times the mean is sent; what a message waits does not grow.
TEST(ServingCost, TheFullestExpertRankIsSentItsTokens) {
  Subject s(test::moe_model());
  s.system.efficiency.serving.overlap.value = 0;
  const auto sent = [&] {
    const ServingCost<double> cost = s.cost({.ep = 4, .etp = 1, .attention_dp = 4});
    return cost.decode_step(192, 1000).collectives.value() - cost.decode_step(64, 1000).collectives.value();
  };
  const double mean = sent();
  s.system.efficiency.serving.expert_imbalance.value = 1.25;
  EXPECT_GT(mean, 0);
  EXPECT_NEAR(sent() / mean, 1.25, 1e-9);
}

/// Two halves read the weights twice and send what two steps of half the rows send; 90 % of it hides under the work,
/// which loses 15 % meanwhile. Nothing but experts' tokens is sent, and the head reads its weights once.
TEST(ServingCost, HalvesOfAStepTakeTurns) {
  Subject s(test::moe_model());
  s.system.efficiency.serving.overlap.value = 0;
  s.system.efficiency.serving.layer_overhead.value = 1e-5;
  s.system.efficiency.overlap_ep.value = 0;
  s.system.efficiency.overlap_ep_paired.value = 0.9;
  s.system.efficiency.contention_scale_up.value = 0.15;
  s.system.efficiency.contention_scale_out.value = 0.15;
  const ServingCost<double> one = s.cost({.ep = 4, .etp = 1, .attention_dp = 4});
  const ServingCost<double> two = s.cost({.ep = 4, .etp = 1, .attention_dp = 4, .ep_overlap = true});
  for (const double batch : {64.0, 4096.0}) {
    const ServeTime<double> half = one.decode_step(batch / 2, 1000);
    const ServeTime<double> both = two.decode_step(batch, 1000);
    const double sent = 2 * half.collectives.value();
    const double hidden = std::min(0.9 * sent, both.local().value());
    EXPECT_GT(sent, 0);
    EXPECT_NEAR(both.collectives.value(), std::max(0.1 * sent, sent - both.local().value()) + 0.15 * hidden,
                1e-9 * sent);
    EXPECT_LE(both.local().value(), 2 * half.local().value() * (1 + 1e-9));
  }
  const double head = 2 * kHeadWeights / 1e12;
  const double read = 2 * one.decode_step(32, 1000).weights.value() - head;
  EXPECT_NEAR(two.decode_step(64, 1000).weights.value(), read, 0.01 * read);
  const double layers = static_cast<double>(s.model.layers());
  EXPECT_NEAR(two.decode_step(64, 1000).overhead.value() - one.decode_step(64, 1000).overhead.value(), layers * 1e-5,
              1e-12);
}

/// 512 rows of 1,024 elements in 16 bits are 1 MiB, summed after each half of 8 layers, and the logits are gathered:
/// what `collective` says of the same bytes with the same kernels.
/// Eight layers on eight stages: the last reads its layer's weights and the head, and all wait for it. On three stages
/// two have three layers, and the last two and the head.
TEST(ServingCost, StagesWaitForTheHead) {
  Subject s(test::dense_model());
  for (Tier& tier : s.hw.network) tier.switched.latency = Seconds(0);
  const auto reads = [&](double weights) { return 2 * weights / 1e12; };
  const auto work = [](const ServeTime<double>& t) { return t.weights.value() + t.pipeline.value(); };
  const double eight = work(s.cost({.pp = 8}).decode_step(8, 1)) - work(s.cost({}).decode_step(1, 1));
  EXPECT_NEAR(eight, reads(7 * kHeadWeights), 0.03 * eight);
  const double three = work(s.cost({.pp = 3}).decode_step(3, 1)) - work(s.cost({}).decode_step(1, 1));
  EXPECT_NEAR(three, reads(3 * (2 * kLayerWeights + kHeadWeights) - 8 * kLayerWeights - kHeadWeights), 0.03 * three);
}

/// Links that take longer than the layers' work set the pace of all stages, and the head comes on top of the last
/// one's: memory that is faster reads the head sooner and slows nothing.
TEST(ServingCost, FasterMemorySlowsNoStageThatWaitsForItsLinks) {
  Subject s(test::dense_model());
  for (Tier& tier : s.hw.network) tier.switched.bandwidth_per_chip = tier.switched.bandwidth_per_chip * 1e-3;
  for (const std::int64_t pp : {2, 3, 4}) {
    const auto step = [&] { return s.cost({.tp = 2, .pp = pp}).decode_step(256, 1000).total().value(); };
    s.hw.hbm_bandwidth = BytesPerSecond(1e12);
    const double slow = step();
    s.hw.hbm_bandwidth = BytesPerSecond(1.5e12);
    EXPECT_LE(step(), slow) << pp;
  }
}

/// Matmuls compute the rows of the next captured batch; caches are read for those that are there, and of these alone
/// logits are taken: the head's inputs and outputs, 1,024 and 32,000 of 16 bits, are those of 9 rows and not of 16.
TEST(ServingCost, DecodingRowsArePaddedToTheNextGraph) {
  Subject s(test::dense_model());
  const auto plain = [&](double batch) { return s.cost({}).decode_step(batch, 1000); };
  const ServeTime<double> nine = plain(9), sixteen = plain(16), forty = plain(40);
  s.system.engine.counts_runtime = true;
  s.system.engine.graph_sizes = {{.from = 1, .by = 1}, {.from = 8, .by = 8}};
  s.system.engine.graph_sequences = 32;
  EXPECT_GT(sixteen.weights.value(), nine.weights.value());
  const double logits = (16 - 9) * (1024 + 32000) * 2 / 1e12;
  EXPECT_NEAR(plain(9).weights.value(), sixteen.weights.value() - logits, 1e-12);
  EXPECT_DOUBLE_EQ(plain(9).kv.value(), nine.kv.value());
  EXPECT_DOUBLE_EQ(plain(16).total().value(), sixteen.total().value());
  EXPECT_DOUBLE_EQ(plain(40).total().value(), forty.total().value()) << "beyond the largest, and launches take no time";
  double last = 0;
  for (double batch = 1; batch <= 64; ++batch) {
    const double now = plain(batch).total().value();
    EXPECT_GE(now, last) << batch;
    last = now;
  }
  // 8 layers of operations that the host launches in a millisecond each.
  s.system.efficiency.host_overhead.value = 1e-3;
  EXPECT_DOUBLE_EQ(plain(32).overhead.value(), 0);
  EXPECT_GT(plain(33).total().value(), 8 * 8e-3);
}

TEST(ServingCost, CollectivesAreTheNetworks) {
  Subject s(test::dense_model());
  ServingEfficiency& kernels = s.system.efficiency.serving;
  kernels.latency_scale_up.value = 4e-6;
  kernels.latency_growth.value = 0.25;
  kernels.collective_ramp.value = 6e-6;
  kernels.collective_factor.value = 1.184;
  kernels.overlap.value = 0;
  const auto time = [&](CollectiveOp op, double bytes) {
    return value_of(
        collective_time(collective_network(s.hw, s.system.efficiency, true), switched_group(s.hw, 8),
                        {.op = op, .bytes = BytesOf<Traced>(bytes), .convention = CollectiveConvention::kExact})
            .time);
  };
  const double expected =
      16 * time(CollectiveOp::kAllReduce, 512 * 1024 * 2.0) + time(CollectiveOp::kAllGather, 512 * 32000 * 2.0);
  EXPECT_NEAR(s.cost({.tp = 8, .etp = 8}).decode_step(512, 1000).collectives.value(), expected, expected * 1e-12);
}

TEST(ServingCost, TensorRanksBeyondTheKvHeadsRepeatThem) {
  const Subject s(test::dense_model());
  const double four = s.cost({.tp = 4, .etp = 4}).decode_step(8, 4000).kv.value();
  const double eight = s.cost({.tp = 8, .etp = 8}).decode_step(8, 4000).kv.value();
  EXPECT_NEAR(eight, four, four * 0.01);
}

TEST(ServingCost, ContextRanksShareTheCacheInstead) {
  const Subject s(test::dense_model());
  const double four = s.cost({.tp = 4, .etp = 4}).decode_step(8, 4000).kv.value();
  const double split = s.cost({.tp = 4, .etp = 8, .cp = 2}).decode_step(8, 4000).kv.value();
  EXPECT_NEAR(split, four / 2, four * 0.01);
}

TEST(ServingCost, PrefillOfALongPromptIsBoundByFlops) {
  const Subject s(test::dense_model());
  const ServeTime<double> t = s.cost({}).prefill(8192);
  const double flops = 2.0 * 8192 * 8 * kLayerWeights + 8 * 2.0 * 8192 * 4096 * 2048;
  EXPECT_NEAR(t.compute.value(), flops / 100e12, flops / 100e12 * 0.02);
  // What is cached is not computed again, but attended to.
  EXPECT_LT(s.cost({}).prefill(2048, 6144).total().value(), t.total().value() / 2);
}

TEST(ServingCost, AStepThatMixesCostsLessThanItsParts) {
  const Subject s(test::dense_model());
  const ServingCost<double> cost = s.cost({});
  const double mixed = cost.mixed_step(32, 1000, 512).total().value();
  EXPECT_LT(mixed, cost.decode_step(32, 1000).total().value() + cost.prefill(512).total().value());
  EXPECT_GT(mixed, cost.decode_step(32, 1000).total().value());
}

TEST(ServingCost, SteadyStateSharesThePromptsAmongTheSteps) {
  const Subject s(test::dense_model());
  const ServingCost<double> cost = s.cost({});
  const ServeLoad load{.prompt = 1024, .cached = 0, .generate = 256, .context = 1152, .chunk = 8192};
  // Between the first token and the 256th of a request come the prompts of the three others.
  const double alone = cost.decode_step(4, 1152).total().value();
  const double mixed = cost.mixed_step(3, 1152, 1024).total().value();
  const SteadyTimes<double> steady = cost.steady(4, load);
  EXPECT_NEAR(steady.tpot.value(), alone + (mixed - alone) * 3.0 / 255, alone * 1e-9);
  EXPECT_NEAR(steady.ttft.value(), mixed, mixed * 1e-9);
  EXPECT_NEAR(steady.request.value(), mixed + 255 * steady.tpot.value(), mixed * 1e-9);
}

TEST(ServingCost, OneRequestAloneSpeedsThroughNobodysPrompts) {
  const Subject s(test::dense_model());
  const ServingCost<double> cost = s.cost({});
  const SteadyTimes<double> steady = cost.steady(1, {.prompt = 1024, .generate = 256, .context = 1152, .chunk = 8192});
  EXPECT_DOUBLE_EQ(steady.tpot.value(), cost.decode_step(1, 1152).total().value());
  EXPECT_DOUBLE_EQ(steady.ttft.value(), cost.prefill(1024).total().value());
}

/// A token past a chunk costs the step it rides in, not another chunk.
TEST(ServingCost, ATokenPastAChunkIsOneStepMore) {
  const Subject s(test::dense_model());
  const ServingCost<double> cost = s.cost({});
  const auto ttft = [&](double prompt) {
    return cost.steady(1, {.prompt = prompt, .generate = 256, .context = 1152, .chunk = 2048}).ttft.value();
  };
  const double step = cost.decode_step(1, 1152).total().value();
  EXPECT_NEAR(ttft(2049) - ttft(2048), step, 0.02 * step);
  EXPECT_NEAR(ttft(2050) - ttft(2049), 0, 0.02 * step);
}

/// Four chunks over four stages: the last follows three stages behind the first.
TEST(ServingCost, ChunksOfAPromptFollowEachOtherOverTheStages) {
  const Subject s(test::dense_model());
  const ServingCost<double> cost = s.cost({.pp = 4});
  const ServeLoad load{.prompt = 4096, .generate = 256, .context = 4224, .chunk = 1024};
  const double chunk = cost.prefill(1024, 1536).total().value();
  EXPECT_NEAR(cost.steady(1, load).ttft.value(), chunk * (4 + 4 - 1) / 4, chunk * 1e-9);
}

/// More prompts than steps: what one step takes is all that leaves, and the rest wait.
TEST(ServingCost, PromptsThatFillEveryStepWait) {
  const Subject s(test::dense_model());
  const ServingCost<double> cost = s.cost({});
  const ServeLoad load{.prompt = 4096, .generate = 4, .context = 4098, .chunk = 1024};
  const SteadyTimes<double> few = cost.steady(16, load), many = cost.steady(64, load);
  EXPECT_TRUE(many.saturated);
  EXPECT_NEAR(many.request.value(), 4 * few.request.value(), many.request.value() * 1e-9);
  EXPECT_DOUBLE_EQ(many.tpot.value(), few.tpot.value());
}

/// 30 % of the peak is what the FLOPs of a prompt take.
TEST(ServingCost, TheMfuAskedForIsDelivered) {
  Subject s(test::dense_model());
  s.system.mfu = 0.3;
  const double flops = 2.0 * 8192 * 8 * kLayerWeights + 8 * 2.0 * 8192 * 4096 * 2048 + 2 * kHeadWeights;
  const double expected = flops / (0.3 * 100e12);
  EXPECT_NEAR(s.cost({}).prefill(8192).total().value(), expected, expected * 1e-3);
  const SteadyTimes<double> steady =
      s.cost({}).steady(1, {.prompt = 8192, .generate = 16, .context = 8200, .chunk = 8192});
  EXPECT_NEAR(steady.ttft.value(), expected, expected * 1e-3);
}

/// DeepSeek-V3.2: 2,048 chosen tokens in the latent's form, 2 x 128 x (2 x 512 + 64) FLOPs each on 8 ranks, and the
/// scores of 64 index heads of 128 whole; the fuller of two stages has 31 of 61 layers.
TEST(ServingCost, ChosenTokensAttendInTheLatentsForm) {
  Subject s(test::shipped_model("deepseek-v3.2"), test::shipped_chip("h200"));
  s.system.mfu = 1;
  const ServingCost<double> cost = s.cost({.tp = 8, .pp = 2, .ep = 8, .etp = 1});
  const double more = cost.prefill(1, 4096).total().value() - cost.prefill(1, 0).total().value();
  const double flops = 62 * (2048 * 2.0 * 128 * 1088 / 8 + 4096 * 2.0 * 64 * 128);
  const double expected = flops / s.hw.matmul_peak[static_cast<std::size_t>(DType::kBf16)]->value();
  EXPECT_NEAR(more, expected, 0.01 * expected);
}

/// Latents of 4,096 tokens before a prompt are expanded once more: 2 x 512 x 128 heads x (128 + 128), beside the pairs.
TEST(ServingCost, LatentsFoundInTheCacheAreExpandedAgain) {
  Subject s(test::shipped_model("deepseek-v3"), test::shipped_chip("h200"));
  s.system.mfu = 1;
  const ServingCost<double> cost = s.cost({.tp = 8, .pp = 2, .ep = 8, .etp = 1});
  const double more = cost.prefill(1, 4096).total().value() - cost.prefill(1, 0).total().value();
  const double flops = 62 * (4096 * 2.0 * 512 * 128 * 256 + 4096 * 2.0 * 128 * 320) / 8;
  const double expected = flops / s.hw.matmul_peak[static_cast<std::size_t>(DType::kBf16)]->value();
  EXPECT_NEAR(more, expected, 0.01 * expected);
}

TEST(ServingCost, MlaDecodesOnTheLatent) {
  const Subject s(test::shipped_model("deepseek-v3"), test::shipped_chip("h200"));
  const ServingCost<double> cost = s.cost({.tp = 8, .pp = 2, .ep = 8, .etp = 1});
  // 61 layers x (512 + 64) elements of 2 bytes, whole on every tensor rank.
  const double bytes = 61 * 576 * 2.0 * 4096;
  const double more = cost.decode_step(2, 8192).kv.value() - cost.decode_step(2, 4096).kv.value();
  EXPECT_NEAR(more, bytes / 4.8e12, bytes / 4.8e12 * 0.05);
}

TEST(ServingCost, ExpertsTouchedGrowWithTheBatch) {
  EXPECT_NEAR(experts_touched(256, 8, 1), 8, 1e-9);
  EXPECT_NEAR(experts_touched(256, 8, 32), 256 * (1 - std::pow(1 - 8.0 / 256, 32)), 1e-9);
  EXPECT_NEAR(experts_touched(8, 8, 1), 8, 1e-6);
}

/// A step reads the weights of the experts it touches, whichever chances they have, and none of the others.
TEST(ServingCost, SkewedExpertsAreReadByTheirChances) {
  Subject s(test::moe_model());
  const double experts = static_cast<double>(s.model.moe->experts), chosen = static_cast<double>(s.model.moe->top_k);
  const auto read = [&](double batch) {
    const ServingCost<double> cost = s.cost({});
    return (cost.decode_step(batch, 1).weights - cost.decode_step(1, 1).weights).value();
  };
  const double even = read(4);
  s.system.efficiency.serving.expert_skew.value = 1;
  const double more = ExpertChances::zipf(*s.model.moe, 1).touched(4) - chosen;
  EXPECT_NEAR(read(4) / even, more / (experts_touched(experts, chosen, 4) - chosen), 0.01) << "activations aside";
  s.system.expert_load = std::make_shared<const ExpertLoad>(ExpertLoad::zipf(*s.model.moe, 0));
  EXPECT_NEAR(read(4) / even, 1, 1e-6) << "what is asked counts in the place of the chip's";
}

TEST(ServingCost, SpeculationExpectsAGeometricRun) {
  EXPECT_NEAR(speculated_tokens(0.8, 4), 1 + 0.8 + 0.64 + 0.512 + 0.4096, 1e-12);
  EXPECT_EQ(speculated_tokens(1, 4), 5);
  EXPECT_EQ(speculated_tokens(0, 4), 1);
}

TEST(ServingCost, AllReadingsAgree) {
  const Subject s(test::moe_model());
  const ServeLayout layout{.tp = 2, .ep = 4, .etp = 1, .attention_dp = 2};
  ServingSystem system = s.system;
  system.efficiency = s.hw.efficiency;
  const Slice slice = slices_of(s.hw, 4, 1).front();
  const Placement placement = placed(s.hw, slice, layout).front();
  const double plain = ServingCost<double>(ServeBasis<double>({}, system), layout, slice, placement)
                           .decode_step(16, 500)
                           .total()
                           .value();
  const Traced traced = ServingCost<Traced>(ServeBasis<Traced>({}, system), layout, slice, placement)
                            .decode_step(16, 500)
                            .total()
                            .value();
  EXPECT_DOUBLE_EQ(traced.value(), plain);
  EXPECT_DOUBLE_EQ(reevaluate(traced), plain);
}

}  // namespace
}  // namespace scalecalc
