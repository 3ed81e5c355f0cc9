// Searches the number of chips that meets a deadline or a budget, for `scalecalc compare`.
#include "compare/chip_search.h"

#include <cmath>
#include <limits>
#include <mutex>

#include "base/check.h"
#include "model/accounting.h"
#include "plan/request.h"
#include "plan/threads.h"
#include "train/figures.h"

namespace scalecalc {
namespace {

/// A run that takes exactly as long as it may is in time, whichever way its product is rounded.
constexpr double kExactlyInTime = 1 + 1e-12;

/// The fastest that any matmul of the job runs: large ones, in the faster of the formats.
double best_matmul_rate(const ResolvedQuestion& job) {
  double out = 0;
  for (const DType format : {job.workload.precision.compute, job.workload.precision.high}) {
    const std::size_t d = static_cast<std::size_t>(format);
    if (job.hw.matmul_peak[d]) out = std::max(out, job.hw.matmul_peak[d]->value() * job.efficiency.matmul[d].value);
  }
  return out * std::max(1.0, job.efficiency.grouped_matmul.value);
}

}  // namespace

ChipSearch::ChipSearch(const TrainQuestion& question, const ResolvedQuestion& job, const std::function<bool()>& stop)
    : question_(question), job_(job), stop_(stop) {
  check(job.workload.tokens.has_value(), "a run of known length");
  const double seq = static_cast<double>(job.workload.seq);
  flops_ = training_flops(job.model, seq, false).six_n * *job.workload.tokens;
  rate_ = best_matmul_rate(job);
}

SizeAnswer ChipSearch::fewest(const RunLimits& limits) const {
  struct Count {
    std::int64_t chips = 0;
    std::optional<double> longest;
    std::size_t number = 0;  ///< of those searched, from 1
  };
  std::mutex mutex;  // of what follows
  Count last;        // that a thread took
  SizeAnswer out;    // once it has a plan, nobody takes a larger count
  const auto take = [&]() -> std::optional<Count> {
    const std::lock_guard lock(mutex);
    for (;;) {
      if (out.found || stopped()) return std::nullopt;
      const std::int64_t chips = built_from(last.chips + 1, limits.most_chips);
      if (chips == 0) return std::nullopt;
      last.chips = chips;
      last.longest = limits.longest(static_cast<double>(chips));
      if (!last.longest || least_time_s(static_cast<double>(chips)) <= *last.longest) break;
    }
    ++last.number;
    return last;
  };
  Threads threads;
  threads.run(threads.count(), [&](std::size_t, std::size_t) {
    while (const std::optional<Count> count = take()) {
      std::optional<SizedPlan> found = plan_within(count->chips, count->longest, 1);
      // What a run takes beside its steps is known of the plan alone.
      if (!found || (count->longest && found->plan.figures.run->time_s > *count->longest * kExactlyInTime)) continue;
      const std::lock_guard lock(mutex);
      if (out.found && out.counts < count->number) continue;
      out.counts = count->number;
      out.found = std::move(found);
    }
  });
  if (stopped()) return {.counts = last.number, .complete = false};
  if (!out.found) out.counts = last.number;
  return out;
}

SizeAnswer ChipSearch::fastest(const RunLimits& limits) const {
  SizeAnswer out;
  double best_s = std::numeric_limits<double>::infinity();
  for (std::int64_t n = built_below(limits.most_chips); n != 0; n = built_below(n - 1)) {
    if (least_time_s(static_cast<double>(n)) >= best_s) break;
    std::optional<double> longest = limits.longest(static_cast<double>(n));
    if (longest && least_time_s(static_cast<double>(n)) > *longest) continue;
    if (stopped()) {
      out.complete = false;
      return out;
    }
    ++out.counts;
    const double allowed = longest.value_or(best_s);
    if (out.found) longest = std::min(allowed, best_s);
    std::optional<SizedPlan> found = plan_within(n, longest, 0);
    if (!found) continue;
    const double time_s = found->plan.figures.run->time_s;
    if (time_s > allowed * kExactlyInTime || time_s >= best_s) continue;
    best_s = time_s;
    out.found = std::move(found);
  }
  out.complete = !stopped();
  return out;
}

std::int64_t ChipSearch::built_from(std::int64_t chips, std::int64_t most) const {
  if (chips > most) return 0;
  const std::int64_t found = nearest_above(job_.hw, chips, question_.slices);
  return found > most ? 0 : found;
}

std::int64_t ChipSearch::built_below(std::int64_t chips) const {
  return chips < 1 ? 0 : nearest_below(job_.hw, chips, question_.slices);
}

std::optional<SizedPlan> ChipSearch::plan_within(std::int64_t chips, const std::optional<double>& longest_s,
                                                 std::size_t threads) const {
  TrainQuestion question = question_;
  question.chips = chips;
  SizedPlan out{.machine = on_machine(question, job_)};
  std::erase_if(out.machine.slices, [&](const Slice& slice) { return slice.chips != chips; });
  PlanRequest request = request_of(question, out.machine);
  request.counts = false;
  request.bounds = bounds_;
  request.threads = threads;
  Planner planner(request, stop_);
  Goal goal{.objective = Objective::kTime, .top = 1};
  if (longest_s) goal.below = kExactlyInTime * *longest_s / *job_.workload.tokens;
  PlanResult result = planner.best(goal);
  if (result.plans.empty()) return std::nullopt;
  out.plan = ranked(out.machine, request, std::move(result.plans.front()));
  return out;
}

}  // namespace scalecalc
