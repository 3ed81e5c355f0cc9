// Rules of the scheduler, of memory and of drafts, each by a small case by hand.
#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "serve/json_parts.h"
#include "serve/prompt_line.h"
#include "serve/queueing.h"
#include "serve/serve_search.h"
#include "serve/traffic.h"
#include "support/errors.h"
#include "support/fixtures.h"
#include "support/serving_engine.h"

namespace scalecalc {
namespace {

ServerKind steps_of_a_second(QueueRules rules = test::roomy_rules()) {
  return {[](const StepLoad&) { return 1.0; }, rules};
}

TEST(Scheduler, TheLargestChunkOfAStepIsTold) {
  QueueRules rules = test::roomy_rules();
  rules.token_budget = 200;
  std::vector<StepLoad> steps;
  const ServerKind server{[&](const StepLoad& load) {
                            steps.push_back(load);
                            return 1.0;
                          },
                          rules};
  simulate_queue(std::vector<ServedRequest>{{.prompt = 50, .generate = 1}, {.prompt = 140, .generate = 1}}, server);
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(steps[0].largest_chunk, 140);
  EXPECT_EQ(steps[0].prompts, 2);
}

/// A look follows every step with a prompt; the next are three decode steps apart: at 1, 4 and 7.
TEST(Scheduler, LooksForRequestsOnlyEverySoManySteps) {
  QueueRules rules = test::roomy_rules();
  const std::vector<ServedRequest> two{{.prompt = 10, .generate = 10}, {.arrival_s = 1.5, .prompt = 10, .generate = 1}};
  EXPECT_DOUBLE_EQ(simulate_queue(two, steps_of_a_second(rules)).requests[1].admitted_s, 2);
  rules.receive_interval = 3;
  EXPECT_DOUBLE_EQ(simulate_queue(two, steps_of_a_second(rules)).requests[1].admitted_s, 4);
}

/// 32 tokens in four blocks of hashes; a prompt of 24 that shares nothing leaves room for 8 of them, the host takes 8
/// and the disk 8. Again asked for, 8 are in memory, 8 take 0.5 s each from the host, 8 take 2 s from disk.
TEST(Scheduler, FetchesFromTheHostAndFromDisk) {
  const std::vector<std::uint64_t> ids{1, 2, 3, 4};
  const PromptBlocks blocks{ids, 8};
  QueueRules rules = test::roomy_rules();
  rules.block_tokens = 4;
  rules.kv_tokens = 32;
  rules.kv_kept_free = 0;
  rules.prefix_store = {.host_tokens = 8, .disk_tokens = 8, .host_token_s = 0.5, .disk_token_s = 2};
  const std::vector<ServedRequest> three{{.arrival_s = 0, .prompt = 32, .generate = 1, .blocks = &blocks},
                                         {.arrival_s = 5, .prompt = 24, .generate = 1},
                                         {.arrival_s = 10, .prompt = 32, .generate = 1, .blocks = &blocks}};
  const QueueResult result = simulate_queue(three, steps_of_a_second(rules));
  EXPECT_NEAR(result.requests[2].ttft_s(), 8 * 0.5 + 8 * 2, 1e-9);
  for (const double share : result.figures.found_shares) EXPECT_NEAR(share, 8.0 / 88, 1e-12);
}

TEST(Scheduler, BlocksOfOneHashAreGivenBack) {
  std::vector<std::uint64_t> ids;
  for (std::uint64_t i = 0; i < 20; ++i) ids.push_back(i);
  std::vector<PromptBlocks> blocks;
  std::vector<ServedRequest> requests;
  for (std::size_t i = 0; i < ids.size(); ++i) blocks.push_back({std::span(ids).subspan(i, 1), 8});
  for (std::size_t i = 0; i < ids.size(); ++i) {
    requests.push_back({.arrival_s = 3.0 * static_cast<double>(i), .prompt = 8, .generate = 2, .blocks = &blocks[i]});
  }
  QueueRules rules = test::roomy_rules();
  rules.block_tokens = 4;
  rules.kv_tokens = 16;
  const QueueResult result = simulate_queue(requests, steps_of_a_second(rules));
  for (const RequestTimes& r : result.requests) EXPECT_DOUBLE_EQ(r.latency_s(), 2);
  // Decoding takes a second of each three.
  EXPECT_NEAR(result.figures.mean_decoding, 20.0 / (19 * 3 + 2), 1e-12);
}

/// What is used again is not among what may go.
TEST(Scheduler, APrefixInUseStays) {
  PrefixCache cache(4, 0, 0);
  const std::vector<std::uint64_t> a{1, 2}, b{3};
  std::size_t of_a = 0, of_b = 0;
  cache.add({a, 8}, 16, of_a);
  cache.leave({a, 8}, of_a);
  EXPECT_EQ(cache.use({a, 8}, 16).ids, 2U);
  cache.add({b, 8}, 8, of_b);
  cache.leave({b, 8}, of_b);
  cache.shrink_to(0);
  EXPECT_EQ(cache.find({a, 8}, 16).all(), 4);
  EXPECT_EQ(cache.find({b, 8}, 8).all(), 0);
}

/// The first decodes from 1 on. The second's prompt takes two steps, to 3, and its cache is there at once: a decode
/// step that has begun then would be too late.
TEST(Scheduler, ADecodeServerWaitsForNoCacheThatComesMeanwhile) {
  QueueRules rules = test::roomy_rules();
  rules.token_budget = 100;
  const ServerKind server = steps_of_a_second(rules);
  const std::vector<ServedRequest> two{{.prompt = 50, .generate = 100},
                                       {.arrival_s = 0.5, .prompt = 150, .generate = 3}};
  const DisaggregatedResult result = simulate_disaggregated(two, {.prefill = server, .decode = server});
  EXPECT_DOUBLE_EQ(result.both.requests[1].first_token_s, 3);
  EXPECT_DOUBLE_EQ(result.both.requests[1].finished_s, 5);
  EXPECT_DOUBLE_EQ(result.both.requests[0].finished_s, 100);
}

TEST(GapQuantiles, AGapThatHalvingHitsExactly) {
  GapLog log;
  for (const double gap : {1.0, 2.0, 3.0}) log.add(gap);
  EXPECT_NEAR(log.quantile(0.3), 1, 1e-8);
  EXPECT_NEAR(log.quantile(0.6), 2, 1e-8);
  EXPECT_NEAR(log.quantile(1), 3, 1e-8);
}

TEST(PromptLineLimits, FollowsThreeHundredPromptsToAStep) {
  QueueRules rules = test::roomy_rules();
  const RequestMix mix{.prompt = Lengths::fixed(4), .generate = Lengths::fixed(10)};
  const StepSeconds seconds = test::LinearEngine{};
  rules.token_budget = 1200;
  EXPECT_TRUE(PromptLine::holds({seconds, rules, mix}));
  rules.token_budget = 1201;
  EXPECT_FALSE(PromptLine::holds({seconds, rules, mix}));
}

TEST(JsonLists, ReadWithoutBlanks) {
  const auto parts = json_parts("[1,22,\"a\"]", 0);
  ASSERT_TRUE(parts);
  ASSERT_EQ(parts->parts.size(), 3U);
  EXPECT_EQ(parts->parts[1].end - parts->parts[1].begin, 2U);
  EXPECT_EQ(parts->end, 10U);
  EXPECT_FALSE(json_parts("[1 2]", 0));
  EXPECT_FALSE(json_parts("1", 0));
}

TEST(TraceDates, OffsetsHaveHoursAndMinutes) {
  const auto trace = [](const std::string& date) {
    return "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:00:00,10,2\n" + date + ",10,2\n";
  };
  EXPECT_DOUBLE_EQ(read_trace(trace("2023-11-16 19:30:00.25+01:00"), "t.csv").rows[1].arrival_s -
                       read_trace(trace("2023-11-16 18:30:00.25"), "t.csv").rows[1].arrival_s,
                   0);
  for (const char* wrong : {"2023-11-16 19:00:00+01:xx", "2023-11-16 19:00:00+xx:00", "2023-11-16 19:00:00+0100",
                            "2023-11-16 19:00:00+01:000", "2023-11-16 19:00:00 01:00", "2023-13-16 19:00:00"}) {
    EXPECT_NE(test::problems_of([&] { read_trace(trace(wrong), "t.csv"); }).find("is no date"), std::string::npos)
        << wrong;
  }
}

TEST(TraceDates, DrawnRowsHaveNoArrival) {
  const RequestMix mix = read_trace("prompt,generate,arrival\n10,2,5\n20,3,6\n", "t.csv");
  for (const ServedRequest& r : drawn_requests(mix, 10, 1)) EXPECT_EQ(r.arrival_s, 0);
}

/// Up to four characters are a token; an empty turn is none.
TEST(Conversations, ShortTurnsAreOneToken) {
  const RequestMix mix = read_trace(
      R"([{"conversations": [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "hello you"}]},
          {"conversations": [{"from": "human", "value": ""}, {"from": "gpt", "value": "x"}]},
          {"conversations": [{"from": "human", "value": "abcd"}, {"from": "gpt", "value": "e"}]}])",
      "t.json");
  ASSERT_EQ(mix.rows.size(), 2U);
  EXPECT_EQ(mix.rows[0].prompt, 1);
  EXPECT_EQ(mix.rows[0].generate, 3);
  EXPECT_EQ(mix.rows[1].prompt, 1);
  EXPECT_EQ(mix.rows[1].generate, 1);
}

std::vector<ServeLayout> layouts_of(const ModelSpec& model, std::int64_t chips, const ServePins& fix) {
  return serve_layouts(model, test::switched_chip(), chips, fix, {});
}

TEST(ServeLayoutRules, GatheredWeightsOfTensorRanksAlone) {
  ServePins gathered;
  gathered.scheme = static_cast<std::int64_t>(ServeScheme::kGathered);
  bool two = false;
  for (const ServeLayout& l : layouts_of(test::dense_model(), 4, gathered)) {
    EXPECT_EQ(l.scheme, ServeScheme::kGathered);
    EXPECT_GT(l.tp, 1);
    EXPECT_EQ(l.cp, 1) << "contexts are not divided beside them";
    two |= l.tp == 2;
  }
  EXPECT_TRUE(two);
}

TEST(ServeLayoutRules, ObstaclesNameTheirRule) {
  const auto overlap = [](const ModelSpec& model, ServePins fix) {
    fix.ep_overlap = 1;
    const std::vector<std::string> found = serve_obstacles(model, 16, fix);
    return std::any_of(found.begin(), found.end(), [](const std::string& s) { return s.starts_with("ep_overlap"); });
  };
  EXPECT_TRUE(overlap(test::dense_model(), {}));
  EXPECT_FALSE(overlap(test::moe_model(), {}));
  EXPECT_TRUE(overlap(test::moe_model(), {.ep = 1}));
  EXPECT_FALSE(overlap(test::moe_model(), {.ep = 4}));
  EXPECT_TRUE(overlap(test::moe_model(), {.attention_dp = 1}));
  EXPECT_FALSE(overlap(test::moe_model(), {.attention_dp = 4}));
  EXPECT_EQ(serve_obstacles(test::dense_model(), 16, {.ep = 3}).size(), 1U);
  EXPECT_TRUE(serve_obstacles(test::moe_model(), 16, {}).empty());
  EXPECT_EQ(serve_obstacles(test::moe_model(), 16, {.ep = 3}).size(), 1U);
}

/// A rule that leaves no layout is told, and no rule is that leaves some.
TEST(ServeLayoutRules, WhereThereIsNoLayoutARuleIsNamed) {
  const auto gathered = static_cast<std::int64_t>(ServeScheme::kGathered);
  const auto in_two = static_cast<std::int64_t>(ServeScheme::kStationary2d);
  const std::vector<ServePins> asked{{.ep = 2},
                                     {.etp = 3},
                                     {.cp = 2},
                                     {.tp = 2, .scheme = in_two},
                                     {.tp = 4, .scheme = in_two},
                                     {.tp = 1, .scheme = gathered},
                                     {.cp = 2, .scheme = gathered},
                                     {.tp = 4, .tp_x = 2},
                                     {.tp = 4, .tp_x = 4},
                                     {.tp_x = 3},
                                     {.tp_x = 2, .scheme = gathered},
                                     {.tp = 16, .ep_overlap = 1},
                                     {.tp = 2, .ep = 2, .etp = 4, .attention_dp = 1, .cp = 1},
                                     {.pp = 4096}};
  ModelSpec recurrent = test::dense_model();
  recurrent.kinds.front().mixer = MixerKind::kMamba1;
  recurrent.mamba1 = {.d_inner = 2048, .d_state = 16, .d_conv = 4, .dt_rank = 64};
  for (const ModelSpec& model : {test::dense_model(), test::moe_model(), recurrent}) {
    for (const ServePins& fix : asked) {
      std::vector<std::string> found = serve_obstacles(model, 16, fix);
      const std::int64_t chips = 16;
      const std::string together = excluded_pins(model, test::switched_chip(), std::span(&chips, 1), fix, {}, 0);
      if (!together.empty()) found.push_back(together);
      EXPECT_EQ(found.empty(), !layouts_of(model, 16, fix).empty()) << (found.empty() ? "" : found.front());
    }
  }
  EXPECT_EQ(serve_obstacles(recurrent, 16, {.cp = 2}).size(), 1U);
}

/// Eight groups of four tensor ranks are more than 16 chips.
TEST(ServeLayoutRules, PinsThatExcludeEachOtherAreNamed) {
  const std::int64_t chips = 16;
  const auto excluded = [&](const ServePins& fix) {
    return excluded_pins(test::moe_model(), test::switched_chip(), std::span(&chips, 1), fix, {}, 0);
  };
  EXPECT_EQ(excluded({.tp = 4}), "");
  EXPECT_EQ(excluded({.tp = 4, .attention_dp = 8}),
            "no layout has all that --fix and --max ask for together; there are some without tp, or without "
            "attention_dp");
}

class ServedBytes : public testing::Test {
 protected:
  ServingSystem system_of(const ModelSpec& model) const {
    ServingSystem out;
    out.model = &model;
    out.hw = &hw_;
    out.efficiency = ideal_efficiency(hw_.efficiency);
    out.engine.counts_runtime = false;
    return out;
  }
  double weights(const ServingSystem& system, const ServeLayout& layout) const {
    return ServeMemory(ServeBasis<double>({}, system), layout).parts(0, 1).weights;
  }
  HardwareSpec hw_ = test::switched_chip();
};

/// Eight layers: queries 1,024 x 1,024, keys and values 1,024 x 512, output, gate, up and down of 4,096; two norms each
/// and one more; embedding and head of 32,000. In two bytes.
TEST_F(ServedBytes, WeightsDivideOverTheirRanks) {
  const ModelSpec model = test::dense_model();
  const ServingSystem system = system_of(model);
  const auto expected = [](double queries, double keys, double rest) {
    const double square = 1024.0 * 1024;
    return 2 * (8 * (square / queries + square / 2 / keys + (square + 12 * square) / rest + 2 * 1024) + 1024 +
                2 * 32000.0 * 1024 / rest);
  };
  EXPECT_DOUBLE_EQ(weights(system, {}), expected(1, 1, 1));
  EXPECT_DOUBLE_EQ(weights(system, {.tp = 8, .etp = 8}), expected(8, 4, 8)) << "four KV heads";
  // Context ranks divide all but attention's own projections.
  EXPECT_DOUBLE_EQ(weights(system, {.tp = 2, .etp = 4, .cp = 2}), expected(2, 2, 4));
  // Two by four: heads over four of the ranks, d_model over two.
  EXPECT_DOUBLE_EQ(weights(system, {.tp = 8, .tp_x = 2, .etp = 8, .scheme = ServeScheme::kStationary2d}),
                   expected(8, 8, 8));
  EXPECT_DOUBLE_EQ(weights(system, {.tp = 4, .tp_x = 2, .etp = 4, .scheme = ServeScheme::kStationary2d}),
                   expected(4, 4, 4));
}

TEST_F(ServedBytes, CopiesOfExpertsAreWeightsToo) {
  const ModelSpec model = test::moe_model();
  ServingSystem system = system_of(model);
  const ServeLayout layout{.tp = 1, .ep = 4, .etp = 1, .attention_dp = 4};
  const double before = weights(system, layout);
  system.redundant_experts = 4;
  // Seven layers of eight experts, three matrices of 1,024 x 1,024: half as many again, on four ranks.
  EXPECT_DOUBLE_EQ(weights(system, layout) - before, 2 * 7 * 4 * 3 * 1024.0 * 1024 / 4);
}

/// The last stage of a tied model has the matrix once more.
TEST_F(ServedBytes, ATiedMatrixIsOnTheLastStageToo) {
  ModelSpec model = test::dense_model();
  const double apart = weights(system_of(model), {.pp = 2});
  model.tied_embeddings = true;
  EXPECT_DOUBLE_EQ(weights(system_of(model), {.pp = 2}), apart);
}

/// A chunk of 8,192 tokens: residual stream and normed input of 1,024, and the widest output, twice where it is gated.
TEST_F(ServedBytes, ActivationsOfAChunk) {
  ModelSpec model = test::dense_model();
  const auto activations = [&] {
    ServingSystem system = system_of(model);
    system.engine.counts_runtime = true;
    return ServeMemory(ServeBasis<double>({}, system), ServeLayout{}).parts(0, 1).activations;
  };
  EXPECT_DOUBLE_EQ(activations(), 2 * 8192.0 * (2 * 1024 + 2 * 4096));
  model.mlp.gated = false;
  EXPECT_DOUBLE_EQ(activations(), 2 * 8192.0 * (2 * 1024 + 4096));
}

/// A cache of 8 x 512 elements a token in two bytes: a thousandth of what 8,192,000 bytes of host hold.
TEST_F(ServedBytes, AStoreOfPrefixesIsCountedInTokens) {
  hw_.pcie_bandwidth = BytesPerSecond(64e9);
  const ModelSpec model = test::dense_model();
  const ServingSystem system = system_of(model);
  const ServeBasis<double> basis(Reader<double>{}, system);
  const Slice slice = slices_of(hw_, 1, 1).front();
  ReplicaQuestion question{.mix = {.prompt = Lengths::fixed(1000), .generate = Lengths::fixed(101)}, .chunk = 1};
  question.store = PrefixStoreAsked{.host_bytes = 8192e3, .disk_bytes = 8192e6, .disk_rate = 1e9};
  const QueueRules rules = replica_server(basis, {}, slice, best_placement(basis, {}, slice), question).rules;
  EXPECT_NEAR(rules.prefix_store.host_tokens, 1000, 1e-6);
  EXPECT_NEAR(rules.prefix_store.disk_tokens, 1e6, 1e-3);
  EXPECT_NEAR(rules.prefix_store.host_token_s, 8192 / 64e9, 1e-15);
  EXPECT_NEAR(rules.prefix_store.disk_token_s, 8192 / 1e9, 1e-15);
  EXPECT_EQ(rules.prompt_chunk, 1);
  // Without a limit of sequences the budget has room for all that the cache holds.
  EXPECT_EQ(rules.token_budget, static_cast<std::int64_t>(std::ceil(rules.kv_tokens / 1050.5)) + 1);
}

TEST_F(ServedBytes, HalfPrecisionStaysHalf) {
  const ModelSpec model = test::dense_model();
  ServingSystem system = system_of(model);
  system.formats.compute = DType::kFp16;
  EXPECT_EQ(ServeBasis<double>({}, system).format_of(16), DType::kFp16);
  system.formats.compute = DType::kFp8;
  EXPECT_EQ(ServeBasis<double>({}, system).format_of(16), DType::kBf16);
  EXPECT_EQ(ServeBasis<double>({}, system).format_of(8), DType::kFp8);
}

/// Four heads divide over four of eight tensor ranks: two replicas of the draft.
TEST_F(ServedBytes, ADraftHasReplicasWhereItsHeadsGiveOut) {
  const ModelSpec model = test::dense_model();
  ModelSpec draft = test::dense_model(2);
  draft.attention = {.heads = 4, .kv_heads = 4, .head_dim = 64};
  const ServingSystem system = system_of(model);
  const SpeculationAsked asked{.draft = "small", .drafted = 4, .accept = 0.8};
  const Speculator speculator(asked, system, draft);
  EXPECT_EQ(speculator.memory({.tp = 8, .etp = 8}).replicas, 2);
  EXPECT_EQ(speculator.memory({.tp = 8, .etp = 8, .dp = 3}).replicas, 2) << "of each of the target's";
  EXPECT_EQ(speculator.memory({.tp = 4, .etp = 4}).replicas, 1);
}

TEST_F(ServedBytes, SpeculationPaysUpToABatch) {
  const ModelSpec model = test::dense_model(32), draft = test::dense_model(1);
  const ServingSystem system = system_of(model);
  const Slice slice = slices_of(hw_, 1, 1).front();
  const ServingCost<double> target = serving_cost(system, {}, slice);
  for (const double accept : {0.01, 0.5, 0.9}) {
    const SpeculationAsked asked{.draft = "small", .drafted = 4, .accept = accept};
    const Speculator speculator(asked, system, draft);
    double last = 0;
    bool always = true;
    for (double batch = 1; batch <= 4096 && always; batch *= 2) {
      const SpeculationFigures f = speculator.figures({}, slice, target, batch, 100);
      always = f.draft_s + f.verify_s < f.plain_tpot_s * f.tokens_per_step;
      if (always) last = batch;
    }
    SpeculationFigures found;
    speculator.find_break_even(found, {}, slice, target, 4096, 100);
    EXPECT_EQ(found.break_even_batch, always ? std::nullopt : std::optional(last)) << accept;
    EXPECT_TRUE(accept > 0.1 || found.break_even_batch == 0) << "drafts that are thrown away never pay";
    EXPECT_TRUE(accept < 0.8 || found.break_even_batch.value_or(2) > 1);
  }
}

}  // namespace
}  // namespace scalecalc
