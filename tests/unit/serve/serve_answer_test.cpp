#include <gtest/gtest.h>

#include <algorithm>

#include "base/diagnostic.h"
#include "serve/serve_question.h"
#include "serve/serve_search.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

ServeQuestion question(std::int64_t chips = 8) {
  ServeQuestion q;
  q.model = "llama3-70b";
  q.hardware = {"h100-sxm"};
  q.chips = chips;
  q.prompt = 2048;
  q.generate = 256;
  return q;
}

TEST(ServeAnswers, TheBestMeetsTheLimitsAndNoneThatDoesIsBetter) {
  ServeQuestion q = question();
  q.slo_tpot = 0.03;
  q.top = 1000;
  const ServeAnswer answer = serve_answer(q, Catalog{});
  ASSERT_TRUE(answer.best.has_value());
  EXPECT_LE(answer.best->tpot_s, 0.03);
  for (const ServePoint& p : answer.points) {
    if (!p.meets_limits) continue;
    EXPECT_LE(p.tokens_per_s_per_chip(), answer.best->tokens_per_s_per_chip());
  }
}

TEST(ServeAnswers, OfSeveralSystemsEachIsAsIfAskedAlone) {
  ServeQuestion q = question();
  q.slo_tpot = 0.02;
  q.hardware = {"h100-sxm", "h200", "l4"};
  const ServeAnswer together = serve_answer(q, Catalog{});
  ASSERT_EQ(together.outcomes.size(), 3U);
  for (std::size_t s = 0; s < q.hardware.size(); ++s) {
    ServeQuestion one = q;
    one.hardware = {q.hardware[s]};
    const ServeAnswer alone = serve_answer(one, Catalog{});
    const SystemOutcome& outcome = together.outcomes[s];
    ASSERT_EQ(outcome.best.has_value(), alone.best.has_value()) << q.hardware[s];
    if (alone.best) {
      EXPECT_EQ(outcome.best->tokens_per_s, alone.best->tokens_per_s);
    } else {
      EXPECT_EQ(outcome.limits.at(0).nearest, alone.limits.at(0).nearest);
    }
  }
  EXPECT_FALSE(together.outcomes[2].best) << "17.6 GB of weights on each of eight L4 take 59 ms at 300 GB/s";
}

TEST(ServeAnswers, AtTheKneeBothRatesTogetherAreMost) {
  ServeQuestion q = question();
  q.objective = ServeObjective::kKnee;
  q.top = 1000;
  const ServeAnswer answer = serve_answer(q, Catalog{});
  ASSERT_TRUE(answer.best.has_value());
  const auto product = [](const ServePoint& p) { return p.tokens_per_s_per_chip() * p.tokens_per_s_per_user(); };
  EXPECT_TRUE(answer.best->pareto);
  for (const ServePoint& p : answer.points) EXPECT_LE(product(p), product(*answer.best));
  // It is neither end of the front.
  EXPECT_GT(answer.best->batch, answer.points.front().batch);
  EXPECT_LT(answer.best->batch, answer.points.back().batch);
}

TEST(ServeAnswers, OfOnePointTheBestIsListed) {
  ServeQuestion q = question();
  q.slo_tpot = 0.03;
  q.top = 1;
  const ServeAnswer answer = serve_answer(q, Catalog{});
  ASSERT_EQ(answer.points.size(), 1U);
  EXPECT_EQ(answer.points.front().tpot_s, answer.best->tpot_s);
  EXPECT_EQ(answer.points.front().batch, answer.best->batch);
}

TEST(ServeAnswers, WithoutAPriceTheCheapestIsTheOneWithMostTokensAChip) {
  ServeQuestion q = question();
  q.hardware = {"gaudi3"};
  const ServeAnswer most = serve_answer(q, Catalog{});
  q.objective = ServeObjective::kCost;
  const ServeAnswer cheapest = serve_answer(q, Catalog{});
  ASSERT_TRUE(cheapest.best.has_value());
  EXPECT_EQ(cheapest.best->batch, most.best->batch);
  ASSERT_FALSE(cheapest.notes.empty());
  EXPECT_NE(cheapest.notes.front().find("--price"), std::string::npos);
}

TEST(ServeAnswers, AnImpossibleLimitIsNamedWithTheNearest) {
  ServeQuestion q = question();
  q.slo_tpot = 1e-3;
  const ServeAnswer answer = serve_answer(q, Catalog{});
  EXPECT_FALSE(answer.best.has_value());
  ASSERT_EQ(answer.limits.size(), 1U);
  EXPECT_EQ(answer.limits.front().name, "tpot");
  EXPECT_GT(answer.limits.front().nearest, 1e-3);
}

TEST(ServeAnswers, LimitsThatOnlyTogetherCannotBeMet) {
  ServeQuestion q = question();
  q.batches = {1, 64};
  q.suggest = false;
  const ServeAnswer free = serve_answer(q, Catalog{});
  const auto by_tpot = [](const ServePoint& a, const ServePoint& b) { return a.tpot_s < b.tpot_s; };
  const ServePoint quick = *std::min_element(free.points.begin(), free.points.end(), by_tpot);
  q.slo_tpot = quick.tpot_s;
  q.slo_ttft = quick.ttft_s * 0.999;
  const ServeAnswer answer = serve_answer(q, Catalog{});
  EXPECT_NE(answer.best.has_value(), !answer.limits.empty());
}

TEST(ServeAnswers, WeightsThatDoNotFitSayWhatIsShort) {
  const ServeAnswer answer = serve_answer(question(1), Catalog{});
  ASSERT_EQ(answer.limits.size(), 1U);
  EXPECT_EQ(answer.limits.front().name, "memory");
  EXPECT_GT(answer.limits.front().nearest, answer.limits.front().asked);
  EXPECT_TRUE(std::any_of(answer.would_meet.begin(), answer.would_meet.end(),
                          [](const FlagChange& change) { return change.text() == "--chips 2"; }));
}

TEST(ServeAnswers, PoolsShareTheChips) {
  ServeQuestion q = question(16);
  q.disaggregate = Disaggregation::kOn;
  const ServeAnswer answer = serve_answer(q, Catalog{});
  ASSERT_TRUE(answer.best && answer.best->pools);
  EXPECT_LE(answer.best->pools->prefill_chips + answer.best->pools->decode_chips, 16);
  // Requests leave no faster than either pool lets them.
  EXPECT_LE(answer.best->requests_per_s, answer.best->batch / (answer.best->tpot_s * (q.generate - 1)) * (1 + 1e-12));
}

ServeQuestion pools(std::int64_t chips, std::int64_t prefill_tp, std::int64_t decode_tp) {
  ServeQuestion q = question(chips);
  q.disaggregate = Disaggregation::kOn;
  q.ideal = true;
  q.prefill_fix.tp = prefill_tp;
  q.decode_fix.tp = decode_tp;
  q.prefill_fix.pp = q.decode_fix.pp = q.prefill_fix.cp = q.decode_fix.cp = 1;
  q.prefill_fix.attention_dp = q.decode_fix.attention_dp = 1;
  return q;
}

TEST(ServeAnswers, ACacheMovesOverTheLinksBetweenThePools) {
  // 80 layers x 2 x 8 heads x 128 x 2 bytes of 2,048 tokens.
  constexpr double kCache = 80.0 * 2 * 8 * 128 * 2 * 2048;
  // Beyond one node every chip has a port of 50 GB/s: four send, 3.355 ms; latency 20 us.
  const ServeAnswer apart = serve_answer(pools(16, 4, 8), Catalog{});
  ASSERT_TRUE(apart.best && apart.best->pools);
  EXPECT_NEAR(apart.best->pools->transfer_bytes, kCache, 1);
  EXPECT_NEAR(apart.best->pools->transfer_s, kCache / (4 * 50e9) + 20e-6, 1e-9);
  EXPECT_EQ(apart.best->pools->transfer_tier, "leaf");
  EXPECT_EQ(apart.best->pools->prefill_layout.tp, 4);
  EXPECT_EQ(apart.best->layout.tp, 8);
  // Four that receive pace eight that send.
  EXPECT_NEAR(serve_answer(pools(16, 8, 4), Catalog{}).best->pools->transfer_s, kCache / (4 * 50e9) + 20e-6, 1e-9);
  // Within a node over its 450 GB/s.
  const ServeAnswer node = serve_answer(pools(8, 4, 4), Catalog{});
  EXPECT_NEAR(node.best->pools->transfer_s, kCache / (4 * 450e9) + 10e-6, 1e-9);
  EXPECT_EQ(node.best->pools->transfer_tier, "node");
}

TEST(ServeAnswers, LatentsMoveToEveryRankThatKeepsThem) {
  // 61 layers of (512 + 64) elements of 2 bytes, whole on each of 8 tensor ranks.
  ServeQuestion q = pools(16, 8, 8);
  q.model = "deepseek-v3";
  q.weights = QuantizationSpec{.weights = WeightFormat::kFp8, .bits_per_weight = 8, .source = "test"};
  q.hardware = {"h200"};
  const ServeAnswer answer = serve_answer(q, Catalog{});
  ASSERT_TRUE(answer.best && answer.best->pools);
  EXPECT_NEAR(answer.best->pools->transfer_bytes, 8 * 61.0 * 576 * 2 * 2048, 1);
}

/// A prompt passes the draft as it would alone on the same chips, after the model, and leaves them to the next one only
/// then.
TEST(ServeAnswers, PromptsOfAPoolPassTheDraftToo) {
  for (const char* other : {"", "h200"}) {
    ServeQuestion q = pools(*other == 0 ? 16 : 8, 4, 8);
    q.prefill_hardware = other;
    q.batches = {1};
    const ServeAnswer plain = serve_answer(q, Catalog{});
    q.model = "llama3-8b";
    const ServeAnswer draft = serve_answer(q, Catalog{});
    q.model = "llama3-70b";
    q.speculation = SpeculationAsked{.draft = "llama3-8b", .drafted = 4, .accept = 0.7};
    const ServeAnswer both = serve_answer(q, Catalog{});
    ASSERT_TRUE(plain.best && draft.best && both.best && both.best->pools);
    const ServePoint& p = *both.best;
    EXPECT_NEAR(p.ttft_s, plain.best->ttft_s + draft.best->ttft_s, 1e-9) << other;
    EXPECT_NEAR(p.pools->ratio * p.tpot_s * (q.generate - 1), p.ttft_s, 1e-9) << "of one sequence that decodes";
  }
}

TEST(ServeAnswers, PinsOfAPoolGoBeforeThoseOfBoth) {
  ServeQuestion q = question(16);
  q.disaggregate = Disaggregation::kOn;
  q.fix.tp = 4;
  q.decode_fix.tp = 8;
  q.prefill_fix.dp = 2;
  const ServeAnswer answer = serve_answer(q, Catalog{});
  ASSERT_TRUE(answer.best && answer.best->pools);
  EXPECT_EQ(answer.best->layout.tp, 8);
  EXPECT_EQ(answer.best->pools->prefill_layout.tp, 4);
  EXPECT_EQ(answer.best->pools->prefill_replicas, 2);
  EXPECT_EQ(answer.best->pools->prefill_chips, 8);
  // Eight chips of each leave none for a third.
  q.prefill_fix.dp = 3;
  EXPECT_FALSE(serve_answer(q, Catalog{}).best);
}

TEST(ServeAnswers, TheFrontHasNoPointThatAnotherBeats) {
  const ServeAnswer answer = serve_answer(question(), Catalog{});
  for (const ServePoint& a : answer.points) {
    for (const ServePoint& b : answer.points) {
      EXPECT_FALSE(b.tpot_s < a.tpot_s && b.tokens_per_s_per_chip() > a.tokens_per_s_per_chip());
    }
  }
}

/// Where prompts limit the rate, every layout that keeps up with them has the same throughput.
TEST(ServeAnswers, OfLayoutsThatPromptsFeedAlikeTheFastestIsBest) {
  ServeQuestion q;
  q.model = "qwen3-235b-a22b";
  q.hardware = {"h200"};
  q.chips = 32;
  q.disaggregate = Disaggregation::kOn;
  q.top = 1000;
  const ServeAnswer answer = serve_answer(q, Catalog{});
  ASSERT_TRUE(answer.best && answer.best->pools);
  EXPECT_TRUE(answer.best->pareto);
  for (const ServePoint& p : answer.points) {
    if (p.tokens_per_s_per_chip() < answer.best->tokens_per_s_per_chip() * (1 - 1e-12)) continue;
    EXPECT_GE(p.tpot_s, answer.best->tpot_s);
  }
  // Nor is one faster that decodes in this way and was not listed.
  for (const std::int64_t ranks : {8, 16}) {
    q.decode_fix.attention_dp = ranks;
    const ServeAnswer pinned = serve_answer(q, Catalog{});
    if (!pinned.best) continue;
    const bool as_much = pinned.best->tokens_per_s_per_chip() >= answer.best->tokens_per_s_per_chip() * (1 - 1e-12);
    EXPECT_TRUE(!as_much || pinned.best->tpot_s >= answer.best->tpot_s * (1 - 1e-9)) << ranks;
  }
}

TEST(ServeAnswers, UnknownEnginesAndTrainersAreRefused) {
  ServeQuestion q = question();
  q.engine = "megatron";
  EXPECT_THROW(serve_answer(q, Catalog{}), UserError);
  q.engine = "no such";
  EXPECT_THROW(serve_answer(q, Catalog{}), UserError);
}

TEST(ServeAnswers, LimitsOfTheEngineAreKept) {
  ServeQuestion q = question();
  q.engine_settings = {{.fact = EngineFact::kSequences, .engine = "vllm", .value = 16}};
  for (const ServePoint& p : serve_answer(q, Catalog{}).points) {
    EXPECT_LE(p.batch, 16.0 * static_cast<double>(p.layout.dp * p.layout.attention_dp));
  }
  const auto room = [&](double share) {
    q.engine_settings = {{.fact = EngineFact::kShare, .engine = "vllm", .value = share}};
    return serve_answer(q, Catalog{}).best->max_batch;
  };
  EXPECT_LT(room(0.6), room(0.9));
  q.engine_settings = {{.fact = EngineFact::kLength, .engine = "vllm", .value = 64}};
  EXPECT_THROW(serve_answer(q, Catalog{}), UserError) << "shorter than the question's";
  q.engine_settings = {{.fact = EngineFact::kLength, .engine = "vllm", .value = 1e9}};
  EXPECT_FALSE(serve_answer(q, Catalog{}).best.has_value()) << "the cache holds no such request";
}

TEST(ServeAnswers, FlagsOfAnotherEngineAreRefusedByName) {
  ServeQuestion q = question();
  q.engine = "vllm@0.11";
  q.engine_settings = {{.fact = EngineFact::kShare, .engine = "sglang", .value = 0.8},
                       {.fact = EngineFact::kReceive, .engine = "", .value = 10}};
  try {
    serve_answer(q, Catalog{});
    FAIL();
  } catch (const UserError& error) {
    ASSERT_EQ(error.diagnostics().size(), 2U);
    EXPECT_EQ(error.diagnostics()[0].message, "--mem-fraction-static is a flag of sglang, and the engine is vllm");
    EXPECT_EQ(error.diagnostics()[0].hint, "vllm calls it --gpu-memory-utilization");
    EXPECT_EQ(error.diagnostics()[1].message, "--receive-interval is a flag of sglang, and the engine is vllm");
  }
}

/// Pope et al. 2022, arXiv:2211.05102, table 2 and section 4: PaLM 540B on 64 TPU v4, two-dimensional weights, 2,048
/// tokens of context; ms of a decode step by batch and weights.
TEST(ServeAnswers, PalmOn64TpuV4ComesNearWhatWasMeasured) {
  struct Measured {
    double batch;
    WeightFormat weights;
    double step_s;
  };
  for (const Measured& m : {Measured{64, WeightFormat::kInt8, 28.5e-3}, Measured{64, WeightFormat::kBf16, 36.9e-3},
                            Measured{512, WeightFormat::kBf16, 93.75e-3}}) {
    ServeQuestion q;
    q.model = "palm-540b";
    q.hardware = {"tpu-v4"};
    q.chips = 64;
    q.prompt = 1;
    q.generate = 64;
    q.context = 2048;
    q.batches = {m.batch};
    q.weights = QuantizationSpec{.weights = m.weights, .bits_per_weight = bits_of(m.weights), .source = "test"};
    q.compute = DType::kBf16;
    q.fix.tp = 64;
    q.fix.scheme = static_cast<std::int64_t>(ServeScheme::kStationary2d);
    const ServeAnswer answer = serve_answer(q, Catalog{});
    ASSERT_TRUE(answer.best.has_value());
    EXPECT_NEAR(answer.best->decode_step_s, m.step_s, 0.2 * m.step_s);
  }
}

TEST(ServeLayouts, EveryLayoutUsesAllChipsOnce) {
  const ModelSpec model = test::moe_model();
  const HardwareSpec hw = test::switched_chip();
  for (const ServeLayout& l : serve_layouts(model, hw, 16, {}, {})) {
    EXPECT_EQ(l.chips(), 16);
    EXPECT_EQ(l.ep * l.etp, l.group());
  }
}

TEST(ServeLayouts, PinsHold) {
  ServePins fix;
  fix.tp = 4;
  ServePins max;
  max.pp = 1;
  for (const ServeLayout& l : serve_layouts(test::dense_model(), test::switched_chip(), 16, fix, max)) {
    EXPECT_EQ(l.tp, 4);
    EXPECT_EQ(l.pp, 1);
  }
}

TEST(ServeLayouts, ObstaclesNameTheRule) {
  ServePins fix;
  fix.tp = 3;
  EXPECT_FALSE(serve_obstacles(test::dense_model(), 8, fix).empty());
  fix = {};
  fix.attention_dp = 2;
  EXPECT_FALSE(serve_obstacles(test::dense_model(), 8, fix).empty());
  fix = {};
  fix.tp = 4;
  EXPECT_TRUE(serve_obstacles(test::dense_model(), 8, fix).empty());
}

/// A slow cheap one, a fast dear one, one that both beat, and one of a chip without a price.
TEST(Pareto, ByCostOnlyPricedPointsStandOnTheFront) {
  const auto point = [](double tpot_s, std::optional<double> usd) {
    ServePoint out;
    out.tpot_s = tpot_s;
    out.usd_per_million_output = usd;
    return out;
  };
  std::vector<ServePoint> points{point(0.2, 1), point(0.1, 3), point(0.3, 2), point(0.05, std::nullopt)};
  mark_pareto(points, ServeObjective::kCost);
  EXPECT_TRUE(points[0].pareto);
  EXPECT_TRUE(points[1].pareto);
  EXPECT_FALSE(points[2].pareto);
  EXPECT_FALSE(points[3].pareto);
}

}  // namespace
}  // namespace scalecalc
