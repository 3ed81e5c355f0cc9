// Best-first exact search. Every family of layouts gets a proven lower bound; families are visited in order of bound,
// and the search ends when the next bound is worse than the worst plan kept.
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>
#include <span>

#include "base/progress.h"
#include "base/stop.h"
#include "plan/family_search.h"

namespace scalecalc {

class Planner::Search {
 public:
  Search(const PlanRequest& request, const std::function<bool()>& stop)
      : request_(request),
        stop_(stop),
        inputs_(request_),
        space_(request_, counted_),
        threads_(request.threads > 0 ? request.threads : static_cast<std::size_t>(tbb::info::default_concurrency())),
        arena_(static_cast<int>(threads_)),
        ranker_(request.objective),
        ranking_(1, true) {
    const auto start = std::chrono::steady_clock::now();
    counted_.launcher = request.stack;
    const std::vector<Recipe> allowed = recipes(request, counted_);
    for (std::size_t t = 0; t < threads_; ++t) workers_.emplace_back(inputs_, space_, allowed);
    collect();
    counted_.elapsed_s = seconds_since(start);
  }

  PlanResult run(const Goal& goal) {
    const auto start = std::chrono::steady_clock::now();
    goal_ = goal;
    request_.usable = goal.usable;
    request_.without = goal.without;
    ranker_ = Ranker(goal.objective, goal.simplest, request_.measured);
    ranking_ = Ranking(std::max<std::size_t>(goal.top, 1), request_.variants);
    descend();
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

  /// Runs `work(worker, i)` for i below `count` on all threads. An exception of one is thrown again here.
  template <class Work>
  void in_parallel(std::size_t count, const Work& work) {
    if (count == 1 || threads_ == 1) {
      for (std::size_t i = 0; i < count; ++i) work(workers_.front(), i);
      return;
    }
    arena_.execute([&] {
      tbb::parallel_for(std::size_t{0}, count, [&](std::size_t i) {
        work(workers_[static_cast<std::size_t>(tbb::this_task_arena::current_thread_index())], i);
      });
    });
  }

  /// Bounds every family. Those of one inner degree share their layer costs, so they are dealt to the threads in runs.
  void collect() {
    const std::vector<Family>& families = space_.families();
    items_.resize(families.size());
    std::vector<std::uint32_t> order(families.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return inner_of(families[a].layout) < inner_of(families[b].layout);
    });
    constexpr std::size_t kRun = 96;
    const std::size_t runs = (families.size() + kRun - 1) / kRun;
    std::vector<SearchStats> stats(runs);
    in_parallel(runs, [&](FamilySearch& worker, std::size_t run) {
      if (should_stop(stop_)) return;
      const std::size_t begin = run * kRun;
      const std::size_t length = std::min(kRun, families.size() - begin);
      worker.bound(std::span(order).subspan(begin, length), items_, stats[run]);
    });
    for (const SearchStats& s : stats) add(s, counted_);
    for (const BoundedFamily& item : items_) counted_.candidates += item.candidates;
    std::erase_if(items_, [](const BoundedFamily& item) { return item.candidates == 0; });
  }

  static void add(const SearchStats& more, SearchStats& sum) {
    sum.evaluated += more.evaluated;
    sum.feasible += more.feasible;
    sum.pruned += more.pruned;
    sum.add_cuts(more);
  }

  /// Lower bound of a family's rank: the least of its members' bounds, none of which is below [FAMILY].
  Rank bound_of(const BoundedFamily& item) const {
    return ranker_(item.family->layout, chips_of(item), item.token_s, 1, 0);
  }
  double chips_of(const BoundedFamily& item) const {
    return static_cast<double>(request_.slices[item.family->slice].chips);
  }

  /// Visits families in order of their bound until none left can enter the ranking. They are visited in rounds whose
  /// families see the same ranking, so that the answer and its counts do not depend on the number of threads.
  void descend() {
    struct Entry {
      Rank bound;
      std::size_t item;
      bool operator<(const Entry& o) const { return bound != o.bound ? bound < o.bound : item < o.item; }
    };
    result_ = {};
    result_.stats = counted_;
    std::vector<Entry> order;
    order.reserve(items_.size());
    for (std::size_t i = 0; i < items_.size(); ++i) {
      const std::int64_t chips = request_.slices[items_[i].family->slice].chips;
      if (goal_.fewer_chips && chips >= *goal_.fewer_chips) continue;
      if (leaves_out(request_, items_[i].family->layout)) continue;
      if (goal_.below && ranker_.goal(chips_of(items_[i]), items_[i].token_s, 1) >= *goal_.below) {
        result_.stats.pruned += items_[i].candidates;
      } else {
        order.push_back({bound_of(items_[i]), i});
      }
    }
    std::sort(order.begin(), order.end());
    constexpr std::size_t kLongestRound = 64;
    std::size_t round = 1;
    Progress families("families of layouts", order.size());
    for (std::size_t at = 0; at < order.size(); round = std::min(2 * round, kLongestRound)) {
      const auto last = std::find_if(order.begin() + static_cast<std::ptrdiff_t>(at),
                                     order.begin() + static_cast<std::ptrdiff_t>(std::min(at + round, order.size())),
                                     [&](const Entry& e) { return !ranking_.admits(e.bound); });
      const std::size_t end = static_cast<std::size_t>(last - order.begin());
      if (end == at || (stop_ && stop_())) {
        for (; at < order.size(); ++at) result_.stats.pruned += items_[order[at].item].candidates;
        return;
      }
      std::vector<FamilyResult> found(end - at);
      in_parallel(found.size(), [&](FamilySearch& worker, std::size_t i) {
        if (should_stop(stop_)) return;
        found[i] = worker.visit(items_[order[at + i].item], ranker_, ranking_, goal_.below);
      });
      for (FamilyResult& result : found) merge(std::move(result));
      families.add(end - at);
      at = end;
    }
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
  Goal goal_;
  PlanResult result_;
  SearchInputs inputs_;
  Space space_;
  std::size_t threads_;
  tbb::task_arena arena_;
  std::vector<FamilySearch> workers_;
  Ranker ranker_;
  Ranking ranking_;
  std::vector<BoundedFamily> items_;
};

Planner::Planner(const PlanRequest& request, const std::function<bool()>& stop)
    : search_(std::make_unique<Search>(request, stop)) {}
Planner::~Planner() = default;
PlanResult Planner::best(const Goal& goal) { return search_->run(goal); }

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
