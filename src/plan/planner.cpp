// Searches all layouts best-first and exactly, for every command that plans. Every run of families gets a proven lower
// bound; what comes first is opened down to single families, which are visited in the order of their own bounds, and
// the search ends when the next bound is worse than the worst plan kept.
#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <memory_resource>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "base/progress.h"
#include "base/stop.h"
#include "plan/family_search.h"
#include "plan/threads.h"

namespace scalecalc {

class Planner::Search {
 public:
  Search(const PlanRequest& request, const std::function<bool()>& stop)
      : request_(settled(request)),
        stop_(stop),
        inputs_(request_),
        own_space_(std::in_place, request_, counted_),
        space_(*own_space_),
        threads_(request.threads),
        ranker_(request.objective),
        ranking_(1, true) {
    const auto start = std::chrono::steady_clock::now();
    counted_.launcher = request.stack;
    recipes_ = recipes(request_, counted_);
    before_ = counted_;
    bounds_ = request.bounds ? request.bounds : std::make_shared<RunBounds>();
    hire();
    collect();
    counted_.elapsed_s = seconds_since(start);
  }

  /// The same search on other hardware, of which no time is shorter than a `factor`th.
  Search(const Search& base, const HardwareSpec& hw, double factor)
      : request_(base.request_),
        stop_(base.stop_),
        counted_(base.counted_),
        room_(base.room_),
        inputs_((request_.hw = &hw, request_)),
        space_(base.space_),
        threads_(base.threads_.count()),
        ranker_(request_.objective),
        ranking_(1, true),
        recipes_(base.recipes_),
        runs_(base.runs_),
        known_(base.known_),
        floors_(base.floors_),
        bounds_(std::make_shared<RunBounds>()) {
    const double least = kBoundRounding / factor;
    for (KnownFamily& known : known_) {
      if (known.of_smaller) *known.of_smaller *= least;
      known.least_s *= least;
      known.usable_s *= least;
      if (known.token_s) known.least_s = std::max(known.least_s, *std::exchange(known.token_s, {}) * least);
      known.rounded = false;
    }
    hire();
    lifted_ = true;  // what comes nearest to fitting is the same
  }

  PlanResult run(const Goal& goal) {
    const auto start = std::chrono::steady_clock::now();
    if (goal.usable < 1 && std::exchange(room_, goal.usable) != goal.usable) {
      for (KnownFamily& known : known_) known.usable_s = 0;
    }
    goal_ = goal;
    request_.usable = goal.usable;
    request_.without = goal.without;
    ranker_ = Ranker(goal.objective, goal.simplest, request_.measured);
    ranking_ = Ranking(std::max<std::size_t>(goal.top, 1), request_.variants);
    descend();
    const bool anything = !goal.below && !goal.fewer_chips && goal.usable >= 1 && goal.without == 0;
    if (ranking_.best().empty() && anything && !lifted_ && !should_stop(stop_)) {
      lift_floors();
      descend();
    }
    for (const Candidate& c : ranking_.best()) result_.plans.push_back(c.plan);
    if (!result_.plans.empty()) result_.nearest_miss.reset();
    return finish(start);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  PlanResult finish(Clock::time_point start) {
    result_.stats.elapsed_s = counted_.elapsed_s + seconds_since(start);
    return std::move(result_);
  }

  /// How many bounds or visits are worth several threads: waking them costs what four bounds or one visit take, and
  /// they are awake for as much again.
  static constexpr std::size_t kManyBounds = 32, kManyVisits = 8;

  /// Runs `work(worker, i)` for i below `count`, on all threads unless these are fewer than `many`.
  template <class Work>
  void in_parallel(std::size_t count, std::size_t many, const Work& work) {
    if (count < many) {
      for (std::size_t i = 0; i < count; ++i) work(workers_.front(), i);
    } else {
      threads_.run(count, [&](std::size_t thread, std::size_t i) { work(workers_[thread], i); });
    }
  }

  void hire() {
    for (std::size_t t = 0; t < threads_.count(); ++t) workers_.emplace_back(inputs_, space_, recipes_, *bounds_);
  }

  /// Counts every family and bounds every run. Those of one inner degree share their layer costs, so they are dealt to
  /// the threads in groups.
  void collect() {
    const auto last_of = [&](const FamilyRun& run) { return space_.family(run, run.last()); };
    if (recipes_.empty()) return;
    known_.assign(space_.size(), {});
    runs_ = space_.runs();
    floors_.assign(runs_.size(), {});
    std::stable_sort(runs_.begin(), runs_.end(), [&](const FamilyRun& a, const FamilyRun& b) {
      return inner_of(last_of(a).layout) < inner_of(last_of(b).layout);
    });
    constexpr std::size_t kGroup = 16;
    const std::size_t groups = (runs_.size() + kGroup - 1) / kGroup;
    std::vector<SearchStats> stats(groups);
    in_parallel(groups, 2, [&](FamilySearch& worker, std::size_t group) {
      for (std::size_t r = group * kGroup; r < std::min(runs_.size(), (group + 1) * kGroup); ++r) {
        if (should_stop(stop_)) return;
        FamilyRun& run = runs_[r];
        const RunBound bound = worker.run_bound(last_of(run));
        floors_[r] = bound.floors;
        const std::vector<std::uint64_t> candidates = worker.count(run, floors_[r], stats[group]);
        for (std::size_t f = run.begin; f < run.end; ++f) {
          known_[f].candidates = candidates[f - run.begin];
          known_[f].floor = static_cast<std::uint32_t>(r);
        }
        while (run.size() > 0 && known_[run.last()].candidates == 0) --run.end;  // mostly too large
        if (run.size() > 0) known_[run.last()].of_smaller = worker.token_s(last_of(run), bound);
      }
    });
    for (const SearchStats& s : stats) add(s, counted_);
    // A run without a bound was not reached before the search was stopped.
    std::erase_if(runs_, [&](const FamilyRun& run) { return run.size() == 0 || !known_[run.last()].of_smaller; });
  }

  static void add(const SearchStats& more, SearchStats& sum) {
    sum.candidates += more.candidates;
    sum.evaluated += more.evaluated;
    sum.feasible += more.feasible;
    sum.pruned += more.pruned;
    sum.add_cuts(more);
  }

  double chips_of(const FamilyRun& run) const {
    return static_cast<double>(request_.slices[space_.family(run, run.begin).slice].chips);
  }
  std::uint64_t layouts_of(const FamilyRun& run) const {
    std::uint64_t out = 0;
    for (std::size_t f = run.begin; f < run.end; ++f) out += known_[f].candidates;
    return out;
  }

  /// A run that is still to be opened, or a single family, by a lower bound of its rank.
  struct Entry {
    Rank bound;
    FamilyRun run;
    bool bounded = false;  ///< by the members of a single family
    /// Of equal bounds what may hold an earlier family comes first.
    bool operator<(const Entry& o) const {
      if (bound != o.bound) return bound < o.bound;
      return bounded != o.bounded ? !bounded : run.begin < o.run.begin;
    }
  };

  /// Puts it in the order, if any of its layouts is looked for.
  void enter(const FamilyRun& run, bool bounded, std::pmr::set<Entry>& order) {
    const KnownFamily& last = known_[run.last()];
    double token_s = bounded ? *last.token_s : last.of_smaller.value_or(0);
    if (run.size() == 1) token_s = std::max(token_s, last.least_s);
    if (run.size() == 1 && goal_.usable < 1) token_s = std::max(token_s, last.usable_s);
    const bool none = !std::isfinite(token_s);  // of its layouts fits
    if (none || (goal_.below && ranker_.goal(chips_of(run), token_s, 1) >= *goal_.below)) {
      result_.stats.pruned += layouts_of(run);
    } else if (layouts_of(run) > 0) {
      order.insert({ranker_(space_.family(run, run.begin).layout, chips_of(run), token_s, 1, 0), run, bounded});
    }
  }

  /// Opens runs until the first `count` entries that the ranking admits are families by their own bounds.
  void open_first(std::size_t count, std::pmr::set<Entry>& order) {
    constexpr std::size_t kShort = 3;  // halving costs as much as bounding all
    std::vector<FamilyRun> runs;
    for (;;) {
      runs.clear();
      std::size_t seen = 0;
      for (auto at = order.begin(); at != order.end() && seen < count && ranking_.admits(at->bound); ++seen) {
        if (at->bounded) {
          ++at;
        } else {
          runs.push_back(at->run);
          at = order.erase(at);
        }
      }
      if (runs.empty()) return;
      in_parallel(runs.size(), kManyBounds, [&](FamilySearch& worker, std::size_t i) {
        const FamilyRun& run = runs[i];
        const auto family = [&](std::size_t f) { return space_.family(run, f); };
        const std::size_t middle = run.begin + run.size() / 2;
        if (run.size() > kShort && !known_[middle - 1].of_smaller) {
          const Family smaller = family(middle - 1);
          known_[middle - 1].of_smaller = worker.token_s(smaller, worker.run_bound(smaller));
        }
        for (std::size_t f = run.begin; f < run.end && run.size() <= kShort; ++f) {
          KnownFamily& known = known_[f];
          const RunFloors& floors = floors_[known.floor];
          if (known.token_s) continue;
          if (run.size() > 1 && !(known.least_s > 0)) {
            known.least_s = worker.bound(family(f), floors, family(run.last())).value_or(0);
          }
          if (run.size() > 1 && known.least_s > 0) continue;  // it may not come first
          if (!std::exchange(known.rounded, true) &&
              !std::has_single_bit(static_cast<std::uint64_t>(family(f).layout.micro_batch_seqs))) {
            known.least_s = std::max(known.least_s, worker.rounded_bound(family(f), floors));
            continue;
          }
          known.token_s = worker.bound(family(f), floors);
        }
      });
      for (const FamilyRun& run : runs) {
        const std::size_t middle = run.begin + run.size() / 2;
        if (run.size() > kShort) {
          enter({run.begin, middle, run.shape}, false, order);
          enter({middle, run.end, run.shape}, false, order);
        }
        for (std::size_t f = run.begin; f < run.end && run.size() <= kShort; ++f) {
          enter({f, f + 1, run.shape}, known_[f].token_s.has_value(), order);
        }
      }
      if (should_stop(stop_)) return;
    }
  }

  /// Where nothing fits, what comes nearest is asked for.
  void lift_floors() {
    lifted_ = true;
    for (FamilySearch& worker : workers_) worker.lift_floors();
    counted_ = before_;
    collect();
  }

  /// Visits families in order of their bound until none left can enter the ranking. They are visited in rounds whose
  /// families see the same ranking, so that the answer and its counts do not depend on the number of threads.
  void descend() {
    result_ = {};
    result_.stats = counted_;
    std::pmr::unsynchronized_pool_resource entries;
    std::pmr::set<Entry> order(&entries);
    for (const FamilyRun& run : runs_) {
      const Family family = space_.family(run, run.begin);
      if (goal_.fewer_chips && request_.slices[family.slice].chips >= *goal_.fewer_chips) continue;
      if (!leaves_out(request_, family.layout)) enter(run, false, order);
    }
    constexpr std::size_t kLongestRound = 64;
    std::size_t round = 1;
    Progress progress("families of layouts", space_.size());
    for (;; round = std::min(2 * round, kLongestRound)) {
      open_first(round, order);
      std::vector<FamilyRun> first;
      for (auto at = order.begin(); at != order.end() && first.size() < round && ranking_.admits(at->bound); ++at) {
        if (!at->bounded) break;  // stopped
        first.push_back(at->run);
      }
      if (first.empty() || (stop_ && stop_())) break;
      order.erase(order.begin(), std::next(order.begin(), static_cast<std::ptrdiff_t>(first.size())));
      std::vector<FamilyResult> found(first.size());
      in_parallel(found.size(), kManyVisits, [&](FamilySearch& worker, std::size_t i) {
        if (should_stop(stop_)) return;
        const KnownFamily& known = known_[first[i].begin];
        found[i] = worker.visit(space_.family(first[i], first[i].begin), floors_[known.floor], known.candidates,
                                ranker_, ranking_, goal_.below, result_.nearest_miss);
      });
      for (std::size_t i = 0; i < found.size(); ++i) {
        // Who was not stopped has looked at every layout that fits.
        KnownFamily& known = known_[first[i].begin];
        if (!should_stop(stop_)) {
          double& least = goal_.usable < 1 ? known.usable_s : *known.token_s;
          least = std::max(least, found[i].token_s);
        }
        merge(std::move(found[i]));
      }
      progress.add(first.size());
    }
    for (const Entry& entry : order) result_.stats.pruned += layouts_of(entry.run);
  }

  void merge(FamilyResult&& found) {
    add(found.stats, result_.stats);
    for (Candidate& candidate : found.kept) ranking_.offer(std::move(candidate));
    if (!found.nearest_miss || ranking_.full()) return;
    if (result_.nearest_miss && !(found.nearest_miss->memory.total() < result_.nearest_miss->memory.total())) return;
    result_.nearest_miss = std::move(found.nearest_miss);
  }

  PlanRequest request_;
  std::function<bool()> stop_;
  SearchStats counted_;  ///< what enumeration found
  SearchStats before_;   ///< the same before members were
  bool lifted_ = false;  ///< the floors of memory
  Goal goal_;
  double room_ = 0;  ///< share of the memory that KnownFamily::usable_s is of
  PlanResult result_;
  SearchInputs inputs_;
  std::optional<Space> own_space_;
  const Space& space_;
  Threads threads_;
  std::vector<FamilySearch> workers_;
  Ranker ranker_;
  Ranking ranking_;
  std::vector<Recipe> recipes_;
  std::vector<FamilyRun> runs_;
  std::vector<KnownFamily> known_;  ///< by family
  std::vector<RunFloors> floors_;   ///< by run, in the order they were bounded
  std::shared_ptr<RunBounds> bounds_;
};

Planner::Planner(const PlanRequest& request, const std::function<bool()>& stop)
    : search_(std::make_unique<Search>(request, stop)) {}
Planner::~Planner() = default;
PlanResult Planner::best(const Goal& goal) { return search_->run(goal); }
PlanResult Planner::best_on(const HardwareSpec& hw, double factor, const Goal& goal) const {
  return Search(*search_, hw, factor).run(goal);
}

std::string_view describe(Reject reason) {
  constexpr std::array<std::string_view, kRejectCount> kTexts{
      "excluded by --fix, --max or another flag",
      "attention heads do not divide by tp",
      "layer widths do not divide by tp",
      "the sequence does not divide by 2 x cp, or its shard by tp",
      "fewer sequences in the batch than data ranks",
      "no batch near the one asked for divides over the data ranks",
      "more pipeline chunks than layers, or chunks that do not divide them",
      "microbatches the schedule cannot run: not in groups of pp (interleaved), fewer than 2 pp or ZeRO 2 or 3 "
      "(DualPipe)",
      "experts do not divide over their ranks",
      "degrees do not fit the machine's axes or domains",
      "out of memory",
      "heads do not divide by tp x cp (Ulysses), or no keys and values to pass round (ring)",
      "not what the software stack can run (--stack any lifts it)"};
  return kTexts[static_cast<std::size_t>(reason)];
}

PlanResult plan(const PlanRequest& request, const std::function<bool()>& stop) {
  return Planner(request, stop).best({.objective = request.objective, .top = request.top});
}

}  // namespace scalecalc
