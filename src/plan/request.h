// What the planner is asked and what it answers.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost/step.h"
#include "plan/mechanisms.h"

namespace scalecalc {

class RunBounds;      // plan/run_bounds.h
struct StackRelease;  // plan/stack_supports.h

enum class Objective { kTime, kCost, kMemory, kChips };
inline constexpr std::array<std::string_view, 4> kObjectiveNames{"time", "cost", "memory", "chips"};

/// Layout dimensions a user may pin (--fix) or bound (--max).
struct LayoutFilter {
  std::optional<std::int64_t> dp, fsdp, tp, sp, cp, pp, vpp, ep, etp, zero, micro_batch_seqs, grad_accum, remat_layers;
  std::optional<Remat> remat;  ///< this and the following: pins only; of as many layers as needed if none are pinned
  std::optional<Schedule> schedule;
  std::optional<CpComm> cp_comm;
  std::optional<std::uint8_t> offload;         ///< kOffload bits
  std::optional<bool> ep_overlap;              ///< of layouts with expert ranks
  std::optional<std::int64_t> offload_layers;  ///< beside offload: of as many layers as needed if it is not pinned
  std::optional<LossKind> loss;
  std::optional<ChunkEnds> split;  ///< of layouts with pipeline stages
};

struct PlanRequest {
  const ModelSpec* model = nullptr;
  const HardwareSpec* hw = nullptr;
  Efficiency efficiency;  ///< the hardware's, or ideal_efficiency of it
  Workload workload;
  std::shared_ptr<const StackRelease> stack;  ///< whose layouts are searched; null: those of any
  std::vector<Slice> slices;  ///< machines to consider: the one asked for, and smaller ones worth offering
  LayoutFilter fix;
  LayoutFilter max;
  Objective objective = Objective::kTime;
  std::size_t top = 10;
  bool variants = false;     ///< rank every variant; otherwise the best one of each set of parallel degrees
  std::size_t threads = 0;   ///< 0 = as many as the machine has; the answer is the same for any number
  double usable = 1;         ///< share of the chip's memory that a plan may take
  MeasuredExtent measured;   ///< what is unmeasured counts more where the simplest is looked for
  MechanismSet without = 0;  ///< no plan may use them unmeasured
  bool counts = true;        ///< SearchStats says of all layouts how many there are and why the others are none
  std::shared_ptr<RunBounds> bounds;  ///< shared with questions about the same job on other counts of chips, or null
};

/// Whether plans of this layout are left out by `without`.
inline bool leaves_out(const PlanRequest& request, const Layout& layout) {
  return request.without != 0 && (unmeasured_in(layout, request.measured) & request.without) != 0;
}

/// Why a branch of the search was cut. Counted where it was cut: one count may stand for many layouts.
enum class Reject : std::uint8_t {
  kPinned,        ///< excluded by --fix, --max, --remat, --zero or --schedule
  kHeads,         ///< attention heads (or KV heads) do not divide by tp
  kWidth,         ///< d_ff, expert d_ff or d_model do not divide by tp
  kSequence,      ///< seq does not divide by 2 x cp, or the local sequence by tp under sequence sharding
  kBatchSmall,    ///< fewer sequences than data ranks
  kBatchUneven,   ///< no batch near the one asked for divides over the data ranks
  kStages,        ///< more pipeline chunks than layers
  kMicrobatches,  ///< microbatches that the schedule cannot run: too few, or not in its groups
  kExperts,       ///< experts do not divide, or the expert group does not fold over the ranks
  kPlacement,     ///< the degrees do not fit the machine's axes or domains
  kMemory,        ///< the fullest chip (or the host, of what is offloaded) runs out of memory
  kContext,       ///< context ranks cannot exchange heads (Ulysses) or pass keys and values round (ring)
  kStack,         ///< the software stack cannot run it; SearchStats::stack says by which fact
};
inline constexpr std::size_t kRejectCount = 13;
std::string_view describe(Reject reason);

struct Plan {
  Layout layout;
  Slice slice;
  Placement placement;
  StepTime<double> time;
  MemoryUse<double> memory;
  double step_s = 0;
  double batch_seqs = 0;  ///< sequences a step really runs
};

struct SearchStats {
  std::uint64_t candidates = 0;  ///< legal layouts, before memory
  std::uint64_t evaluated = 0;   ///< costed
  std::uint64_t feasible = 0;    ///< of those looked at, how many fit in memory
  std::uint64_t pruned = 0;      ///< proven by the lower bound not to reach the ranking
  std::array<std::uint64_t, kRejectCount> rejected{};
  std::shared_ptr<const StackRelease> launcher;  ///< of the request
  std::vector<std::uint64_t> stack;  ///< of rejected by the stack: by fact, as its release lists them; may be shorter
  double elapsed_s = 0;

  /// What was cut elsewhere, so many times.
  void add_cuts(const SearchStats& more, std::uint64_t times = 1) {
    for (std::size_t i = 0; i < kRejectCount; ++i) rejected[i] += times * more.rejected[i];
    if (stack.size() < more.stack.size()) stack.resize(more.stack.size());
    for (std::size_t i = 0; i < more.stack.size(); ++i) stack[i] += times * more.stack[i];
  }
  void refuse(std::size_t fact, std::uint64_t layouts = 1) {
    rejected[static_cast<std::size_t>(Reject::kStack)] += layouts;
    if (stack.size() <= fact) stack.resize(fact + 1);
    stack[fact] += layouts;
  }
};

struct PlanResult {
  std::vector<Plan> plans;           ///< best first
  std::optional<Plan> nearest_miss;  ///< if nothing fits: the plan with the least memory over capacity
  SearchStats stats;
};

/// What to rank a space by.
struct Goal {
  Objective objective = Objective::kTime;
  std::size_t top = 10;
  std::optional<double> below;              ///< only plans whose goal per token (see Ranker) is less than this
  std::optional<std::int64_t> fewer_chips;  ///< only machines with fewer chips than this
  bool simplest = false;                    ///< the simplest (plan/mechanisms.h) first, then by the objective
  double usable = 1;                        ///< share of the chip's memory that a plan may take
  MechanismSet without = 0;                 ///< mechanisms that no plan may use unmeasured
};

/// Exact search over the whole space described in docs/model.md. One planner answers several goals about one request;
/// the bounds are computed once. `stop` (may be empty) is polled; when it returns true the search ends with what it
/// has.
class Planner {
 public:
  /// Keeps a copy of `request`, not of what it points to.
  explicit Planner(const PlanRequest& request, const std::function<bool()>& stop = {});
  ~Planner();
  PlanResult best(const Goal& goal);

  /// The best plan of the same request on hardware of which one rate is at most `factor` times as high and all else the
  /// same: no time is shorter than a `factor`th of what it was, so bounds and what best() proved are not found anew.
  PlanResult best_on(const HardwareSpec& hw, double factor, const Goal& goal) const;

 private:
  class Search;
  std::unique_ptr<Search> search_;
};

/// The best plans by the request's own goal.
PlanResult plan(const PlanRequest& request, const std::function<bool()>& stop = {});

/// Re-evaluates one plan in another reading (explain, sensitivity, error band).
template <class R>
struct PlanReading {
  StepTime<R> time;
  MemoryUse<R> memory;
};
template <class R>
PlanReading<R> read_plan(const Reader<R>& reader, const PlanRequest& request, const Plan& plan);

}  // namespace scalecalc
