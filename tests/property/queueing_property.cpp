// The event simulation against one that takes every step by itself, and the laws any queue keeps.
#include "serve/queueing.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "support/serving_engine.h"

namespace scalecalc {
namespace {

RequestMix some_mix() {
  const auto some_lengths = [](std::int64_t most) {
    std::vector<LengthBin> bins;
    const int count = *rc::gen::inRange(1, 4);
    for (int i = 0; i < count; ++i) {
      const std::int64_t first = *rc::gen::inRange<std::int64_t>(1, most);
      bins.push_back({first, *rc::gen::inRange<std::int64_t>(first, most + 1), 1.0 + i});
    }
    return Lengths(bins);
  };
  return {.prompt = some_lengths(600), .generate = some_lengths(120)};
}

QueueRules some_rules() {
  QueueRules rules;
  rules.batching = *rc::gen::element(Batching::kChunkedPrefill, Batching::kPrefillFirst);
  rules.admission = *rc::gen::element(Admission::kPromptFits, Admission::kRequestFits);
  rules.token_budget = *rc::gen::element<std::int64_t>(64, 200, 4096);
  rules.prompt_chunk = *rc::gen::element<std::int64_t>(50, 4096);
  rules.most_sequences = *rc::gen::element<std::int64_t>(1, 4, 64);
  rules.block_tokens = *rc::gen::element<std::int64_t>(1, 16);
  rules.prefix_hit = *rc::gen::element(0.0, 0.5);
  rules.kv_tokens = *rc::gen::element(1000.0, 3000.0, 1e6);
  return rules;
}

StepSeconds some_engine() {
  if (*rc::gen::arbitrary<bool>()) return test::LinearEngine{};
  return test::RooflineEngine{};
}

std::vector<ServedRequest> some_requests(const RequestMix& mix, const ServerKind& server) {
  const double utilisation = *rc::gen::element(0.05, 0.5, 0.9, 2.0);
  const double rate = utilisation * largest_rate(server.seconds, server.rules, mix);
  return poisson_requests(mix, rate, *rc::gen::inRange(1, 200), *rc::gen::inRange<std::uint64_t>(0, 1000));
}

/// One server without a limit of memory, one step at a time.
std::vector<RequestTimes> step_by_step(const std::vector<ServedRequest>& requests, const ServerKind& server) {
  struct State {
    std::int64_t computed = 0;
    std::int64_t made = 0;
  };
  const QueueRules& rules = server.rules;
  const std::int64_t slots = std::min(rules.most_sequences, rules.token_budget);
  std::vector<RequestTimes> out(requests.size());
  std::vector<State> states(requests.size());
  std::vector<std::size_t> running;
  std::size_t next = 0;
  double clock = 0;
  while (next < requests.size() || !running.empty()) {
    if (running.empty()) clock = std::max(clock, requests[next].arrival_s);
    StepLoad decode;
    for (const std::size_t i : running) {
      if (states[i].made == 0) continue;
      decode.sequences += 1;
      decode.context_tokens += static_cast<double>(requests[i].prompt + states[i].made);
    }
    const bool mixed = rules.batching == Batching::kChunkedPrefill;
    std::int64_t budget = rules.token_budget - (mixed ? static_cast<std::int64_t>(decode.sequences) : 0);
    std::vector<std::pair<std::size_t, std::int64_t>> chunks;
    double keys = 0;
    double tokens = 0;
    const auto take = [&](std::size_t i) {
      const std::int64_t chunk = std::min({budget, rules.prompt_chunk, requests[i].prompt - states[i].computed});
      if (chunk <= 0) return;
      chunks.emplace_back(i, chunk);
      budget -= chunk;
      const auto c = static_cast<double>(chunk);
      tokens += c;
      keys += c * (static_cast<double>(states[i].computed) + (c + 1) / 2);
    };
    for (const std::size_t i : running) {
      if (states[i].made == 0) take(i);
    }
    while (budget > 0 && next < requests.size() && requests[next].arrival_s <= clock &&
           static_cast<std::int64_t>(running.size()) < slots) {
      out[next].arrival_s = requests[next].arrival_s;
      out[next].admitted_s = clock;
      out[next].generate = requests[next].generate;
      states[next].computed = cached_tokens(rules, requests[next].prompt);
      running.push_back(next);
      take(next++);
    }
    const bool decodes = mixed || chunks.empty();
    StepLoad load = decodes ? decode : StepLoad{};
    if (tokens > 0) {
      load.prefill_tokens = tokens;
      load.prefill_context = keys / tokens;
    }
    clock += server.seconds(load);
    for (const std::size_t i : running) {
      if (decodes && states[i].made > 0) states[i].made += 1;
    }
    for (const auto& [i, chunk] : chunks) {
      states[i].computed += chunk;
      if (states[i].computed < requests[i].prompt) continue;
      states[i].made = 1;
      out[i].first_token_s = clock;
    }
    std::erase_if(running, [&](std::size_t i) {
      if (states[i].made < requests[i].generate) return false;
      out[i].finished_s = clock;
      return true;
    });
  }
  return out;
}

TEST(QueueingProperty, RunsOfStepsAreTheStepsOneByOne) {
  EXPECT_TRUE(rc::check([] {
    const RequestMix mix = some_mix();
    ServerKind server{some_engine(), some_rules()};
    server.rules.kv_tokens = 1e9;
    const std::vector<ServedRequest> requests = some_requests(mix, server);
    const std::vector<RequestTimes> expected = step_by_step(requests, server);
    const QueueResult found = simulate_queue(requests, server);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const double tolerance = 1e-9 * expected[i].finished_s;
      RC_ASSERT(std::abs(found.requests[i].admitted_s - expected[i].admitted_s) <= tolerance);
      RC_ASSERT(std::abs(found.requests[i].first_token_s - expected[i].first_token_s) <= tolerance);
      RC_ASSERT(std::abs(found.requests[i].finished_s - expected[i].finished_s) <= tolerance);
    }
  }));
}

void check_percentiles(const Percentiles& p) {
  RC_ASSERT(p.p50 <= p.p95);
  RC_ASSERT(p.p95 <= p.p99);
  RC_ASSERT(p.mean <= p.p99 * 1.0000001 || p.mean > p.p50);
}

/// Rules under which prompts may not join at once, too.
QueueRules some_patient_rules() {
  QueueRules rules = some_rules();
  rules.receive_interval = *rc::gen::element<std::int64_t>(1, 3, 10);
  rules.prompt_wait_steps = *rc::gen::element<std::int64_t>(0, 4);
  rules.prompt_wait_share = *rc::gen::element(0.3, 1.0);
  return rules;
}

TEST(QueueingProperty, LawsOfAnyQueue) {
  EXPECT_TRUE(rc::check([] {
    const RequestMix mix = some_mix();
    const ServerKind server{some_engine(), some_patient_rules()};
    const std::vector<ServedRequest> requests = some_requests(mix, server);
    const QueueResult result = simulate_queue(requests, server);
    const QueueFigures& f = result.figures;
    double latency = 0;
    double first_start = 0;
    double gaps = 0;
    for (const RequestTimes& r : result.requests) {
      RC_ASSERT(r.arrival_s <= r.admitted_s);
      RC_ASSERT(r.admitted_s < r.first_token_s);
      RC_ASSERT(r.first_token_s <= r.finished_s);
      RC_ASSERT(r.admitted_s >= first_start);  // first come, first served
      first_start = r.admitted_s;
      latency += r.latency_s();
      gaps += r.finished_s - r.first_token_s;
    }
    // Little's law, the left side from what the server saw and the right side from the requests.
    RC_ASSERT(std::abs(f.mean_in_system * f.span_s - latency) <= 1e-9 * latency);
    RC_ASSERT(std::abs(f.requests_per_s * f.latency_s.mean - f.mean_in_system) <= 1e-9 * f.mean_in_system);
    if (f.inter_token_s) {
      std::int64_t count = 0;
      for (const ServedRequest& r : requests) count += r.generate - 1;
      RC_ASSERT(std::abs(f.inter_token_s->mean * static_cast<double>(count) - gaps) <= 1e-6 * gaps);
      check_percentiles(*f.inter_token_s);
      check_percentiles(*f.tpot_s);
    }
    check_percentiles(f.ttft_s);
    check_percentiles(f.latency_s);
    RC_ASSERT(f.utilisation <= 1 + 1e-9);
    if (server.rules.admission == Admission::kRequestFits) RC_ASSERT(f.evictions == 0);
    // No step is faster than an engine with nothing to do, no request than its own steps.
    const double floor_s = server.seconds({.sequences = 1});
    RC_ASSERT(f.latency_s.p50 >= floor_s);
  }));
}

TEST(QueueingProperty, ClientsSendTheNextWithTheAnswerToTheLast) {
  EXPECT_TRUE(rc::check([] {
    const RequestMix mix = some_mix();
    ServerKind server{some_engine(), some_patient_rules()};
    server.front_end = {.request_s = *rc::gen::element(0.0, 0.02), .per_client_s = *rc::gen::element(0.0, 7e-4)};
    const auto clients = *rc::gen::inRange<std::int64_t>(1, 30);
    const auto count = *rc::gen::inRange<std::int64_t>(1, 120);
    const std::vector<ServedRequest> requests = drawn_requests(mix, count, 1);
    const QueueResult result = simulate_clients(requests, clients, server, *rc::gen::inRange(1, 4));
    std::vector<double> finished;
    double latency = 0;
    for (const RequestTimes& r : result.requests) {
      finished.push_back(r.finished_s);
      latency += r.latency_s();
      // At least itself is in flight, and at most every client.
      RC_ASSERT(r.admitted_s - r.arrival_s >= server.front_end.seconds(1) - 1e-12);
    }
    std::sort(finished.begin(), finished.end());
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const auto first = static_cast<std::size_t>(clients);
      RC_ASSERT(result.requests[i].arrival_s == (i < first ? 0 : finished[i - first]));
    }
    const QueueFigures& f = result.figures;
    RC_ASSERT(f.mean_in_system <= static_cast<double>(clients) * (1 + 1e-9));
    RC_ASSERT(std::abs(f.mean_in_system * f.span_s - latency) <= 1e-9 * latency);
  }));
}

TEST(QueueingProperty, TheSameQuestionHasOneAnswer) {
  EXPECT_TRUE(rc::check([] {
    const RequestMix mix = some_mix();
    const ServerKind server{some_engine(), some_rules()};
    const std::vector<ServedRequest> requests = some_requests(mix, server);
    const QueueFigures a = simulate_queue(requests, server).figures;
    const QueueFigures b = simulate_queue(requests, server).figures;
    RC_ASSERT(a.ttft_s.mean == b.ttft_s.mean);
    RC_ASSERT(a.latency_s.p99 == b.latency_s.p99);
    RC_ASSERT(a.steps == b.steps);
  }));
}

TEST(QueueingProperty, PoolsKeepLittlesLaw) {
  EXPECT_TRUE(rc::check([] {
    const RequestMix mix = some_mix();
    const ServerKind server{some_engine(), some_rules()};
    const std::vector<ServedRequest> requests = some_requests(mix, server);
    DisaggregatedPools pools{.prefill = server, .decode = server};
    pools.prefill_servers = *rc::gen::inRange(1, 4);
    pools.decode_servers = *rc::gen::inRange(1, 4);
    pools.transfer_s = [](double tokens) { return 1e-5 * tokens; };
    const auto clients = *rc::gen::maybe(rc::gen::inRange<std::int64_t>(1, 30));
    pools.prefill.front_end = {.request_s = *rc::gen::element(0.0, 0.02), .per_client_s = 7e-4};
    const QueueResult result =
        simulate_disaggregated(requests, pools, clients ? std::optional(*clients) : std::nullopt).both;
    double latency = 0;
    std::vector<double> finished;
    for (const RequestTimes& r : result.requests) {
      RC_ASSERT(r.finished_s >= r.first_token_s);
      latency += r.latency_s();
      finished.push_back(r.finished_s);
    }
    std::sort(finished.begin(), finished.end());
    for (std::size_t i = clients ? static_cast<std::size_t>(*clients) : requests.size(); i < requests.size(); ++i) {
      RC_ASSERT(result.requests[i].arrival_s == finished[i - static_cast<std::size_t>(*clients)]);
    }
    RC_ASSERT(std::abs(result.figures.mean_in_system * result.figures.span_s - latency) <= 1e-9 * latency);
  }));
}

TEST(QueueingProperty, RoutedReplicasKeepLittlesLawAndLoseNobody) {
  EXPECT_TRUE(rc::check([] {
    const RequestMix mix = some_mix();
    const ServerKind server{some_engine(), some_rules()};
    const std::vector<ServedRequest> requests = some_requests(mix, server);
    const auto routing = static_cast<RequestRouting>(*rc::gen::inRange(0, 3));
    const QueueResult result = simulate_queue(requests, server, *rc::gen::inRange(1, 5), routing);
    double latency = 0;
    for (const RequestTimes& r : result.requests) {
      RC_ASSERT(r.finished_s >= r.first_token_s && r.first_token_s > r.arrival_s);
      latency += r.latency_s();
    }
    RC_ASSERT(std::abs(result.figures.mean_in_system * result.figures.span_s - latency) <= 1e-9 * latency);
  }));
}

/// Prompts of blocks of 32 tokens, some of them after common beginnings.
struct SharingRequests {
  TraceBlocks blocks;
  std::vector<ServedRequest> requests;

  SharingRequests() {
    constexpr std::int64_t kTokens = 32;
    const int count = *rc::gen::inRange(1, 60);
    std::vector<std::vector<std::uint64_t>> prompts;
    for (int i = 0; i < count; ++i) {
      std::vector<std::uint64_t> ids;
      if (i > 0) {
        const auto& other = prompts[static_cast<std::size_t>(*rc::gen::inRange(0, i))];
        ids.assign(other.begin(), other.begin() + *rc::gen::inRange<std::ptrdiff_t>(0, std::ssize(other) + 1));
      }
      const auto length = static_cast<std::uint64_t>(*rc::gen::inRange(1, 8));
      while (ids.size() < length) ids.push_back(1000 * static_cast<std::uint64_t>(i + 1) + ids.size());
      prompts.push_back(ids);
      blocks.ids.insert(blocks.ids.end(), ids.begin(), ids.end());
    }
    std::size_t first = 0;
    double arrival = 0;
    for (const auto& ids : prompts) {
      blocks.prompts.push_back({std::span<const std::uint64_t>(blocks.ids).subspan(first, ids.size()), kTokens});
      first += ids.size();
      arrival += *rc::gen::element(0.0, 0.1, 2.0);
      requests.push_back({.arrival_s = arrival,
                          .prompt = kTokens * std::ssize(ids),
                          .generate = *rc::gen::inRange<std::int64_t>(1, 20)});
    }
    for (std::size_t i = 0; i < requests.size(); ++i) requests[i].blocks = &blocks.prompts[i];
  }

  RequestMix mix() const {
    std::vector<std::int64_t> prompts;
    for (const ServedRequest& r : requests) prompts.push_back(r.prompt);
    return {.prompt = Lengths::of(prompts), .rows = requests, .blocks = std::make_shared<TraceBlocks>(blocks)};
  }
};

TEST(QueueingProperty, ACacheOfPrefixesFindsNoMoreThanOneThatForgetsNothing) {
  EXPECT_TRUE(rc::check([] {
    const SharingRequests sharing;
    ServerKind server{some_engine(), some_rules()};
    server.rules.prefix_hit = 0;
    server.rules.block_tokens = *rc::gen::element<std::int64_t>(1, 16);
    server.rules.kv_tokens = *rc::gen::element(300.0, 1000.0, 1e6);
    server.rules.prefix_store = {.host_tokens = *rc::gen::element(0.0, 500.0),
                                 .disk_tokens = *rc::gen::element(0.0, 1e5)};
    const QueueResult result = simulate_queue(sharing.requests, server);
    const double most = sharing.mix().most_found();
    RC_ASSERT(result.figures.found_share() <= most + 1e-9);
    double latency = 0;
    for (const RequestTimes& r : result.requests) latency += r.latency_s();
    RC_ASSERT(std::abs(result.figures.mean_in_system * result.figures.span_s - latency) <= 1e-9 * latency);
    RC_TAG(most > 0.1 ? "shares" : "", result.figures.found_share() < most - 1e-3 ? "forgets" : "");
  }));
}

TEST(QueueingProperty, PrefixesNobodySharesChangeNothing) {
  EXPECT_TRUE(rc::check([] {
    SharingRequests sharing;
    for (std::size_t i = 0; i < sharing.blocks.ids.size(); ++i) sharing.blocks.ids[i] = i;
    ServerKind server{some_engine(), some_rules()};
    server.rules.prefix_hit = 0;
    server.rules.kv_tokens = *rc::gen::element(300.0, 1000.0, 1e6);
    // A sequence that comes back finds its own blocks again: only without evictions is nothing shared.
    server.rules.admission = Admission::kRequestFits;
    std::vector<ServedRequest> plain = sharing.requests;
    for (ServedRequest& r : plain) r.blocks = nullptr;
    const QueueResult with = simulate_queue(sharing.requests, server);
    const QueueResult without = simulate_queue(plain, server);
    for (std::size_t i = 0; i < plain.size(); ++i) {
      RC_ASSERT(with.requests[i].finished_s == without.requests[i].finished_s);
    }
  }));
}

}  // namespace
}  // namespace scalecalc
