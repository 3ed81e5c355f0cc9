// Builds the channels of a placed layout and reads how much communication overlaps with compute.
#include "cost/mesh.h"

#include <algorithm>
#include <array>
#include <span>
#include <type_traits>

namespace scalecalc {
namespace {

/// The groups that experts may spread over, inner first.
class ExpertNest {
 public:
  ExpertNest(const Placement& placement, const Layout& layout)
      : groups_{&placement.of(MeshDim::kTp), &placement.of(MeshDim::kCp), &placement.of(MeshDim::kFsdp),
                &placement.of(MeshDim::kDp)},
        first_(layout.etp == 1 && layout.tp > 1 ? 0 : 1),
        ep_(layout.ep) {}

  bool fold_all(Group& folded, Group& rest) const {
    return fold(std::span(groups_).subspan(first_), ep_, folded, rest);
  }
  bool of_tensor_ranks() const { return first_ == 0; }
  /// Inside one FSDP replica, where shards of expert weights lie.
  bool fold_replica(Group& folded, Group& rest) const {
    return fold(std::span(groups_).first(3).subspan(first_), ep_, folded, rest);
  }

 private:
  std::array<const Group*, 4> groups_;
  std::size_t first_;
  std::int64_t ep_;
};

/// Which dimensions lie as in another placement.
struct SameGroups {
  SameGroups(const Placement& a, const Placement& b) {
    for (std::size_t d = 0; d < kMeshDims; ++d) same[d] = a.dims[d] == b.dims[d];
  }
  template <class... Dims>
  bool of(Dims... dims) const {
    return (same[static_cast<std::size_t>(dims)] && ...);
  }
  std::array<bool, kMeshDims> same{};
};

}  // namespace

Routing routing_of(const ModelSpec& model, ExpertDispatch dispatch) {
  if (!model.moe || dispatch == ExpertDispatch::kAllToAll) return {};
  return {static_cast<double>(model.moe->top_k), model.moe->n_group, model.moe->topk_group};
}

Group expert_group(const Placement& placement, const Layout& layout) {
  Group folded;
  Group rest;
  ExpertNest(placement, layout).fold_all(folded, rest);
  return folded;
}

bool experts_fold(const Placement& placement, const Layout& layout) {
  if (layout.ep == 1) return true;
  Group folded;
  Group rest;
  const ExpertNest nest(placement, layout);
  return nest.fold_all(folded, rest) && (!layout.shards_in_groups() || nest.fold_replica(folded, rest));
}

double doublings_of(const HardwareSpec& hw, const Slice& slice) {
  if (hw.is_torus()) return std::log2(static_cast<double>(slice.slices));
  return std::log2(std::max(1.0, static_cast<double>(slice.chips) / static_cast<double>(hw.chips_per_host)));
}

template <class R>
MeshChannels<R> make_channels(const HardwareSpec& hw, const Slice& slice, const NetworkRates<R>& rates,
                              const Placement& placement, const Layout& layout, const Routing& routing,
                              const PlacedMesh<R>* like) {
  using enum MeshDim;
  const auto channel = [&](const Group& group, std::string_view label) {
    return make_channel(hw, slice, rates, group, label);
  };
  const Group& cp = placement.of(kCp);
  const Group& fsdp = placement.of(kFsdp);
  const Group& dp = placement.of(kDp);
  MeshChannels<R> out;
  SameGroups same(placement, like == nullptr ? placement : like->placement);
  if (like == nullptr) {
    same.same.fill(false);
  } else {
    out = like->channels;
  }
  if (!same.of(kTp)) out.tp = channel(placement.of(kTp), "tp");
  if (!same.of(kCp)) out.cp = channel(cp, "cp");
  if (!same.of(kPp)) out.pp = channel(placement.of(kPp), "pp");
  if (!same.of(kCp, kFsdp)) out.shard = channel(merge(cp, fsdp), "FSDP group");
  if (!same.of(kDp)) {
    out.replicate = channel(dp, "replica group");
    out.expert_replicate = std::is_same_v<R, double> ? out.replicate : channel(dp, "expert replica group");
  }
  const auto data = [&] { return merge(merge(cp, fsdp), dp); };
  if (!same.of(kCp, kFsdp, kDp)) out.data = channel(data(), "data group");
  Group folded;
  Group rest;
  const ExpertNest nest(placement, layout);
  if (!same.of(kTp, kCp, kFsdp, kDp)) {
    if (layout.ep == 1) {
      rest = nest.of_tensor_ranks() ? merge(placement.of(kTp), data()) : data();
    } else {
      nest.fold_all(folded, rest);
    }
    out.expert_data = channel(rest, "expert data group");
    out.ep = make_channel(hw, slice, rates, folded, "ep", routing);
  }
  if (!same.of(kTp, kCp, kFsdp)) {
    nest.fold_replica(folded, rest);
    out.expert_shard = channel(rest, "expert FSDP group");
  }
  out.doublings = doublings_of(hw, slice);
  return out;
}

template <class R>
OverlapRates<R> read_overlap(const Reader<R>& reader, const Efficiency& e) {
  const auto in = [&](const Coefficient& c, const char* name) {
    return reader.input(c.value, name, c.source, {}, c.error);
  };
  return {.tp = in(e.overlap_tp, "efficiency.overlap.tp"),
          .tp_pipelined = max(in(e.overlap_tp, "efficiency.overlap.tp"),
                              in(e.overlap_tp_pipelined, "efficiency.overlap.tp_pipelined")),
          .fsdp = in(e.overlap_fsdp, "efficiency.overlap.fsdp"),
          .dp = in(e.overlap_dp, "efficiency.overlap.dp"),
          .cp = in(e.overlap_cp, "efficiency.overlap.cp"),
          .ep = in(e.overlap_ep, "efficiency.overlap.ep"),
          .pp = in(e.overlap_pp, "efficiency.overlap.pp"),
          .cp_gather = in(e.overlap_cp_gather, "efficiency.overlap.cp_gather"),
          .ep_paired =
              max(in(e.overlap_ep, "efficiency.overlap.ep"), in(e.overlap_ep_paired, "efficiency.overlap.ep_paired")),
          .host = in(e.overlap_host, "efficiency.overlap.host"),
          .contention_up = in(e.contention_scale_up, "efficiency.contention.scale_up"),
          .contention_out = in(e.contention_scale_out, "efficiency.contention.scale_out")};
}

#define SCALECALC_INSTANTIATE(R)                                                                                      \
  template MeshChannels<R> make_channels(const HardwareSpec&, const Slice&, const NetworkRates<R>&, const Placement&, \
                                         const Layout&, const Routing&, const PlacedMesh<R>*);                        \
  template OverlapRates<R> read_overlap(const Reader<R>&, const Efficiency&);
SCALECALC_INSTANTIATE(double)
SCALECALC_INSTANTIATE(Dual)
SCALECALC_INSTANTIATE(Traced)
#undef SCALECALC_INSTANTIATE

}  // namespace scalecalc
