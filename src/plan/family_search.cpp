#include "plan/family_search.h"

#include <algorithm>

namespace scalecalc {

SearchInputs::SearchInputs(const PlanRequest& r)
    : request(&r),
      chip(read_chip(Reader<double>{}, *r.hw, r.efficiency, r.workload.precision.high)),
      network(read_network(Reader<double>{}, *r.hw, r.efficiency)),
      overlap(read_overlap(Reader<double>{}, r.efficiency)),
      ops(read_model(Reader<double>{}, *r.model)),
      routing(routing_of(*r.model)) {}

double FamilySearch::tokens_of(const Layout& layout) const {
  return static_cast<double>(layout.batch_seqs() * in_.request->workload.seq);
}

StepInput<double> FamilySearch::input(const std::vector<StageShape>* stages, const Layout& layout,
                                      const MeshChannels<double>& channels) const {
  return {.model = in_.request->model,
          .workload = &in_.request->workload,
          .network = &network_,
          .channels = &channels,
          .overlap = &in_.overlap,
          .chip = &in_.chip,
          .stages = stages,
          .memory_reserve = Bytes(in_.request->efficiency.memory_reserve.value),
          .layout = layout};
}

/// Families of one inner degree follow each other, so the last layer costs are the ones needed next.
void FamilySearch::enter(const Family& family) {
  const InnerDegrees inner = inner_of(family.layout);
  if (!entered_ || inner != inner_) {
    network_ = network_cost(kReader, *in_.request->model, in_.ops, in_.chip, in_.request->workload, inner);
    inner_ = inner;
    entered_ = true;
  }
  family_ = &family;
  bound_phases_.fill(std::nullopt);
  // Later families rarely meet the members of the first again: what is kept for them may go.
  constexpr std::size_t kMostKept = 20'000;
  if (shardings_.size() > kMostKept) {
    shardings_.clear();
    last_shardings_ = {};
  }
}

/// By policy, whether it treats some layers only, whether activations are offloaded, and whether DualPipe hides the
/// experts' exchange.
const Phases<double>& FamilySearch::bound_phases(const Layout& layout) {
  const bool paired = layout.ep > 1 && layout.schedule == Schedule::kDualPipe;
  const std::size_t at = static_cast<std::size_t>(layout.remat) * 8 + (layout.remat_layers > 0 ? 4U : 0U) +
                         (layout.offload != 0 ? 2U : 0U) + (paired ? 1U : 0U);
  std::optional<Phases<double>>& out = bound_phases_[at];
  if (out) return *out;
  Layout of = family_->layout;
  of.remat = layout.remat;
  of.remat_layers = layout.remat_layers > 0 ? 1 : 0;
  of.offload = layout.offload;
  of.schedule = paired ? Schedule::kDualPipe : Schedule::kNone;
  return out.emplace(phases(input(nullptr, of, bound_channels(family_->slice, of))));
}

void FamilySearch::bound(std::span<const Family> families, std::span<BoundedFamily> out, SearchStats& stats) {
  for (std::size_t i = 0; i < families.size(); ++i) {
    const Family& family = families[i];
    out[i] = {.family = &family, .candidates = count(family, stats)};
    if (out[i].candidates == 0) continue;
    enter(family);
    Layout cheapest = cheapest_recipe(family.layout);
    out[i].pass_s = bound_phases(cheapest).whole.value();
    // It may hide what other schedules show.
    cheapest.schedule = Schedule::kDualPipe;
    out[i].pass_s = std::min(out[i].pass_s, bound_phases(cheapest).whole.value());
  }
}

std::uint64_t FamilySearch::count(const Family& family, SearchStats& stats) {
  std::uint64_t out = 0;
  if (recipes_.empty()) return 0;
  space_.members(family, stats, [&](const Branch& branch) {
    const std::vector<StageShape>& stages = stages_of(branch.layout);
    ShardingOptions& shardings = shardings_of(branch);
    out += shardings.options.size() * recipes_of({&branch, &stages, &shardings, most_treated(*in_.request, stages)});
    for (std::size_t i = 0; i < kRejectCount; ++i) stats.rejected[i] += shardings.rejected[i];
  });
  return out;
}

/// No recipe's step is shorter than this one's: some layers under a policy cost more than none.
Layout FamilySearch::cheapest_recipe(Layout layout) const {
  layout.remat = recipes_.back().some ? Remat::kNone : recipes_.front().remat;
  layout.remat_layers = 0;
  return layout;
}

std::size_t FamilySearch::recipes_of(const Member& member) const {
  if (member.most_treated > 0) return recipes_.size();
  return static_cast<std::size_t>(
      std::count_if(recipes_.begin(), recipes_.end(), [](const Recipe& recipe) { return !recipe.some; }));
}

FamilyResult FamilySearch::visit(const BoundedFamily& item, const Ranker& ranker, const Ranking& ranking,
                                 const std::optional<double>& below) {
  ranker_ = &ranker;
  ranking_ = ranking;
  below_ = below;
  out_ = {};
  phases_.clear();
  enter(*item.family);
  SearchStats counted;  // counted when the family was bounded
  space_.members(*item.family, counted, [&](const Branch& branch) {
    const std::vector<StageShape>& stages = stages_of(branch.layout);
    visit_member({&branch, &stages, &shardings_of(branch), most_treated(*in_.request, stages)});
  });
  return std::move(out_);
}

/// Whether a layout of this step and memory, or one of which these are bounds, may still enter the ranking.
bool FamilySearch::may_enter(const Member& member, const Layout& layout, double step_s, double memory) const {
  const double chips = chips_of(member.branch->slice);
  const double tokens = tokens_of(layout);
  if (below_ && ranker_->goal(chips, step_s, tokens) >= *below_) return false;
  return !limit_ || !(*limit_ < (*ranker_)(chips, step_s, tokens, memory));
}

/// Whether even the bound of the layout's step, on the fastest channels, may enter the ranking.
bool FamilySearch::may_rank(const Member& member, const Layout& layout) {
  const std::size_t slice = member.branch->slice;
  const double step =
      step_lower_bound(input(member.stages, layout, bound_channels(slice, layout)), bound_phases(layout));
  return may_enter(member, layout, step, 0);
}

/// No recipe is faster than the cheapest, so where that one cannot rank none can.
void FamilySearch::visit_member(const Member& member) {
  const std::size_t layouts = member.shardings->options.size() * recipes_of(member);
  if (member.stages->empty()) return cut(Reject::kStages, layouts);
  if (layouts == 0) return;
  limit_ = ranking_.limit(in_.request->slices[member.branch->slice].chips, member.branch->layout);
  if (!may_rank(member, cheapest_recipe(member.branch->layout))) {
    out_.stats.pruned += layouts;
    return;
  }
  for (const Recipe& recipe : recipes_) {
    if (!recipe.some || member.most_treated > 0) visit_recipe(member, recipe);
  }
}

void FamilySearch::visit_recipe(const Member& member, const Recipe& recipe) {
  const std::size_t layouts = member.shardings->options.size();
  Layout layout = member.branch->layout;
  layout.remat = recipe.remat;
  layout.remat_layers = recipe.some ? 1 : 0;
  if (!may_rank(member, layout)) {
    out_.stats.pruned += layouts;
    return;
  }
  const Layout asked = layout;
  if (!may_fit(member, layout)) return cut(Reject::kMemory, layouts);
  if (layout != asked && !may_rank(member, layout)) {
    out_.stats.pruned += layouts;
    return;
  }
  for (const ShardingOptions::Option& option : member.shardings->options) visit_sharding(member, layout, option);
}

/// Every sharding keeps the same activations; the one that shards most keeps least of the rest. Where these alone are
/// too much, more layers must be treated, or activations offloaded: sets the least of it, which bounds the time.
bool FamilySearch::may_fit(const Member& member, Layout& layout) {
  const auto& options = member.shardings->options;
  const auto least = std::max_element(options.begin(), options.end(), [](const auto& a, const auto& b) {
    return std::pair(a.zero, a.fsdp) < std::pair(b.zero, b.fsdp);
  });
  const Layout thriftiest = sharded(layout, {least->zero, least->fsdp});
  const MeshChannels<double> sizes = sizes_of(thriftiest);
  StepInput<double> in = input(member.stages, thriftiest, sizes);
  const auto holds = [&] {
    const MemoryUse<double> memory = memory_use(in);
    return !(in_.request->hw->hbm_capacity < memory.activations + memory.logits + memory.reserve);
  };
  in.layout.offload = in_.request->fix.offload.value_or(0);
  if (holds()) {
    layout.offload = static_cast<std::uint8_t>(in.layout.offload & kOffloadActivations);
    return true;
  }
  if (layout.remat_layers == 0) {
    const std::uint8_t most = most_offload(*in_.request);
    if ((most & ~in.layout.offload) != 0) {
      in.layout.offload = most;
      layout.offload = kOffloadActivations;
      if (holds()) return true;
    }
  } else if (!in_.request->fix.remat_layers) {
    std::int64_t few = 1;
    std::int64_t many = member.most_treated;
    while (few < many) {
      in.layout.remat_layers = (few + many) / 2;
      if (holds()) {
        many = in.layout.remat_layers;
      } else {
        few = in.layout.remat_layers + 1;
      }
    }
    layout.remat_layers = in.layout.remat_layers = many;
    if (holds()) return true;
  }
  in.layout.offload = in_.request->fix.offload.value_or(0);
  miss(member, in.layout, memory_use(in));
  return false;
}

void FamilySearch::visit_sharding(const Member& member, const Layout& recipe, const ShardingOptions::Option& option) {
  Layout layout = sharded(recipe, {option.zero, option.fsdp});
  const MeshChannels<double> sizes = sizes_of(layout);
  StepInput<double> in = input(member.stages, layout, sizes);
  MemoryUse<double> memory;
  const bool some = layout.remat_layers > 0;
  switch (some ? settle_remat(*in_.request, in, memory) : settle_offload(*in_.request, in, memory)) {
    case Settled::kFits: return visit_layout(member, option, in.layout, memory);
    case Settled::kNotNeeded: ++out_.stats.pruned; return;
    case Settled::kTooLarge: break;
  }
  cut(Reject::kMemory, 1);
  if (!some) miss(member, in.layout, memory);
}

void FamilySearch::visit_layout(const Member& member, const ShardingOptions::Option& option, const Layout& layout,
                                const MemoryUse<double>& memory) {
  // Members of one split differ in schedule alone, and ZeRO 0 to 2 in what is kept: their phases are the same, but for
  // the experts' exchange under DualPipe.
  const std::int64_t fsdp = option.zero == 3 ? option.fsdp : 0;
  const std::int64_t paired = layout.schedule == Schedule::kDualPipe && layout.ep > 1 ? 1 : 0;
  const std::int64_t policy = static_cast<std::int64_t>(layout.remat) * 2 + (layout.remat_layers > 0 ? 1 : 0);
  const std::int64_t bound_place = -2;
  const std::int64_t envelope_place = -1;
  const auto key = [&](std::int64_t place) {
    return PhaseKey{layout.pp, member.branch->layout.dp, fsdp, place, policy, layout.offload, paired};
  };
  const MeshChannels<double> bound = unplaced(member.branch->slice, layout);
  if (!may_rank_on(member, layout, bound, phases_of(member, layout, bound, key(bound_place)), memory)) {
    ++out_.stats.pruned;
    return;
  }
  const ShardingOptions::Places& places = places_of(member, option, layout);
  if (places.all.empty()) return cut(Reject::kPlacement, 1);
  ++out_.stats.feasible;
  if (places.all.size() > 1) {
    const Phases<double>& best = phases_of(member, layout, places.envelope, key(envelope_place));
    if (!may_rank_on(member, layout, places.envelope, best, memory)) {
      ++out_.stats.pruned;
      return;
    }
  }
  for (std::size_t p = 0; p < places.all.size(); ++p) {
    evaluate(member, layout, places.all[p], p, key(static_cast<std::int64_t>(p)), memory);
  }
}

const Phases<double>& FamilySearch::phases_of(const Member& member, const Layout& layout,
                                              const MeshChannels<double>& channels, const PhaseKey& key) {
  const auto it = phases_.find(key);
  if (it != phases_.end()) return it->second;
  return phases_.emplace(key, phases(input(member.stages, layout, channels))).first->second;
}

/// The same on channels that no placement beats, with the memory the layout takes.
bool FamilySearch::may_rank_on(const Member& member, const Layout& layout, const MeshChannels<double>& channels,
                               const Phases<double>& phases, const MemoryUse<double>& memory) const {
  const double step =
      kBoundRounding * step_time(kReader, input(member.stages, layout, channels), phases).total().value();
  return may_enter(member, layout, step, memory.total().value());
}

void FamilySearch::evaluate(const Member& member, const Layout& layout, const PlacedChannels& place, std::size_t index,
                            const PhaseKey& key, const MemoryUse<double>& memory) {
  ++out_.stats.evaluated;
  const std::size_t slice = member.branch->slice;
  const Phases<double>& placed_phases = phases_of(member, layout, place.channels, key);
  const StepTime<double> time = step_time(kReader, input(member.stages, layout, place.channels), placed_phases);
  if (!may_enter(member, layout, time.total().value(), memory.total().value())) return;
  const Rank rank = (*ranker_)(chips_of(slice), time.total().value(), tokens_of(layout), memory.total().value());
  Candidate candidate{
      .plan = make_plan(member, layout, place, time, memory), .rank = rank, .slice = slice, .placement = index};
  out_.kept.push_back(candidate);
  ranking_.offer(std::move(candidate));
  limit_ = ranking_.limit(in_.request->slices[slice].chips, layout);
}

Plan FamilySearch::make_plan(const Member& member, const Layout& layout, const PlacedChannels& place,
                             const StepTime<double>& time, const MemoryUse<double>& memory) const {
  return {.layout = layout,
          .slice = in_.request->slices[member.branch->slice],
          .placement = place.placement,
          .time = time,
          .memory = memory,
          .step_s = time.total().value(),
          .batch_seqs = static_cast<double>(layout.batch_seqs())};
}

/// Remembers the layout that came closest to fitting, until something fits.
void FamilySearch::miss(const Member& member, const Layout& layout, const MemoryUse<double>& memory) {
  if (ranking_.full() || (out_.nearest_miss && !(memory.total() < out_.nearest_miss->memory.total()))) return;
  const std::vector<PlacedChannels> places = placed(member.branch->slice, layout);
  if (places.empty()) return;
  const PlacedChannels& place = places.front();
  out_.nearest_miss =
      make_plan(member, layout, place, step_time(kReader, input(member.stages, layout, place.channels)), memory);
}

const std::vector<StageShape>& FamilySearch::stages_of(const Layout& layout) {
  const std::array<std::int64_t, 3> key{layout.pp, layout.vpp, layout.schedule == Schedule::kDualPipe ? 1 : 0};
  const auto it = stages_.find(key);
  if (it != stages_.end()) return it->second;
  return stages_.emplace(key, partition(*in_.request->model, layout)).first->second;
}

ShardingOptions& FamilySearch::shardings_of(const Branch& branch) {
  const Layout& l = branch.layout;
  const BranchKey key{static_cast<std::int64_t>(branch.slice),  l.tp, l.cp, l.pp, l.dp, l.ep, l.etp,
                      l.schedule == Schedule::kDualPipe ? 1 : 0};
  if (last_shardings_.second != nullptr && last_shardings_.first == key) return *last_shardings_.second;
  const auto it = shardings_.find(key);
  if (it != shardings_.end()) {
    last_shardings_ = {key, &it->second};
    return it->second;
  }
  ShardingOptions out;
  SearchStats cuts;
  std::map<std::pair<std::int64_t, bool>, std::size_t> groups;
  for (const StateSharding& sharding : shardings(*in_.request, l, cuts)) {
    const auto [known, added] = groups.try_emplace({sharding.fsdp, sharding.zero == 3}, out.placements.size());
    if (added) out.placements.emplace_back();
    out.options.push_back({sharding.zero, sharding.fsdp, known->second});
  }
  out.rejected = cuts.rejected;
  last_shardings_ = {key, &shardings_.emplace(key, std::move(out)).first->second};
  return *last_shardings_.second;
}

const ShardingOptions::Places& FamilySearch::places_of(const Member& member, const ShardingOptions::Option& option,
                                                       const Layout& layout) const {
  std::unique_ptr<ShardingOptions::Places>& places = member.shardings->placements[option.placed];
  if (places) return *places;
  places = std::make_unique<ShardingOptions::Places>();
  places->all = placed(member.branch->slice, layout);
  if (!places->all.empty()) places->envelope = envelope(places->all, layout.zero == 3);
  return *places;
}

std::vector<PlacedChannels> FamilySearch::placed(std::size_t slice_index, const Layout& layout) const {
  const HardwareSpec& hw = *in_.request->hw;
  const Slice& slice = in_.request->slices[slice_index];
  Undominated best(layout.zero == 3);
  for (Placement& placement : placements(hw, slice, {layout.tp, layout.cp, layout.fsdp, layout.dp, layout.pp})) {
    if (!experts_fold(placement, layout)) continue;
    MeshChannels<double> channels = make_channels(hw, slice, in_.network, placement, layout, in_.routing);
    best.offer({std::move(placement), channels});
  }
  return best.take();
}

/// The fastest channels any placement can give a family's tensor and (under switches) expert groups; every other group
/// communicates for free. Tensor groups are innermost in every placement, so their options do not depend on the other
/// degrees.
const MeshChannels<double>& FamilySearch::bound_channels(std::size_t slice_index, const Layout& l) {
  const BranchKey key{static_cast<std::int64_t>(slice_index), l.tp, l.ep};
  const auto it = bounds_.find(key);
  if (it != bounds_.end()) return it->second;
  const HardwareSpec& hw = *in_.request->hw;
  const Slice& slice = in_.request->slices[slice_index];
  MeshChannels<double> out;
  for (const Placement& placement : placements(hw, slice, {l.tp, 1, 1, slice.chips / l.tp, 1})) {
    const Channel<double> tp = make_channel(hw, slice, in_.network, placement.of(MeshDim::kTp), "tp");
    if (out.tp.size == 1) out.tp = tp;
    lower(out.tp, tp);
  }
  if (l.ep > 1 && !hw.is_torus()) out.ep = best_switched(hw, slice, in_.network, l.ep, in_.routing);
  out.tp.links = 0;
  return bounds_.emplace(key, out).first->second;
}

/// No slower than any placement, and cheap: every group alone on the machine, with the expert and tensor groups' own
/// bounds. Spares enumerating the placements of layouts that cannot rank.
MeshChannels<double> FamilySearch::unplaced(std::size_t slice, const Layout& layout) {
  MeshChannels<double> out = bound_channels(slice, layout);
  const MeshChannels<double> sizes = sizes_of(layout);
  out.cp = alone(slice, layout.cp);
  out.pp = alone(slice, layout.pp);
  out.shard = alone(slice, sizes.shard.size);
  out.data = alone(slice, sizes.data.size);
  out.replicate = alone(slice, layout.dp);
  out.expert_shard = alone(slice, sizes.expert_shard.size);
  out.expert_data = alone(slice, sizes.expert_data.size);
  out.expert_replicate = out.replicate;
  return out;
}

const Channel<double>& FamilySearch::alone(std::size_t slice, std::int64_t size) {
  const auto key = std::pair(slice, size);
  const auto it = alone_.find(key);
  if (it != alone_.end()) return it->second;
  return alone_.emplace(key, best_channel(*in_.request->hw, in_.request->slices[slice], in_.network, size))
      .first->second;
}

}  // namespace scalecalc
