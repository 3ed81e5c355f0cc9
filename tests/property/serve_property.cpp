// Properties of serving over random models, machines and layouts.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "serve/serve_search.h"
#include "serve/serving_cost.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

struct Random {
  ModelSpec model;
  HardwareSpec hw;
  ServingSystem system;
  ServeLayout layout;
  Slice slice;

  Random() {
    model = *rc::gen::arbitrary<bool>() ? test::moe_model(*rc::gen::inRange<std::int64_t>(1, 9))
                                        : test::dense_model(*rc::gen::inRange<std::int64_t>(1, 9));
    hw = *rc::gen::arbitrary<bool>() ? test::torus_chip() : test::switched_chip();
    const bool ideal = *rc::gen::arbitrary<bool>();
    system.efficiency = ideal ? ideal_efficiency(hw.efficiency) : hw.efficiency;
    if (!ideal) calibrate();
    if (*rc::gen::arbitrary<bool>()) {
      system.engine.graph_sizes = {{.from = 1, .by = 1}, {.from = 4, .by = 4}, {.from = 64, .by = 16}};
      system.engine.graph_sequences = *rc::gen::inRange<std::int64_t>(1, 600);
    }
    system.formats.kv = *rc::gen::element(WeightFormat::kBf16, WeightFormat::kFp8);
    system.formats.weights.weights = WeightFormat::kInt8;
    system.formats.weights.bits_per_weight = 8;
    const std::int64_t chips = *rc::gen::element<std::int64_t>(1, 4, 8, 16);
    const std::vector<Slice> slices = slices_of(hw, chips, 1);
    RC_PRE(!slices.empty());
    slice = slices.front();
    std::vector<ServeLayout> layouts = serve_layouts(model, hw, chips, {}, {});
    std::erase_if(layouts, [&](const ServeLayout& l) { return placed(hw, slice, l).empty(); });
    RC_PRE(!layouts.empty());
    layout = layouts[*rc::gen::inRange<std::size_t>(0, layouts.size())];
  }

  void calibrate() {
    ServingEfficiency& s = system.efficiency.serving;
    s.weight_read.value = *rc::gen::inRange(50, 101) / 100.0;
    s.kv_read.value = *rc::gen::inRange(50, 101) / 100.0;
    s.blend.value = 1;
    s.overlap.value = 0;
    s.layer_overhead.value = *rc::gen::inRange(0, 100) * 1e-6;
    s.latency_scale_up.value = 4e-6;
    s.collective_ramp.value = 6e-6;
  }

  ServingCost<double> cost() {
    system.model = &model;
    system.hw = &hw;
    return serving_cost(system, layout, slice);
  }
};

double random_batch() { return *rc::gen::inRange(1, 513); }
double random_context() { return *rc::gen::inRange(1, 32769); }

RC_GTEST_PROP(Serving, NoStepIsFasterThanWhatItMustRead, ()) {
  Random r;
  const ServingCost<double> cost = r.cost();
  const double batch = random_batch(), context = random_context();
  RC_ASSERT(cost.decode_step(batch, context).total().value() >= cost.floor(batch, context).value() * (1 - 1e-12));
}

RC_GTEST_PROP(Serving, MoreBandwidthIsNeverSlower, ()) {
  Random r;
  const double batch = random_batch(), context = random_context();
  const double before = r.cost().decode_step(batch, context).total().value();
  const double prefill = r.cost().prefill(context).total().value();
  r.hw.hbm_bandwidth = r.hw.hbm_bandwidth * (1 + *rc::gen::inRange(1, 300) / 100.0);
  RC_ASSERT(r.cost().decode_step(batch, context).total().value() <= before * (1 + 1e-12));
  RC_ASSERT(r.cost().prefill(context).total().value() <= prefill * (1 + 1e-12));
}

RC_GTEST_PROP(Serving, MoreSequencesOrContextAreNeverFaster, ()) {
  Random r;
  const ServingCost<double> cost = r.cost();
  const double batch = random_batch(), context = random_context();
  const double step = cost.decode_step(batch, context).total().value();
  RC_ASSERT(cost.decode_step(batch + 1, context).total().value() >= step * (1 - 1e-12));
  RC_ASSERT(cost.decode_step(batch, context + 1).total().value() >= step * (1 - 1e-12));
}

RC_GTEST_PROP(Serving, PromptsInBetweenNeverSpeedUpAToken, ()) {
  Random r;
  const ServingCost<double> cost = r.cost();
  const double batch = random_batch(), context = random_context();
  const ServeLoad load{.prompt = *rc::gen::inRange(0, 8192) + 0.0,
                       .generate = *rc::gen::inRange(1, 1024) + 0.0,
                       .context = context,
                       .chunk = *rc::gen::inRange(256, 8192) + 0.0};
  const SteadyTimes<double> steady = cost.steady(batch, load);
  // Where prompts fill every step, fewer sequences decode than are in flight.
  if (steady.saturated) return;
  RC_ASSERT(steady.tpot.value() >= cost.decode_step(batch, context).total().value() * (1 - 1e-9));
}

RC_GTEST_PROP(Serving, MoreSequencesNeverSpeedUpATokenInSteadyState, ()) {
  Random r;
  const ServingCost<double> cost = r.cost();
  const double batch = random_batch();
  const ServeLoad load{.prompt = *rc::gen::inRange(0, 8192) + 0.0,
                       .generate = *rc::gen::inRange(1, 1024) + 0.0,
                       .context = random_context(),
                       .chunk = *rc::gen::inRange(256, 8192) + 0.0};
  const double more = batch + *rc::gen::inRange(1, 200);
  RC_ASSERT(cost.steady(more, load).tpot.value() >= cost.steady(batch, load).tpot.value() * (1 - 1e-9));
}

RC_GTEST_PROP(Serving, TheFirstTokenDoesNotJumpWithThePrompt, ()) {
  Random r;
  const ServingCost<double> cost = r.cost();
  const double chunk = *rc::gen::inRange(64, 4096);
  const double prompt = *rc::gen::arbitrary<bool>() ? chunk * *rc::gen::inRange(1, 5) : *rc::gen::inRange(1, 16384);
  const auto ttft = [&](double tokens) {
    return cost.steady(1, {.prompt = tokens, .generate = 4096, .context = 1, .chunk = chunk}).ttft.value();
  };
  const double before = ttft(prompt), after = ttft(prompt + 1);
  const double step = cost.prefill(1, prompt).total().value();
  RC_ASSERT(after >= before * (1 - 1e-9));
  RC_ASSERT(after <= before + 1.1 * step);
}

/// A question about a random system, answered by the search alone.
double best_throughput(const ServeAnswer& answer) {
  double best = 0;
  for (const ServePoint& p : ServeSearch(answer, 0, nullptr).run()) {
    if (p.meets_limits) best = std::max(best, p.tokens_per_s_per_chip());
  }
  return best;
}

ServeAnswer random_answer(const Random& r) {
  ServeAnswer answer;
  answer.model = std::make_shared<const ModelSpec>(r.model);
  ServeSystem system;
  system.hw = std::make_shared<const HardwareSpec>(r.hw);
  system.serving = r.system;
  system.serving.model = answer.model.get();
  system.serving.hw = system.hw.get();
  system.chip_counts = {r.slice.chips};
  answer.systems.push_back(system);
  answer.question.prompt = *rc::gen::inRange(1, 4096);
  answer.question.generate = *rc::gen::inRange(1, 512);
  return answer;
}

RC_GTEST_PROP(Serving, ASweepFindsWhatEachBatchAloneFinds, ()) {
  Random r;
  ServeAnswer answer = random_answer(r);
  if (*rc::gen::arbitrary<bool>()) answer.question.slo_ttft = *rc::gen::inRange(1, 2000) * 1e-4;
  for (int batch = 1; batch <= 64; batch += *rc::gen::inRange(1, 16)) answer.question.batches.push_back(batch);
  const std::vector<ServePoint> swept = ServeSearch(answer, 0, nullptr).run();
  std::size_t at = 0;
  for (const double batch : std::vector<double>(answer.question.batches)) {
    answer.question.batches = {batch};
    for (const ServePoint& alone : ServeSearch(answer, 0, nullptr).run()) {
      RC_ASSERT(at < swept.size());
      RC_ASSERT(swept[at].tpot_s == alone.tpot_s);
      RC_ASSERT(swept[at].layout == alone.layout);
      ++at;
    }
  }
  RC_ASSERT(at == swept.size());
}

RC_GTEST_PROP(Serving, ThroughputNeverFallsWhenALimitIsRelaxed, ()) {
  Random r;
  ServeAnswer answer = random_answer(r);
  answer.question.slo_tpot = *rc::gen::inRange(1, 2000) * 1e-5;
  answer.question.slo_ttft = *rc::gen::inRange(1, 2000) * 1e-4;
  const double before = best_throughput(answer);
  const double factor = 1 + *rc::gen::inRange(0, 300) / 100.0;
  if (*rc::gen::arbitrary<bool>()) {
    answer.question.slo_tpot = *answer.question.slo_tpot * factor;
  } else {
    answer.question.slo_ttft = *answer.question.slo_ttft * factor;
  }
  RC_ASSERT(best_throughput(answer) >= before * (1 - 1e-12));
}

}  // namespace
}  // namespace scalecalc
