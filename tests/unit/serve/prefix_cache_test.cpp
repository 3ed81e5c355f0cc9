#include "serve/prefix_cache.h"

#include <gtest/gtest.h>

#include <vector>

#include "serve/queueing.h"
#include "support/serving_engine.h"

namespace scalecalc {
namespace {

/// Blocks of 4 tokens, hashed by 8: two to an id.
constexpr std::int64_t kBlock = 4;
constexpr std::int64_t kHashed = 8;

PromptBlocks prompt(const std::vector<std::uint64_t>& ids) { return {ids, kHashed}; }

TEST(PrefixCache, KeepsWhatComesFirstLongest) {
  PrefixCache cache(kBlock, 0, 0);
  const std::vector<std::uint64_t> a{1, 2, 3};
  std::size_t used = 0;
  EXPECT_EQ(cache.add(prompt(a), 24, used), 0);
  EXPECT_EQ(used, 3U);
  EXPECT_EQ(cache.leave(prompt(a), used), 6);
  // Room for four blocks: the end of the prompt goes.
  cache.shrink_to(4);
  EXPECT_EQ(cache.find(prompt(a), 24).ids, 2U);
  EXPECT_EQ(cache.find(prompt(a), 24).all(), 4);
  // Another that begins alike, then one of its own.
  const std::vector<std::uint64_t> b{1, 9};
  EXPECT_EQ(cache.find(prompt(b), 16).all(), 2);
}

TEST(PrefixCache, OneCopyOfWhatTwoHaveComputed) {
  PrefixCache cache(kBlock, 0, 0);
  const std::vector<std::uint64_t> a{1, 2};
  std::size_t first = 0, second = 0;
  EXPECT_EQ(cache.add(prompt(a), 16, first), 0);
  EXPECT_EQ(cache.add(prompt(a), 16, second), 4);
  EXPECT_EQ(cache.leave(prompt(a), first), 0);
  EXPECT_EQ(cache.leave(prompt(a), second), 4);
}

TEST(PrefixCache, WhatHasNoRoomGoesToTheHostAndToDisk) {
  PrefixCache cache(kBlock, 2, 2);
  const std::vector<std::uint64_t> a{1, 2, 3, 4};
  std::size_t used = 0;
  cache.add(prompt(a), 32, used);
  cache.leave(prompt(a), used);
  cache.shrink_to(2);
  // 1 stays; 4 left first, then 3 and 2 pushed it on: 2 is in the host, 3 on disk, 4 gone.
  EXPECT_EQ(cache.find(prompt(a), 32).blocks, (PrefixCache::ByPlace{2, 2, 2}));
  EXPECT_EQ(cache.use(prompt(a), 32).ids, 3U);
  EXPECT_EQ(cache.find(prompt(a), 32).blocks, (PrefixCache::ByPlace{6, 0, 0}));
  EXPECT_EQ(cache.find(prompt(a), 32).used, 6);
}

TEST(PrefixCache, ALastBlockHasWhatIsLeft) {
  PrefixCache cache(kBlock, 0, 0);
  const std::vector<std::uint64_t> a{1, 2};
  std::size_t used = 0;
  cache.add(prompt(a), 13, used);  // 8 and 5 tokens: two blocks and one
  EXPECT_EQ(cache.find(prompt(a), 13).all(), 3);
  EXPECT_EQ(cache.find(prompt(a), 16).all(), 2);
}

/// A step takes a second and 10 ms a prompt's token.
ServerKind clockwork() {
  ServerKind out{[](const StepLoad& load) { return 1.0 + 0.01 * load.prefill_tokens; }, test::roomy_rules()};
  out.rules.block_tokens = kBlock;
  return out;
}

TEST(PrefixCache, ASecondPromptComputesOnlyItsOwn) {
  const std::vector<std::uint64_t> ids{1, 2, 3, 1, 2, 4};
  const std::span<const std::uint64_t> all(ids);
  const std::vector<PromptBlocks> blocks{{all.first(3), kHashed}, {all.last(3), kHashed}};
  const std::vector<ServedRequest> two{{.arrival_s = 0, .prompt = 24, .generate = 1, .blocks = &blocks[0]},
                                       {.arrival_s = 5, .prompt = 24, .generate = 1, .blocks = &blocks[1]}};
  const QueueResult result = simulate_queue(two, clockwork());
  EXPECT_NEAR(result.requests[0].ttft_s(), 1.24, 1e-9);
  EXPECT_NEAR(result.requests[1].ttft_s(), 1.08, 1e-9);
  EXPECT_NEAR(result.figures.found_share(), 16.0 / 48, 1e-12);
}

TEST(PrefixCache, AFetchHidesUnderTheStepOrPacesIt) {
  const std::vector<std::uint64_t> ids{1, 2, 3, 4};
  const std::vector<PromptBlocks> blocks{{ids, kHashed}};
  ServerKind server = clockwork();
  server.rules.kv_tokens = 36;
  server.rules.prefix_store = {.host_tokens = 1000, .host_token_s = 0.5};
  // 32 tokens; then a prompt of 36 that shares nothing takes all memory; then the first again, from the host: its last
  // token is computed, 31 are found, 32 fetched in 16 s.
  const std::vector<ServedRequest> three{{.arrival_s = 0, .prompt = 32, .generate = 1, .blocks = &blocks[0]},
                                         {.arrival_s = 5, .prompt = 36, .generate = 1},
                                         {.arrival_s = 10, .prompt = 32, .generate = 1, .blocks = &blocks[0]}};
  const QueueResult result = simulate_queue(three, server);
  EXPECT_NEAR(result.requests[2].ttft_s(), 16, 1e-9);
  EXPECT_NEAR(result.figures.found_shares[1], 31.0 / 100, 1e-12);
}

TEST(Routing, SendsPromptsWhereTheirPrefixIs) {
  const std::vector<std::uint64_t> ids{1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6};
  const std::span<const std::uint64_t> all(ids);
  std::vector<PromptBlocks> blocks;
  for (std::size_t i = 0; i < 4; ++i) blocks.push_back({all.subspan(3 * i, 3), kHashed});
  // Two that are alike, and two others: dealt in turn the second pair finds nothing, by prefix both do.
  std::vector<ServedRequest> four;
  for (std::size_t i = 0; i < 4; ++i) {
    four.push_back({.arrival_s = 5.0 * static_cast<double>(i), .prompt = 24, .generate = 1, .blocks = &blocks[i]});
  }
  EXPECT_EQ(simulate_queue(four, clockwork(), 2, RequestRouting::kRoundRobin).figures.found_share(), 0);
  EXPECT_NEAR(simulate_queue(four, clockwork(), 2, RequestRouting::kPrefixAware).figures.found_share(), 46.0 / 96,
              1e-12);
}

TEST(Routing, APrefixIsWorthAServerThatIsBusy) {
  const std::vector<std::uint64_t> ids{1, 2, 3};
  const PromptBlocks blocks{ids, kHashed};
  // The second goes to the first server, both are idle; the third finds what the first left there, though it is busy.
  const std::vector<ServedRequest> three{{.arrival_s = 0, .prompt = 24, .generate = 1, .blocks = &blocks},
                                         {.arrival_s = 5, .prompt = 8, .generate = 100},
                                         {.arrival_s = 10, .prompt = 24, .generate = 1, .blocks = &blocks}};
  EXPECT_EQ(simulate_queue(three, clockwork(), 2, RequestRouting::kLeastLoaded).figures.found_share(), 0);
  EXPECT_NEAR(simulate_queue(three, clockwork(), 2, RequestRouting::kPrefixAware).figures.found_share(), 23.0 / 56,
              1e-12);
}

TEST(Routing, TheLeastLoadedIsAskedFirst) {
  // A long request, then short ones that all find the other server idle.
  const std::vector<ServedRequest> three{{.arrival_s = 0, .prompt = 1000, .generate = 1},
                                         {.arrival_s = 1, .prompt = 10, .generate = 1},
                                         {.arrival_s = 5, .prompt = 10, .generate = 1}};
  const QueueResult least = simulate_queue(three, clockwork(), 2, RequestRouting::kLeastLoaded);
  EXPECT_NEAR(least.requests[2].ttft_s(), 1.1, 1e-9);
  // In turn the third waits for the first, which ends at 11.
  const QueueResult turns = simulate_queue(three, clockwork(), 2, RequestRouting::kRoundRobin);
  EXPECT_NEAR(turns.requests[2].ttft_s(), 7.1, 1e-9);
}

}  // namespace
}  // namespace scalecalc
