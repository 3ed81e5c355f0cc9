#include "serve/serve_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "serve/serve_layouts.h"
#include "serve/serve_speculation.h"

namespace scalecalc {
namespace {

double number(std::int64_t count) { return static_cast<double>(count); }

constexpr double kSecondsPerHour = 3600;
constexpr double kMillion = 1e6;

std::string cause_of(const ServeTime<double>& time) {
  const std::array<std::pair<const char*, double>, 7> causes{{{"compute", time.compute.value()},
                                                              {"weights", time.weights.value()},
                                                              {"kv", time.kv.value()},
                                                              {"activations", time.activations.value()},
                                                              {"collectives", time.collectives.value()},
                                                              {"pipeline", time.pipeline.value()},
                                                              {"overhead", time.overhead.value()}}};
  return std::max_element(causes.begin(), causes.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

/// The system as prompts see it: --mfu says what share of the peak they reach.
ServingSystem for_prompts(ServingSystem system) {
  system.efficiency.serving.matmul.value *= system.prefill_share;
  return system;
}

}  // namespace

struct ServeSearch::Times {
  double step = 0, tpot = 0, ttft = 0, prefill = 0;
  std::optional<SpeculationFigures> speculation;
};

struct ServeSearch::Pool {
  ServeLayout layout;
  double prefill = 0, occupancy = 0, chips = 0;
};

ServeSearch::ServeSearch(const ServeAnswer& answer, std::size_t system, const ModelSpec* draft)
    : answer_(answer),
      q_(answer.question),
      index_(system),
      system_(answer.systems[system]),
      serving_(system_.serving),
      basis_(Reader<double>{}, serving_),
      prefill_basis_(Reader<double>{}, for_prompts(serving_)) {
  load_.cached = std::floor(q_.prompt * q_.prefix_hit);
  load_.prompt = q_.prompt - load_.cached;
  load_.generate = q_.generate;
  load_.context = q_.context.value_or(q_.prompt + q_.generate / 2);
  load_.chunk = serving_.chunk_tokens;
  // A static batch grows to its end together.
  const bool whole = serving_.engine.reserves_whole || q_.regime == ServeRegime::kStatic;
  reserved_ = whole && !q_.context ? q_.prompt + q_.generate : load_.context;
  if (draft != nullptr) speculator_ = std::make_unique<Speculator>(*q_.speculation, serving_, *draft);
}

ServeSearch::~ServeSearch() = default;

std::vector<ServePoint> ServeSearch::run() {
  for (const std::int64_t chips : system_.chip_counts) {
    if (q_.disaggregate != Disaggregation::kOn) on_shared_chips(chips);
    if (q_.disaggregate != Disaggregation::kOff) on_pools(chips);
  }
  return std::move(points_);
}

std::vector<ServeCandidate> ServeSearch::candidates(std::int64_t chips, bool one_replica) {
  std::vector<ServeCandidate> out;
  std::vector<Slice> found = slices_of(*system_.hw, chips, 1);
  if (found.empty()) return out;
  // Long boxes of the same count only lose links.
  const auto longest = [](const Slice& s) {
    return s.shape.empty() ? 0 : *std::max_element(s.shape.begin(), s.shape.end());
  };
  slices_.push_back(std::make_unique<Slice>(*std::min_element(
      found.begin(), found.end(), [&](const Slice& a, const Slice& b) { return longest(a) < longest(b); })));
  const Slice& slice = *slices_.back();
  ServePins fix = q_.fix;
  if (one_replica) fix.dp = 1;
  for (const ServeLayout& layout : serve_layouts(*answer_.model, *system_.hw, chips, fix, q_.max)) {
    ++layouts_;
    const double draft = speculator_ ? speculator_->bytes(layout) : 0;
    ServeMemory memory(basis_, layout, draft);
    if (most(memory) < 1) {
      const double needed = memory.parts(1, load_.context).total() + memory.withheld();
      if (!shortage_ || needed < shortage_->nearest) {
        shortage_ =
            BindingLimit{"memory", memory.capacity(), needed, fmt::format("{} on {} chips", describe(layout), chips)};
      }
      continue;
    }
    if (placed(*system_.hw, slice, layout).empty()) continue;
    Placement placement = best_placement(basis_, layout, slice);
    ServingCost<double> cost(basis_, layout, slice, placement);
    out.push_back({layout, &slice, std::move(placement), std::move(memory), std::move(cost)});
  }
  return out;
}

/// As asked, or 1, 2, 4 ... and last the most that any layout holds.
std::vector<double> ServeSearch::batches(const std::vector<ServeCandidate>& all) const {
  if (!q_.batches.empty()) return q_.batches;
  constexpr double kMostSequences = 65536;
  double largest = 0;
  for (const ServeCandidate& c : all) {
    largest = std::max(largest, std::min(most(c.memory) * number(c.layout.dp), kMostSequences));
  }
  std::vector<double> out;
  for (double batch = 1; batch < largest; batch *= 2) out.push_back(batch);
  if (largest > 0) out.push_back(largest);
  return out;
}

ServeSearch::Times ServeSearch::times(const ServeCandidate& c, double batch) const {
  Times out;
  out.step = c.cost.decode_step(batch, load_.context).total().value();
  if (q_.regime == ServeRegime::kContinuous) {
    const SteadyTimes<double> steady = c.cost.steady(batch, load_);
    out.tpot = steady.tpot.value();
    out.ttft = steady.ttft.value();
  } else {
    out.tpot = out.step;
    out.ttft = c.cost.prefill(load_.prompt, load_.cached, batch).total().value();
  }
  if (!speculator_) return out;
  out.speculation = speculator_->figures(c.layout, *c.slice, c.cost, batch, load_.context);
  const SpeculationFigures& s = *out.speculation;
  out.tpot += (s.draft_s + s.verify_s) / s.tokens_per_step - s.plain_tpot_s;
  return out;
}

bool ServeSearch::meets(double ttft, double tpot) const {
  return ttft <= q_.slo_ttft.value_or(std::numeric_limits<double>::infinity()) &&
         tpot <= q_.slo_tpot.value_or(std::numeric_limits<double>::infinity()) &&
         ttft + q_.generate * tpot <= q_.slo_request.value_or(std::numeric_limits<double>::infinity());
}

void ServeSearch::on_shared_chips(std::int64_t chips) {
  const std::vector<ServeCandidate> all = candidates(chips, false);
  for (const double batch : batches(all)) {
    const ServeCandidate *fastest = nullptr, *meeting = nullptr, *soonest = nullptr;
    Times best, met, soon;
    for (const ServeCandidate& c : all) {
      const double each = batch / number(c.layout.dp);
      if (std::ceil(each) > most(c.memory)) continue;
      const Times t = times(c, each);
      ++evaluated_;
      if (fastest == nullptr || t.tpot < best.tpot) fastest = &c, best = t;
      if (soonest == nullptr || t.ttft < soon.ttft) soonest = &c, soon = t;
      if (meets(t.ttft, t.tpot) && (meeting == nullptr || t.tpot < met.tpot)) meeting = &c, met = t;
    }
    if (fastest == nullptr) continue;
    keep(point(*fastest, batch, chips, best));
    if (meeting != nullptr && meeting != fastest) keep(point(*meeting, batch, chips, met));
    if (q_.slo_ttft && meeting == nullptr && soonest != fastest) keep(point(*soonest, batch, chips, soon));
  }
}

/// The layout that needs the fewest chip-seconds of a prompt, of those in time for the limit; else the fastest.
std::optional<ServeSearch::Pool> ServeSearch::prefill_pool(std::int64_t chips) {
  std::optional<Pool> out;
  bool in_time = false;
  for (const std::int64_t count : system_.chip_counts.size() == 1 ? pool_sizes(chips) : system_.chip_counts) {
    if (count >= chips && chips > 1) continue;
    for (const ServeCandidate& c : candidates(count, true)) {
      const ServingCost<double> cost(prefill_basis_, c.layout, *c.slice, c.placement);
      Pool pool{c.layout, cost.prefill(load_.prompt, load_.cached).total().value(),
                cost.prefill_occupancy(load_.prompt, load_.cached).value(), number(count)};
      const bool ok = pool.prefill <= q_.slo_ttft.value_or(std::numeric_limits<double>::infinity());
      const bool better = !out || (ok && !in_time) ||
                          (ok == in_time && (ok ? pool.occupancy * pool.chips < out->occupancy * out->chips
                                                : pool.prefill < out->prefill));
      if (!better) continue;
      out = pool;
      in_time = ok;
    }
  }
  return out;
}

/// Decode replicas of every size that leaves chips for prompts, and as many prefill replicas as they keep busy.
void ServeSearch::on_pools(std::int64_t chips) {
  const std::optional<Pool> pool = prefill_pool(chips);
  if (!pool) return;
  const double prompt_bytes = basis_.cache.sequence_bytes(
      load_.prompt + load_.cached,
      {.token_bytes = bits_of(serving_.formats.kv) / 8, .index_bytes = bits_of(serving_.formats.kv) / 8});
  const double transfer = transfer_time(prompt_bytes, std::min(pool->chips, number(chips)));
  for (const std::int64_t size : pool_sizes(chips)) {
    const std::vector<ServeCandidate> all = candidates(size, true);
    for (std::int64_t replicas = 1; replicas * size < chips; ++replicas) {
      const double room = std::floor((number(chips) - number(replicas * size)) / pool->chips);
      if (room < 1) break;
      for (const double batch : batches(all)) {
        const double each = std::ceil(batch / number(replicas));
        const ServeCandidate* fastest = nullptr;
        Times best;
        for (const ServeCandidate& c : all) {
          if (each > most(c.memory)) continue;
          Times t;
          t.step = c.cost.decode_step(each, load_.context).total().value();
          t.tpot = t.step;
          ++evaluated_;
          if (fastest == nullptr || t.tpot < best.tpot) fastest = &c, best = t;
        }
        if (fastest == nullptr) continue;
        if (speculator_) {
          best.speculation = speculator_->figures(fastest->layout, *fastest->slice, fastest->cost, each, load_.context);
          const SpeculationFigures& s = *best.speculation;
          best.tpot = (s.draft_s + s.verify_s) / s.tokens_per_step;
        }
        best.prefill = pool->prefill;
        best.ttft = pool->prefill + transfer + best.tpot;
        const double wanted = batch / (best.tpot * load_.generate);
        const double prefills = std::min(room, std::ceil(wanted * pool->occupancy));
        ServePoint p = point(*fastest, batch, chips, best);
        const double rate = std::min(wanted, prefills / pool->occupancy);
        p.requests_per_s = rate;
        p.tokens_per_s = rate * load_.generate;
        PoolSplit split;
        split.prefill_replicas = static_cast<std::int64_t>(prefills);
        split.decode_replicas = replicas;
        split.prefill_chips = static_cast<std::int64_t>(prefills * pool->chips);
        split.decode_chips = replicas * size;
        split.prefill_layout = pool->layout;
        split.ratio = wanted / number(replicas) * pool->occupancy;
        split.transfer_bytes = prompt_bytes;
        split.transfer_s = transfer;
        p.pools = split;
        p.max_batch = most(fastest->memory) * number(replicas);
        pay(p, pool->occupancy * pool->chips);
        keep(std::move(p));
      }
    }
  }
}

std::vector<std::int64_t> ServeSearch::pool_sizes(std::int64_t chips) const {
  std::vector<std::int64_t> out;
  for (std::int64_t size = 1; size < chips; size *= 2) {
    if (!slices_of(*system_.hw, size, 1).empty()) out.push_back(size);
  }
  return out;
}

/// A prompt's cache over the scale-out links of the replica that made it, or those of one chip where there is one tier.
double ServeSearch::transfer_time(double bytes, double chips) const {
  if (system_.hw->network.empty()) return 0;
  const Tier& outer = system_.hw->network.size() > 1 ? system_.hw->network[1] : system_.hw->network.front();
  const bool torus = outer.kind == TierKind::kTorus;
  const double each = torus ? outer.torus.link_bandwidth.value()
                            : outer.switched.bandwidth_per_chip.value() / outer.switched.oversubscription;
  const double latency = torus ? outer.torus.hop_latency.value() : outer.switched.latency.value();
  return latency + bytes / (each * serving_.efficiency.link_scale_out.value * chips);
}

void ServeSearch::keep(ServePoint point) {
  point.meets_limits = meets(point.ttft_s, point.tpot_s);
  points_.push_back(std::move(point));
}

ServePoint ServeSearch::point(const ServeCandidate& c, double batch, std::int64_t chips, const Times& t) const {
  const double each = std::ceil(batch / number(c.layout.dp));
  ServePoint out;
  out.system = index_;
  out.layout = c.layout;
  out.slice = *c.slice;
  out.placement = c.placement;
  out.chips = chips;
  out.batch = batch;
  const ServingCost<double> prompts(prefill_basis_, c.layout, *c.slice, c.placement);
  out.prefill_s = t.prefill > 0 ? t.prefill : prompts.prefill(load_.prompt, load_.cached).total().value();
  out.ttft_s = t.ttft;
  out.decode_step_s = t.step;
  out.tpot_s = t.tpot;
  out.request_s = t.ttft + t.tpot * load_.generate;
  const double cycle = q_.regime == ServeRegime::kStatic ? out.request_s / load_.generate : t.tpot;
  out.tokens_per_s = batch / cycle;
  out.requests_per_s = out.tokens_per_s / load_.generate;
  out.time = c.cost.decode_step(each, load_.context);
  out.floor_s = c.cost.floor(each, load_.context).value();
  out.memory = c.memory.parts(each, load_.context);
  out.capacity = c.memory.capacity();
  out.max_batch = most(c.memory) * number(c.layout.dp);
  out.memory_rule = c.memory.equation();
  out.bound_by = cause_of(out.time);
  out.speculation = t.speculation;
  if (out.speculation) {
    speculator_->find_break_even(*out.speculation, c.layout, *c.slice, c.cost, most(c.memory), load_.context);
  }
  pay(out, prompts.prefill_occupancy(load_.prompt, load_.cached).value() * number(c.layout.replica_chips()));
  return out;
}

/// Everything a chip-hour costs falls on the output; the input's price is what its prefill alone takes of it.
void ServeSearch::pay(ServePoint& p, double prefill_chip_s) const {
  const double chip_s = number(p.chips) / p.tokens_per_s;
  if (system_.usd_per_chip_hour) {
    const double usd = *system_.usd_per_chip_hour / kSecondsPerHour * kMillion;
    p.usd_per_million_output = usd * chip_s;
    p.usd_per_million_input = usd * prefill_chip_s / q_.prompt;
  }
  if (system_.hw->tdp) p.joules_per_output_token = system_.hw->tdp->value() * chip_s;
}

}  // namespace scalecalc
