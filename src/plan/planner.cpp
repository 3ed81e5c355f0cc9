// Best-first exact search. Every branch gets a proven lower bound (the step with free communication); branches are
// visited in order of bound, and the search ends when the next bound is worse than the worst plan kept. Within a branch
// every sharding that fits in memory is costed on every placement that no other placement beats in all its channels.
#include <algorithm>
#include <chrono>
#include <map>

#include "plan/enumerate.h"
#include "plan/places.h"
#include "plan/ranking.h"
#include "plan/request.h"

namespace scalecalc {
namespace {

class Search {
 public:
  Search(const PlanRequest& request, const std::function<bool()>& stop)
      : request_(request),
        stop_(stop),
        chip_(read_chip(kReader, *request.hw, request.efficiency, request.workload.precision.high)),
        network_(read_network(kReader, *request.hw, request.efficiency)),
        overlap_(read_overlap(kReader, request.efficiency)),
        ops_(read_model(kReader, *request.model)),
        ranker_(request.objective, 0),
        ranking_(1, true) {
    routing_ = routing_of(*request.model);
  }

  PlanResult run() {
    const auto start = std::chrono::steady_clock::now();
    collect();
    if (ranker_.has_ties()) {
      // First the single best, which fixes what counts as a tie with it; then the ranking.
      descend();
      const std::vector<Plan> best = ranking_.take();
      if (!best.empty()) ranker_ = Ranker(request_.objective, goal_of(best.front()));
      result_.nearest_miss = enumerated_.nearest_miss;
      result_.stats = enumerated_.stats;
    }
    ranking_ = Ranking(std::max<std::size_t>(request_.top, 1), request_.variants);
    descend();
    result_.plans = ranking_.take();
    if (!result_.plans.empty()) result_.nearest_miss.reset();
    result_.stats.elapsed_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return std::move(result_);
  }

 private:
  struct Item {
    Branch branch;
    const NetworkCost<double>* network = nullptr;
    const std::vector<StageShape>* stages = nullptr;
    ShardingOptions* shardings = nullptr;
    double step_bound = 0;
    Rank bound;
    std::size_t order = 0;
  };

  double tokens_of(const Layout& layout) const {
    return static_cast<double>(layout.batch_seqs() * request_.workload.seq);
  }

  double goal_of(const Plan& best) const {
    return ranker_.goal(static_cast<double>(best.slice.chips), best.step_s, tokens_of(best.layout));
  }

  /// Whether even this step misses the goal the request sets.
  bool not_below(std::size_t slice, const Layout& layout, double step_s) const {
    const double chips = static_cast<double>(request_.slices[slice].chips);
    return request_.below && ranker_.goal(chips, step_s, tokens_of(layout)) >= *request_.below;
  }

  void cut(Reject reason, std::size_t layouts) { result_.stats.rejected[static_cast<std::size_t>(reason)] += layouts; }

  /// Bounds every branch; drops those that no sharding can fit in memory.
  void collect() {
    enumerate(request_, result_.stats, [this](const Branch& branch) {
      Item item{.branch = branch, .order = items_.size()};
      item.stages = &stages_of(branch.layout);
      if (item.stages->empty()) return cut(Reject::kStages, 1);
      item.network = &network_cost_of(branch.layout);
      item.shardings = &shardings_of(branch);
      result_.stats.candidates += item.shardings->options.size();
      if (item.shardings->options.empty() || !may_fit(item)) return;
      item.step_bound = step_lower_bound(input(item, branch.layout, bound_channels(branch)));
      if (not_below(branch.slice, branch.layout, item.step_bound)) {
        result_.stats.pruned += item.shardings->options.size();
        return;
      }
      items_.push_back(item);
    });
    enumerated_ = result_;
  }

  /// Every sharding keeps the same activations; the one that shards most keeps least of the rest.
  bool may_fit(const Item& item) {
    const auto& options = item.shardings->options;
    const auto least = std::max_element(options.begin(), options.end(), [](const auto& a, const auto& b) {
      return std::pair(a.zero, a.fsdp) < std::pair(b.zero, b.fsdp);
    });
    const Layout layout = layout_of(item, *least);
    const MeshChannels<double> sizes = sizes_of(layout);
    const MemoryUse<double> memory = memory_use(input(item, layout, sizes));
    if (!(request_.hw->hbm_capacity < memory.activations + memory.logits + memory.reserve)) return true;
    cut(Reject::kMemory, options.size());
    miss(item, layout, memory);
    return false;
  }

  /// Visits branches in order of their bound until none left can enter the ranking.
  void descend() {
    for (Item& item : items_) {
      const Slice& slice = request_.slices[item.branch.slice];
      item.bound = ranker_(static_cast<double>(slice.chips), item.step_bound, tokens_of(item.branch.layout), 0);
    }
    std::sort(items_.begin(), items_.end(),
              [](const Item& a, const Item& b) { return a.bound != b.bound ? a.bound < b.bound : a.order < b.order; });
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if ((i % 64 == 0 && stop_ && stop_()) || !ranking_.admits(items_[i].bound)) {
        for (; i < items_.size(); ++i) result_.stats.pruned += items_[i].shardings->options.size();
        break;
      }
      visit(items_[i]);
    }
  }

  const NetworkCost<double>& network_cost_of(const Layout& layout) {
    const InnerDegrees inner = inner_of(layout);
    const auto it = costs_.find(inner);
    if (it != costs_.end()) return it->second;
    return costs_.emplace(inner, network_cost(kReader, *request_.model, ops_, chip_, request_.workload, inner))
        .first->second;
  }

  const std::vector<StageShape>& stages_of(const Layout& layout) {
    const auto key = std::pair(layout.pp, layout.vpp);
    const auto it = stages_.find(key);
    if (it != stages_.end()) return it->second;
    return stages_.emplace(key, partition(*request_.model, layout.pp, layout.vpp)).first->second;
  }

  StepInput<double> input(const Item& item, const Layout& layout, const MeshChannels<double>& channels) const {
    return {.model = request_.model,
            .workload = &request_.workload,
            .network = item.network,
            .channels = &channels,
            .overlap = &overlap_,
            .chip = &chip_,
            .stages = item.stages,
            .memory_reserve = Bytes(request_.efficiency.memory_reserve.value),
            .layout = layout};
  }

  using BranchKey = std::array<std::int64_t, 7>;

  ShardingOptions& shardings_of(const Branch& branch) {
    const Layout& l = branch.layout;
    const BranchKey key{static_cast<std::int64_t>(branch.slice), l.tp, l.cp, l.pp, l.dp, l.ep, l.etp};
    const auto it = shardings_.find(key);
    if (it != shardings_.end()) return it->second;
    ShardingOptions out;
    std::map<std::pair<std::int64_t, bool>, std::size_t> groups;
    for (const Layout& layout : shardings(request_, l, result_.stats)) {
      const auto [known, added] = groups.try_emplace({layout.fsdp, layout.zero == 3}, out.placements.size());
      if (added) out.placements.emplace_back();
      out.options.push_back({layout.zero, layout.dp, layout.fsdp, known->second});
    }
    return shardings_.emplace(key, std::move(out)).first->second;
  }

  const ShardingOptions::Places& places_of(const Item& item, const ShardingOptions::Option& option,
                                           const Layout& layout) const {
    ShardingOptions::Places& places = item.shardings->placements[option.placed];
    if (places.known) return places;
    places.known = true;
    places.all = placed(item.branch.slice, layout);
    if (!places.all.empty()) places.envelope = envelope(places.all, layout.zero == 3);
    return places;
  }

  std::vector<PlacedChannels> placed(std::size_t slice_index, const Layout& layout) const {
    const Degrees degrees{layout.tp, layout.cp, layout.fsdp, layout.dp, layout.pp};
    const Slice& slice = request_.slices[slice_index];
    Undominated best(layout.zero == 3);
    for (Placement& placement : placements(*request_.hw, slice, degrees)) {
      if (!experts_fold(placement, layout)) continue;
      MeshChannels<double> channels = make_channels(*request_.hw, slice, network_, placement, layout, routing_);
      best.offer({std::move(placement), channels});
    }
    return best.take();
  }

  /// The fastest channels any placement can give this branch's tensor and (under switches) expert groups; every other
  /// group communicates for free. Tensor groups are innermost in every placement, so their options do not depend on
  /// the other degrees.
  const MeshChannels<double>& bound_channels(const Branch& branch) {
    const Layout& l = branch.layout;
    const BranchKey key{static_cast<std::int64_t>(branch.slice), l.tp, l.ep};
    const auto it = bounds_.find(key);
    if (it != bounds_.end()) return it->second;
    const HardwareSpec& hw = *request_.hw;
    const Slice& slice = request_.slices[branch.slice];
    MeshChannels<double> out;
    for (const Placement& placement : placements(hw, slice, {l.tp, 1, 1, slice.chips / l.tp, 1})) {
      const Channel<double> tp = make_channel(hw, slice, network_, placement.of(MeshDim::kTp), "tp");
      if (out.tp.size == 1) out.tp = tp;
      lower(out.tp, tp);
    }
    if (l.ep > 1 && !hw.is_torus()) out.ep = best_switched(hw, slice, network_, l.ep, routing_);
    out.tp.links = 0;
    return bounds_.emplace(key, out).first->second;
  }

  /// No slower than any placement, and cheap: every group alone on the machine, with the expert and tensor groups'
  /// own bounds. Spares enumerating the placements of layouts that cannot rank.
  MeshChannels<double> unplaced(const Branch& branch, const Layout& layout) {
    MeshChannels<double> out = bound_channels(branch);
    const MeshChannels<double> sizes = sizes_of(layout);
    out.cp = alone(branch.slice, layout.cp);
    out.pp = alone(branch.slice, layout.pp);
    out.shard = alone(branch.slice, sizes.shard.size);
    out.data = alone(branch.slice, sizes.data.size);
    out.replicate = alone(branch.slice, layout.dp);
    out.expert_shard = alone(branch.slice, sizes.expert_shard.size);
    out.expert_data = alone(branch.slice, sizes.expert_data.size);
    out.expert_replicate = out.replicate;
    return out;
  }

  const Channel<double>& alone(std::size_t slice, std::int64_t size) {
    const auto key = std::pair(slice, size);
    const auto it = alone_.find(key);
    if (it != alone_.end()) return it->second;
    return alone_.emplace(key, best_channel(*request_.hw, request_.slices[slice], network_, size)).first->second;
  }

  static Layout layout_of(const Item& item, const ShardingOptions::Option& option) {
    Layout layout = item.branch.layout;
    layout.zero = option.zero;
    layout.dp = option.dp;
    layout.fsdp = option.fsdp;
    return layout;
  }

  void visit(const Item& item) {
    for (const ShardingOptions::Option& option : item.shardings->options) {
      const Layout layout = layout_of(item, option);
      const MeshChannels<double> sizes = sizes_of(layout);
      const MemoryUse<double> memory = memory_use(input(item, layout, sizes));
      if (request_.hw->hbm_capacity < memory.total()) {
        cut(Reject::kMemory, 1);
        miss(item, layout, memory);
        continue;
      }
      if (!item.shardings->placements[option.placed].known &&
          !ranking_.admits(rank(item, layout, unplaced(item.branch, layout), memory))) {
        ++result_.stats.pruned;
        continue;
      }
      const ShardingOptions::Places& places = places_of(item, option, layout);
      if (places.all.empty()) {
        cut(Reject::kPlacement, 1);
        continue;
      }
      ++result_.stats.feasible;
      if (places.all.size() > 1 && !ranking_.admits(rank(item, layout, places.envelope, memory))) {
        ++result_.stats.pruned;
        continue;
      }
      for (std::size_t p = 0; p < places.all.size(); ++p) evaluate(item, layout, places.all[p], p, memory);
    }
  }

  Rank rank(const Item& item, const Layout& layout, const MeshChannels<double>& channels,
            const MemoryUse<double>& memory) const {
    const double step = step_time(kReader, input(item, layout, channels)).total().value();
    const double chips = static_cast<double>(request_.slices[item.branch.slice].chips);
    return ranker_(chips, step, tokens_of(layout), memory.total().value());
  }

  void evaluate(const Item& item, const Layout& layout, const PlacedChannels& place, std::size_t index,
                const MemoryUse<double>& memory) {
    ++result_.stats.evaluated;
    const StepTime<double> time = step_time(kReader, input(item, layout, place.channels));
    if (not_below(item.branch.slice, layout, time.total().value())) return;
    const Slice& slice = request_.slices[item.branch.slice];
    const Rank rank =
        ranker_(static_cast<double>(slice.chips), time.total().value(), tokens_of(layout), memory.total().value());
    if (!ranking_.admits(rank)) return;
    ranking_.offer({.plan = make_plan(item, layout, place, time, memory),
                    .rank = rank,
                    .slice = item.branch.slice,
                    .placement = index});
  }

  Plan make_plan(const Item& item, const Layout& layout, const PlacedChannels& place, const StepTime<double>& time,
                 const MemoryUse<double>& memory) const {
    return {.layout = layout,
            .slice = request_.slices[item.branch.slice],
            .placement = place.placement,
            .time = time,
            .memory = memory,
            .step_s = time.total().value(),
            .batch_seqs = static_cast<double>(layout.batch_seqs())};
  }

  /// Remembers the layout that came closest to fitting, until something fits.
  void miss(const Item& item, const Layout& layout, const MemoryUse<double>& memory) {
    if (ranking_.full() || (result_.nearest_miss && !(memory.total() < result_.nearest_miss->memory.total()))) return;
    const std::vector<PlacedChannels> places = placed(item.branch.slice, layout);
    if (places.empty()) return;
    const PlacedChannels& place = places.front();
    result_.nearest_miss =
        make_plan(item, layout, place, step_time(kReader, input(item, layout, place.channels)), memory);
  }

  const PlanRequest& request_;
  const std::function<bool()>& stop_;
  static constexpr Reader<double> kReader{};
  ChipRates<double> chip_;
  NetworkRates<double> network_;
  OverlapRates<double> overlap_;
  ModelOps<double> ops_;
  Routing routing_;
  Ranker ranker_;
  Ranking ranking_;
  PlanResult result_;
  PlanResult enumerated_;  ///< what enumeration alone found
  std::vector<Item> items_;
  std::map<InnerDegrees, NetworkCost<double>> costs_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<StageShape>> stages_;
  std::map<BranchKey, ShardingOptions> shardings_;
  std::map<BranchKey, MeshChannels<double>> bounds_;
  std::map<std::pair<std::size_t, std::int64_t>, Channel<double>> alone_;
};

}  // namespace

std::string_view describe(Reject reason) {
  constexpr std::array<std::string_view, kRejectCount> kTexts{
      "excluded by --fix, --max or another flag",
      "attention heads do not divide by tp",
      "layer widths do not divide by tp",
      "the sequence does not divide by 2 x cp, or its shard by tp",
      "fewer sequences in the batch than data ranks",
      "no batch near the one asked for divides over the data ranks",
      "more pipeline chunks than layers, or chunks that do not divide them",
      "microbatches do not come in groups of pp (interleaved)",
      "experts do not divide over their ranks",
      "degrees do not fit the machine's axes or domains",
      "out of memory"};
  return kTexts[static_cast<std::size_t>(reason)];
}

PlanResult plan(const PlanRequest& request, const std::function<bool()>& stop) { return Search(request, stop).run(); }

template <class R>
PlanReading<R> read_plan(const Reader<R>& reader, const PlanRequest& request, const Plan& plan) {
  const HardwareSpec& hw = *request.hw;
  const ChipRates<R> chip = read_chip(reader, hw, request.efficiency, request.workload.precision.high);
  const NetworkRates<R> network = read_network(reader, hw, request.efficiency);
  const OverlapRates<R> overlap = read_overlap(reader, request.efficiency);
  const ModelOps<R> ops = read_model(reader, *request.model);
  const MeshChannels<R> channels =
      make_channels(hw, plan.slice, network, plan.placement, plan.layout, routing_of(*request.model));
  const NetworkCost<R> cost = network_cost(reader, *request.model, ops, chip, request.workload, inner_of(plan.layout));
  const std::vector<StageShape> stages = partition(*request.model, plan.layout.pp, plan.layout.vpp);
  const Coefficient& reserve = request.efficiency.memory_reserve;
  const StepInput<R> in{
      .model = request.model,
      .workload = &request.workload,
      .network = &cost,
      .channels = &channels,
      .overlap = &overlap,
      .chip = &chip,
      .stages = &stages,
      .memory_reserve = read(reader, Bytes(reserve.value), "efficiency.memory_reserve", reserve.source, reserve.error),
      .layout = plan.layout};
  return {step_time(reader, in), memory_use(in)};
}

template PlanReading<double> read_plan(const Reader<double>&, const PlanRequest&, const Plan&);
template PlanReading<Dual> read_plan(const Reader<Dual>&, const PlanRequest&, const Plan&);
template PlanReading<Traced> read_plan(const Reader<Traced>&, const PlanRequest&, const Plan&);
template PlanReading<Interval> read_plan(const Reader<Interval>&, const PlanRequest&, const Plan&);

}  // namespace scalecalc
