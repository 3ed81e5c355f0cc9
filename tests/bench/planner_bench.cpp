// Whole searches: seconds per question and candidates per second, on the questions users ask first.
#include <benchmark/benchmark.h>

#include "support/fixtures.h"

namespace scalecalc {
namespace {

void search(benchmark::State& state, const char* model_name, const char* chip_name, std::int64_t chips,
            const char* format) {
  const ModelSpec model = test::shipped_model(model_name);
  const HardwareSpec hw = test::shipped_chip(chip_name);
  PlanRequest request = test::request(model, hw, chips);
  request.workload.seq = *model.training.seq;
  request.workload.batch_seqs = *model.training.batch_tokens / static_cast<double>(*model.training.seq);
  request.workload.precision = precision_of(format);
  std::uint64_t candidates = 0;
  std::uint64_t evaluated = 0;
  for (auto _ : state) {
    const PlanResult result = plan(request);
    candidates += result.stats.candidates;
    evaluated += result.stats.evaluated;
    benchmark::DoNotOptimize(result.plans.size());
  }
  state.counters["candidates"] =
      benchmark::Counter(static_cast<double>(candidates), benchmark::Counter::kAvgIterations);
  state.counters["evaluated"] = benchmark::Counter(static_cast<double>(evaluated), benchmark::Counter::kAvgIterations);
  state.counters["candidates/s"] = benchmark::Counter(static_cast<double>(candidates), benchmark::Counter::kIsRate);
}
BENCHMARK_CAPTURE(search, llama3_70b_8960_v5p, "llama3-70b", "tpu-v5p", 8960, "bf16")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(search, llama31_405b_16384_h100, "llama3.1-405b", "h100-sxm", 16384, "bf16")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(search, gpt3_4096_a100, "gpt3-175b", "a100-80g", 4096, "fp16")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(search, deepseek_2048_h800, "deepseek-v3", "h800", 2048, "fp8")->Unit(benchmark::kMillisecond);

/// One candidate: its step and its memory, layer costs and channels at hand.
void one_candidate(benchmark::State& state) {
  const ModelSpec model = test::shipped_model("llama3.1-405b");
  const HardwareSpec hw = test::shipped_chip("h100-sxm");
  PlanRequest request = test::request(model, hw, 16384);
  request.workload.seq = 8192;
  request.workload.batch_seqs = 2048;
  request.fix = {.tp = 8, .cp = 1, .pp = 16};
  request.top = 1;
  const Plan plan_ = plan(request).plans.at(0);
  const Reader<double> reader;
  const ChipRates<double> chip = read_chip(reader, hw, request.efficiency, DType::kBf16);
  const NetworkRates<double> rates = read_network(reader, hw, request.efficiency);
  const OverlapRates<double> overlap = read_overlap(reader, request.efficiency);
  const NetworkCost<double> cost =
      network_cost(reader, model, read_model(reader, model), chip, request.workload, inner_of(plan_.layout));
  const MeshChannels<double> channels = make_channels(hw, plan_.slice, rates, plan_.placement, plan_.layout, {});
  const std::vector<StageShape> stages = partition(model, plan_.layout);
  const StepInput<double> in{.model = &model,
                             .workload = &request.workload,
                             .network = &cost,
                             .channels = &channels,
                             .overlap = &overlap,
                             .chip = &chip,
                             .stages = &stages,
                             .layout = plan_.layout};
  for (auto _ : state) {
    benchmark::DoNotOptimize(step_time(reader, in).total());
    benchmark::DoNotOptimize(memory_use(in).total());
  }
}
BENCHMARK(one_candidate);

}  // namespace
}  // namespace scalecalc
