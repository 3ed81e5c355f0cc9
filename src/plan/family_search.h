// The search inside one family of layouts: every member the bounds do not exclude, every sharding that fits in memory,
// every placement no other beats.
#pragma once

#include <limits>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cost/operation_sums.h"
#include "cost/step_bound.h"
#include "plan/enumerate.h"
#include "plan/member_tables.h"
#include "plan/memory_floor.h"
#include "plan/places.h"
#include "plan/ranking.h"
#include "plan/request.h"
#include "plan/run_bounds.h"
#include "plan/ways_to_fit.h"

namespace scalecalc {

/// What all families share, read once.
struct SearchInputs {
  explicit SearchInputs(const PlanRequest& request);

  const PlanRequest* request;
  ChipRates<double> chip;
  NetworkRates<double> network;
  OverlapRates<double> overlap;
  ModelOps<double> ops;
  Routing routing;
};

/// Seconds, if they are known. Half the size of an optional: a search may know hundreds of thousands.
class KnownSeconds {
 public:
  KnownSeconds() = default;
  KnownSeconds& operator=(double seconds) {
    seconds_ = seconds;
    return *this;
  }
  bool has_value() const { return seconds_ >= 0; }
  explicit operator bool() const { return has_value(); }
  double& operator*() { return seconds_; }
  double operator*() const { return seconds_; }
  double value_or(double other) const { return has_value() ? seconds_ : other; }

 private:
  double seconds_ = -1;
};

/// What is known of a family.
struct KnownFamily {
  std::uint64_t candidates = 0;  ///< layouts, shardings included, that may fit; not 0 where they are not counted
  KnownSeconds of_smaller;       ///< see FamilySearch::run_bound, per token
  KnownSeconds token_s;          ///< least bound of a member's step, per token
  double least_s = 0;            ///< no less than this, by what is known of larger microbatches or other hardware
  double usable_s = 0;           ///< the same of layouts that leave room (Goal::usable)
  std::uint32_t floor = 0;       ///< of its run
  bool rounded = false;          ///< whether least_s knows rounded_bound()
};

/// What a family added to the answer.
struct FamilyResult {
  std::vector<Candidate> kept;
  /// No layout of it that fits takes less time per token: the least of what was costed and of what bounds settled.
  double token_s = std::numeric_limits<double>::infinity();
  std::optional<Plan> nearest_miss;
  SearchStats stats;
};

/// One thread's view of the search: caches that grow with the families visited.
class FamilySearch {
 public:
  /// Keeps references. `known` is of the same request but for the machines.
  FamilySearch(const SearchInputs& inputs, const Space& space, const std::vector<Recipe>& recipes, RunBounds& known)
      : in_(inputs),
        space_(space),
        known_(known),
        recipes_(recipes),
        verdicts_(*inputs.request, space.facts(), recipes),
        whole_model_(partition(*inputs.request->model, Layout{}, inputs.request->workload.runtime.stages)) {
    if (inputs.request->stack) on_another_loss_ = inputs.request->stack->on_another_loss();
  }

  /// What holds for the family and those like it with fewer sequences in a microbatch ([RUN]). A phase's time is a
  /// maximum of sums that grow by a line in the sequences and start above 0, so per sequence it does not grow; the
  /// sequences are rounded up to a power of two, so that machines of several sizes ask the same.
  RunBound run_bound(const Family& family);
  /// By it, the least time of a step per token: every stage as long as the mean, no bubble.
  double token_s(const Family& family, const RunBound& bound) const;

  /// The layouts of each family of a run, shardings included, of members that may fit in memory. Counts all and what
  /// was cut.
  std::vector<std::uint64_t> count(const FamilyRun& run, const RunFloors& floors, SearchStats& stats);

  /// The least bound of such a member's step, per token; infinite if there is none.
  double bound(const Family& family, const RunFloors& floors);
  /// The same or less, of the microbatch rounded up to a power of two, which more searches ask for.
  double rounded_bound(const Family& family, const RunFloors& floors);
  /// The same or less, of what run_bound found out about a `larger` microbatch, whether or not its plans fit; nothing
  /// if it was not asked.
  std::optional<double> bound(const Family& family, const RunFloors& floors, const Family& larger);

  /// The family's plans that `ranking` would admit and whose goal per token is below `below`; it has `candidates`
  /// layouts. Depends on nothing but the arguments.
  FamilyResult visit(const Family& family, const RunFloors& floors, std::uint64_t candidates, const Ranker& ranker,
                     const Ranking& ranking, const std::optional<double>& below,
                     const std::optional<Plan>& nearest_before = {});

  /// From now on members are looked at even where they cannot fit: to say which comes nearest.
  void lift_floors() { floors_ = false; }

  /// Whether any layout of a run fits, the smallest microbatch first.
  bool any_fits(const FamilyRun& run, const Ranker& ranker);

 private:
  /// What is known of a member's memory before its tables are made.
  struct MemberFloor {
    const Branch* branch = nullptr;
    const RunFloors* floors = nullptr;
    const ShardingWays* ways = nullptr;
    double capacity = 0;
  };
  /// A member of the family being visited.
  struct Member {
    const Branch* branch = nullptr;
    const std::vector<StageShape>* stages = nullptr;
    ShardingOptions* shardings = nullptr;
    std::int64_t most_treated = 0;
    const RecipeVerdict* recipes = nullptr;  ///< which it may run
    MemberFloor floor{};
  };
  Member member_of(const Branch& branch, const RunFloors& floors) {
    return {&branch,
            &branch.stages->shapes,
            nullptr,
            branch.stages->most_treated,
            &verdicts_.of(branch.layout, branch.facts),
            floor_of(branch, floors, ways_of(branch), capacity())};
  }
  MemberFloor floor_of(const Branch& branch, const RunFloors& floors, const ShardingWays& ways, double capacity) {
    stage_floors(ways.stages, branch.layout, branch.stages->shapes, stage_floors_);
    return {&branch, &floors, &ways, capacity};
  }
  bool runs(const Member& member, std::size_t recipe) const {
    return !member.recipes->refused_by[recipe] && (!recipes_[recipe].some || member.most_treated > 0);
  }
  using BranchKey = std::array<std::int64_t, 9>;
  using PhaseKey = std::array<std::int64_t, 7>;

  double least_memory_of(const Branch& branch, const RunFloors& floors);
  double least_memory_of(const Branch& branch, const RunFloors& floors, const ShardingWays& ways,
                         const RecipeVerdict& recipes) const;
  bool chip_holds(double bytes) const { return !(in_.request->hw->hbm_capacity.value() < bytes); }
  bool too_large(const Branch& branch, const RunFloors& floors);
  /// Whether by the floors of its stages a layout may fit, or any recipe.
  bool may_hold(const MemberFloor& of, const Layout& layout, double logits) const;
  bool may_hold(const MemberFloor& of, const RecipeVerdict& recipes) const;
  std::optional<Layout> least_done(const MemberFloor& of, Layout layout, double logits, std::int64_t most_treated,
                                   std::uint8_t offload) const;
  template <class Passes>
  double fitting_bound(const MemberFloor& of, const RecipeVerdict& recipes, const Layout& layout, double cheapest,
                       const Passes& passes_of);
  /// Whether how many layers are treated and what is offloaded is for the search to find.
  bool leaves_fit_open() const {
    const LayoutFilter& fix = in_.request->fix;
    return !fix.offload && !fix.offload_layers && !fix.remat_layers;
  }
  /// Members that are counted alike.
  struct Alike {
    const ShardingWays* ways = nullptr;
    const RecipeVerdict* recipes = nullptr;
    std::int64_t data = 0;  ///< ranks
    FactSet facts = 0;
    std::uint64_t members = 0;
    std::uint64_t treating = 0;  ///< of them, with stages that a policy for some layers can treat
  };
  template <class Passes>
  double least_bound(const Family& family, const RunFloors& floors, bool fitting, const Passes& passes_of);
  const ShardingWays& ways_of(const Branch& branch);
  ShardingWays sharding_ways(const Branch& branch);
  Layout cheapest_recipe(Layout layout) const;
  void enter(const Family& family);
  bool placeable(const Branch& branch);
  bool any_place(const Branch& branch, const Layout& layout) const;
  const NetworkCost<double>& network();
  std::shared_ptr<const NetworkCost<double>> cost_of(const InnerDegrees& inner);
  std::shared_ptr<const NetworkCost<double>> parameters_of(const InnerDegrees& inner);
  static std::size_t policy_of(const Layout& layout);
  const PhaseTotals& bound_phases(const Layout& layout);
  const Phases<double>& plain_phases(StepInput<double> in, bool paired);
  const PassTotals& bound_passes(const Layout& layout);
  bool may_enter(const Member& member, const Layout& layout, double step_s, double memory);
  bool may_rank(const Member& member, const Layout& layout, const PassTotals& passes);
  bool may_rank(const Member& member, const Layout& layout) { return may_rank(member, layout, bound_phases(layout)); }
  std::size_t visit_member(Member member);
  void prepare(const Member& member);
  void visit_recipe(const Member& member, std::size_t recipe);
  bool may_fit(const Member& member, Layout& layout, std::uint8_t most);
  bool some_recipe_may_fit(const Member& member);
  void visit_sharding(const Member& member, const Layout& recipe, std::uint8_t most, std::size_t index);
  bool may_rank_sharded(const Member& member, const Layout& layout, std::size_t index, double memory);
  void visit_layout(const Member& member, const ShardingOptions::Option& option, const Layout& layout,
                    const MemoryUse<double>& memory, const Layout& bounded);
  void evaluate(const Member& member, const Layout& layout, const PlacedChannels& place, std::size_t index,
                const PhaseKey& key, const MemoryUse<double>& memory);
  bool fits_with_plain_loss(const Layout& layout, std::size_t index) const;
  void refuse(const Layout& layout);  ///< counts the fact that does
  /// Below a limit, that nothing is found does not mean that nothing fits.
  bool wants_miss() const { return !any_ && !below_ && !ranking_.full(); }
  /// Whether something is known that needs less than `bytes`.
  bool comes_no_nearer(double bytes) const {
    const std::optional<double> nearest = nearest_ ? nearest_->memory.total().value() : before_;
    return nearest && *nearest < bytes;
  }
  bool comes_no_nearer(const Member& member, Layout layout, std::size_t recipe) const;
  void miss(const Member& member, const StepInput<double>& in);
  const Phases<double>& phases_of(const Member& member, const Layout& layout, const MeshChannels<double>& channels,
                                  const PhaseKey& key);
  bool may_rank_on(const Member& member, const Layout& layout, const MeshChannels<double>& channels,
                   const Phases<double>& phases, const MemoryUse<double>& memory);
  std::optional<Plan> nearest_miss();
  Plan make_plan(std::size_t slice, const Layout& layout, const PlacedChannels& place, const StepTime<double>& time,
                 const MemoryUse<double>& memory) const;
  double chips_of(std::size_t slice) const { return static_cast<double>(in_.request->slices[slice].chips); }
  double capacity() const { return in_.request->usable * in_.request->hw->hbm_capacity.value(); }
  double reserve() const { return in_.request->efficiency.memory_reserve.value; }
  double tokens_of(const Layout& layout) const;
  void cut(Reject reason, std::size_t layouts) { out_.stats.rejected[static_cast<std::size_t>(reason)] += layouts; }
  StepInput<double> input(const std::vector<StageShape>* stages, const Layout& layout,
                          const MeshChannels<double>& channels);
  /// The same for who asks nothing of the layers' costs.
  StepInput<double> outlined(const std::vector<StageShape>* stages, const Layout& layout,
                             const MeshChannels<double>& channels) const;

  ShardingOptions& shardings_of(const Branch& branch);
  const ShardingOptions::Places& places_of(const Member& member, const ShardingOptions::Option& option,
                                           const Layout& layout) const;
  std::vector<PlacedChannels> placed(std::size_t slice, const Layout& layout) const;
  /// Channels of bounds.
  struct BoundChannels {
    MeshChannels<double> channels;
    RunBounds::Network network = 0;
  };
  const Channel<double>& tensor_channel(std::size_t slice, std::int64_t tp);
  BoundChannels& bound_channels(std::size_t slice, const Layout& layout);
  /// Those of the family, with that of a member's pipeline.
  const MeshChannels<double>& bound_channels_of(const Branch& branch) {
    if (std::exchange(bound_pp_, branch.layout.pp) != branch.layout.pp) {
      bound_->channels.pp = alone({branch.slice, branch.layout.pp, branch.layout.tp});
    }
    return bound_->channels;
  }
  MeshChannels<double> unplaced(std::size_t slice, const Layout& layout);
  /// A sharding on those channels.
  struct OnMesh {
    MeshChannels<double> channels;
    GatherTimes gathers{};  ///< if it gathers weights
  };
  const std::vector<OnMesh>& on_mesh_of(const Member& member);
  /// A group by itself: best_channel, or best_switched of experts.
  struct Alone {
    std::size_t slice = 0;
    std::int64_t size = 1, stride = 1;
    bool apart = false;
    bool experts = false;
    bool operator==(const Alone&) const = default;
  };
  const Channel<double>& alone(const Alone& group);

  static constexpr Reader<double> kReader{};
  inline static const MeshChannels<double> kFree{};
  const SearchInputs& in_;
  const Space& space_;
  RunBounds& known_;
  OperationSums operation_sums_;
  InnerDegrees inner_;
  std::shared_ptr<const NetworkCost<double>> network_;  ///< of inner_; null if nobody asked yet
  bool entered_ = false;
  std::vector<Recipe> recipes_;
  RecipeVerdicts verdicts_;
  FactSet on_another_loss_ = 0;     ///< of the stack's facts
  const Family* family_ = nullptr;  ///< being visited or bounded
  std::int64_t bound_pp_ = 0;       ///< the pipeline that bound_ has; 0: none yet
  BoundChannels* bound_ = nullptr;  ///< of bounds_: what bound_phases_ were computed on, with a member's pipeline
  /// Of the family being visited, on bound_channels, by what a member may still choose: see bound_phases.
  static constexpr std::size_t kPolicies = std::size_t{kRematCount} * 32;
  std::array<PhaseTotals, kPolicies> bound_phases_;
  std::array<bool, kPolicies> is_bounded_{};                   ///< which of bound_phases_ are of this family
  std::vector<std::size_t> bounded_;                           ///< their indices
  Phases<double> being_bounded_;                               ///< what their sums are made of
  std::array<std::optional<Phases<double>>, 2> plain_phases_;  ///< the same that all policies share: see plain_phases
  std::array<const PassTotals*, kPolicies> bound_passes_{};    ///< the same, of what searches share; null if not asked
  std::vector<std::size_t> passed_;                            ///< their indices
  std::array<PassTotals, 2> scaled_;                           ///< of a larger microbatch, paired or not
  /// That larger microbatch: what is known of it, by paired or not; null where nothing is yet.
  struct Larger {
    InnerDegrees inner{.tp = 0};  ///< of none
    RunBounds::Network network = 0;
    std::array<const PassTotals*, 2> passes{};
  };
  Larger larger_;
  StepOutline outline_;                          ///< of the recipe being visited
  StepOutline gathering_;                        ///< of the sharding being visited
  PassTotals gathered_;                          ///< the same
  std::vector<OnMesh> on_mesh_;                  ///< the last asked for
  const ShardingOptions* on_mesh_by_ = nullptr;  ///< whose they are; null in another family
  MemberTables tables_;
  std::vector<FittedLayout> ways_to_fit_;      ///< of the sharding being visited
  bool tables_ready_ = false;                  ///< for the member being visited
  std::map<PhaseKey, Phases<double>> phases_;  ///< of the family being visited, by what they depend on
  const Ranker* ranker_ = nullptr;
  std::optional<double> below_;
  Ranking ranking_{1, true};
  std::optional<Rank> limit_;  ///< of the member being visited: what ranks after it is of no use
  bool floors_ = true;
  bool any_ = false;  ///< whether anything fits is all that is asked
  FamilyResult out_;
  struct Miss {
    Branch branch;
    Layout layout;
    MemoryUse<double> memory;
  };
  std::optional<Miss> nearest_;   ///< of the family being visited: what needs least of what does not fit
  std::optional<double> before_;  ///< bytes that what does so of families before takes
  std::map<BranchKey, ShardingOptions> shardings_;
  std::pair<BranchKey, ShardingOptions*> last_shardings_{};         ///< the members of one split follow each other
  std::array<std::pair<WaysKey, const ShardingWays*>, 16> ways_{};  ///< of members not long ago, by the hash of the key
  std::vector<StageFloor> stage_floors_;                            ///< of the member being bounded or visited
  ShardingWays own_ways_;                                           ///< of a member that may differ from all others
  std::vector<StageShape> whole_model_;                             ///< on one stage
  std::map<std::array<std::int64_t, 5>, BoundChannels> bounds_;
  std::map<std::pair<std::size_t, std::int64_t>, Channel<double>> tensor_;  ///< by slice and tp
  std::pair<std::array<std::int64_t, 5>, BoundChannels*> last_bounds_{};    ///< those of a family come together
  std::map<std::array<std::int64_t, 6>, bool> placeable_;
  std::pair<std::array<std::int64_t, 6>, bool> last_placeable_{};
  struct HashAlone {
    std::size_t operator()(const Alone& of) const {
      std::uint64_t out = static_cast<std::uint64_t>(of.size) << 2 | (of.apart ? 2 : 0) | (of.experts ? 1 : 0);
      for (const std::uint64_t part : {static_cast<std::uint64_t>(of.stride), static_cast<std::uint64_t>(of.slice)}) {
        out = (out ^ part) * 0x9e3779b97f4a7c15ULL;
      }
      return out ^ (out >> 32);
    }
  };
  std::unordered_map<Alone, Channel<double>, HashAlone> alone_;
  std::array<const std::pair<const Alone, Channel<double>>*, 64> last_alone_{};  ///< of them, by the hash
};

}  // namespace scalecalc
