// Searches deployments with one pool for prefill and one for decode.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <queue>
#include <utility>

#include "base/scalar.h"
#include "network/slice.h"
#include "serve/serve_search.h"

namespace scalecalc {

// Prompts and answers on pools of their own: scaling book, chapter 8 (disaggregated serving); the cache of a prompt
// moves from the chips that made it to those that decode.

namespace {

constexpr double kPerHourAndMillion = 1e6 / 3600;

bool known(const std::optional<double>& a, const std::optional<double>& b) { return a && b; }

}  // namespace

/// Replicas of each size that no other of it beats: in the time of a prompt, in prompts a second, and in the links that
/// its cache leaves over.
std::vector<ServeSearch::Pool> ServeSearch::prefill_pools(const std::vector<std::int64_t>& sizes, std::int64_t chips) {
  ServePins fix = q_.prefill_fix.or_else(q_.fix);
  const ServePins max = q_.prefill_max.or_else(q_.max);
  fix.dp = 1;
  std::vector<Pool> out;
  for (const std::int64_t count : sizes) {
    std::vector<Pool> best;
    for (const ServeCandidate& c : candidates(count, fix, max)) {
      const double prefill = c.cost.prefill(load_.prompt, load_.cached).total().value();
      const Pool pool{.layout = c.layout,
                      .prefill = prefill,
                      .ttft = prefill + draft_prompt(c),
                      .occupancy = prompt_occupancy(c),
                      .chips = count,
                      .ranks = c.cache_ranks(),
                      .link = pool_link(chips)};
      const auto beats = [](const Pool& a, const Pool& b) {
        return a.ttft <= b.ttft && a.occupancy <= b.occupancy && a.ranks >= b.ranks;
      };
      if (std::any_of(best.begin(), best.end(), [&](const Pool& b) { return beats(b, pool); })) continue;
      std::erase_if(best, [&](const Pool& b) { return beats(pool, b); });
      best.push_back(pool);
    }
    out.insert(out.end(), best.begin(), best.end());
  }
  return out;
}

/// Decode replicas of every size, and as many prefill replicas as they keep busy: of the chips left, or of other chips,
/// of which there are always enough.
void ServeSearch::on_pools(std::int64_t chips) {
  std::vector<std::int64_t> sizes = pool_sizes(chips);
  std::vector<Pool> pools;
  if (answer_.prefill_system) {
    ServeSearch other(answer_, *answer_.prefill_system, draft_, stop_);
    pools = other.prefill_pools(other.system_.chip_counts, chips);
    sizes.push_back(chips);
  } else {
    pools = prefill_pools(sizes, chips);
  }
  ServePins fix = q_.decode_fix.or_else(q_.fix);
  const ServePins max = q_.decode_max.or_else(q_.max);
  fix.dp = 1;
  std::vector<std::vector<ServeCandidate>> decode;
  for (const std::int64_t size : sizes) decode.push_back(candidates(size, fix, max));
  std::vector<Split> all = splits(chips, pools, decode);
  std::map<const std::vector<ServeCandidate>*, double> most;
  for (const std::vector<ServeCandidate>& of_size : decode) {
    for (const ServeCandidate& c : of_size) most[&of_size] = std::max(most[&of_size], c.most);
  }
  double largest = 0;
  for (const Split& split : all) {
    largest = std::max(largest, std::min(most[split.decode] * to_double(split.replicas), kMostSequences));
  }
  for (const double batch : batches(largest)) {
    if (should_stop(stop_)) return;
    best_of_batch(all, batch);
  }
  if (q_.batches.empty()) best_of_splits(all);
}

std::vector<ServeSearch::Split> ServeSearch::splits(std::int64_t chips, const std::vector<Pool>& pools,
                                                    const std::vector<std::vector<ServeCandidate>>& decode) const {
  const ServePins prefill_fix = q_.prefill_fix.or_else(q_.fix), prefill_max = q_.prefill_max.or_else(q_.max);
  const ServePins decode_fix = q_.decode_fix.or_else(q_.fix), decode_max = q_.decode_max.or_else(q_.max);
  constexpr double kEnough = std::numeric_limits<double>::infinity();
  std::vector<Split> out;
  for (const std::vector<ServeCandidate>& all : decode) {
    if (all.empty()) continue;
    const std::int64_t size = all.front().layout.chips();
    const std::int64_t first = decode_fix.dp.value_or(1);
    const std::int64_t last = std::min(chips / size, decode_fix.dp.value_or(decode_max.dp.value_or(chips)));
    for (std::int64_t replicas = first; replicas <= last; ++replicas) {
      for (const Pool& pool : pools) {
        Split split{.pool = &pool, .decode = &all, .replicas = replicas, .chips = chips, .link = pool_link(chips)};
        split.room =
            answer_.prefill_system ? kEnough : std::floor(to_double(chips - replicas * size) / to_double(pool.chips));
        if (prefill_max.dp) split.room = std::min(split.room, to_double(*prefill_max.dp));
        if (prefill_fix.dp) {
          split.least = to_double(*prefill_fix.dp);
          if (split.room < split.least) continue;
          split.room = split.least;
        }
        if (split.room >= 1) out.push_back(split);
      }
    }
  }
  return out;
}

/// A step takes what it takes with the sequences of the fullest rank; a draft's ranks are others.
const ServeCandidate::Decoded& ServeSearch::decoded(const ServeCandidate& c, double each) const {
  const auto [at, is_new] = c.decoded.try_emplace(speculator_ ? each : std::ceil(each / serve_lanes(c.layout)));
  ServeCandidate::Decoded& out = at->second;
  ++evaluated_;
  if (!is_new) return out;
  if (speculator_) {
    out.speculation = speculator_->figures(c.layout, *c.slice, c.cost, each, load_.context);
    out.tpot = (out.speculation->draft_s + out.speculation->verify_s) / out.speculation->tokens_per_step;
  } else {
    out.tpot = c.cost.decode_step(each, load_.context).total().value();
  }
  return out;
}

/// The first token comes from the prefill pool, the second after the transfer.
ServeSearch::Times ServeSearch::decode_times(const ServeCandidate& c, double each, const Split& split) const {
  const ServeCandidate::Decoded& step = decoded(c, each);
  Times out{.tpot = step.tpot, .speculation = step.speculation};
  out.prefill = split.pool->prefill;
  out.ttft = split.pool->ttft;
  out.request = out.ttft + transfer_time(split, c) + (load_.generate - 1) * out.tpot;
  return out;
}

/// Requests a second that one replica decodes; each comes with its first token.
double ServeSearch::rate_of(double each, const Times& t) const {
  return each / (t.tpot * std::max(load_.generate - 1, 1.0));
}

/// What the chips of a split cost, in chips or, for the cheapest, in dollars. Those of one machine are there anyhow.
double ServeSearch::pool_price(const Split& split, double decode_chips, double prefill_replicas) const {
  if (!answer_.prefill_system) return 1;
  const std::optional<double>& own = system_.usd_per_chip_hour;
  const std::optional<double>& other = answer_.systems[*answer_.prefill_system].usd_per_chip_hour;
  const bool paid = q_.objective == ServeObjective::kCost && known(own, other);
  return decode_chips * (paid ? *own : 1) + prefill_replicas * to_double(split.pool->chips) * (paid ? *other : 1);
}

/// Prefill replicas for so many requests a second: as many as they keep busy, or, of chips that are to be had one by
/// one, one fewer where those that are saved are worth more than the requests.
double ServeSearch::prefills(const Split& split, double decode_chips, double wanted) const {
  const double busy = wanted * split.pool->occupancy;
  const double all = std::clamp(std::ceil(busy), split.least, split.room);
  if (!answer_.prefill_system || q_.objective == ServeObjective::kLatency) return all;
  const double fewer = std::clamp(std::floor(busy), split.least, split.room);
  const auto worth = [&](double count) { return std::min(busy, count) / pool_price(split, decode_chips, count); };
  return worth(fewer) > worth(all) ? fewer : all;
}

/// By the objective. Not `whole`: of as many prefill replicas as are busy, which is no less (a quotient of two sums
/// that grow together).
double ServeSearch::pool_gain(const Split& split, double decode_chips, double wanted, const Times& t,
                              bool whole) const {
  if (q_.objective == ServeObjective::kLatency) return -t.request;
  const double occupancy = split.pool->occupancy;
  const double count =
      whole ? prefills(split, decode_chips, wanted) : std::clamp(wanted * occupancy, split.least, split.room);
  const double rate = std::min(wanted, count / occupancy);
  return rate / pool_price(split, decode_chips, count) / (q_.objective == ServeObjective::kKnee ? t.tpot : 1);
}

double ServeSearch::pool_gain(const Split& split, const ServeCandidate& c, double each, const Times& t) const {
  const double replicas = to_double(split.replicas);
  return pool_gain(split, replicas * to_double(c.layout.chips()), rate_of(each, t) * replicas, t, true);
}

/// A rank's sequences in ranges, each `growth` times as long as it is far: no more of a range leave than its most in
/// the time of its fewest. Whatever pool feeds them, so that limits on the first token and the whole request bind only
/// through the tokens.
ServeSearch::Front ServeSearch::front(const std::vector<ServeCandidate>& decode, double growth) const {
  Front all;
  for (const ServeCandidate& c : decode) {
    const double stages = to_double(c.layout.pp), most = most_on_a_rank(c);
    for (double low = 1, next = 0; (low - 1) * stages < most; low = next) {
      next = std::max(low + 1, std::floor(low * growth));
      const Times t{.tpot = decoded(c, on_replica(c, (low - 1) * stages + 1)).tpot};
      if (!meets(0, t.tpot, (load_.generate - 1) * t.tpot)) break;
      all.push_back({rate_of(on_replica(c, std::min((next - 1) * stages, most)), t), t.tpot});
    }
  }
  std::sort(all.begin(), all.end(), [](const Reached& a, const Reached& b) {
    return a.tpot != b.tpot ? a.tpot < b.tpot : a.requests > b.requests;
  });
  Front out;
  for (const Reached& r : all) {
    if (out.empty() || r.requests > out.back().requests) out.push_back(r);
  }
  return out;
}

/// A gain grows with the requests and falls with the time of a token.
double ServeSearch::most_gain(const Split& split, const Front& front) const {
  const double replicas = to_double(split.replicas);
  const double chips = replicas * to_double(split.decode->front().layout.chips());
  double out = std::numeric_limits<double>::lowest();
  for (const Reached& r : front) {
    const Times t{.tpot = r.tpot, .request = split.pool->ttft + (load_.generate - 1) * r.tpot};
    out = std::max(out, pool_gain(split, chips, replicas * r.requests, t, false));
  }
  return out;
}

/// Of the fastest step of any layout and the most requests a second: the time of a step does not fall with the batch,
/// so between two batches no more leave than the larger would in the time of the smaller.
void ServeSearch::promise(std::vector<Split>& splits) {
  std::map<const std::vector<ServeCandidate>*, Reached> known;
  for (Split& split : splits) {
    const auto [at, is_new] = known.try_emplace(split.decode);
    Reached& most = at->second;
    if (is_new) most.tpot = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; is_new && i < split.decode->size(); ++i) {
      const ServeCandidate& c = (*split.decode)[i];
      const double all = std::min(c.most, kMostSequences);
      for (double each = 1; each <= all; each *= 2) {
        const Times t{.tpot = decoded(c, each).tpot};
        most.requests = std::max(most.requests, rate_of(std::min(2 * each, all), t));
        most.tpot = std::min(most.tpot, t.tpot);
      }
    }
    split.promise = most_gain(split, {most});
  }
}

/// No split gains more with as many sequences on a replica, if a token takes no less than `tpot`.
ServeSearch::Times ServeSearch::at_best(const Split& split, double each, double tpot) const {
  Times out{.tpot = tpot, .ttft = split.pool->ttft};
  out.request = out.ttft + (load_.generate - 1) * tpot;
  const double replicas = to_double(split.replicas);
  const double chips = replicas * to_double(split.decode->front().layout.chips());
  out.gain = pool_gain(split, chips, rate_of(each, out) * replicas, out, false);
  out.gain += kRounding * std::abs(out.gain);
  return out;
}

/// Whether something of no more gain and no less time may take the place of one that is kept.
bool ServeSearch::may_lead(const Leaders& leaders, const Times& bound) const {
  const auto open = [&](const SplitChoice& kept) {
    return kept.split == nullptr || bound.gain >= kept.fed.gain - kSame * std::abs(kept.fed.gain);
  };
  const Times& fastest = leaders.fastest.choice.times;
  return open(leaders.best) || bound.tpot < fastest.tpot || (bound.tpot == fastest.tpot && bound.gain > fastest.gain) ||
         (limited() && (bound.ttft < leaders.soonest.choice.times.ttft || (meets(bound) && open(leaders.meeting))));
}

/// `group`: a decode pool beside each of the prefill pools. A step takes no less than one of fewer sequences, of which
/// the powers of two are worked out once for all batches; what cannot lead even so is not asked.
void ServeSearch::best_of_group(std::span<const Split> group, double each, Leaders& leaders) {
  struct Option {
    const ServeCandidate* candidate;
    double tpot;  ///< no more than it takes
  };
  const double below = std::exp2(std::floor(std::log2(std::max(each, 1.0))));
  double least = std::numeric_limits<double>::infinity();
  std::vector<Option> options;
  for (const ServeCandidate& c : *group.front().decode) {
    if (std::ceil(each) > c.most) continue;
    options.push_back({&c, decoded(c, below).tpot});
    least = std::min(least, options.back().tpot);
  }
  if (options.empty()) return;
  for (const Split& split : group) {
    if (!may_lead(leaders, at_best(split, each, least))) continue;
    for (Option& option : options) {
      if (!may_lead(leaders, at_best(split, each, option.tpot))) continue;
      const ServeCandidate& c = *option.candidate;
      Times t = decode_times(c, each, split);
      option.tpot = t.tpot;
      t.gain = pool_gain(split, c, each, t);
      const Choice choice{&c, each, t};
      const auto take = [&](SplitChoice& kept, bool better) {
        if (kept.split == nullptr || better) kept = {&split, choice, t};
      };
      offer(leaders.best, split, choice, each);
      const Times& fastest = leaders.fastest.choice.times;
      take(leaders.fastest, t.tpot < fastest.tpot || (t.tpot == fastest.tpot && t.gain > fastest.gain));
      if (limited() && meets(t)) offer(leaders.meeting, split, choice, each);
      take(leaders.soonest, t.ttft < leaders.soonest.choice.times.ttft);
    }
  }
}

/// With this batch: what gains most, the one whose tokens come fastest, and under limits the one that gains most within
/// them or comes nearest.
void ServeSearch::best_of_batch(const std::vector<Split>& splits, double batch) {
  Leaders leaders;
  for (auto first = splits.begin(); first != splits.end();) {
    const auto last = std::find_if(first, splits.end(), [&](const Split& s) {
      return s.decode != first->decode || s.replicas != first->replicas;
    });
    best_of_group({first, last}, batch / to_double(first->replicas), leaders);
    first = last;
  }
  std::vector<const SplitChoice*> kept{&leaders.best, &leaders.fastest, &leaders.meeting};
  if (limited() && leaders.meeting.split == nullptr) kept.push_back(&leaders.soonest);
  std::vector<std::pair<const Split*, const ServeCandidate*>> told;
  for (const SplitChoice* choice : kept) {
    const std::pair which(choice->split, choice->choice.candidate);
    if (which.first == nullptr || std::find(told.begin(), told.end(), which) != told.end()) continue;
    told.push_back(which);
    keep_beside(*choice->split, choice->choice, choice->choice.sequences);
  }
}

/// The best layout and batch of a split, if it gains more than `known`.
ServeSearch::Choice ServeSearch::best_of_split(const Split& split, double known) {
  const auto wanted = [&](const ServeCandidate& c, double sequences, const Times& t) {
    return rate_of(on_replica(c, sequences), t) * to_double(split.replicas);
  };
  return best_choice(
      *split.decode,
      [&](const ServeCandidate& c, double sequences) {
        Times out = decode_times(c, on_replica(c, sequences), split);
        out.saturated = wanted(c, sequences, out) * split.pool->occupancy >= split.room;
        return out;
      },
      [&](const ServeCandidate& c, double n, const Times& t) { return pool_gain(split, c, on_replica(c, n), t); },
      [&](const ServeCandidate& c, double n, const Times& t) {
        return pool_gain(split, to_double(split.replicas * c.layout.chips()), wanted(c, n, t), t, false);
      },
      known);
}

/// What the decode replicas of splits reach, each found once for all that may feed them: in long ranges of sequences
/// first, and one by one where that leaves open which split is best.
class ServeSearch::Fronts {
 public:
  explicit Fronts(const ServeSearch& search) : search_(search) {}

  void bound(Split& split) { split.most = search_.most_gain(split, of(split, kLong, long_)); }
  /// False if it is as near as it gets.
  bool sharpen(Split& split) {
    if (std::exchange(split.sharp, true)) return false;
    split.most = search_.most_gain(split, of(split, 1, each_));
    return true;
  }

 private:
  using OfDecode = std::map<const std::vector<ServeCandidate>*, Front>;
  static constexpr double kLong = 1.25;

  const Front& of(const Split& split, double growth, OfDecode& known) {
    const auto [at, is_new] = known.try_emplace(split.decode);
    if (is_new) at->second = search_.front(*split.decode, growth);
    return at->second;
  }

  const ServeSearch& search_;
  OfDecode long_, each_;
};

/// The best of every batch, layout and split. First how much is gained, from those that may gain most; then, of those
/// that gain as much, the one that promises most.
void ServeSearch::best_of_splits(std::vector<Split>& splits) {
  promise(splits);
  std::stable_sort(splits.begin(), splits.end(), [](const Split& a, const Split& b) { return a.promise > b.promise; });
  Fronts fronts(*this);
  const auto less = [](const Split* a, const Split* b) { return a->most < b->most; };
  std::priority_queue<Split*, std::vector<Split*>, decltype(less)> open(less);
  for (Split& split : splits) {
    fronts.bound(split);
    open.push(&split);
  }
  SplitChoice best;
  double& gain = best.choice.times.gain;
  gain = std::numeric_limits<double>::lowest();
  const auto may_gain = [&](const Split& split) { return split.most > gain + kSame / 2 * std::abs(gain); };
  while (!open.empty() && may_gain(*open.top())) {
    if (should_stop(stop_)) return;
    Split& split = *open.top();
    open.pop();
    if (fronts.sharpen(split)) {
      open.push(&split);
      continue;
    }
    const Choice found = best_of_split(split, gain);
    if (found.candidate != nullptr) gain = found.times.gain;
  }
  gain -= kRounding * std::abs(gain);
  for (Split& split : splits) {
    if (should_stop(stop_)) return;
    if (!may_gain(split) || (fronts.sharpen(split) && !may_gain(split))) continue;
    const Choice found = best_of_split(split, gain);
    if (found.candidate != nullptr) best = {&split, found, {}};
  }
  if (best.split == nullptr) return;
  settle_ties(splits, best);
  keep_beside(*best.split, best.choice, on_replica(*best.choice.candidate, best.choice.sequences));
}

/// What gains more, or as much with tokens that come faster once no more sequences decode than are fed.
void ServeSearch::offer(SplitChoice& kept, const Split& split, const Choice& choice, double each) const {
  const double least = kept.fed.gain - kSame * std::abs(kept.fed.gain);
  if (kept.split != nullptr && choice.times.gain < least) return;
  const Times times = fed(split, *choice.candidate, each, choice.times).times;
  if (kept.split == nullptr || better(times, kept.fed)) kept = {&split, choice, times};
}

/// Where prompts limit the rate, every layout that decodes fast enough gains as much: the one whose tokens come fastest
/// of those. `splits` by what they promise.
void ServeSearch::settle_ties(const std::vector<Split>& splits, SplitChoice& best) {
  const ServeCandidate& found = *best.choice.candidate;
  best.fed = fed(*best.split, found, on_replica(found, best.choice.sequences), best.choice.times).times;
  const double least = best.fed.gain - kSame * std::abs(best.fed.gain);
  for (const Split& split : splits) {
    if (should_stop(stop_) || split.promise < least) return;
    if (split.most + kRounding * std::abs(split.most) < least) continue;
    for (const ServeCandidate& c : *split.decode) {
      const double sequences = most_on_a_rank(c), each = on_replica(c, sequences);
      Times t = decode_times(c, each, split);
      t.gain = pool_gain(split, c, each, t);
      if (t.gain < least) continue;
      const Times times = fed(split, c, each, t).times;
      if (meets(times) && better(times, best.fed)) best = {&split, {&c, sequences, t}, times};
    }
  }
}

/// Of the sequences asked for on a replica the fewest that keep up with the prompts. The time of a step does not fall
/// with them, so by Little's law there are no fewer than shorter steps would take.
ServeSearch::Fed ServeSearch::fed(const Split& split, const ServeCandidate& c, double asked, const Times& t) const {
  const double replicas = to_double(split.replicas);
  const double wanted = rate_of(asked, t) * replicas;
  Fed out{.prefills = prefills(split, replicas * to_double(c.layout.chips()), wanted), .each = asked, .times = t};
  out.rate = std::min(wanted, out.prefills / split.pool->occupancy);
  if (out.rate >= wanted) return out;
  for (double n = 1; n < asked;) {
    const Times times = decode_times(c, n, split);
    if (rate_of(n, times) * replicas >= out.rate) {
      out.each = n;
      out.times = times;
      out.times.gain = t.gain;
      break;
    }
    n = std::max(n + 1, std::ceil((1 - kSame) * n * out.rate / (rate_of(n, times) * replicas)));
  }
  return out;
}

void ServeSearch::keep_beside(const Split& split, const Choice& choice, double asked) {
  const Pool& pool = *split.pool;
  const ServeCandidate& c = *choice.candidate;
  const double replicas = to_double(split.replicas);
  const Fed f = fed(split, c, asked, choice.times);
  const double wanted = rate_of(f.each, f.times) * replicas;
  double each = f.each;
  if (f.rate < wanted) each = std::min(each, f.rate / wanted * each);  // Little's law
  PoolSplit told{.prefill_chips = static_cast<std::int64_t>(f.prefills) * pool.chips,
                 .decode_chips = split.replicas * c.layout.chips(),
                 .prefill_replicas = static_cast<std::int64_t>(f.prefills),
                 .decode_replicas = split.replicas,
                 .prefill_layout = pool.layout,
                 .ratio = wanted / replicas * pool.occupancy,
                 .transfer_bytes = c.moved,
                 .transfer_s = transfer_time(split, c),
                 .transfer_tier = system_.hw->network[pool_tier(split.chips)].name};
  const bool apart = answer_.prefill_system.has_value();
  ServePoint p =
      point(c, each * replicas, apart ? told.decode_chips + told.prefill_chips : split.chips, split.replicas, f.times);
  p.requests_per_s = f.rate;
  p.tokens_per_s = f.rate * load_.generate;
  p.pools = std::move(told);
  pay(p, pool.occupancy * to_double(pool.chips));
  if (apart) pay_apart(p, *p.pools, pool);
  // Larger batches than prompts feed are one point.
  const auto same = [&](const ServePoint& known) {
    return known.pools && known.layout == p.layout && known.pools->prefill_layout == p.pools->prefill_layout &&
           known.pools->prefill_replicas == p.pools->prefill_replicas &&
           known.pools->decode_replicas == p.pools->decode_replicas && known.chips == p.chips && known.batch == p.batch;
  };
  if (std::none_of(points_.begin(), points_.end(), same)) keep(std::move(p));
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
  for (std::int64_t size = nearest_above(*system_.hw, 1, 1); size > 0 && size < chips;
       size = nearest_above(*system_.hw, size + 1, 1)) {
    out.push_back(size);
  }
  return out;
}

/// Between the pools of so many chips: the innermost tier that holds them all; of other chips one beyond the innermost.
std::size_t ServeSearch::pool_tier(std::int64_t chips) const {
  const std::size_t tier = spanning_tier(*system_.hw, chips, true);
  return answer_.prefill_system && system_.hw->network.size() > 1 ? std::max<std::size_t>(tier, 1) : tier;
}

TierRates<double> ServeSearch::pool_link(std::int64_t chips) const { return basis_.network.tiers[pool_tier(chips)]; }

/// Every rank of a decode replica gets what it keeps of a prompt's cache, heads that several keep several times. The
/// ranks that have the cache send at once, those that get it receive at once; the slower end paces them.
double ServeSearch::transfer_time(const Split& split, const ServeCandidate& c) const {
  const double bytes = c.moved;
  const TierRates<double>& from = split.pool->link;
  const double sends = bytes / (from.bandwidth.value() * split.pool->ranks);
  const double receives = bytes / (split.link.bandwidth.value() * c.cache_ranks());
  return std::max(from.latency.value(), split.link.latency.value()) + std::max(sends, receives);
}

}  // namespace scalecalc
