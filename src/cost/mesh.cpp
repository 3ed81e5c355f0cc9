#include "cost/mesh.h"

#include <algorithm>
#include <vector>

namespace scalecalc {
namespace {

std::vector<Group> expert_nest(const Placement& placement, const Layout& layout) {
  std::vector<Group> nested;
  if (layout.etp == 1 && layout.tp > 1) nested.push_back(placement.of(MeshDim::kTp));
  nested.push_back(placement.of(MeshDim::kCp));
  nested.push_back(placement.of(MeshDim::kFsdp));
  nested.push_back(placement.of(MeshDim::kDp));
  return nested;
}

}  // namespace

Routing routing_of(const ModelSpec& model, ExpertDispatch dispatch) {
  if (!model.moe || dispatch == ExpertDispatch::kAllToAll) return {};
  return {static_cast<double>(model.moe->top_k), model.moe->n_group, model.moe->topk_group};
}

Group expert_group(const Placement& placement, const Layout& layout) {
  Group folded;
  Group rest;
  fold(expert_nest(placement, layout), layout.ep, folded, rest);
  return folded;
}

bool experts_fold(const Placement& placement, const Layout& layout) {
  if (layout.ep == 1) return true;
  Group folded;
  Group rest;
  std::vector<Group> nested = expert_nest(placement, layout);
  if (!fold(nested, layout.ep, folded, rest)) return false;
  if (!layout.shards_in_groups()) return true;
  nested.pop_back();  // shards of expert weights lie inside one FSDP replica
  return fold(nested, layout.ep, folded, rest);
}

double parts_of(const HardwareSpec& hw, const Slice& slice) {
  if (hw.is_torus()) return static_cast<double>(slice.slices);
  return std::max(1.0, static_cast<double>(slice.chips) / static_cast<double>(hw.chips_per_host));
}

template <class R>
MeshChannels<R> make_channels(const HardwareSpec& hw, const Slice& slice, const NetworkRates<R>& rates,
                              const Placement& placement, const Layout& layout, const Routing& routing) {
  const auto channel = [&](const Group& group, std::string_view label) {
    return make_channel(hw, slice, rates, group, label);
  };
  const Group cp = placement.of(MeshDim::kCp);
  const Group fsdp = placement.of(MeshDim::kFsdp);
  const Group dp = placement.of(MeshDim::kDp);
  MeshChannels<R> out;
  out.tp = channel(placement.of(MeshDim::kTp), "tp");
  out.cp = channel(cp, "cp");
  out.pp = channel(placement.of(MeshDim::kPp), "pp");
  out.shard = channel(merge(cp, fsdp), "FSDP group");
  out.replicate = channel(dp, "replica group");
  out.data = channel(merge(merge(cp, fsdp), dp), "data group");
  Group folded;
  Group rest;
  std::vector<Group> nested = expert_nest(placement, layout);
  fold(nested, layout.ep, folded, rest);
  out.expert_data = channel(rest, "expert data group");
  out.ep = make_channel(hw, slice, rates, expert_group(placement, layout), "ep", routing);
  nested.pop_back();
  fold(nested, layout.ep, folded, rest);
  out.expert_shard = channel(rest, "expert FSDP group");
  out.expert_replicate = channel(dp, "expert replica group");
  out.parts = parts_of(hw, slice);
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
                                         const Layout&, const Routing&);                                              \
  template OverlapRates<R> read_overlap(const Reader<R>&, const Efficiency&);
SCALECALC_INSTANTIATE(double)
SCALECALC_INSTANTIATE(Dual)
SCALECALC_INSTANTIATE(Traced)
SCALECALC_INSTANTIATE(Interval)
#undef SCALECALC_INSTANTIATE

}  // namespace scalecalc
