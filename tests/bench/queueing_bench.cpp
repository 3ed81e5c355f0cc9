// Ten thousand requests through one replica, event by event.
#include <benchmark/benchmark.h>

#include "serve/queueing.h"
#include "support/serving_engine.h"

namespace scalecalc {
namespace {

void ten_thousand_requests(benchmark::State& state, Batching batching, double utilisation, double kv_tokens) {
  QueueRules rules = test::roomy_rules();
  rules.batching = batching;
  rules.token_budget = 2048;
  rules.kv_tokens = kv_tokens;
  const RequestMix mix{.prompt = Lengths({{1024, 8192, 1}}), .generate = Lengths({{128, 896, 1}})};
  const ServerKind server{test::LinearEngine{}, rules};
  const double rate = utilisation * largest_rate(server.seconds, rules, mix);
  const std::vector<ServedRequest> requests = poisson_requests(mix, rate, 10'000, 1);
  std::int64_t steps = 0;
  for (auto _ : state) {
    steps = simulate_queue(requests, server).figures.steps;
    benchmark::DoNotOptimize(steps);
  }
  state.counters["steps"] = static_cast<double>(steps);
}
BENCHMARK_CAPTURE(ten_thousand_requests, chunked_20, Batching::kChunkedPrefill, 0.2, 4e6)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(ten_thousand_requests, chunked_80, Batching::kChunkedPrefill, 0.8, 4e6)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(ten_thousand_requests, prefill_first_80, Batching::kPrefillFirst, 0.8, 4e6)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(ten_thousand_requests, saturated_with_evictions, Batching::kChunkedPrefill, 2.0, 3e5)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace scalecalc
