// The search against brute force, and what holds of every point it makes.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "serve/serve_search.h"
#include "serve/serving_cost.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

/// A question about a random model on random chips, in any regime; few enough sequences fit to ask every batch.
struct RandomServing {
  ServeAnswer answer;
  ModelSpec draft = test::dense_model(1);

  RandomServing() {
    auto hw = std::make_shared<HardwareSpec>(*rc::gen::arbitrary<bool>() ? test::torus_chip() : test::switched_chip());
    answer.model = std::make_shared<const ModelSpec>(*rc::gen::arbitrary<bool>()
                                                         ? test::moe_model(*rc::gen::inRange<std::int64_t>(1, 9))
                                                         : test::dense_model(*rc::gen::inRange<std::int64_t>(1, 9)));
    ServeSystem system;
    const bool ideal = *rc::gen::arbitrary<bool>();
    system.serving.efficiency = ideal ? ideal_efficiency(hw->efficiency) : hw->efficiency;
    ServingEfficiency& s = system.serving.efficiency.serving;
    if (!ideal) {
      s.blend.value = 1;
      s.overlap.value = 0;
      s.layer_overhead.value = *rc::gen::inRange(0, 100) * 1e-6;
      s.sequence_overhead.value = *rc::gen::inRange(0, 100) * 1e-6;
      s.latency_scale_up.value = 4e-6;
    }
    // Activations that stay on the chip up to a batch and spill beyond it make throughput fall and rise.
    if (*rc::gen::arbitrary<bool>()) {
      hw->onchip.levels.push_back({.name = "vmem", .per = MemoryOwner::kChip, .capacity = Bytes(2e5)});
    }
    EngineRules& engine = system.serving.engine;
    engine.rule =
        *rc::gen::element(CacheRule::kAll, CacheRule::kShareOfAll, CacheRule::kShareOfFree, CacheRule::kStaticShare);
    engine.share = *rc::gen::inRange(80, 100) / 100.0;
    engine.most_sequences = *rc::gen::inRange<std::int64_t>(1, 25);
    if (*rc::gen::arbitrary<bool>()) {
      engine.graph_sizes = {{.from = 1, .by = 1}, {.from = 4, .by = 4}};
      engine.graph_sequences = *rc::gen::inRange<std::int64_t>(1, 30);
    }
    system.serving.efficiency.memory_reserve.value = *rc::gen::inRange(0, 4) * 1e9;
    system.serving.chunk_tokens = *rc::gen::inRange(64, 4096);
    system.serving.model = answer.model.get();
    system.hw = hw;
    system.serving.hw = hw.get();
    const std::int64_t chips = *rc::gen::element<std::int64_t>(1, 2, 4, 8);
    RC_PRE(!slices_of(*hw, chips, 1).empty());
    system.chip_counts = {chips};
    answer.systems.push_back(system);
    ask();
  }

  void ask() {
    ServeQuestion& q = answer.question;
    q.prompt = *rc::gen::inRange(1, 4096);
    q.generate = *rc::gen::inRange(1, 512);
    q.objective = *rc::gen::element(ServeObjective::kThroughput, ServeObjective::kKnee);
    if (*rc::gen::inRange(0, 3) == 0) q.regime = ServeRegime::kStatic;
    if (*rc::gen::inRange(0, 3) == 0) q.speculation = SpeculationAsked{"draft", *rc::gen::inRange(1, 5), 0.7};
    if (*rc::gen::inRange(0, 3) == 0) {
      q.disaggregate = Disaggregation::kOn;
      q.regime = ServeRegime::kContinuous;
    }
    if (*rc::gen::arbitrary<bool>()) q.slo_tpot = *rc::gen::inRange(1, 2000) * 1e-5;
    if (*rc::gen::inRange(0, 3) == 0) q.slo_ttft = *rc::gen::inRange(1, 2000) * 1e-4;
    if (*rc::gen::inRange(0, 4) == 0) q.slo_request = *rc::gen::inRange(1, 2000) * 1e-2;
  }

  std::vector<ServePoint> points() const {
    return ServeSearch(answer, 0, answer.question.speculation ? &draft : nullptr).run();
  }

  double best(const std::vector<ServePoint>& all, double* batch = nullptr) const {
    double out = 0;
    for (const ServePoint& p : all) {
      const double user = answer.question.objective == ServeObjective::kKnee ? p.tokens_per_s_per_user() : 1;
      if (!p.meets_limits || p.tokens_per_s_per_chip() * user <= out) continue;
      out = p.tokens_per_s_per_chip() * user;
      if (batch != nullptr) *batch = p.batch;
    }
    return out;
  }

  /// Every batch by itself.
  std::vector<ServePoint> brute_force() {
    const ServeSystem& s = answer.systems.front();
    const double lanes = static_cast<double>(s.chip_counts.front() * s.serving.engine.most_sequences);
    std::vector<double>& batches = answer.question.batches;
    for (double b = 1; b <= lanes; ++b) batches.push_back(b);
    std::vector<ServePoint> out = points();
    batches.clear();
    return out;
  }
};

RC_GTEST_PROP(ServeSearch, FindsTheBestOfEveryBatchAndLayout, ()) {
  RandomServing r;
  double batch = 0;
  const double found = r.best(r.points(), &batch);
  const double brute = r.best(r.brute_force());
  RC_PRE(brute > 0);
  const ServeQuestion& q = r.answer.question;
  RC_TAG(q.disaggregate == Disaggregation::kOn ? "pools"
                                               : std::string(kServeRegimeNames[static_cast<std::size_t>(q.regime)]),
         q.speculation ? "with a draft" : "",
         std::exp2(std::round(std::log2(batch))) == batch ? "" : "no power of two");
  RC_LOG() << "found " << found << ", by brute force " << brute << "\n";
  RC_ASSERT(found >= brute * (1 - 1e-9));
  RC_ASSERT(found <= brute * (1 + 1e-9));
}

/// Every layout by itself, as pinned, at every batch: what the search knows of layouts is not asked.
RC_GTEST_PROP(ServeSearch, FindsTheBestOfEveryLayoutPinnedAlone, ()) {
  RandomServing r;
  ServeQuestion& q = r.answer.question;
  q.disaggregate = Disaggregation::kOff;
  const double found = r.best(r.points());
  const ServeSystem& s = r.answer.systems.front();
  double brute = 0;
  for (const ServeLayout& layout : serve_layouts(*r.answer.model, *s.hw, s.chip_counts.front(), {}, {})) {
    for (const ServeDimension& d : kServeDimensionTable) q.fix.*d.pin = d.value(layout);
    if (placed(*s.hw, slices_of(*s.hw, layout.chips(), 1).front(), layout).empty()) continue;
    brute = std::max(brute, r.best(r.brute_force()));
  }
  q.fix = {};
  RC_LOG() << "found " << found << ", by brute force " << brute << "\n";
  RC_ASSERT(std::abs(found - brute) <= 1e-9 * brute);
}

RC_GTEST_PROP(ServeSearch, NoPointHoldsMoreThanTheChipOrBreaksLittlesLaw, ()) {
  const RandomServing r;
  for (const ServePoint& p : r.points()) {
    RC_ASSERT(p.memory.total() <= p.capacity * (1 + 1e-12));
    RC_ASSERT(p.decode_step_s >= p.floor_s * (1 - 1e-12));
    if (p.pools) {
      const double decoding = p.requests_per_s * std::max(r.answer.question.generate - 1, 1.0) * p.tpot_s;
      RC_ASSERT(std::abs(decoding / p.batch - 1) < 1e-9);
      continue;
    }
    RC_ASSERT(std::abs(p.requests_per_s * p.request_s / p.batch - 1) < 1e-9);
    const double told = p.ttft_s + (r.answer.question.generate - 1) * p.tpot_s;
    RC_ASSERT(std::abs(told / p.request_s - 1) < 1e-9);
  }
}

/// No point within the limits is as good as the best by the objective, as fast and as full, and better in one of these.
RC_GTEST_PROP(ServeSearch, NoListedPointDominatesTheBest, ()) {
  ServeQuestion q;
  q.model = *rc::gen::element<std::string>("llama3-8b", "mixtral-8x7b");
  q.hardware = {*rc::gen::element<std::string>("h100-sxm", "tpu-v5e")};
  q.chips = *rc::gen::element<std::int64_t>(4, 8);
  q.prompt = *rc::gen::inRange(1, 8192);
  q.generate = *rc::gen::inRange(1, 1024);
  q.objective = *rc::gen::element(ServeObjective::kThroughput, ServeObjective::kLatency, ServeObjective::kCost,
                                  ServeObjective::kKnee);
  q.disaggregate = *rc::gen::element(Disaggregation::kOff, Disaggregation::kOn, Disaggregation::kAuto);
  if (*rc::gen::arbitrary<bool>()) q.slo_tpot = *rc::gen::inRange(5, 60) * 1e-3;
  q.suggest = false;
  q.top = 1000;
  const ServeAnswer answer = serve_answer(q, Catalog{});
  RC_PRE(answer.best.has_value());
  using Figures = std::array<double, 4>;  // less is better
  const auto figures = [&](const ServePoint& p) {
    const double by_objective = q.objective == ServeObjective::kCost ? p.usd_per_million_output.value_or(0)
                                : q.objective == ServeObjective::kKnee
                                    ? -p.tokens_per_s_per_chip() * p.tokens_per_s_per_user()
                                    : 0;  // throughput and latency are figures of their own
    return Figures{by_objective, p.tpot_s, p.request_s, -p.tokens_per_s_per_chip()};
  };
  const Figures best = figures(*answer.best);
  for (const ServePoint& p : answer.points) {
    if (!p.meets_limits) continue;
    const Figures other = figures(p);
    bool no_worse = true, better = false;
    for (std::size_t i = 0; i < best.size(); ++i) {
      no_worse = no_worse && other[i] <= best[i];
      better = better || best[i] - other[i] > 1e-9 * std::abs(best[i]);
    }
    RC_ASSERT(!(no_worse && better));
  }
}

RC_GTEST_PROP(ServeSearch, APinnedSubsetIsNeverBetter, ()) {
  RandomServing r;
  const double free = r.best(r.points());
  r.answer.question.fix.tp = *rc::gen::element<std::int64_t>(1, 2, 4);
  RC_ASSERT(r.best(r.points()) <= free * (1 + 1e-9));
}

RC_GTEST_PROP(ServeSearch, APinnedPoolIsNeverBetter, ()) {
  RandomServing r;
  ServeQuestion& q = r.answer.question;
  q.regime = ServeRegime::kContinuous;
  q.disaggregate = Disaggregation::kOn;
  // A prefill pool on other chips, too, of which there are as many as it takes.
  if (*rc::gen::arbitrary<bool>()) {
    r.answer.systems.push_back(r.answer.systems.front());
    r.answer.systems.back().chip_counts = {1, 2, 4};
    r.answer.prefill_system = 1;
  }
  const double free = r.best(r.points());
  ServePins* const pool = *rc::gen::arbitrary<bool>() ? &q.prefill_fix : &q.decode_fix;
  switch (*rc::gen::inRange(0, 4)) {
    case 0: pool->tp = *rc::gen::element<std::int64_t>(1, 2, 4); break;
    case 1: pool->pp = *rc::gen::element<std::int64_t>(1, 2, 3); break;
    case 2: pool->dp = *rc::gen::inRange<std::int64_t>(1, 5); break;
    default: pool->ep = *rc::gen::element<std::int64_t>(1, 2); break;
  }
  for (const ServePoint& p : r.points()) {
    RC_ASSERT(!q.prefill_fix.dp || p.pools->prefill_replicas == *q.prefill_fix.dp);
    RC_ASSERT(!q.decode_fix.dp || p.pools->decode_replicas == *q.decode_fix.dp);
    RC_ASSERT(!q.prefill_fix.tp || p.pools->prefill_layout.tp == *q.prefill_fix.tp);
    RC_ASSERT(!q.decode_fix.tp || p.layout.tp == *q.decode_fix.tp);
    RC_ASSERT(p.pools->prefill_chips + p.pools->decode_chips <= p.chips);
    // Rates are matched: neither pool is asked for more than it does.
    const double decoded = p.batch / (p.tpot_s * std::max(q.generate - 1, 1.0));
    RC_ASSERT(p.requests_per_s <= decoded * (1 + 1e-9));
  }
  RC_ASSERT(r.best(r.points()) <= free * (1 + 1e-9));
}

}  // namespace
}  // namespace scalecalc
