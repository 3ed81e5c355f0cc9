// Keeps costs and bounds that several searches about one job share, such as those of `compare --deadline`.
#include "plan/run_bounds.h"

#include <algorithm>

namespace scalecalc {

RunBounds::Network RunBounds::network_of(const MeshChannels<double>& channels) {
  const std::lock_guard lock(mutex_);
  auto& alike = networks_[{channels.tp.size, channels.cp.size, channels.ep.size}];
  for (const auto& [known, number] : alike) {
    if (dominates(known, channels, false) && dominates(channels, known, false)) return number;
  }
  return alike.emplace_back(channels, next_++).second;
}

std::optional<RunBound> RunBounds::find(const InnerDegrees& inner, Network network) const {
  const Key key{inner, network};
  Stripe& stripe = stripe_of(key);
  const std::lock_guard lock(stripe.mutex);
  const auto at = stripe.known.find(key);
  return at == stripe.known.end() ? std::nullopt : at->second.run;
}

void RunBounds::add(const InnerDegrees& inner, Network network, const RunBound& bound) {
  const Key key{inner, network};
  Stripe& stripe = stripe_of(key);
  const std::lock_guard lock(stripe.mutex);
  stripe.known[key].run = bound;
}

const PassTotals* RunBounds::passes(const InnerDegrees& inner, Network network, std::size_t policy) const {
  const Key key{inner, network};
  Stripe& stripe = stripe_of(key);
  const std::lock_guard lock(stripe.mutex);
  const auto at = stripe.known.find(key);
  if (at == stripe.known.end()) return nullptr;
  const auto found = at->second.passes.find(policy);
  return found == at->second.passes.end() ? nullptr : &found->second;
}

/// Two threads may have found the same; the first stays, because it may be in use.
const PassTotals& RunBounds::add(const InnerDegrees& inner, Network network, std::size_t policy, PassTotals passes) {
  const Key key{inner, network};
  Stripe& stripe = stripe_of(key);
  const std::lock_guard lock(stripe.mutex);
  return stripe.known[key].passes.try_emplace(policy, std::move(passes)).first->second;
}

const ShardingWays* RunBounds::ways(const WaysKey& key) const {
  Stripe& stripe = stripe_of(key);
  const std::lock_guard lock(stripe.mutex);
  const auto at = stripe.ways.find(key);
  return at == stripe.ways.end() ? nullptr : &at->second;
}

const ShardingWays& RunBounds::add(const WaysKey& key, ShardingWays ways) {
  Stripe& stripe = stripe_of(key);
  const std::lock_guard lock(stripe.mutex);
  return stripe.ways.emplace(key, std::move(ways)).first->second;
}

std::shared_ptr<const NetworkCost<double>> RunBounds::parameters(const Degrees& degrees) const {
  Stripe& stripe = stripe_of(degrees);
  const std::lock_guard lock(stripe.mutex);
  const auto at = stripe.parameters.find(degrees);
  return at == stripe.parameters.end() ? nullptr : at->second;
}

std::shared_ptr<const NetworkCost<double>> RunBounds::cost(const InnerDegrees& inner) const {
  Stripe& stripe = stripe_of(inner);
  const std::lock_guard lock(stripe.mutex);
  const auto at = stripe.costs.find(inner);
  return at == stripe.costs.end() ? nullptr : at->second;
}

void RunBounds::add(const InnerDegrees& inner, std::shared_ptr<const NetworkCost<double>> cost) {
  constexpr std::size_t kMostKept = 1024 / kStripes;  // some ten kilobytes each
  {
    const Degrees degrees = degrees_of(inner);
    Stripe& stripe = stripe_of(degrees);
    const std::lock_guard lock(stripe.mutex);
    stripe.parameters.try_emplace(degrees, cost);
  }
  Stripe& stripe = stripe_of(inner);
  std::shared_ptr<const NetworkCost<double>> dropped;  // freed when nobody waits for it
  const std::lock_guard lock(stripe.mutex);
  if (!stripe.costs.emplace(inner, std::move(cost)).second) return;
  stripe.order.push_back(inner);
  if (stripe.order.size() <= kMostKept) return;
  const auto oldest = stripe.costs.find(stripe.order.front());
  dropped = std::move(oldest->second);
  stripe.costs.erase(oldest);
  stripe.order.pop_front();
}

std::size_t RunBounds::Hash::operator()(const WaysKey& key) const {
  std::uint64_t out = 0;
  for (const std::uint64_t part : key) {
    out = (out ^ part) * 0x9e3779b97f4a7c15ULL;
    out ^= out >> 29;
  }
  return out;
}

std::size_t RunBounds::Hash::operator()(const Degrees& degrees) const {
  WaysKey key{};
  std::copy(degrees.begin(), degrees.end(), key.begin());
  return (*this)(key);
}

std::size_t RunBounds::Hash::operator()(const InnerDegrees& inner) const {
  const auto part = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  return (*this)(WaysKey{part(inner.tp), part(inner.cp), part(inner.ep), part(inner.etp), part(inner.micro_batch_seqs),
                         inner.sp ? 1U : 0U, static_cast<std::uint64_t>(inner.cp_comm)});
}

}  // namespace scalecalc
