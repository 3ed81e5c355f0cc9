// Searches one family of layouts exactly: its members, their shardings and their placements.
#include "plan/family_search.h"

#include <algorithm>
#include <set>

namespace scalecalc {

SearchInputs::SearchInputs(const PlanRequest& r)
    : request(&r),
      chip(read_chip(Reader<double>{}, *r.hw, r.efficiency, r.workload.precision.high)),
      network(read_network(Reader<double>{}, *r.hw, r.efficiency)),
      overlap(read_overlap(Reader<double>{}, r.efficiency)),
      ops(read_model(Reader<double>{}, *r.model, r.workload.fine_tune, r.workload.expert_capacity)),
      routing(routing_of(*r.model, r.workload.runtime.dispatch)) {}

double FamilySearch::tokens_of(const Layout& layout) const {
  return static_cast<double>(layout.batch_seqs() * in_.request->workload.seq);
}

StepInput<double> FamilySearch::input(const std::vector<StageShape>* stages, const Layout& layout,
                                      const MeshChannels<double>& channels) {
  StepInput<double> out = outlined(stages, layout, channels);
  out.network = &network();
  return out;
}

StepInput<double> FamilySearch::outlined(const std::vector<StageShape>* stages, const Layout& layout,
                                         const MeshChannels<double>& channels) const {
  return {.model = in_.request->model,
          .workload = &in_.request->workload,
          .channels = &channels,
          .overlap = &in_.overlap,
          .chip = &in_.chip,
          .stages = stages,
          .memory_reserve = Bytes(in_.request->efficiency.memory_reserve.value),
          .layout = layout};
}

/// Families of one inner degree follow each other, so the last layer costs are the ones needed next; and on machines of
/// several sizes that offer them the same channels, the last bounds too.
void FamilySearch::enter(const Family& family) {
  const InnerDegrees inner = inner_of(family.layout);
  BoundChannels& bound = bound_channels(family.slice, family.layout);
  const bool same_inner = entered_ && inner == inner_;
  if (!same_inner) {
    network_.reset();
    inner_ = inner;
    entered_ = true;
  }
  if (!same_inner || bound.network != bound_->network) {
    for (const std::size_t policy : bounded_) is_bounded_[policy] = false;
    bounded_.clear();
    for (const std::size_t policy : passed_) bound_passes_[policy] = nullptr;
    passed_.clear();
    plain_phases_ = {};
  }
  bound_ = &bound;  // machines whose phases are the same still differ in their hosts
  bound_->channels.pp = {};
  bound_pp_ = 0;
  family_ = &family;
  on_mesh_by_ = nullptr;
  // Later families rarely meet the members of the first again: what is kept for them may go.
  constexpr std::size_t kMostKept = 20'000;
  if (shardings_.size() > kMostKept) {
    shardings_.clear();
    last_shardings_ = {};
  }
}

const NetworkCost<double>& FamilySearch::network() {
  if (!network_) network_ = cost_of(inner_);
  return *network_;
}

std::shared_ptr<const NetworkCost<double>> FamilySearch::cost_of(const InnerDegrees& inner) {
  if (std::shared_ptr<const NetworkCost<double>> found = known_.cost(inner)) return found;
  const auto out = std::make_shared<const NetworkCost<double>>(
      network_cost(kReader, *in_.request->model, in_.ops, in_.chip, in_.request->workload, inner, &operation_sums_));
  known_.add(inner, out);
  return out;
}

FamilyResult FamilySearch::visit(const Family& family, const RunFloors& floors, std::uint64_t candidates,
                                 const Ranker& ranker, const Ranking& ranking, const std::optional<double>& below,
                                 const std::optional<Plan>& nearest_before) {
  ranker_ = &ranker;
  ranking_ = ranking;
  below_ = below;
  out_ = {};
  nearest_.reset();
  before_ = nearest_before ? std::optional(nearest_before->memory.total().value()) : std::nullopt;
  phases_.clear();
  enter(family);
  SearchStats counted;  // by count()
  std::uint64_t met = 0;
  space_.members(family, counted, [&](const Branch& branch) {
    if (too_large(branch, floors)) return;
    if (!floors_ && comes_no_nearer(least_memory_of(branch, floors))) {
      // It does not fit and comes no nearer.
      const std::uint64_t layouts =
          ways_of(branch).count * verdicts_.of(branch.layout, branch.facts).count(branch.stages->most_treated);
      cut(Reject::kMemory, layouts);
      met += layouts;
      return;
    }
    const Member member = member_of(branch, floors);
    const bool holds = !floors_ || may_hold(member.floor, *member.recipes);
    if (!holds || !placeable(branch)) {
      const std::uint64_t layouts = member.floor.ways->count * member.recipes->count(member.most_treated);
      cut(holds ? Reject::kPlacement : Reject::kMemory, layouts);
      met += layouts;
      return;
    }
    met += visit_member(member);
  });
  if (in_.request->counts) out_.stats.pruned += candidates - met;
  out_.nearest_miss = nearest_miss();
  return std::move(out_);
}

/// A member that is too large stays so with a larger microbatch, so it is asked once; unless the stack may say
/// otherwise of that one.
bool FamilySearch::any_fits(const FamilyRun& run, const Ranker& ranker) {
  any_ = true;
  ranker_ = &ranker;
  ranking_ = Ranking(1, true);
  below_.reset();
  out_ = {};
  SearchStats ignored;
  std::set<std::array<std::int64_t, 8>> refused;
  if (recipes_.empty()) return false;
  const bool asked_again = looks_at_ranks(*in_.request);
  const RunFloors floors = run_bound(space_.family(run, run.last())).floors;
  for (std::size_t f = run.begin; f < run.end; ++f) {
    const Family family = space_.family(run, f);
    bool entered = false;
    if (asked_again) refused.clear();
    space_.members(family, ignored, [&](const Branch& branch) {
      if (!out_.kept.empty()) return;
      const Layout& l = branch.layout;
      const std::array<std::int64_t, 8> key{
          l.pp,          l.dp,         l.batch_seqs(),      l.vpp, static_cast<std::int64_t>(l.schedule),
          l.split.first, l.split.last, l.ep_overlap ? 1 : 0};
      if (refused.contains(key) || too_large(branch, floors)) return;
      if (!std::exchange(entered, true)) {
        phases_.clear();
        enter(family);
      }
      Member member = member_of(branch, floors);
      member.shardings = &shardings_of(branch);
      if (member.stages->empty() || !some_recipe_may_fit(member)) {
        refused.insert(key);
      } else {
        visit_member(member);
      }
    });
    if (!out_.kept.empty()) return true;
  }
  return false;
}

bool FamilySearch::some_recipe_may_fit(const Member& member) {
  for (const ShardingOptions::Option& option : member.shardings->options) {
    const Layout layout = sharded(member.branch->layout, {option.zero, option.fsdp});
    const MeshChannels<double> sizes = sizes_of(layout);
    StepInput<double> in = input(member.stages, layout, sizes);
    for (const Recipe& recipe : recipes_) {
      in.layout.remat = recipe.remat;
      in.layout.loss = recipe.loss;
      if (chip_may_hold(*in_.request, in, recipe.some)) return true;
    }
  }
  return false;
}

/// Whether a layout of this step and memory, or one of which these are bounds, may still enter the ranking.
bool FamilySearch::may_enter(const Member& member, const Layout& layout, double step_s, double memory) {
  const double chips = chips_of(member.branch->slice);
  const double tokens = tokens_of(layout);
  const bool may = !leaves_out(*in_.request, layout) && !(below_ && ranker_->goal(chips, step_s, tokens) >= *below_) &&
                   !(limit_ && *limit_ < (*ranker_)(layout, chips, step_s, tokens, memory));
  if (!may) out_.token_s = std::min(out_.token_s, step_s / tokens);
  return may;
}

/// No recipe is faster than the cheapest, so where that one cannot rank none can. Returns the layouts it answered for;
/// without any, all are pruned.
std::size_t FamilySearch::visit_member(Member member) {
  const auto shard = [&] {
    member.shardings = &shardings_of(*member.branch);
    return member.shardings->options.size() * member.recipes->count(member.most_treated);
  };
  if (member.stages->empty()) {
    const std::size_t layouts = shard();
    cut(Reject::kStages, layouts);
    return layouts;
  }
  limit_ = ranking_.limit(in_.request->slices[member.branch->slice].chips, member.branch->layout);
  bound_channels_of(*member.branch);
  const Layout cheapest = cheapest_recipe(member.branch->layout);
  if (!may_rank(member, cheapest, bound_passes(cheapest))) return 0;
  const std::size_t layouts = shard();
  if (layouts == 0) return 0;
  tables_ready_ = false;
  for (std::size_t r = 0; r < recipes_.size(); ++r) {
    if (any_ && !out_.kept.empty()) break;
    if (runs(member, r)) visit_recipe(member, r);
  }
  return layouts;
}

namespace {

/// One of them that treats and offloads as many layers as either.
Layout more_done(Layout layout, const Layout& other) {
  layout.remat_layers = std::max(layout.remat_layers, other.remat_layers);
  if (other.offload == 0) return layout;
  const bool all = other.offload_layers == 0 || (layout.offload != 0 && layout.offload_layers == 0);
  layout.offload_layers = all ? 0 : std::max(layout.offload_layers, other.offload_layers);
  layout.offload = other.offload;
  return layout;
}

}  // namespace

/// By the floors of its stages, with as many layers treated as may be, or all offloaded that may.
bool FamilySearch::comes_no_nearer(const Member& member, Layout layout, std::size_t recipe) const {
  if (!wants_miss()) return false;
  layout.remat_layers = recipes_[recipe].some ? member.most_treated : 0;
  layout.offload = recipes_[recipe].some ? std::uint8_t{0} : member.recipes->offload[recipe];
  layout.offload_layers = 0;
  const PassFloor& pass = *member.floor.floors->stages;
  const double logits = pass.logits[static_cast<std::size_t>(layout.loss)];
  return comes_no_nearer(least_on_stages(stage_floors_, pass, layout, logits) + reserve());
}

void FamilySearch::visit_recipe(const Member& member, std::size_t which) {
  const Recipe& recipe = recipes_[which];
  const std::size_t layouts = member.shardings->options.size();
  Layout layout = with_recipe(member.branch->layout, recipe);
  if (recipe.some) layout.remat_layers = in_.request->fix.remat_layers.value_or(layout.remat_layers);
  if (!floors_ && comes_no_nearer(member, layout, which)) return cut(Reject::kMemory, layouts);
  Layout least = layout;
  if (floors_ && leaves_fit_open()) {
    const double logits = member.floor.floors->stages->logits[static_cast<std::size_t>(recipe.loss)];
    const std::optional<Layout> done =
        least_done(member.floor, layout, logits, member.most_treated, member.recipes->offload[which]);
    if (!done) return cut(Reject::kMemory, layouts);
    least = *done;
  }
  if (!may_rank(member, least)) {
    out_.stats.pruned += layouts;
    return;
  }
  prepare(member);
  tables_.recipe(input(member.stages, layout, kFree));
  if (recipe.some && !tables_.keeps_everything(recipe.loss)) {
    const Recipe everything{Remat::kNone, true, recipe.loss};
    tables_.keep_everything(input(member.stages, with_recipe(member.branch->layout, everything), kFree));
  }
  if (layout.loss != LossKind::kWhole) {
    Layout plain = layout;
    plain.loss = LossKind::kWhole;
    tables_.plain_loss(input(member.stages, plain, kFree));
  }
  if (!may_fit(member, layout, member.recipes->offload[which])) return cut(Reject::kMemory, layouts);
  layout = more_done(layout, least);
  if (layout != least && !may_rank(member, layout)) {
    out_.stats.pruned += layouts;
    return;
  }
  for (std::size_t o = 0; o < layouts; ++o) visit_sharding(member, layout, member.recipes->offload[which], o);
}

/// Every sharding keeps the same activations; the one that shards most keeps least of the rest. Where these alone are
/// too much, more layers must be treated, or activations offloaded: sets the least of it, which bounds the time.
bool FamilySearch::may_fit(const Member& member, Layout& layout, std::uint8_t most) {
  const auto& options = member.shardings->options;
  const std::optional<std::uint8_t>& pinned = in_.request->fix.offload;
  const auto least = std::max_element(options.begin(), options.end(), [](const auto& a, const auto& b) {
    return std::pair(a.zero, a.fsdp) < std::pair(b.zero, b.fsdp);
  });
  if (pinned.value_or(0) == 0 && !in_.request->fix.remat_layers &&
      tables_.activations_fit(static_cast<std::size_t>(least - options.begin()), capacity(), reserve())) {
    return true;
  }
  const Layout leanest = sharded(layout, {least->zero, least->fsdp});
  const MeshChannels<double> sizes = sizes_of(leanest);
  StepInput<double> in = input(member.stages, leanest, sizes);
  const auto states = tables_.states(static_cast<std::size_t>(least - options.begin()));
  const std::vector<MemoryUse<double>> before = memory_before_offload(in, states);
  const auto holds = [&] {
    const MemoryUse<double> memory =
        in.layout.remat_layers == leanest.remat_layers ? memory_use(in, before) : memory_use_on(in, states);
    return (memory.activations + memory.logits + memory.reserve).value() <= capacity();
  };
  const std::int64_t some = layout.remat_layers > 0 ? 0 : most_offloaded(*in_.request, *member.stages);
  const auto pins = [&] {
    in.layout.offload = pinned.value_or(0);
    in.layout.offload_layers = some > 0 ? in_.request->fix.offload_layers.value_or(0) : 0;
  };
  pins();
  if (holds()) {
    layout.offload = static_cast<std::uint8_t>(in.layout.offload & kOffloadActivations);
    if (layout.offload != 0 && some > 0) layout.offload_layers = in_.request->fix.offload_layers.value_or(1);
    return true;
  }
  if (layout.remat_layers == 0) {
    if ((most & ~in.layout.offload & kOffloadActivations) != 0) {
      in.layout.offload = most;
      layout.offload = kOffloadActivations;
      if (some > 0) {
        layout.offload_layers = fewest(some, [&](std::int64_t layers) {
          in.layout.offload_layers = layers;
          return holds();
        });
        in.layout.offload_layers = layout.offload_layers;
        if (holds()) return true;
        layout.offload_layers = 0;
      }
      in.layout.offload_layers = 0;
      if (holds()) return true;
    }
  } else if (!in_.request->fix.remat_layers) {
    layout.remat_layers = fewest(member.most_treated, [&](std::int64_t layers) {
      in.layout.remat_layers = layers;
      return holds();
    });
    in.layout.remat_layers = layout.remat_layers;
    if (holds()) return true;
  }
  pins();
  miss(member, in);
  return false;
}

/// Whether a layout without offload would fit with the stack's own loss too, which makes it another layout.
bool FamilySearch::fits_with_plain_loss(const Layout& layout, std::size_t index) const {
  if (layout.loss == LossKind::kWhole || in_.request->fix.loss) return false;
  if (capacity() < tables_.fullest_plain(index, reserve())) return false;
  Layout plain = layout;
  plain.loss = LossKind::kWhole;
  const PlanRequest& r = *in_.request;
  const SupportSubject subject{plain, *r.model, r.workload, *r.hw};
  return !first_fact(on_another_loss_, [&](std::size_t fact) { return r.stack->facts[fact].refuses(subject); });
}

/// What is quick comes first: whether it fits with nothing offloaded, then the bounds of its step. `recipe` may have
/// been given activations to offload or layers to treat by may_fit.
void FamilySearch::visit_sharding(const Member& member, const Layout& recipe, std::uint8_t most, std::size_t index) {
  const ShardingOptions::Option& option = member.shardings->options[index];
  Layout layout = sharded(recipe, {option.zero, option.fsdp});
  const bool some = layout.remat_layers > 0;
  const bool open = in_.request->fix.offload.value_or(0) == 0 && !in_.request->fix.remat_layers;
  double memory_bytes = 0;
  bool too_large = false;  // whatever is offloaded
  if (open && some && !(capacity() < tables_.fullest_kept(index, layout.loss, reserve()))) {
    ++out_.stats.pruned;  // it fits without the policy, which is another layout
    return;
  }
  if (open && !some) {
    if (layout.offload == 0 && fits_with_plain_loss(layout, index)) {
      ++out_.stats.pruned;
      return;
    }
    memory_bytes = tables_.fullest(index, reserve());
    too_large = capacity() < memory_bytes && capacity() < tables_.least(index, most, reserve());
    if (capacity() < memory_bytes || layout.offload != 0) memory_bytes = 0;
  }
  if (!may_rank_sharded(member, layout, index, memory_bytes)) {
    ++out_.stats.pruned;
    return;
  }
  const bool asked = wants_miss() && !(too_large && comes_no_nearer(tables_.least(index, most, reserve())));
  if (too_large && !asked && runs_whole(*in_.request, layout, member.branch->facts)) return cut(Reject::kMemory, 1);
  const MeshChannels<double> sizes = sizes_of(layout);
  StepInput<double> in = input(member.stages, layout, sizes);
  KnownOfMember known{member.branch->facts, tables_.states(index)};
  for (std::uint8_t offload = 0; offload <= kOffloadAll && !some; ++offload) {
    known.least[offload] = tables_.least(index, offload, reserve());
  }
  switch (some ? fit_with_remat(*in_.request, in, ways_to_fit_, known)
               : fit_with_offload(*in_.request, in, ways_to_fit_, most, known)) {
    case FitOutcome::kFits:
      for (const FittedLayout& way : ways_to_fit_) visit_layout(member, option, way.layout, way.memory, layout);
      return;
    case FitOutcome::kNotNeeded: ++out_.stats.pruned; return;
    case FitOutcome::kRefused: return refuse(in.layout);
    case FitOutcome::kTooLarge: break;
  }
  cut(Reject::kMemory, 1);
  // Where the number is open, treating all layers is another recipe, and needs less.
  if (!some || in_.request->fix.remat_layers) miss(member, in);
}

void FamilySearch::visit_layout(const Member& member, const ShardingOptions::Option& option, const Layout& layout,
                                const MemoryUse<double>& memory, const Layout& bounded) {
  // Members of one split differ in schedule alone, and ZeRO 0 to 2 in what is kept: their phases are the same, but for
  // the experts' exchange where another microbatch hides it. Unplaced, members of all splits share them.
  const std::int64_t fsdp = option.zero == 3 ? option.fsdp : 0;
  const std::int64_t paired = pairs_experts(layout) ? 1 : 0;
  std::int64_t policy = static_cast<std::int64_t>(layout.remat);
  for (const bool bit : {layout.remat_layers > 0, layout.offload_layers > 0, layout.loss == LossKind::kChunked}) {
    policy = 2 * policy + (bit ? 1 : 0);
  }
  const PhaseKey unplaced_key{0, 0, fsdp, -2, policy, layout.offload, paired};
  const std::int64_t envelope_place = -1;
  const auto key = [&](std::int64_t place) {
    return PhaseKey{layout.pp, member.branch->layout.dp, fsdp, place, policy, layout.offload, paired};
  };
  if (layout != bounded) {
    Layout least = layout;  // bounds know offloaded activations alone
    least.offload &= kOffloadActivations;
    if (least.offload == 0) least.offload_layers = 0;
    outline(outlined(member.stages, least, bound_->channels), bound_phases(least), gathering_);
    if (!may_enter(member, layout, kBoundRounding * step_lower_bound(gathering_), memory.total().value())) {
      ++out_.stats.pruned;
      return;
    }
    const MeshChannels<double> bound = unplaced(member.branch->slice, layout);
    if (!may_rank_on(member, layout, bound, phases_of(member, layout, bound, unplaced_key), memory)) {
      ++out_.stats.pruned;
      return;
    }
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
                               const Phases<double>& phases, const MemoryUse<double>& memory) {
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
  out_.token_s = std::min(out_.token_s, kBoundRounding * time.total().value() / tokens_of(layout));
  if (!may_enter(member, layout, time.total().value(), memory.total().value())) return;
  const Rank rank =
      (*ranker_)(layout, chips_of(slice), time.total().value(), tokens_of(layout), memory.total().value());
  Candidate candidate{
      .plan = make_plan(slice, layout, place, time, memory), .rank = rank, .slice = slice, .placement = index};
  out_.kept.push_back(candidate);
  ranking_.offer(std::move(candidate));
  limit_ = ranking_.limit(in_.request->slices[slice].chips, layout);
}

Plan FamilySearch::make_plan(std::size_t slice, const Layout& layout, const PlacedChannels& place,
                             const StepTime<double>& time, const MemoryUse<double>& memory) const {
  return {.layout = layout,
          .slice = in_.request->slices[slice],
          .placement = place.placement,
          .time = time,
          .memory = memory,
          .step_s = time.total().value(),
          .batch_seqs = static_cast<double>(layout.batch_seqs())};
}

void FamilySearch::refuse(const Layout& layout) {
  for (const FactGroup group : {FactGroup::kOffload, FactGroup::kLayout}) {
    if (const auto fact = stack_refusal(*in_.request, group, layout)) return out_.stats.refuse(*fact);
  }
}

/// Remembers the layout that came closest to fitting, until something fits.
void FamilySearch::miss(const Member& member, const StepInput<double>& in) {
  const Layout& layout = in.layout;
  if (!wants_miss()) return;
  const MemoryUse<double> memory = memory_use(in);
  if (nearest_ && !(memory.total() < nearest_->memory.total())) return;
  if (comes_no_nearer(memory.total().value()) || !runs_whole(*in_.request, layout)) return;
  if (any_place(*member.branch, layout)) nearest_ = {*member.branch, layout, memory};
}

/// As a plan.
std::optional<Plan> FamilySearch::nearest_miss() {
  if (!nearest_) return std::nullopt;
  const auto& [branch, layout, memory] = *nearest_;
  const PlacedChannels place = placed(branch.slice, layout).front();
  const StepTime<double> time = step_time(kReader, input(&branch.stages->shapes, layout, place.channels));
  return make_plan(branch.slice, layout, place, time, memory);
}

ShardingOptions& FamilySearch::shardings_of(const Branch& branch) {
  const Layout& l = branch.layout;
  const BranchKey key{static_cast<std::int64_t>(branch.slice),
                      l.tp,
                      l.cp,
                      l.pp,
                      l.dp,
                      l.ep,
                      l.etp,
                      l.schedule == Schedule::kDualPipe ? 1 : 0,
                      static_cast<std::int64_t>(space_.facts().on_sharding(branch.facts))};
  if (last_shardings_.second != nullptr && last_shardings_.first == key) return *last_shardings_.second;
  const auto it = shardings_.find(key);
  if (it != shardings_.end()) {
    last_shardings_ = {key, &it->second};
    return it->second;
  }
  ShardingOptions out;
  SearchStats cuts;
  std::map<std::pair<std::int64_t, bool>, std::size_t> groups;
  for (const StateSharding& sharding : space_.shardings(branch, cuts)) {
    const auto [known, added] = groups.try_emplace({sharding.fsdp, sharding.zero == 3}, out.placements.size());
    if (added) out.placements.emplace_back();
    out.options.push_back({sharding.zero, sharding.fsdp, known->second});
  }
  last_shardings_ = {key, &shardings_.emplace(key, std::move(out)).first->second};
  return *last_shardings_.second;
}

const ShardingOptions::Places& FamilySearch::places_of(const Member& member, const ShardingOptions::Option& option,
                                                       const Layout& layout) const {
  std::unique_ptr<ShardingOptions::Places>& places = member.shardings->placements[option.placed];
  if (places) return *places;
  places = std::make_unique<ShardingOptions::Places>();
  places->all = placed(member.branch->slice, layout);
  if (!places->all.empty()) places->envelope = envelope(places->all, layout.shards_in_groups());
  return *places;
}

std::vector<PlacedChannels> FamilySearch::placed(std::size_t slice_index, const Layout& layout) const {
  const HardwareSpec& hw = *in_.request->hw;
  const Slice& slice = in_.request->slices[slice_index];
  Undominated best(layout.shards_in_groups());
  const Degrees degrees{layout.tp, layout.cp, layout.fsdp, layout.dp, layout.pp};
  PlacedChannels last;  // neighbours share most of their groups
  bool first = true;
  for (const Placement& placement : placements(hw, slice, degrees, layout.ep > 1)) {
    if (!experts_fold(placement, layout)) continue;
    last.channels = make_channels(hw, slice, in_.network, placement, layout, in_.routing, first ? nullptr : &last);
    last.placement = placement;
    first = false;
    best.offer(last);
  }
  return best.take();
}

}  // namespace scalecalc
