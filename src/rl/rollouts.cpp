// Simulates how the engine's replicas generate the responses of one step, for `scalecalc rl`.
#include "rl/rollouts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/scalar.h"
#include "jobs/job_part.h"
#include "serve/queueing.h"
#include "serve/serve_search.h"
#include "serve/serving_cost.h"

namespace scalecalc {
namespace {

/// The engine on chips that have so much less memory.
std::shared_ptr<const HardwareSpec> with_less(const HardwareSpec& hw, double taken) {
  auto out = std::make_shared<HardwareSpec>(hw);
  out->hbm_capacity = Bytes(std::max(0.0, hw.hbm_capacity.value() - taken));
  return out;
}

ServingSystem on_hardware(ServingSystem system, const HardwareSpec& hw) {
  system.hw = &hw;
  return system;
}

/// The request at a share `u` of all, shortest response first.
ServedRequest request_at(const RequestMix& mix, double u, double v) {
  if (!mix.rows.empty()) {
    ServedRequest row = mix.rows[static_cast<std::size_t>(u * static_cast<double>(mix.rows.size()))];
    row.arrival_s = 0;
    return row;
  }
  return {.prompt = mix.prompt.at(v), .generate = mix.generate.at(u)};
}

/// A whole number near 0.618 n that shares no factor with n: its multiples visit 0 ... n - 1 in an even mixture.
std::int64_t mixing_stride(std::int64_t n) {
  auto stride = std::max<std::int64_t>(1, static_cast<std::int64_t>(0.6180339887498949 * to_double(n)));
  while (std::gcd(stride, n) != 1) ++stride;
  return stride;
}

std::int64_t longest_response(const RequestMix& mix, std::int64_t sequences) {
  if (mix.rows.empty()) return mix.generate.at((to_double(sequences) - 0.5) / to_double(sequences));
  return std::max_element(mix.rows.begin(), mix.rows.end(),
                          [](const ServedRequest& a, const ServedRequest& b) { return a.generate < b.generate; })
      ->generate;
}

}  // namespace

RolloutTokens rollout_tokens(const RequestMix& mix, std::int64_t sequences) {
  RolloutTokens out{.longest = to_double(longest_response(mix, sequences))};
  if (mix.rows.empty()) {
    out.prompt = mix.prompt.mean();
    out.response = mix.generate.mean();
    out.square = mix.prompt.mean_square() + 2 * out.prompt * out.response + mix.generate.mean_square();
    return out;
  }
  const double count = static_cast<double>(mix.rows.size());
  for (const ServedRequest& row : mix.rows) {
    out.prompt += to_double(row.prompt) / count;
    out.response += to_double(row.generate) / count;
    out.square += to_double(row.prompt + row.generate) * to_double(row.prompt + row.generate) / count;
  }
  return out;
}

std::vector<ServedRequest> rollout_share(const RequestMix& mix, std::int64_t sequences, std::int64_t share) {
  std::vector<ServedRequest> out;
  const std::int64_t stride = mixing_stride(share);
  for (std::int64_t i = 0; i < share; ++i) {
    const auto at = [&](std::int64_t k) { return (to_double(k) + 0.5) / to_double(share); };
    out.push_back(request_at(mix, at(i * stride % share), at(i)));
  }
  const auto longest = std::max_element(
      out.begin(), out.end(), [](const ServedRequest& a, const ServedRequest& b) { return a.generate < b.generate; });
  longest->generate = std::max(longest->generate, longest_response(mix, sequences));
  return out;
}

SecondsOf<Traced> explain_decode(const ServingSystem& system, const Generation& g) {
  const ServeBasis<Traced> basis(Reader<Traced>{}, system);
  const SecondsOf<Traced> host(
      Traced::leaf(g.host_s, "host", "what the framework adds to a step of the engine", kSecondDim));
  return ServingCost<Traced>(basis, g.layout, g.slice, g.placement).decode_step(g.mean_batch, g.context).total() + host;
}

Generator::Generator(const ServingSystem& system, RolloutLoad load, ServePins fix, ServePins max, double taken,
                     Stop stop)
    : hw_(with_less(*system.hw, taken)),
      basis_(Reader<double>{}, on_hardware(system, *hw_)),
      load_(std::move(load)),
      fix_(fix),
      max_(max),
      stop_(std::move(stop)) {}

std::int64_t Generator::share_of(const ServeLayout& layout) const {
  return (load_.sequences() + layout.dp - 1) / layout.dp;
}

Generator::Candidate Generator::candidate(const ServeLayout& layout, const Slice& slice) const {
  const Placement placement = best_placement(basis_, layout, slice);
  const ReplicaQuestion question{.mix = load_.mix, .prefix_hit = load_.prefix_hit, .chunk = basis_.system.chunk_tokens};
  Candidate out{layout, slice, placement, ServeMemory(basis_, layout),
                replica_server(basis_, layout, slice, placement, question)};
  // No more are in flight than the steps that overlap have.
  const std::int64_t flight = share_of(layout) * std::max<std::int64_t>(load_.depth, 1);
  out.server.rules.most_sequences = std::min(out.server.rules.most_sequences, flight);
  out.server.stop = stop_;
  if (load_.host_s > 0) {
    out.server.seconds = [step = std::move(out.server.seconds), more = load_.host_s](const StepLoad& load) {
      return step(load) + more;
    };
  }
  out.bound = bound_of(out);
  return out;
}

/// What decoding alone takes when every step is as full as it can be: of each stretch of token positions, the sequences
/// that live through it, at the context of its start. A step's time per sequence does not rise with the batch, so
/// stretches with more sequences than the cache holds count in full batches.
double Generator::bound_of(const Candidate& c) const {
  constexpr std::int64_t kStretches = 24;
  const std::int64_t share = share_of(c.layout);
  std::vector<ServedRequest> requests = rollout_share(load_.mix, load_.sequences(), share);
  std::sort(requests.begin(), requests.end(),
            [](const ServedRequest& a, const ServedRequest& b) { return a.generate < b.generate; });
  const auto shortest =
      std::min_element(requests.begin(), requests.end(),
                       [](const ServedRequest& a, const ServedRequest& b) { return a.prompt < b.prompt; });
  const double prompt = to_double(shortest->prompt);
  const double lanes = to_double(c.layout.attention_dp * c.layout.pp * c.layout.tp);
  const double held = std::min(to_double(c.server.rules.most_sequences), c.server.rules.kv_tokens / (prompt + 1));
  const double most = std::ceil(held / lanes) * lanes;
  double out = 0;
  double done = 0;
  for (std::int64_t s = 1; s <= kStretches; ++s) {
    const auto rank = static_cast<std::size_t>((share - 1) * s / kStretches);
    const double end = to_double(requests[rank].generate - 1);
    if (end <= done) continue;
    const auto first =
        std::lower_bound(requests.begin(), requests.end(), end + 1,
                         [](const ServedRequest& r, double length) { return to_double(r.generate) < length; });
    const double alive = static_cast<double>(requests.end() - first);
    const double batch = std::min(alive, most);
    const double step = c.server.seconds({.sequences = batch, .context_tokens = batch * (prompt + done)});
    out += (end - done) * step * alive / batch;
    done = end;
  }
  return load_.depth < 2 ? out : 0;
}

const std::vector<Generator::Candidate>& Generator::candidates(std::int64_t chips) {
  const auto [at, fresh] = known_.try_emplace(chips);
  if (!fresh) return at->second;
  const Deployments all = deployments(basis_.system, chips, fix_, max_);
  const double longest = to_double(load_.mix.largest_cached());
  for (const ServeLayout& layout : all.layouts) {
    if (should_stop(stop_)) throw Stopped();
    if (layout.dp > load_.sequences()) continue;  // replicas without work
    ++layouts_;
    const ServeMemory memory(basis_, layout);
    if (memory.max_batch(longest) < 1) {
      const double needed = memory.parts(1, longest).total() + memory.withheld();
      if (!shortage_ || needed < shortage_->nearest) {
        shortage_ = BindingLimit{"engine", memory.capacity(), needed, describe(layout)};
      }
      continue;
    }
    if (placed(*hw_, *all.slice, layout).empty()) continue;
    Candidate made = candidate(layout, *all.slice);
    if (cache_tokens(made.server.rules) >= load_.mix.largest_cached()) at->second.push_back(std::move(made));
  }
  std::stable_sort(at->second.begin(), at->second.end(),
                   [](const Candidate& a, const Candidate& b) { return a.bound < b.bound; });
  return at->second;
}

std::optional<double> Generator::bound(std::int64_t chips) {
  const std::vector<Candidate>& all = candidates(chips);
  return all.empty() ? std::nullopt : std::optional(all.front().bound);
}

/// A batch from its prompts to its last token.
Generation Generator::simulate(const Candidate& c, std::int64_t chips) const {
  const std::vector<ServedRequest> requests = rollout_share(load_.mix, load_.sequences(), share_of(c.layout));
  const QueueResult result = simulate_queue(requests, c.server);
  Generation out{.layout = c.layout, .chips = chips, .seconds = result.figures.span_s};
  std::vector<double> ends;
  for (const RequestTimes& r : result.requests) {
    ends.push_back(r.finished_s);
    out.longest_s = std::max(out.longest_s, r.finished_s - r.first_token_s);
  }
  std::sort(ends.begin(), ends.end());
  out.tail = 1 - ends[(ends.size() - 1) * 9 / 10] / out.seconds;
  out.mean_batch = result.figures.mean_batch;
  out.evictions = result.figures.evictions;
  return out;
}

/// Responses go on over the ends of steps, so that an engine is always full; but none may be older than `depth` steps.
/// More in flight have a higher rate and each a longer life: the number is the one whose step is shortest. An engine
/// that may run ahead may also wait.
Generation Generator::stream(const Candidate& c, std::int64_t chips) const {
  Generation out = simulate(c, chips);
  QueueRules rules = c.server.rules;
  for (; rules.most_sequences >= 1; rules.most_sequences /= 2) {
    const double rate = largest_rate(c.server.seconds, rules, load_.mix);
    // By Little's law.
    const double batch = largest_batch(c.server.seconds, rules, load_.mix);
    const double gap = load_.mix.decode_steps() > 0 ? batch / (rate * load_.mix.decode_steps()) : 0;
    const double longest = gap * to_double(longest_response(load_.mix, load_.sequences()));
    const double seconds = std::max(to_double(share_of(c.layout)) / rate, longest / to_double(load_.depth));
    if (seconds >= out.seconds) continue;
    out = {.layout = c.layout, .chips = chips, .seconds = seconds, .longest_s = longest, .mean_batch = batch};
  }
  return out;
}

std::optional<Generation> Generator::best(std::int64_t chips, double worth) {
  std::optional<Generation> out;
  for (const Candidate& c : candidates(chips)) {
    if (c.bound >= (out ? std::min(worth, out->seconds) : worth)) break;  // and so are all after it
    if (should_stop(stop_)) throw Stopped();
    ++simulated_;
    Generation made = load_.depth < 2 ? simulate(c, chips) : stream(c, chips);
    if (out && made.seconds >= out->seconds) continue;
    const ServeMemoryParts parts = c.memory.parts(0, 0);
    made.weight_bytes = parts.weights;
    made.graph_bytes = parts.graphs;
    made.fixed_bytes = parts.total() - parts.weights;
    made.kv_bytes = std::max(0.0, c.memory.cache_room());
    made.context = load_.mix.decode_steps() > 0 ? load_.mix.decode_context() : load_.mix.prompt.mean();
    made.decode_s = c.server.seconds({.sequences = made.mean_batch, .context_tokens = made.mean_batch * made.context});
    made.host_s = load_.host_s;
    made.slice = c.slice;
    made.placement = c.placement;
    out = std::move(made);
  }
  return out;
}

}  // namespace scalecalc
