// Searches every layout of a system over every batch, and leaves out ranges that cannot win.
#include "serve/serve_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <queue>

#include "base/divisors.h"
#include "base/progress.h"
#include "base/scalar.h"
#include "base/units.h"
#include "model/images.h"
#include "plan/layout_rules.h"
#include "serve/requests.h"

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
  const double decoding = point.decode_step_s * point.tokens_per_s / point.requests_per_s;
  return std::clamp(1 - decoding / point.request_s, 0.0, 1.0);
}

namespace {

ServingSystem with_model(ServingSystem system, const ModelSpec& model) {
  if (!model.moe || !system.model->moe || model.moe->experts != system.model->moe->experts) {
    system.expert_load = nullptr;
    system.redundant_experts = 0;
  }
  system.model = &model;
  return system;
}

}  // namespace

double speculated_tokens(double accept, double drafted) {
  return accept >= 1 ? drafted + 1 : (1 - std::pow(accept, drafted + 1)) / (1 - accept);
}

Speculator::Speculator(const SpeculationAsked& asked, const ServingSystem& system, const ModelSpec& draft)
    : asked_(asked), system_(with_model(system, draft)), basis_(Reader<double>{}, system_) {
  if (asked.draft == "mtp") system_.formats.weights = system_.formats.weights.of_modules();
}

/// As many tensor ranks of the target's group as divide the draft; the rest of the group are its replicas.
ServeLayout Speculator::draft_layout(const ServeLayout& layout) const {
  ServeLayout out;
  for (const std::int64_t tp : divisors(layout.tp)) {
    const RuleSubject whole{.model = system_.model};
    if (!any_broken<RuleStage::kTensor>(whole, {.tp = tp})) out.tp = tp;
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

ServeMemory::Draft Speculator::memory(const ServeLayout& layout) const {
  const ServeLayout draft = draft_layout(layout);
  ServeBasis<double> kept = basis_;
  if (asked_.draft == "mtp") {  // embedding and head are the target's
    kept.embedding.clear();
    kept.towers.clear();
    kept.head.clear();
  }
  const auto own = std::make_shared<const ServeMemory>(kept, draft);
  return {own->parts(0, 1).weights, own, to_double(draft.dp) / to_double(layout.dp), asked_.draft == "mtp"};
}

double Speculator::prefill(const ServeLayout& layout, const Slice& slice, double tokens, double cached) const {
  return cost(layout, slice).prefill(tokens, cached).total().value();
}

double Speculator::occupancy(const ServeLayout& layout, const Slice& slice, double tokens, double cached) const {
  const double replicas = to_double(draft_layout(layout).dp) / to_double(layout.dp);
  return cost(layout, slice).prefill_occupancy(tokens, cached).value() * serve_lanes(layout) / replicas;
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

}  // namespace

ServeSearch::ServeSearch(const ServeAnswer& answer, std::size_t system, const ModelSpec* draft, Stop stop)
    : answer_(answer),
      stop_(std::move(stop)),
      q_(answer.question),
      index_(system),
      system_(answer.systems[system]),
      draft_(draft),
      serving_(system_.serving),
      basis_(Reader<double>{}, serving_),
      fast_basis_(Reader<double>{}, with(serving_, fastest(serving_.efficiency))),
      slow_basis_(Reader<double>{}, with(serving_, slowest(serving_.efficiency))) {
  const double prompt = decoder_prompt(answer);
  load_.cached = std::floor(prompt * q_.prefix_hit);
  load_.prompt = prompt - load_.cached;
  load_.generate = q_.generate;
  load_.context = decode_context(answer);
  load_.chunk = serving_.chunk_tokens;
  // The tokens of a step are the encoder's: as many prompts share one as it passes.
  if (const TowerSpec* encoder = encoder_of(*answer.model); encoder != nullptr && encoder->positions > prompt) {
    load_.chunk = std::max(prompt, load_.chunk * prompt / encoder->positions);
  }
  // A static batch grows to its end together.
  const bool whole = serving_.engine.reserves_whole || q_.regime == ServeRegime::kStatic;
  reserved_ = whole && !q_.context && !q_.mean_context ? prompt + q_.generate : load_.context;
  one_pass_ = one_pass(answer);
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

std::vector<ServeCandidate> ServeSearch::candidates(std::int64_t chips, const ServePins& fix, const ServePins& max) {
  std::vector<ServeCandidate> out;
  const Deployments all = deployments(serving_, chips, fix, max, q_.speculation.has_value());
  for (const SupportFact* fact : all.refusals) {
    if (std::find(refusals_.begin(), refusals_.end(), fact) == refusals_.end()) refusals_.push_back(fact);
  }
  if (!all.slice) return out;
  slices_.push_back(std::make_unique<Slice>(*all.slice));
  const Slice& slice = *slices_.back();
  for (const ServeLayout& layout : all.layouts) {
    if (should_stop(stop_)) return {};
    ++layouts_;
    ServeMemory memory(basis_, layout, speculator_ ? speculator_->memory(layout) : ServeMemory::Draft{});
    const double most = memory.max_batch(reserved_);
    if (most < 1) {
      const double needed = memory.parts(1, memory.least_context(load_.context)).total() + memory.withheld();
      if (!shortage_ || needed < shortage_->nearest) {
        shortage_ = BindingLimit{"memory", memory.capacity(), needed,
                                 chips == 1 ? "one chip" : fmt::format("{} on {} chips", describe(layout), chips)};
      }
      continue;
    }
    if (placed(*system_.hw, slice, layout).empty()) continue;
    const Placement placement = best_placement(basis_, layout, slice);
    ServingCost<double> cost(basis_, layout, slice, placement);
    ServeCandidate found{layout, &slice, placement, std::move(memory), std::move(cost), most};
    found.moved = found.memory.sequence_bytes(load_.prompt + load_.cached) * found.cache_ranks();
    out.push_back(std::move(found));
  }
  return out;
}

/// As asked, or 1, 2, 4 ... and last the most that any layout holds.
std::vector<double> ServeSearch::batches(double largest) const {
  if (!q_.batches.empty()) return q_.batches;
  std::vector<double> out;
  for (double batch = 1; batch < largest; batch *= 2) out.push_back(batch);
  if (largest > 0) out.push_back(largest);
  return out;
}

/// [SERVE-ENCODE] Texts in flight pass in groups, of as many as a step takes tokens of; one group follows the other.
ServeSearch::Times ServeSearch::times(const ServeCandidate& c, double batch) const {
  Times out;
  ++evaluated_;
  if (one_pass_) {
    const double texts = texts_of_a_pass(answer_, serving_, c.layout, batch);
    out.prefill = c.cost.step(pass_of(answer_, texts)).total().value();
    out.ttft = out.tpot = out.request = out.prefill * batch / texts;
    out.saturated = texts < batch;
    return out;
  }
  if (q_.regime == ServeRegime::kContinuous) {
    const SteadyTimes<double> steady = c.cost.steady(batch, load_);
    out.tpot = steady.tpot.value();
    out.ttft = steady.ttft.value();
    out.saturated = steady.saturated;
  } else {
    out.tpot = c.cost.decode_step(batch, load_.context).total().value();
    out.ttft = c.cost.prefill(load_.prompt, load_.cached, batch).total().value();
  }
  if (speculator_) {
    out.saturated = false;
    out.speculation = speculator_->figures(c.layout, *c.slice, c.cost, batch, load_.context);
    const SpeculationFigures& s = *out.speculation;
    out.tpot += (s.draft_s + s.verify_s) / s.tokens_per_step - s.plain_tpot_s;
    const bool together = q_.regime == ServeRegime::kStatic;
    const double lane = std::ceil(batch / serve_lanes(c.layout));
    const double each = speculator_->occupancy(c.layout, *c.slice, load_.prompt, load_.cached);
    out.ttft += together ? lane * each : draft_prompt(c);
    if (!together && load_.generate > 1) out.tpot += (lane - 1) * each / (load_.generate - 1);
  }
  out.request = out.ttft + (load_.generate - 1) * out.tpot;
  return out;
}

/// Seconds of a prompt through the draft, whose cache it fills too.
double ServeSearch::draft_prompt(const ServeCandidate& c) const {
  return speculator_ ? speculator_->prefill(c.layout, *c.slice, load_.prompt, load_.cached) : 0;
}

/// Seconds that a prompt keeps a whole replica busy where prompts follow each other, the draft's part too.
double ServeSearch::prompt_occupancy(const ServeCandidate& c) const {
  const double own = c.cost.prefill_occupancy(load_.prompt, load_.cached).value();
  if (!speculator_) return own;
  return own + speculator_->occupancy(c.layout, *c.slice, load_.prompt, load_.cached) / serve_lanes(c.layout);
}

bool ServeSearch::meets(double ttft, double tpot, double request) const {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  return ttft <= q_.slo_ttft.value_or(kNone) && tpot <= q_.slo_tpot.value_or(kNone) &&
         request <= q_.slo_request.value_or(kNone);
}

/// What the objective makes most of; chips cost the same whatever runs on them.
double ServeSearch::gain(double batch, const Times& t) const {
  switch (q_.objective) {
    case ServeObjective::kLatency: return -t.request;
    case ServeObjective::kKnee: return batch / t.request / t.tpot;
    case ServeObjective::kThroughput:
    case ServeObjective::kCost: break;
  }
  return batch / t.request;
}

bool ServeSearch::better(const Times& a, const Times& b) {
  if (std::abs(a.gain - b.gain) > kSame * std::abs(b.gain)) return a.gain > b.gain;
  return a.tpot != b.tpot ? a.tpot < b.tpot : a.request < b.request;
}

/// Each rank of a stage with so many, or as many as fit: fewer take no less time.
double ServeSearch::on_replica(const ServeCandidate& c, double sequences) const {
  return std::min(sequences * serve_lanes(c.layout) / to_double(c.layout.pp), c.most);
}

/// Of a stage, where a replica has as many as fit.
double ServeSearch::most_on_a_rank(const ServeCandidate& c) const {
  return std::ceil(std::min(c.most, kMostSequences) * to_double(c.layout.pp) / serve_lanes(c.layout));
}

/// Times do not fall with the sequences: what meets the limits is found by bisection, and a range gains at most what
/// its most sequences would in the times of its fewest.
ServeSearch::Choice ServeSearch::best_choice(const std::vector<ServeCandidate>& all, const TimesOf& times_of,
                                             const GainOf& gain_of, const GainOf& promise_of, double known) {
  struct Batches {
    const ServeCandidate* candidate;
    double low, high;
    Times at_low;
    double promise;
    bool operator<(const Batches& other) const { return promise < other.promise; }
  };
  Choice best;
  std::priority_queue<Batches> open;
  const auto ask = [&](const ServeCandidate& c, double sequences) {
    Times out = times_of(c, sequences);
    out.gain = gain_of(c, sequences, out);
    return out;
  };
  best.times.gain = known;
  const auto offer = [&](const ServeCandidate& c, double sequences, const Times& t) {
    if (better(t, best.times)) best = {&c, sequences, t};
  };
  const auto push = [&](const ServeCandidate& c, double low, double high, const Times& at_low) {
    if (low < high && !at_low.saturated) open.push({&c, low, high, at_low, promise_of(c, high, at_low)});
  };
  for (const ServeCandidate& c : all) {
    if (should_stop(stop_)) return best;
    const Times one = ask(c, 1);
    if (!meets(one)) continue;
    offer(c, 1, one);
    double high = most_on_a_rank(c);
    if (limited() && high > 1 && !meets(ask(c, high))) {
      double low = 1;
      while (high - low > 1) {
        const double middle = std::floor((low + high) / 2);
        (meets(ask(c, middle)) ? low : high) = middle;
      }
      high = low;
    }
    push(c, 1, high, one);
  }
  while (!open.empty() && !should_stop(stop_)) {
    const Batches range = open.top();
    open.pop();
    const double least = best.times.gain + kSame * std::abs(best.times.gain);
    if (range.promise <= least) break;
    // The far end first: more sequences usually gain more.
    const double middle = range.at_low.gain >= 0 && range.low == 1 && range.high > 2
                              ? range.high
                              : std::floor((range.low + range.high + 1) / 2);
    const Times t = ask(*range.candidate, middle);
    offer(*range.candidate, middle, t);
    push(*range.candidate, range.low, middle - 1, range.at_low);
    push(*range.candidate, middle, range.high, t);
  }
  return best;
}

void ServeSearch::on_shared_chips(std::int64_t chips) {
  const std::vector<ServeCandidate> all = candidates(chips, q_.fix, q_.max);
  double largest = 0;
  for (const ServeCandidate& c : all) {
    largest = std::max(largest, std::min(c.most * to_double(c.layout.dp), kMostSequences));
  }
  for (const double batch : batches(largest)) {
    if (should_stop(stop_)) return;
    best_of_batch(all, batch, chips);
  }
  if (!q_.batches.empty()) return;
  const auto times_of = [&](const ServeCandidate& c, double sequences) { return times(c, on_replica(c, sequences)); };
  const auto gain_of = [&](const ServeCandidate& c, double sequences, const Times& t) {
    return gain(on_replica(c, sequences) * to_double(c.layout.dp), t);
  };
  const Choice best = best_choice(all, times_of, gain_of, gain_of);
  if (best.candidate == nullptr) return;
  const ServeCandidate& c = *best.candidate;
  keep(point(c, on_replica(c, best.sequences) * to_double(c.layout.dp), chips, c.layout.dp, best.times));
}

/// The layout that gains most with this batch, and the one whose tokens come fastest; under limits the one that gains
/// most within them, or that which comes nearest.
void ServeSearch::best_of_batch(const std::vector<ServeCandidate>& all, double batch, std::int64_t chips) {
  Choice best, fastest, meeting, soonest;
  for (const ServeCandidate& c : all) {
    const double each = batch / to_double(c.layout.dp);
    if (std::ceil(each) > c.most) continue;
    Times t = times(c, each);
    t.gain = gain(batch, t);
    const auto offer = [&](Choice& choice, bool better) {
      if (choice.candidate == nullptr || better) choice = {&c, each, t};
    };
    offer(best, better(t, best.times));
    offer(fastest, t.tpot < fastest.times.tpot);
    if (limited() && meets(t)) offer(meeting, better(t, meeting.times));
    offer(soonest, t.ttft < soonest.times.ttft);
  }
  std::vector<const ServeCandidate*> kept;
  const auto keep_once = [&](const Choice& choice) {
    if (choice.candidate == nullptr || std::find(kept.begin(), kept.end(), choice.candidate) != kept.end()) return;
    kept.push_back(choice.candidate);
    keep(point(*choice.candidate, batch, chips, choice.candidate->layout.dp, choice.times));
  };
  keep_once(best);
  keep_once(fastest);
  keep_once(meeting);
  if (limited() && meeting.candidate == nullptr) keep_once(soonest);
}

void ServeSearch::keep(ServePoint point) {
  point.meets_limits = meets(point.ttft_s, point.tpot_s, point.request_s);
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
    c.beside = std::make_shared<ServeCandidate::Beside>(ServeCandidate::Beside{cost(fast_basis_), cost(slow_basis_)});
  }
  out.prefill_s = t.prefill > 0 ? t.prefill : c.cost.prefill(load_.prompt, load_.cached).total().value();
  out.ttft_s = t.ttft;
  out.tpot_s = t.tpot;
  out.request_s = t.request;
  out.requests_per_s = batch / t.request;
  out.tokens_per_s = out.requests_per_s * load_.generate;
  const double texts = one_pass_ ? texts_of_a_pass(answer_, serving_, c.layout, each) : 0;
  const auto step = [&](const ServingCost<double>& cost) {
    return one_pass_ ? cost.step(pass_of(answer_, texts)) : cost.decode_step(each, load_.context);
  };
  out.time = step(c.cost);
  out.decode_step_s = out.time.total().value();
  out.decode_low_s = step(c.beside->fast).total().value();
  out.decode_high_s = step(c.beside->slow).total().value();
  out.floor_s = c.cost.floor(each, one_pass_ ? 0 : load_.context).value();
  const double kept = one_pass_ ? texts : each;
  out.memory = c.memory.parts(kept, load_.context);
  out.capacity = c.memory.capacity();
  out.max_batch = c.most * to_double(replicas);
  out.memory_rule = c.memory.equation(kept, load_.context);
  out.bound_by = cause_of(out.time);
  out.speculation = t.speculation;
  if (out.speculation) {
    speculator_->find_break_even(*out.speculation, c.layout, *c.slice, c.cost, c.most, load_.context);
  }
  pay(out,
      one_pass_ ? to_double(chips) / out.requests_per_s : prompt_occupancy(c) * to_double(c.layout.replica_chips()));
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
    const StepActivity activity = serving_activity(p.time, one_pass_ ? 0 : prompt_share(p));
    p.joules_per_output_token = facility_watts(*system_.hw, q_.power, activity) * chip_s;
  }
}

}  // namespace scalecalc
