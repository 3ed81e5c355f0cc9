// Prompts and answers on pools of their own: scaling book, chapter 8 (disaggregated serving); the cache of a prompt
// moves from the chips that made it to those that decode.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/scalar.h"
#include "serve/serve_power.h"
#include "serve/serve_search.h"
#include "serve/serve_speculation.h"

namespace scalecalc {
namespace {

constexpr double kPerHourAndMillion = 1e6 / 3600;

}  // namespace

/// The layout that needs the fewest chip-seconds of a prompt, of those in time for the limit; else the fastest.
std::optional<ServeSearch::Pool> ServeSearch::prefill_pool(const std::vector<std::int64_t>& sizes) {
  std::optional<Pool> out;
  bool in_time = false;
  for (const std::int64_t count : sizes) {
    for (const ServeCandidate& c : candidates(count, true)) {
      const ServingCost<double> cost(prefill_basis_, c.layout, *c.slice, c.placement);
      const Pool pool{.layout = c.layout,
                      .prefill = cost.prefill(load_.prompt, load_.cached).total().value(),
                      .occupancy = cost.prefill_occupancy(load_.prompt, load_.cached).value(),
                      .chips = count,
                      .transfer = transfer_time(to_double(count))};
      const bool ok = pool.prefill + pool.transfer <= q_.slo_ttft.value_or(std::numeric_limits<double>::infinity());
      const auto chip_seconds = [](const Pool& p) { return p.occupancy * to_double(p.chips); };
      const bool better =
          !out || (ok && !in_time) ||
          (ok == in_time && (ok ? chip_seconds(pool) < chip_seconds(*out) : pool.prefill < out->prefill));
      if (!better) continue;
      out = pool;
      in_time = ok;
    }
  }
  return out;
}

/// Decode replicas of every size, and as many prefill replicas as they keep busy: of the chips left, or of other chips,
/// of which there are always enough.
void ServeSearch::on_pools(std::int64_t chips) {
  const bool apart = answer_.prefill_system.has_value();
  std::vector<std::int64_t> sizes = pool_sizes(chips);
  std::optional<Pool> pool;
  if (apart) {
    ServeSearch other(answer_, *answer_.prefill_system, nullptr);
    pool = other.prefill_pool(other.system_.chip_counts);
    sizes.push_back(chips);
  } else {
    pool = prefill_pool(sizes);
  }
  if (!pool) return;
  for (const std::int64_t size : sizes) {
    const std::vector<ServeCandidate> all = candidates(size, true);
    const std::vector<double> sweep = batches(all);
    for (std::int64_t replicas = 1; replicas * size <= chips; ++replicas) {
      const double left = apart ? std::numeric_limits<double>::infinity() : to_double(chips - replicas * size);
      const double room = std::floor(left / to_double(pool->chips));
      if (room < 1) break;
      for (const double batch : sweep) decode_beside(*pool, room, all, batch, replicas, chips);
    }
  }
}

/// The point of `replicas` decode replicas with the best of `all`, beside at most `room` prefill replicas.
void ServeSearch::decode_beside(const Pool& pool, double room, const std::vector<ServeCandidate>& all, double batch,
                                std::int64_t replicas, std::int64_t chips) {
  const double each = std::ceil(batch / to_double(replicas));
  const ServeCandidate* chosen = nullptr;
  Times best;
  for (const ServeCandidate& c : all) {
    if (each > most(c.memory)) continue;
    const double tpot = c.cost.decode_step(each, load_.context).total().value();
    ++evaluated_;
    if (chosen != nullptr && tpot >= best.tpot) continue;
    chosen = &c;
    best.tpot = tpot;
  }
  if (chosen == nullptr) return;
  if (speculator_) {
    best.speculation = speculator_->figures(chosen->layout, *chosen->slice, chosen->cost, each, load_.context);
    const SpeculationFigures& s = *best.speculation;
    best.tpot = (s.draft_s + s.verify_s) / s.tokens_per_step;
  }
  best.prefill = pool.prefill;
  best.ttft = pool.prefill + pool.transfer + best.tpot;
  const double wanted = batch / (best.tpot * load_.generate);
  const double prefills = std::min(room, std::ceil(wanted * pool.occupancy));
  const double rate = std::min(wanted, prefills / pool.occupancy);
  PoolSplit split{.prefill_chips = static_cast<std::int64_t>(prefills) * pool.chips,
                  .decode_chips = replicas * chosen->layout.chips(),
                  .prefill_replicas = static_cast<std::int64_t>(prefills),
                  .decode_replicas = replicas,
                  .prefill_layout = pool.layout,
                  .ratio = wanted / to_double(replicas) * pool.occupancy,
                  .transfer_bytes = prompt_bytes(),
                  .transfer_s = pool.transfer};
  const bool apart = answer_.prefill_system.has_value();
  ServePoint p = point(*chosen, batch, apart ? split.decode_chips + split.prefill_chips : chips, replicas, best);
  p.requests_per_s = rate;
  p.tokens_per_s = rate * load_.generate;
  p.pools = std::move(split);
  pay(p, pool.occupancy * to_double(pool.chips));
  if (apart) pay_apart(p, *p.pools, pool);
  keep(std::move(p));
}

/// Two kinds of chips at two prices.
void ServeSearch::pay_apart(ServePoint& p, PoolSplit& split, const Pool& pool) const {
  const ServeSystem& other = answer_.systems[*answer_.prefill_system];
  split.prefill_hardware = other.hw->name;
  p.usd_per_million_output.reset();
  p.usd_per_million_input.reset();
  p.joules_per_output_token.reset();
  if (system_.usd_per_chip_hour && other.usd_per_chip_hour) {
    const double usd = to_double(split.decode_chips) * *system_.usd_per_chip_hour +
                       to_double(split.prefill_chips) * *other.usd_per_chip_hour;
    p.usd_per_million_output = kPerHourAndMillion * usd / p.tokens_per_s;
    p.usd_per_million_input =
        kPerHourAndMillion * *other.usd_per_chip_hour * pool.occupancy * to_double(pool.chips) / q_.prompt;
  }
  if (system_.hw->tdp && other.hw->tdp) {
    const double watts =
        to_double(split.decode_chips) * facility_watts(*system_.hw, q_.power, serving_activity(p.time, 0)) +
        to_double(split.prefill_chips) * facility_watts(*other.hw, q_.power, serving_activity(p.time, 1));
    p.joules_per_output_token = watts / p.tokens_per_s;
  }
}

std::vector<std::int64_t> ServeSearch::pool_sizes(std::int64_t chips) const {
  std::vector<std::int64_t> out;
  for (std::int64_t size = 1; size < chips; size *= 2) {
    if (!slices_of(*system_.hw, size, 1).empty()) out.push_back(size);
  }
  return out;
}

double ServeSearch::prompt_bytes() const {
  const double element = bits_of(serving_.formats.kv) / 8;
  return basis_.cache.sequence_bytes(load_.prompt + load_.cached, {.token_bytes = element, .index_bytes = element});
}

/// A prompt's cache over the scale-out links of the replica that made it, or those of one chip where there is one tier.
double ServeSearch::transfer_time(double chips) const {
  if (system_.hw->network.empty()) return 0;
  const TierRates<double>& outer = basis_.network.tiers[system_.hw->network.size() > 1 ? 1 : 0];
  return (outer.latency + Bytes(prompt_bytes()) / (outer.bandwidth * chips)).value();
}

}  // namespace scalecalc
