// The groups a step communicates over, placed on the machine, and how much of each communication hides under compute.
#pragma once

#include "cost/layout.h"
#include "network/channel.h"
#include "network/placement.h"
#include "spec/model_spec.h"
#include "spec/stack_runtime.h"

namespace scalecalc {

/// How the model's experts spread a token: nothing is spared where a copy goes to each expert, or there are none.
Routing routing_of(const ModelSpec& model, ExpertDispatch dispatch);

/// Channels of every group a step communicates over.
template <class R>
struct MeshChannels {
  Channel<R> tp, cp, ep, pp;
  Channel<R> shard;         ///< fsdp x cp: gathers weights, scatters gradients (ZeRO-3)
  Channel<R> replicate;     ///< dp: reduces the shards of hybrid sharding
  Channel<R> data;          ///< dp x fsdp x cp: gradients and updated weights (ZeRO 0 to 2)
  Channel<R> expert_shard;  ///< the same three for expert weights, which fewer ranks share
  Channel<R> expert_replicate;
  Channel<R> expert_data;
  double doublings =
      0;  ///< log2 of the hosts that all chips are of, or on a torus of the slices: how often they double
};

/// MeshChannels::doublings of a slice's chips.
double doublings_of(const HardwareSpec& hw, const Slice& slice);

template <class R>
struct PlacedMesh {
  Placement placement;
  MeshChannels<R> channels;
};

/// `like`: the same of another placement of these degrees, whose channels serve where groups lie as they do there.
template <class R>
MeshChannels<R> make_channels(const HardwareSpec& hw, const Slice& slice, const NetworkRates<R>& rates,
                              const Placement& placement, const Layout& layout, const Routing& routing,
                              const PlacedMesh<R>* like = nullptr);

/// The expert group, folded over the tensor (with etp = 1), context and data ranks as placed.
Group expert_group(const Placement& placement, const Layout& layout);

/// False if the expert group cuts the placed dimensions unevenly.
bool experts_fold(const Placement& placement, const Layout& layout);

/// How much of each communication runs under compute, and what it costs the compute meanwhile.
template <class R>
struct OverlapRates {
  R tp{1.0};
  R tp_pipelined{1.0};  ///< of tensor ranks whose collectives run in pieces under matmuls; at least tp
  R fsdp{1.0}, dp{1.0}, cp{1.0}, ep{1.0}, pp{1.0};
  R cp_gather{1.0};  ///< of context ranks that do not pass a ring
  R ep_paired{1.0};  ///< of layouts that pair microbatches (pairs_experts); at least ep
  R host{1.0};
  R contention_up{0.0}, contention_out{0.0};
};
template <class R>
OverlapRates<R> read_overlap(const Reader<R>& reader, const Efficiency& efficiency);

/// Share of the compute that is lost beside a group's communication: that of the tier which takes most of it. A group
/// that leaves the node with several members in it loads both.
template <class R>
R contention_of(const OverlapRates<R>& overlap, const Channel<R>& c) {
  if (c.size == 1) return R(0.0);
  if (c.scale_up && c.scale_out) return max(overlap.contention_up, overlap.contention_out);
  return c.scale_out ? overlap.contention_out : overlap.contention_up;
}

}  // namespace scalecalc
