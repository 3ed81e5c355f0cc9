#include "serve/serve_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/divisors.h"
#include "base/progress.h"
#include "base/scalar.h"
#include "base/units.h"
#include "model/sharding.h"

namespace scalecalc {

StepActivity serving_activity(const ServeTime<double>& decode_step, double prompts) {
  const double step = decode_step.total().value();
  const double decoding = 1 - prompts;
  StepActivity out{
      .computing = decoding * decode_step.compute.value() / step + prompts,
      .reading = decoding * (decode_step.weights + decode_step.kv + decode_step.activations).value() / step};
  out.waiting = std::max(0.0, 1 - out.computing - out.reading);
  return out;
}

double facility_watts(const HardwareSpec& hw, const PowerTerms& terms, const StepActivity& activity) {
  return chip_draw(Reader<double>{}, power_input(hw, terms, activity)).busy_total().value();
}

double prompt_share(const ServePoint& point) {
  if (point.pools) return static_cast<double>(point.pools->prefill_chips) / static_cast<double>(point.chips);
  if (point.speculation) return 0;  // a step that checks drafts is no decode step
  return std::clamp(1 - point.decode_step_s / point.tpot_s, 0.0, 1.0);
}

namespace {

ServingSystem with_model(ServingSystem system, const ModelSpec& model) {
  system.model = &model;
  return system;
}

}  // namespace

double speculated_tokens(double accept, double drafted) {
  return accept >= 1 ? drafted + 1 : (1 - std::pow(accept, drafted + 1)) / (1 - accept);
}

Speculator::Speculator(const SpeculationAsked& asked, const ServingSystem& system, const ModelSpec& draft)
    : asked_(asked), system_(with_model(system, draft)), basis_(Reader<double>{}, system_) {}

/// As many tensor ranks of the target's group as divide the draft; the rest of the group are its replicas.
ServeLayout Speculator::draft_layout(const ServeLayout& layout) const {
  ServeLayout out;
  for (const std::int64_t tp : divisors(layout.tp)) {
    if (undivided_heads(*system_.model, tp).empty() && undivided_widths(*system_.model, tp).empty()) out.tp = tp;
  }
  out.etp = out.tp;
  out.dp = layout.chips() / out.tp;
  if (!system_.model->moe) return out;
  out.attention_dp = layout.group() / out.tp;
  out.dp = layout.chips() / layout.group();
  out.ep = layout.ep;
  out.etp = layout.etp;
  return out;
}

const ServingCost<double>& Speculator::cost(const ServeLayout& layout, const Slice& slice) const {
  const auto found = known_.find(layout);
  if (found != known_.end()) return found->second;
  return known_.emplace(layout, serving_cost(basis_, draft_layout(layout), slice)).first->second;
}

double Speculator::bytes(const ServeLayout& layout) const {
  return ServeMemory(basis_, draft_layout(layout)).parts(0, 1).weights;
}

SpeculationFigures Speculator::figures(const ServeLayout& layout, const Slice& slice, const ServingCost<double>& target,
                                       double batch, double context) const {
  const double drafted = static_cast<double>(asked_.drafted);
  const ServeLayout draft = draft_layout(layout);
  const double share = batch * static_cast<double>(layout.dp) / static_cast<double>(draft.dp);
  SpeculationFigures out;
  out.tokens_per_step = speculated_tokens(asked_.accept, drafted);
  out.draft_s = drafted * cost(layout, slice).decode_step(share, context).total().value();
  out.verify_s = target.decode_step(batch, context, drafted + 1).total().value();
  out.plain_tpot_s = target.decode_step(batch, context).total().value();
  return out;
}

void Speculator::find_break_even(SpeculationFigures& figures_out, const ServeLayout& layout, const Slice& slice,
                                 const ServingCost<double>& target, double most, double context) const {
  double paid = 0;
  for (double batch = 1; batch <= most; batch *= 2) {
    const SpeculationFigures f = figures(layout, slice, target, batch, context);
    if ((f.draft_s + f.verify_s) / f.tokens_per_step >= f.plain_tpot_s) {
      figures_out.break_even_batch = paid;
      return;
    }
    paid = batch;
  }
}

namespace {

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

ServingSystem with(ServingSystem system, Efficiency efficiency) {
  system.efficiency = std::move(efficiency);
  return system;
}

/// The system as prompts see it: --mfu says what share of the peak they reach.
ServingSystem for_prompts(ServingSystem system) {
  system.efficiency.serving.matmul.value *= system.prefill_share;
  return system;
}

}  // namespace

ServeSearch::ServeSearch(const ServeAnswer& answer, std::size_t system, const ModelSpec* draft, Stop stop)
    : answer_(answer),
      stop_(std::move(stop)),
      q_(answer.question),
      index_(system),
      system_(answer.systems[system]),
      serving_(system_.serving),
      basis_(Reader<double>{}, serving_),
      prefill_basis_(Reader<double>{}, for_prompts(serving_)),
      fast_basis_(Reader<double>{}, with(serving_, fastest(serving_.efficiency))),
      slow_basis_(Reader<double>{}, with(serving_, slowest(serving_.efficiency))) {
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
  Progress counts("counts of chips", system_.chip_counts.size());
  for (const std::int64_t chips : system_.chip_counts) {
    if (should_stop(stop_)) break;
    counts.add();
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
    if (should_stop(stop_)) return {};
    ++layouts_;
    const double draft = speculator_ ? speculator_->bytes(layout) : 0;
    ServeMemory memory(basis_, layout, draft);
    if (most(memory) < 1) {
      const double needed = memory.parts(1, load_.context).total() + memory.withheld();
      if (!shortage_ || needed < shortage_->nearest) {
        shortage_ = BindingLimit{"memory", memory.capacity(), needed,
                                 chips == 1 ? "one chip" : fmt::format("{} on {} chips", describe(layout), chips)};
      }
      continue;
    }
    if (placed(*system_.hw, slice, layout).empty()) continue;
    Placement placement = best_placement(basis_, layout, slice);
    ServingCost<double> cost(basis_, layout, slice, placement);
    out.push_back({layout, &slice, std::move(placement), std::move(memory), std::move(cost), nullptr});
  }
  return out;
}

/// As asked, or 1, 2, 4 ... and last the most that any layout holds.
std::vector<double> ServeSearch::batches(const std::vector<ServeCandidate>& all) const {
  if (!q_.batches.empty()) return q_.batches;
  constexpr double kMostSequences = 65536;
  double largest = 0;
  for (const ServeCandidate& c : all) {
    largest = std::max(largest, std::min(most(c.memory) * to_double(c.layout.dp), kMostSequences));
  }
  std::vector<double> out;
  for (double batch = 1; batch < largest; batch *= 2) out.push_back(batch);
  if (largest > 0) out.push_back(largest);
  return out;
}

ServeSearch::Times ServeSearch::times(const ServeCandidate& c, double batch) const {
  Times out;
  if (q_.regime == ServeRegime::kContinuous) {
    const SteadyTimes<double> steady = c.cost.steady(batch, load_);
    out.tpot = steady.tpot.value();
    out.ttft = steady.ttft.value();
  } else {
    out.tpot = c.cost.decode_step(batch, load_.context).total().value();
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

/// A layout's time per token does not fall when the batch grows, so what it took for a smaller batch bounds it from
/// below: layouts that were slower there than the best is here are not asked again.
void ServeSearch::on_shared_chips(std::int64_t chips) {
  const std::vector<ServeCandidate> all = candidates(chips, false);
  const std::vector<double> sweep = batches(all);
  const bool bounded = !speculator_ && std::is_sorted(sweep.begin(), sweep.end());
  const bool limited = q_.slo_ttft || q_.slo_tpot || q_.slo_request;
  std::vector<double> least(all.size(), 0);
  std::size_t first = 0;  // the last batch's best, which is likely this one's
  for (const double batch : sweep) {
    if (should_stop(stop_)) return;
    const ServeCandidate *chosen = nullptr, *meeting = nullptr, *soonest = nullptr;
    Times best, met, soon;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::size_t at = i == 0 ? first : i == first ? 0 : i;
      const ServeCandidate& c = all[at];
      const double each = batch / to_double(c.layout.dp);
      if (std::ceil(each) > most(c.memory)) continue;
      const bool hopeless = chosen != nullptr && least[at] > best.tpot;
      if (bounded && hopeless && (!limited || (meeting != nullptr && least[at] > met.tpot))) continue;
      const Times t = times(c, each);
      ++evaluated_;
      least[at] = t.tpot * (1 - 1e-9);
      // Ties go to the layout listed first, whatever the order of asking.
      const auto before = [&c](double own, const ServeCandidate* other, double others) {
        return other == nullptr || own < others || (own <= others && &c < other);
      };
      const bool quicker = before(t.tpot, meeting, met.tpot);
      if (before(t.tpot, chosen, best.tpot)) chosen = &c, best = t;
      if (before(t.ttft, soonest, soon.ttft)) soonest = &c, soon = t;
      if (quicker && meets(t.ttft, t.tpot)) meeting = &c, met = t;
    }
    if (chosen == nullptr) continue;
    first = static_cast<std::size_t>(chosen - all.data());
    keep(point(*chosen, batch, chips, chosen->layout.dp, best));
    if (meeting != nullptr && meeting != chosen) keep(point(*meeting, batch, chips, meeting->layout.dp, met));
    if (limited && meeting == nullptr && soonest != chosen) {
      keep(point(*soonest, batch, chips, soonest->layout.dp, soon));
    }
  }
}

void ServeSearch::keep(ServePoint point) {
  point.meets_limits = meets(point.ttft_s, point.tpot_s);
  points_.push_back(std::move(point));
}

ServePoint ServeSearch::point(const ServeCandidate& c, double batch, std::int64_t chips, std::int64_t replicas,
                              const Times& t) const {
  const double each = std::ceil(batch / to_double(replicas));
  ServePoint out;
  out.system = index_;
  out.layout = c.layout;
  out.slice = *c.slice;
  out.placement = c.placement;
  out.chips = chips;
  out.batch = batch;
  if (!c.beside) {
    const auto cost = [&](const ServeBasis<double>& basis) {
      return ServingCost<double>(basis, c.layout, *c.slice, c.placement);
    };
    c.beside = std::make_shared<ServeCandidate::Beside>(
        ServeCandidate::Beside{cost(prefill_basis_), cost(fast_basis_), cost(slow_basis_)});
  }
  const ServingCost<double>& prompts = c.beside->prompts;
  out.prefill_s = t.prefill > 0 ? t.prefill : prompts.prefill(load_.prompt, load_.cached).total().value();
  out.ttft_s = t.ttft;
  out.tpot_s = t.tpot;
  out.request_s = t.ttft + t.tpot * load_.generate;
  const double cycle = q_.regime == ServeRegime::kStatic ? out.request_s / load_.generate : t.tpot;
  out.tokens_per_s = batch / cycle;
  out.requests_per_s = out.tokens_per_s / load_.generate;
  out.time = c.cost.decode_step(each, load_.context);
  out.decode_step_s = out.time.total().value();
  out.decode_low_s = c.beside->fast.decode_step(each, load_.context).total().value();
  out.decode_high_s = c.beside->slow.decode_step(each, load_.context).total().value();
  out.floor_s = c.cost.floor(each, load_.context).value();
  out.memory = c.memory.parts(each, load_.context);
  out.capacity = c.memory.capacity();
  out.max_batch = most(c.memory) * to_double(replicas);
  out.memory_rule = c.memory.equation();
  out.bound_by = cause_of(out.time);
  out.speculation = t.speculation;
  if (out.speculation) {
    speculator_->find_break_even(*out.speculation, c.layout, *c.slice, c.cost, most(c.memory), load_.context);
  }
  pay(out, prompts.prefill_occupancy(load_.prompt, load_.cached).value() * to_double(c.layout.replica_chips()));
  return out;
}

/// Everything a chip-hour costs falls on the output; the input's price is what its prefill alone takes of it.
void ServeSearch::pay(ServePoint& p, double prefill_chip_s) const {
  const double chip_s = to_double(p.chips) / p.tokens_per_s;
  if (system_.usd_per_chip_hour) {
    const double usd = *system_.usd_per_chip_hour / kSecondsPerHour * kMillion;
    p.usd_per_million_output = usd * chip_s;
    p.usd_per_million_input = usd * prefill_chip_s / q_.prompt;
  }
  if (system_.hw->tdp) {
    const StepActivity activity = serving_activity(p.time, prompt_share(p));
    p.joules_per_output_token = facility_watts(*system_.hw, q_.power, activity) * chip_s;
  }
}

// Prompts and answers on pools of their own: scaling book, chapter 8 (disaggregated serving); the cache of a prompt
// moves from the chips that made it to those that decode.

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
    ServeSearch other(answer_, *answer_.prefill_system, nullptr, stop_);
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
      if (room < 1 || should_stop(stop_)) break;
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
