// Typed quantities cost nothing: the same roofline sum over raw doubles and over quantities.
#include <benchmark/benchmark.h>

#include <vector>

#include "base/scalar.h"

namespace scalecalc {
namespace {

constexpr std::size_t kOps = 4096;

void raw_double(benchmark::State& state) {
  std::vector<double> flops(kOps, 3e12), bytes(kOps, 5e9);
  const double rate = 4.59e14, hbm = 2.765e12;
  for (auto _ : state) {
    double total = 0;
    for (std::size_t i = 0; i < kOps; ++i) {
      const double compute = flops[i] / rate;
      const double memory = bytes[i] / hbm;
      total += compute < memory ? memory : compute;
    }
    benchmark::DoNotOptimize(total);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kOps));
}
BENCHMARK(raw_double);

void typed_quantity(benchmark::State& state) {
  std::vector<Flops> flops(kOps, Flops(3e12));
  std::vector<Bytes> bytes(kOps, Bytes(5e9));
  const FlopsPerSecond rate(4.59e14);
  const BytesPerSecond hbm(2.765e12);
  for (auto _ : state) {
    Seconds total(0);
    for (std::size_t i = 0; i < kOps; ++i) total += max(flops[i] / rate, bytes[i] / hbm);
    benchmark::DoNotOptimize(total);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kOps));
}
BENCHMARK(typed_quantity);

}  // namespace
}  // namespace scalecalc
