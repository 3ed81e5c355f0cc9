// Computes the lower bounds of families, members and shardings, for the search.
#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "base/divisors.h"
#include "plan/family_search.h"

namespace scalecalc {

/// By policy, whether it treats some layers only, whether activations are offloaded, of some layers only, whether
/// another microbatch hides the experts' exchange, and whether the loss is chunked.
std::size_t FamilySearch::policy_of(const Layout& layout) {
  check((layout.offload & ~kOffloadActivations) == 0, "a bound of offloaded state");
  std::size_t policy = static_cast<std::size_t>(layout.remat);
  for (const bool bit : {layout.remat_layers > 0, layout.offload != 0, layout.offload_layers > 0, pairs_experts(layout),
                         layout.loss == LossKind::kChunked}) {
    policy = 2 * policy + (bit ? 1 : 0);
  }
  return policy;
}

const PhaseTotals& FamilySearch::bound_phases(const Layout& layout) {
  const bool paired = pairs_experts(layout);
  const std::size_t policy = policy_of(layout);
  PhaseTotals& out = bound_phases_[policy];
  if (is_bounded_[policy]) return out;
  is_bounded_[policy] = true;
  bounded_.push_back(policy);
  Layout of = family_->layout;
  of.remat = layout.remat;
  of.remat_layers = layout.remat_layers > 0 ? 1 : 0;
  of.offload = layout.offload;
  of.offload_layers = layout.offload_layers > 0 ? 1 : 0;
  of.loss = layout.loss;
  of.ep_overlap = paired;
  const StepInput<double> in = input(nullptr, of, bound_->channels);
  phases_into(in, of.offload == 0 ? &plain_phases(in, paired) : nullptr, being_bounded_);
  totals_into(*in.network, being_bounded_, out);
  return out;
}

const Phases<double>& FamilySearch::plain_phases(StepInput<double> in, bool paired) {
  std::optional<Phases<double>>& out = plain_phases_[paired ? 1 : 0];
  if (out) return *out;
  in.layout.remat = Remat::kNone;
  in.layout.remat_layers = 0;
  in.layout.loss = LossKind::kWhole;
  return out.emplace(phases(in));
}

/// The same for bounds of families, which other searches of the job ask for too.
const PassTotals& FamilySearch::bound_passes(const Layout& layout) {
  const std::size_t policy = policy_of(layout);
  const PassTotals*& out = bound_passes_[policy];
  if (out != nullptr) return *out;
  passed_.push_back(policy);
  out = known_.passes(inner_, bound_->network, policy);
  if (out == nullptr) out = &known_.add(inner_, bound_->network, policy, bound_phases(layout));
  return *out;
}

namespace {

/// Of a microbatch that holds so much less. Its time, its forwards, and what is left of it without weight gradients are
/// no longer than its own ([RUN], docs/model.md), which is what step_lower_bound asks for.
void scale(const PassTotals& of, double share, PassTotals& passes) {
  passes = of;
  for (std::vector<LayerPasses>* layers : {&passes.layers, &passes.kept}) {
    for (LayerPasses& layer : *layers) {
      layer.time *= share;
      layer.put_off *= share;
    }
  }
  for (PassTime<double>* end : {&passes.embedding, &passes.head}) {
    end->time = end->time * share;
    end->put_off = end->put_off * share;
  }
  passes.forward_whole *= share;
  for (double& more : passes.offload_forward) more *= share;
  passes.boundary = passes.boundary * share;
}

/// Rounded up to a power of two, so that machines of several sizes ask the same.
InnerDegrees bounding_inner(const Family& family) {
  InnerDegrees out = inner_of(family.layout);
  out.micro_batch_seqs = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(out.micro_batch_seqs)));
  return out;
}

double share_of(const Family& family, std::int64_t sequences) {
  return static_cast<double>(family.layout.micro_batch_seqs) / static_cast<double>(sequences);
}

}  // namespace

RunBound FamilySearch::run_bound(const Family& family) {
  const InnerDegrees inner = bounding_inner(family);
  Family largest = family;
  const std::int64_t sequences = largest.layout.micro_batch_seqs = inner.micro_batch_seqs;
  const RunBounds::Network network = bound_channels(family.slice, family.layout).network;
  if (std::optional<RunBound> found = known_.find(inner, network)) return *std::move(found);
  enter(largest);
  double seconds = std::numeric_limits<double>::infinity();
  Layout layout = cheapest_recipe(largest.layout);
  for (const bool overlap : {false, true}) {
    layout.ep_overlap = overlap;
    if (overlap && layout.ep == 1) continue;
    const StepInput<double> in = outlined(&whole_model_, layout, bound_->channels);
    seconds = std::min(seconds, whole_model_time(in, bound_passes(layout)));
  }
  const RunBound out{kBoundRounding * seconds / static_cast<double>(sequences),
                     {activation_floor(input(&whole_model_, largest.layout, kFree)),
                      std::make_shared<const PassFloor>(pass_floor(input(&whole_model_, largest.layout, kFree)))}};
  family_ = nullptr;  // it was of here alone
  known_.add(inner, network, out);
  return out;
}

double FamilySearch::token_s(const Family& family, const RunBound& bound) const {
  const double groups = chips_of(family.slice) / static_cast<double>(family.layout.tp * family.layout.cp);
  return bound.sequence_s / (static_cast<double>(in_.request->workload.seq) * groups);
}

double FamilySearch::least_memory_of(const Branch& branch, const RunFloors& floors) {
  return least_memory_of(branch, floors, ways_of(branch), verdicts_.of(branch.layout, branch.facts));
}

double FamilySearch::least_memory_of(const Branch& branch, const RunFloors& floors, const ShardingWays& ways,
                                     const RecipeVerdict& recipes) const {
  return least_memory(ways.state, floors.activations, recipes, branch.layout.pp, branch.stages->with_layers)
             .of(branch.layout.micro_batch_seqs) +
         reserve();
}

bool FamilySearch::may_hold(const MemberFloor& of, const Layout& layout, double logits) const {
  const double room = of.capacity - reserve();
  return !(room < least_on_stages(stage_floors_, *of.floors->stages, layout, logits, room));
}

bool FamilySearch::may_hold(const MemberFloor& of, const RecipeVerdict& recipes) const {
  Layout layout = of.branch->layout;
  for (std::size_t r = kRematCount; r-- > 0;) {  // the last keeps least
    if (!recipes.remats[r]) continue;
    layout.remat = static_cast<Remat>(r);
    layout.offload = recipes.policies[r].offload;
    if (may_hold(of, layout, of.floors->stages->least_logits)) return true;
  }
  return false;
}

/// What a recipe that is open must do to fit: treat so many layers, or offload activations of so many. Nothing if it
/// does not fit even so. Time does not fall when it does more.
std::optional<Layout> FamilySearch::least_done(const MemberFloor& of, Layout layout, double logits,
                                               std::int64_t most_treated, std::uint8_t offload) const {
  const auto fewest_of = [&](std::int64_t most, std::int64_t Layout::*number) {
    layout.*number = fewest(most, [&](std::int64_t layers) {
      layout.*number = layers;
      return may_hold(of, layout, logits);
    });
    return may_hold(of, layout, logits);
  };
  if (layout.remat_layers > 0) {
    if (!fewest_of(most_treated, &Layout::remat_layers)) return std::nullopt;
    return layout;
  }
  layout.offload = static_cast<std::uint8_t>(offload & ~kOffloadActivations);
  const bool holds = may_hold(of, layout, logits);
  const bool may_move = (offload & kOffloadActivations) != 0;
  layout.offload = 0;
  if (holds || !may_move) return holds ? std::optional(layout) : std::nullopt;
  layout.offload = offload;
  const std::int64_t most = most_offloaded(*in_.request, of.branch->stages->shapes);
  if (most == 0 || !fewest_of(most, &Layout::offload_layers)) {
    layout.offload_layers = 0;
    if (!may_hold(of, layout, logits)) return std::nullopt;
  }
  layout.offload = kOffloadActivations;
  return layout;
}

/// The least bound of a member's step over its recipes that may fit, `cheapest` being that of the cheapest, fit or not.
template <class Passes>
double FamilySearch::fitting_bound(const MemberFloor& of, const RecipeVerdict& recipes, const Layout& layout,
                                   double cheapest, const Passes& passes_of) {
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t r = 0; r < kRematCount; ++r) {
    const RecipeVerdict::Policy& policy = recipes.policies[r];
    const std::int64_t treated = policy.for_some ? of.branch->stages->most_treated : 0;
    for (const bool some : {true, false}) {
      if (some ? treated == 0 : !policy.for_all) continue;
      Layout with = layout;
      with.remat = static_cast<Remat>(r);
      with.remat_layers = some ? 1 : 0;
      const std::optional<Layout> done =
          least_done(of, with, of.floors->stages->least_logits, treated, some ? std::uint8_t{0} : policy.offload);
      if (!done) continue;
      if (done->remat == layout.remat && done->offload == 0) return cheapest;
      outline(outlined(&of.branch->stages->shapes, *done, bound_->channels), passes_of(*done), outline_);
      least = std::min(least, step_lower_bound(outline_));
    }
  }
  return std::max(least, cheapest);
}

bool FamilySearch::too_large(const Branch& branch, const RunFloors& floors) {
  return floors_ && !chip_holds(least_memory_of(branch, floors));
}

std::vector<std::uint64_t> FamilySearch::count(const FamilyRun& run, const RunFloors& floors, SearchStats& stats) {
  std::vector<std::uint64_t> out(run.size(), in_.request->counts ? 0 : 1);
  if (!in_.request->counts) return out;
  const auto add = [&](const Alike& alike) {
    if (alike.members == 0) return;
    stats.add_cuts(alike.ways->cuts, alike.members);
    for (const RecipeVerdict::Refused& refused : alike.recipes->refused) {
      const std::uint64_t layouts =
          alike.ways->count * (refused.for_all * alike.members + refused.for_some * alike.treating);
      if (layouts > 0) stats.refuse(refused.fact, layouts);
    }
  };
  // Members that overlap their exchange and those that do not take turns, and pipelines fed from both ends come between
  // others: what is known of each last one is kept.
  std::array<Alike, 4> last;
  const bool apart = space_.facts().tells_members_apart();  // then it ends with the member
  space_.members_alike(run, stats, [&](const Branch& branch, std::uint64_t members, const auto& microbatches) {
    const Layout& l = branch.layout;
    Alike& alike = last[(l.ep_overlap ? 2U : 0U) + (l.schedule == Schedule::kDualPipe ? 1U : 0U)];
    if (apart || alike.ways == nullptr || alike.data != l.dp || alike.facts != branch.facts) {
      for (Alike& known : last) {
        if (apart || &known == &alike) add(std::exchange(known, {}));
      }
      alike = {&ways_of(branch), &verdicts_.of(l, branch.facts), l.dp, branch.facts};
    }
    const std::uint64_t treating = branch.stages->most_treated > 0 ? members : 0;
    alike.members += members * microbatches.size();
    alike.treating += treating * microbatches.size();
    const std::uint64_t layouts =
        alike.ways->count * (alike.recipes->for_all * members + alike.recipes->for_some * treating);
    stats.candidates += layouts * microbatches.size();
    const LeastMemory least =
        least_memory(alike.ways->state, floors.activations, *alike.recipes, l.pp, branch.stages->with_layers);
    for (const Space::Microbatch& of : microbatches) {
      if (floors_ && !chip_holds(least.of(of.sequences) + reserve())) {
        stats.rejected[static_cast<std::size_t>(Reject::kMemory)] += layouts;
      } else {
        out[of.family] += layouts;
      }
    }
  });
  for (const Alike& known : last) add(known);
  return out;
}

double FamilySearch::bound(const Family& family, const RunFloors& floors) {
  enter(family);
  return least_bound(family, floors, true,
                     [&](const Layout& layout) -> const PassTotals& { return bound_passes(layout); });
}

double FamilySearch::rounded_bound(const Family& family, const RunFloors& floors) {
  Family larger = family;
  larger.layout.micro_batch_seqs = bounding_inner(family).micro_batch_seqs;
  enter(larger);
  const double share = share_of(family, larger.layout.micro_batch_seqs);
  const double out = least_bound(family, floors, true, [&](const Layout& layout) -> const PassTotals& {
    scale(bound_passes(layout), share, scaled_[0]);
    return scaled_[0];
  });
  family_ = nullptr;  // it was of here alone
  return out;
}

std::optional<double> FamilySearch::bound(const Family& family, const RunFloors& floors, const Family& larger) {
  const InnerDegrees inner = bounding_inner(larger);
  const RunBounds::Network network = bound_channels(family.slice, family.layout).network;
  const double share = share_of(family, inner.micro_batch_seqs);
  if (larger_.inner != inner || larger_.network != network) larger_ = {inner, network, {}};
  for (const bool paired : {false, true}) {
    if (paired && family.layout.ep == 1) continue;
    const PassTotals*& known = larger_.passes[paired ? 1 : 0];  // families of a run have it in common
    if (known == nullptr) {
      Layout layout = cheapest_recipe(larger.layout);
      layout.ep_overlap = paired;
      known = known_.passes(inner, network, policy_of(layout));
    }
    if (known == nullptr) return std::nullopt;
    scale(*known, share, scaled_[paired ? 1 : 0]);
  }
  enter(family);
  return least_bound(family, floors, false,
                     [&](const Layout& layout) -> const PassTotals& { return scaled_[pairs_experts(layout) ? 1 : 0]; });
}

template <class Passes>
double FamilySearch::least_bound(const Family& family, const RunFloors& floors, bool fitting, const Passes& passes_of) {
  double out = std::numeric_limits<double>::infinity();
  // Whether the member before was this one with its exchange overlapped, which is never slower, and stands for both: it
  // may run fewer recipes, and takes more memory.
  bool overlapped = false;
  SearchStats counted;
  space_.members(family, counted, [&](const Branch& branch) {
    const Layout& l = branch.layout;
    if (std::exchange(overlapped, false) && !l.ep_overlap) return;
    if (branch.stages->shapes.empty()) return;
    const Layout layout = cheapest_recipe(l);
    const double each = kBoundRounding / tokens_of(layout);
    double cheapest = 0;
    const auto no_shorter = [&] {
      outline(outlined(&branch.stages->shapes, layout, bound_channels_of(branch)), passes_of(layout), outline_);
      cheapest = step_lower_bound(outline_);
      return each * cheapest >= out;
    };
    const bool compared = std::isfinite(out);  // what cannot lower it is not asked whether it fits or can be placed
    if (compared && no_shorter()) return;
    const ShardingWays& ways = ways_of(branch);
    const RecipeVerdict& recipes = verdicts_.of(l, branch.facts);
    if (ways.count == 0 || recipes.count(branch.stages->most_treated) == 0) return;
    if (floors_ && !chip_holds(least_memory_of(branch, floors, ways, recipes))) return;
    if (!compared && no_shorter()) return;
    if (!placeable(branch)) return;
    const MemberFloor of = floor_of(branch, floors, ways, in_.request->hw->hbm_capacity.value());
    if (floors_ && !may_hold(of, recipes)) return;
    double step = cheapest;
    if (fitting && floors_ && leaves_fit_open() && each * step < out) {
      step = fitting_bound(of, recipes, layout, step, passes_of);
    }
    overlapped = l.ep_overlap && l.schedule != Schedule::kDualPipe && step == cheapest;
    out = std::min(out, each * step);
  });
  return out;
}

/// How many ways there are to shard a member's state.
const ShardingWays& FamilySearch::ways_of(const Branch& branch) {
  if (space_.facts().tells_members_apart()) return own_ways_ = sharding_ways(branch);
  const Layout& l = branch.layout;
  const auto part = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  const WaysKey key{part(l.tp),
                    part(l.cp),
                    part(l.ep),
                    part(l.etp),
                    part(l.dp),
                    l.schedule == Schedule::kDualPipe ? 1U : 0U,
                    space_.facts().on_sharding(branch.facts)};
  auto& [kept, found] = ways_[RunBounds::hash_of(key) % ways_.size()];
  if (found != nullptr && kept == key) return *found;
  found = known_.ways(key);
  if (found == nullptr) found = &known_.add(key, sharding_ways(branch));
  kept = key;
  return *found;
}

std::shared_ptr<const NetworkCost<double>> FamilySearch::parameters_of(const InnerDegrees& inner) {
  if (std::shared_ptr<const NetworkCost<double>> found = known_.parameters(RunBounds::degrees_of(inner))) return found;
  return cost_of(inner);
}

ShardingWays FamilySearch::sharding_ways(const Branch& branch) {
  const std::shared_ptr<const NetworkCost<double>> parameters = parameters_of(inner_of(branch.layout));
  ShardingWays out;
  out.state.fill(std::numeric_limits<double>::infinity());
  out.stages = no_state(parameters->kinds.size());
  const std::int32_t parts = branch.layout.schedule == Schedule::kDualPipe ? 2 : 1;
  const std::vector<StateSharding> ways = space_.shardings(branch, out.cuts);
  out.count = ways.size();
  for (const StateSharding& sharding : ways) {
    const Layout layout = sharded(branch.layout, sharding);
    const MeshChannels<double> sizes = sizes_of(layout);
    StepInput<double> in = outlined(&whole_model_, layout, sizes);
    in.network = parameters.get();
    lower(out.state, in);
    lower(out.stages, in, parts);
  }
  return out;
}

/// No recipe's step is shorter than this one's: some layers under a policy cost more than none, and no loss is faster
/// than the stack's own.
Layout FamilySearch::cheapest_recipe(Layout layout) const {
  layout.remat = recipes_.back().some ? Remat::kNone : recipes_.front().remat;
  layout.remat_layers = 0;
  layout.loss = in_.request->fix.loss.value_or(LossKind::kWhole);
  return layout;
}

/// Whether even the bound of the layout's step, on the fastest channels, may enter the ranking. Leaves its outline.
bool FamilySearch::may_rank(const Member& member, const Layout& layout, const PassTotals& passes) {
  outline(outlined(member.stages, layout, bound_->channels), passes, outline_);
  return may_enter(member, layout, kBoundRounding * step_lower_bound(outline_), 0);
}

/// What the recipes of a member share: the state of every sharding and an end no later than its own, by stage.
void FamilySearch::prepare(const Member& member) {
  if (tables_ready_) return;
  tables_ready_ = true;
  const std::vector<StageShape>& stages = *member.stages;
  PhaseTotals slowest;
  slowest.kinds.resize(network().kinds.size());
  for (std::size_t r = 0; r < recipes_.size(); ++r) {
    if (!runs(member, r)) continue;
    const PhaseTotals& totals = bound_phases(with_recipe(member.branch->layout, recipes_[r]));
    for (std::size_t k = 0; k < totals.kinds.size(); ++k) {
      slowest.kinds[k].forward = totals.kinds[k].forward;
      double& backward = slowest.kinds[k].backward.time;
      backward = std::max(backward, totals.kinds[k].backward.time);
    }
  }
  tables_.clear();
  const std::vector<OnMesh>& on_mesh = on_mesh_of(member);
  for (std::size_t o = 0; o < on_mesh.size(); ++o) {
    const ShardingOptions::Option& option = member.shardings->options[o];
    const Layout layout = sharded(member.branch->layout, {option.zero, option.fsdp});
    tables_.add(input(&stages, layout, on_mesh[o].channels), slowest, on_mesh[o].gathers);
  }
}

/// By option of the member's shardings; members of one split have them in common, and follow each other.
const std::vector<FamilySearch::OnMesh>& FamilySearch::on_mesh_of(const Member& member) {
  if (on_mesh_by_ == member.shardings) return on_mesh_;
  on_mesh_by_ = member.shardings;
  on_mesh_.clear();
  for (const ShardingOptions::Option& option : member.shardings->options) {
    const Layout layout = sharded(member.branch->layout, {option.zero, option.fsdp});
    OnMesh& out = on_mesh_.emplace_back();
    out.channels = unplaced(member.branch->slice, layout);
    const bool gathers = layout.zero == 3 && out.channels.shard.size > 1;
    if (gathers) out.gathers = gather_times(input(member.stages, layout, out.channels));
  }
  return on_mesh_;
}

/// With the ends of its sharding, and the time to gather the weights it shards. Offloaded activations lengthen the
/// passes that hide an end, by an amount the tables do not know: their layouts are bounded without ends.
bool FamilySearch::may_rank_sharded(const Member& member, const Layout& layout, std::size_t index, double memory) {
  const auto may = [&](const StepOutline& step) {
    const double bound = layout.offload == 0 ? step_lower_bound(step, tables_.ends(index)) : step_lower_bound(step);
    return may_enter(member, layout, kBoundRounding * bound, memory);
  };
  if (!may(outline_)) return false;
  if (layout.zero < 3) return true;
  gathering(bound_phases(layout), tables_.gathers(index), gathered_);
  outline(outlined(member.stages, layout, bound_->channels), gathered_, gathering_);
  return may(gathering_);
}

/// The fastest channels any placement can give a family's tensor, context and (under switches) expert groups, each on a
/// link of its own; every other group communicates for free. Tensor groups are innermost in every placement, so their
/// options do not depend on the other degrees. A link of its own: the fullest link carries no less than any one group.
FamilySearch::BoundChannels& FamilySearch::bound_channels(std::size_t slice_index, const Layout& l) {
  const std::array<std::int64_t, 5> key{static_cast<std::int64_t>(slice_index), l.tp, l.ep, l.etp, l.cp};
  if (last_bounds_.second != nullptr && last_bounds_.first == key) return *last_bounds_.second;
  const auto it = bounds_.find(key);
  if (it != bounds_.end()) {
    last_bounds_ = {key, &it->second};
    return it->second;
  }
  const HardwareSpec& hw = *in_.request->hw;
  const Slice& slice = in_.request->slices[slice_index];
  MeshChannels<double> out;
  out.tp = tensor_channel(slice_index, l.tp);
  const std::int64_t expert_stride = l.etp == 1 ? 1 : l.tp;  // experts fold over tensor ranks first, or beside them
  if (l.ep > 1 && !hw.is_torus()) {
    out.ep = alone({.slice = slice_index, .size = l.ep, .stride = expert_stride, .experts = true});
  }
  out.cp = alone({slice_index, l.cp, l.tp});
  // Beside a group that is larger than the innermost domain the compute is slowed as it is between them at least;
  // beside any other, by what slows it less. A chip without a network has no domain, and one tier nothing beyond it.
  const std::int64_t domain = hw.is_torus() || hw.network.size() < 2 ? 0 : tier_domains(hw, slice).front();
  for (const auto& [group, stride] : {std::pair(&out.cp, l.tp), std::pair(&out.ep, expert_stride)}) {
    const bool leaves = domain > 0 && group->size * stride > domain;
    group->scale_out = leaves || in_.overlap.contention_out < in_.overlap.contention_up;
    group->scale_up = !group->scale_out;
  }
  out.doublings = doublings_of(hw, slice);
  constexpr std::uint32_t kOwnLink = 1U << 16;
  out.tp.links = kOwnLink;
  out.cp.links = kOwnLink << 1;
  out.ep.links = kOwnLink << 2;
  return bounds_.emplace(key, BoundChannels{out, known_.network_of(out)}).first->second;
}

/// The fastest that any placement gives.
const Channel<double>& FamilySearch::tensor_channel(std::size_t slice_index, std::int64_t tp) {
  const auto [at, added] = tensor_.try_emplace({slice_index, tp});
  if (!added) return at->second;
  const HardwareSpec& hw = *in_.request->hw;
  const Slice& slice = in_.request->slices[slice_index];
  Channel<double>& out = at->second;
  for (const Placement& placement : placements(hw, slice, {tp, 1, 1, slice.chips / tp, 1})) {
    const Channel<double> placed = make_channel(hw, slice, in_.network, placement.of(MeshDim::kTp), "tp");
    if (out.size == 1) out = placed;
    lower(out, placed);
  }
  return out;
}

/// Whether the machine has a place for the layout.
bool FamilySearch::any_place(const Branch& branch, const Layout& layout) const {
  return any_placement(
      *in_.request->hw, in_.request->slices[branch.slice], {layout.tp, layout.cp, layout.fsdp, layout.dp, layout.pp},
      [&](const Placement& placement) { return experts_fold(placement, layout); }, layout.ep > 1);
}

/// Whether it has one for any sharding of the member.
bool FamilySearch::placeable(const Branch& branch) {
  const Layout& l = branch.layout;
  const std::array<std::int64_t, 6> key{static_cast<std::int64_t>(branch.slice), l.tp, l.cp, l.pp, l.ep, l.etp};
  if (last_placeable_.first == key) return last_placeable_.second;
  const auto [at, added] = placeable_.try_emplace(key);
  if (added) {
    const std::vector<std::int64_t> groups = divisors(l.dp);
    at->second = std::any_of(groups.begin(), groups.end(), [&](std::int64_t fsdp) {
      return any_place(branch, sharded(l, {0, fsdp}));
    });
  }
  last_placeable_ = *at;
  return at->second;
}

/// No slower than any placement, and cheap: every group alone on the machine, with the expert and tensor groups' own
/// bounds. Spares enumerating the placements of layouts that cannot rank.
MeshChannels<double> FamilySearch::unplaced(std::size_t slice, const Layout& layout) {
  MeshChannels<double> out = bound_channels(slice, layout).channels;
  const MeshChannels<double> sizes = sizes_of(layout);
  for (Channel<double>* channel : {&out.tp, &out.cp, &out.ep}) channel->links = 0;
  out.pp = alone({slice, layout.pp, layout.tp});
  const auto experts = [&](std::int64_t size) { return alone({.slice = slice, .size = size, .apart = true}); };
  out.data = alone({slice, sizes.data.size, layout.tp});
  out.expert_data = experts(sizes.expert_data.size);
  if (layout.shards_in_groups()) {
    out.shard = alone({slice, sizes.shard.size, layout.tp});
    out.replicate = alone({slice, layout.dp, layout.tp});
    out.expert_shard = experts(sizes.expert_shard.size);
    out.expert_replicate = out.replicate;
  } else {
    out.shard.size = sizes.shard.size;
    out.expert_shard.size = sizes.expert_shard.size;
  }
  return out;
}

const Channel<double>& FamilySearch::alone(const Alone& of) {
  const std::pair<const Alone, Channel<double>>*& last = last_alone_[HashAlone()(of) % last_alone_.size()];
  if (last != nullptr && last->first == of) return last->second;
  const auto [at, added] = alone_.try_emplace(of);
  if (added) {
    const HardwareSpec& hw = *in_.request->hw;
    const Slice& slice = in_.request->slices[of.slice];
    at->second = of.experts ? best_switched(hw, slice, in_.network, of.size, in_.routing, of.stride)
                            : best_channel(hw, slice, in_.network, of.size, of.apart, of.stride);
  }
  last = &*at;
  return at->second;
}

}  // namespace scalecalc
