// The closed form of continuous batching against its simulation, both in the steps of random systems.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "serve/serving_cost.h"
#include "serve/traffic.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

struct RandomReplica {
  ModelSpec model;
  HardwareSpec hw = test::switched_chip();
  ServingSystem system;
  ServeLayout layout;
  RequestMix mix;
  std::optional<ServerKind> server;

  /// Prompts of so many times what a step of one rank takes.
  explicit RandomReplica(double chunks) {
    const bool moe = *rc::gen::arbitrary<bool>();
    const auto layers = *rc::gen::inRange<std::int64_t>(4, 33);
    model = moe ? test::moe_model(layers) : test::dense_model(layers);
    system.model = &model;
    system.hw = &hw;
    system.efficiency = hw.efficiency;
    ServingEfficiency& s = system.efficiency.serving;
    s.layer_overhead.value = *rc::gen::element(0.0, 2e-5, 6e-5);
    s.sequence_overhead.value = *rc::gen::element(0.0, 2e-5);
    s.latency_scale_up.value = 4e-6;
    system.engine.most_sequences = *rc::gen::element<std::int64_t>(256, 1024);
    if (*rc::gen::arbitrary<bool>()) {
      system.engine.graph_sizes = {{.from = 1, .by = 1}, {.from = 4, .by = 4}, {.from = 64, .by = 16}};
      system.engine.graph_sequences = 256;
    }
    system.chunk_tokens = *rc::gen::element(2048.0, 8192.0);
    layout.tp = *rc::gen::element<std::int64_t>(1, 2);
    layout.pp = *rc::gen::element<std::int64_t>(1, 2, 4);
    if (moe) layout.attention_dp = *rc::gen::element<std::int64_t>(1, 2, 4, 8);
    layout.ep = moe && layout.group() <= 8 && *rc::gen::arbitrary<bool>() ? layout.group() : 1;
    layout.etp = layout.group() / layout.ep;
    mix.prompt = Lengths::fixed(static_cast<std::int64_t>(chunks * system.chunk_tokens));
    mix.generate = Lengths::fixed(*rc::gen::element<std::int64_t>(1, 60, 200, 400));
    const ServeBasis<double> basis(Reader<double>{}, system);
    const Slice slice = slices_of(hw, layout.chips(), 1).front();
    RC_PRE(!placed(hw, slice, layout).empty());
    server = replica_server(basis, layout, slice, best_placement(basis, layout, slice),
                            {.mix = mix, .chunk = system.chunk_tokens});
  }

  /// Both at this share of the largest rate; means of the simulation without its start and its end.
  void compare(double share, double within) const {
    const double largest = steady_state(server->seconds, server->rules, mix, 1e-9).largest_rate;
    const SteadyState closed = steady_state(server->seconds, server->rules, mix, share * largest);
    RC_ASSERT(closed.ttft_s.has_value());
    // Enough for the many that are in the system to come and go often.
    const double in_system = closed.rate * closed.latency_s;
    const auto count = static_cast<std::int64_t>(std::clamp(300 * in_system, 20'000.0, 300'000.0));
    const QueueResult all = simulate_queue(poisson_requests(mix, share * largest, count, 11), *server);
    double ttft = 0, latency = 0, requests = 0;
    for (std::size_t i = all.requests.size() / 5; i < all.requests.size() * 19 / 20; ++i) {
      ttft += all.requests[i].ttft_s();
      latency += all.requests[i].latency_s();
      requests += 1;
    }
    RC_LOG() << describe(layout) << ", chunk " << system.chunk_tokens << ", prompt " << mix.prompt.mean()
             << ", generate " << mix.generate.mean() << ", " << model.name << " of " << model.layers() << " layers at "
             << share << ": TTFT " << *closed.ttft_s / (ttft / requests) << ", request "
             << closed.latency_s / (latency / requests) << " of the simulation's\n";
    RC_ASSERT(std::abs(*closed.ttft_s / (ttft / requests) - 1) < within);
    RC_ASSERT(std::abs(closed.latency_s / (latency / requests) - 1) < within);
    // Little's law, of all that is told.
    RC_ASSERT(std::abs((closed.rate * *closed.ttft_s + closed.batch) / in_system - 1) < 1e-9);
  }
};

/// Simulations take their time, so that there are few of them: as many as SCALECALC_RATE_CASES says, or eight.
void ask(double within, double least_chunks, double most_chunks) {
  const char* asked = std::getenv("SCALECALC_RATE_CASES");
  int left = asked != nullptr ? std::atoi(asked) : 8;
  EXPECT_TRUE(rc::check([&] {
    if (left <= 0) return;
    const double part = *rc::gen::inRange(0, 100) / 100.0;
    const RandomReplica r(least_chunks + part * (most_chunks - least_chunks));
    --left;
    r.compare(*rc::gen::element(0.1, 0.3, 0.5, 0.65), within);
  }));
}

TEST(ServeRate, ClosedFormIsTheSimulationsMean) { ask(0.03, 0.02, 0.25); }
TEST(ServeRate, ClosedFormOfPromptsInChunksIsNear) { ask(0.25, 2, 6); }

}  // namespace
}  // namespace scalecalc
