// Keeps the placements that no other placement beats, and bounds all of them for the search.
#include "plan/places.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/divisors.h"

namespace scalecalc {
namespace {

/// The channels a step uses: ZeRO-3 gathers over shards and reduces over replicas, the other stages use all data ranks.
std::array<Channel<double> MeshChannels<double>::*, 8> used_channels(bool sharded) {
  using M = MeshChannels<double>;
  if (sharded)
    return {&M::tp, &M::cp, &M::ep, &M::pp, &M::shard, &M::replicate, &M::expert_shard, &M::expert_replicate};
  return {&M::tp, &M::cp, &M::ep, &M::pp, &M::data, &M::expert_data, &M::data, &M::expert_data};
}

bool no_slower(const Channel<double>& a, const Channel<double>& b) {
  const auto le = [](const auto& x, const auto& y) { return !(y < x); };
  return le(a.gather, b.gather) && le(a.reduce, b.reduce) && le(a.all_to_all, b.all_to_all) && le(a.send, b.send) &&
         le(a.gather_latency, b.gather_latency) && le(a.reduce_latency, b.reduce_latency) &&
         le(a.all_to_all_latency, b.all_to_all_latency) && le(a.send_latency, b.send_latency) && le(a.ramp, b.ramp) &&
         a.scale_up == b.scale_up && a.scale_out == b.scale_out;
}

}  // namespace

bool dominates(const MeshChannels<double>& a, const MeshChannels<double>& b, bool sharded) {
  for (const auto channel : used_channels(sharded)) {
    if (!no_slower(a.*channel, b.*channel)) return false;
  }
  const auto layer = [sharded](const MeshChannels<double>& m) {
    return std::array{m.tp.links, m.cp.links, m.ep.links, sharded ? m.shard.links : 0U};
  };
  const auto la = layer(a);
  const auto lb = layer(b);
  for (std::size_t i = 0; i < la.size(); ++i) {
    for (std::size_t j = i + 1; j < la.size(); ++j) {
      if ((la[i] & la[j]) != 0 && (lb[i] & lb[j]) == 0) return false;
    }
  }
  return true;
}

void Undominated::offer(const PlacedChannels& newcomer) {
  for (const PlacedChannels& kept : kept_) {
    if (dominates(kept.channels, newcomer.channels, sharded_)) return;
  }
  std::erase_if(kept_, [&](const PlacedChannels& k) { return dominates(newcomer.channels, k.channels, sharded_); });
  kept_.push_back(newcomer);
}

void lower(Channel<double>& bound, const Channel<double>& c) {
  bound.gather = min(bound.gather, c.gather);
  bound.reduce = min(bound.reduce, c.reduce);
  bound.all_to_all = min(bound.all_to_all, c.all_to_all);
  bound.send = min(bound.send, c.send);
  bound.gather_latency = min(bound.gather_latency, c.gather_latency);
  bound.reduce_latency = min(bound.reduce_latency, c.reduce_latency);
  bound.all_to_all_latency = min(bound.all_to_all_latency, c.all_to_all_latency);
  bound.send_latency = min(bound.send_latency, c.send_latency);
  bound.ramp = min(bound.ramp, c.ramp);
}

MeshChannels<double> envelope(const std::vector<PlacedChannels>& places, bool sharded) {
  MeshChannels<double> out = places.front().channels;
  for (const PlacedChannels& place : places) {
    for (const auto channel : used_channels(sharded)) lower(out.*channel, place.channels.*channel);
  }
  for (const auto channel : used_channels(sharded)) (out.*channel).links = 0;
  return out;
}

Channel<double> best_switched(const HardwareSpec& hw, const Slice& slice, const NetworkRates<double>& rates,
                              std::int64_t size, const Routing& routing, std::int64_t stride) {
  const std::vector<std::int64_t> domains = tier_domains(hw, slice);
  Channel<double> out;
  Group group;
  bool any = false;
  const auto deal = [&](const auto& self, std::size_t tier, std::int64_t left) -> void {
    const std::int64_t domain = domains[tier];
    if (tier + 1 == domains.size()) {
      group.tiers[tier] = left;
      const Channel<double> channel = make_channel(hw, slice, rates, group, "", routing);
      if (any) {
        lower(out, channel);
      } else {
        out = channel;
      }
      any = true;
      return;
    }
    const std::int64_t inside = size / left;  // of the tiers below
    for (const std::int64_t members : divisors(left)) {
      if (members > 1 && domain > 0 && inside * members * stride > domain) break;
      group.tiers[tier] = members;
      self(self, tier + 1, left / members);
    }
  };
  deal(deal, 0, size);
  out.links = 0;
  return out;
}

namespace {

/// Links of a chip that a group of `size` may have on the axes from this one on, at most: its part of an axis divides
/// it. A whole axis that wraps is a ring; what is less is a line, or every so many chips of a ring, whose links two
/// such groups share at least. Parts that lie `apart` on an axis may count as a ring of their own.
double most_links(const Slice& slice, std::size_t axis, std::int64_t size, bool apart) {
  if (size == 1) return 0;
  if (axis == slice.shape.size()) return -std::numeric_limits<double>::infinity();  // it does not fit
  const std::int64_t whole = slice.shape[axis];
  double out = most_links(slice, axis + 1, size, apart);
  for (std::int64_t part = 2; part <= std::min(whole, size); ++part) {
    if (whole % part != 0 || size % part != 0) continue;
    const double own = slice.wraps[axis] && (apart || part == whole) ? 2 : 1;
    out = std::max(out, own + most_links(slice, axis + 1, size / part, apart));
  }
  return out;
}

}  // namespace

Channel<double> best_channel(const HardwareSpec& hw, const Slice& slice, const NetworkRates<double>& rates,
                             std::int64_t size, bool apart, std::int64_t stride) {
  Channel<double> out;
  out.size = size;
  if (size == 1) return out;
  if (hw.is_torus()) {
    const double links = most_links(slice, 0, size, apart);
    const double n = static_cast<double>(size);
    // A group inside one slice is bound by its links; one that spans slices adds the outer tier, never speed.
    if (links > 0 && slice.slices == 1) out.gather = ((n - 1) / n) / (rates.tiers[0].bandwidth * links);
    out.reduce = 2.0 * out.gather;
    if (slice.slices == 1) out.send = 1.0 / rates.tiers[0].bandwidth;
    out.latency_adds = false;
    return out;
  }
  return best_switched(hw, slice, rates, size, {}, stride);
}

MeshChannels<double> sizes_of(const Layout& l) {
  const std::int64_t expert_ways = l.tp / l.etp;
  MeshChannels<double> out;
  out.shard.size = l.fsdp * l.cp;
  out.data.size = l.dp * l.fsdp * l.cp;
  out.expert_shard.size = std::max<std::int64_t>(1, out.shard.size * expert_ways / l.ep);
  out.expert_data.size = std::max<std::int64_t>(1, out.data.size * expert_ways / l.ep);
  return out;
}

}  // namespace scalecalc
