// Sweeps of serving: 512 batches of every layout of a machine.
#include <benchmark/benchmark.h>

#include "serve/serve_search.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

void serve_sweep(benchmark::State& state, const char* model, const char* chip, std::int64_t chips) {
  ServeAnswer answer;
  answer.model = std::make_shared<const ModelSpec>(test::shipped_model(model));
  ServeSystem system;
  system.hw = std::make_shared<const HardwareSpec>(test::shipped_chip(chip));
  system.serving.model = answer.model.get();
  system.serving.hw = system.hw.get();
  system.serving.efficiency = system.hw->efficiency;
  system.serving.formats.weights = {.weights = WeightFormat::kFp8, .bits_per_weight = 8, .source = "benchmark"};
  system.serving.formats.compute = DType::kFp8;
  system.chip_counts = {chips};
  answer.systems.push_back(system);
  for (int batch = 1; batch <= 512; ++batch) answer.question.batches.push_back(batch);
  std::size_t evaluated = 0;
  for (auto _ : state) {
    ServeSearch search(answer, 0, nullptr);
    benchmark::DoNotOptimize(search.run().size());
    evaluated = search.evaluated();
    state.counters["layouts"] = static_cast<double>(search.layouts());
  }
  state.counters["evaluated"] = static_cast<double>(evaluated);
}
BENCHMARK_CAPTURE(serve_sweep, deepseek_64_h200, "deepseek-v3", "h200", 64)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(serve_sweep, llama3_70b_8_h100, "llama3-70b", "h100-sxm", 8)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace scalecalc
