// Answers `scalecalc train` over several numbers of chips, and finds where scaling stops being linear.
#include "train/curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/diagnostic.h"
#include "base/text.h"
#include "base/units.h"
#include "train/figures.h"
#include "train/obstacles.h"
#include "train/pareto.h"

namespace scalecalc {
namespace {

using Shares = std::vector<std::pair<std::string, double>>;

/// What the machine's time goes to, chips that the plan leaves idle included; sums to 1.
Shares shares_of(const CurvePoint& point) {
  const double used = static_cast<double>(point.plan->plan.layout.chips()) / static_cast<double>(point.chips);
  Shares out{{"idle", 1 - used}};
  for (const auto& [cause, seconds] : point.plan->figures.time_s) {
    out.emplace_back(cause, used * seconds / point.plan->plan.step_s);
  }
  return out;
}

std::string sentence_of(const UserError& error) {
  const Diagnostic& first = error.diagnostics().front();
  return first.hint.empty() ? first.message : fmt::format("{}; {}", first.message, first.hint);
}

void no_plan(CurvePoint& point, PointStatus status, std::string reason) {
  point.status = status;
  point.reason = std::move(reason);
}

/// Why a search came back without a plan.
void explain_none(const PlanRequest& request, const PlanResult& result, CurvePoint& point) {
  if (result.nearest_miss) {
    const auto bytes = [](Bytes b) { return bytes_text(b.value()); };
    return no_plan(point, PointStatus::kOutOfMemory,
                   fmt::format("the nearest layout needs {} of the {} on each chip",
                               bytes(result.nearest_miss->memory.total()), bytes(request.hw->hbm_capacity)));
  }
  if (const std::vector<std::string> found = obstacles(request); !found.empty()) {
    return no_plan(point, PointStatus::kNoLayout, join(found, "; "));
  }
  const auto& counts = result.stats.rejected;
  const auto most = std::max_element(counts.begin(), counts.end());
  no_plan(point, PointStatus::kNoLayout,
          *most == 0 ? "none is legal" : std::string(describe(static_cast<Reject>(most - counts.begin()))));
}

class CurveMaker {
 public:
  CurveMaker(const CurveQuestion& question, ResolvedQuestion job, const std::function<bool()>& stop)
      : q_(question), job_(std::move(job)), stop_(stop), known_assumptions_(job_.assumptions.size()) {}

  TrainCurve run() {
    for (const std::int64_t chips : q_.chips) out_.points.push_back(point(chips));
    if (!any_machine_) throw *no_machine_;
    compare_points(out_.points, !q_.train.fix.dp && !q_.train.fix.fsdp);
    out_.end = linear_end(out_.points);
    if (q_.pareto) front();
    describe_job();
    return std::move(out_);
  }

 private:
  bool stopped() const { return stop_ && stop_(); }

  CurvePoint point(std::int64_t chips) {
    CurvePoint out{.chips = chips};
    TrainQuestion question = q_.train;
    question.chips = chips;
    ResolvedQuestion resolved;
    try {
      resolved = on_machine(question, job_);
    } catch (const UserError& error) {
      if (!no_machine_) no_machine_ = error;
      no_plan(out, PointStatus::kNotBuilt, sentence_of(error));
      return out;
    }
    search(question, resolved, out);
    return out;
  }

  void search(const TrainQuestion& question, const ResolvedQuestion& resolved, CurvePoint& out) {
    any_machine_ = true;
    out_.job.slice = resolved.slices.front();
    remember(resolved);
    if (stopped()) {
      return no_plan(out, PointStatus::kInterrupted, "not searched");
    }
    const PlanRequest request = request_of(question, resolved);
    Planner planner(request, stop_);
    PlanResult result = planner.best({.objective = request.objective, .top = 1});
    out.search = result.stats;
    if (result.plans.empty()) {
      return stopped() ? no_plan(out, PointStatus::kInterrupted, "no plan was found yet")
                       : explain_none(request, result, out);
    }
    out.plan = ranked(resolved, request, std::move(result.plans.front()));
    if (!q_.pareto) return;
    for (Plan& plan : pareto_front(planner, request, stop_)) front_.push_back(std::move(plan));
  }

  /// Machine sizes, and what a machine adds to what the answer assumes.
  void remember(const ResolvedQuestion& resolved) {
    for (const Slice& slice : resolved.slices) sizes_.insert(slice.chips);
    for (std::size_t i = known_assumptions_; i < resolved.assumptions.size(); ++i) {
      extra_.push_back(resolved.assumptions[i]);
    }
  }

  void front() {
    const PlanRequest request = request_of(q_.train, job_);
    for (Plan& plan : undominated(std::move(front_), job_.workload.seq)) {
      out_.front.push_back(ranked(job_, request, std::move(plan)));
    }
  }

  void describe_job() {
    out_.pareto = q_.pareto;
    out_.machine_sizes = sizes_.size();
    TrainAnswer& job = out_.job;
    job.question = q_.train;
    job.question.run = job_.run;
    job.workload = job_.workload;
    job.assumptions = std::move(job_.assumptions);
    for (Assumption& more : extra_) job.assumptions.push_back(std::move(more));
    job.model = std::move(job_.model);
    job.hw = std::move(job_.hw);
    job.software = std::move(job_.software);
  }

  const CurveQuestion& q_;
  ResolvedQuestion job_;
  const std::function<bool()>& stop_;
  std::size_t known_assumptions_;
  TrainCurve out_;
  bool any_machine_ = false;
  std::optional<UserError> no_machine_;
  std::set<std::int64_t> sizes_;
  std::vector<Assumption> extra_;
  std::vector<Plan> front_;
};

}  // namespace

bool any_plan(const TrainCurve& curve) {
  return std::any_of(curve.points.begin(), curve.points.end(), [](const CurvePoint& p) { return p.plan.has_value(); });
}

void compare_points(std::vector<CurvePoint>& points, bool may_idle) {
  const CurvePoint* fastest = nullptr;
  const auto rate = [](const CurvePoint& p) { return p.plan->figures.tokens_per_s; };
  const auto first = std::find_if(points.begin(), points.end(), [](const CurvePoint& p) { return p.plan.has_value(); });
  for (auto at = first; at != points.end(); ++at) {
    if (!at->plan) continue;
    if (may_idle && fastest != nullptr && rate(*at) < rate(*fastest)) at->plan = fastest->plan;
    fastest = &*at;
    at->speed_up = rate(*at) / rate(*first);
    at->efficiency = at->speed_up * static_cast<double>(first->chips) / static_cast<double>(at->chips);
  }
}

std::optional<CurveEnd> linear_end(const std::vector<CurvePoint>& points) {
  const auto linear = [](const CurvePoint& p) { return p.plan && p.efficiency >= kLinearShare; };
  const auto last = std::find_if(points.rbegin(), points.rend(), linear);
  if (points.size() < 2 || last == points.rend()) return std::nullopt;
  CurveEnd out{.last = static_cast<std::size_t>(points.rend() - last) - 1};
  if (out.last + 1 == points.size()) return out;
  const auto beyond = points.begin() + static_cast<std::ptrdiff_t>(out.last) + 1;
  const auto planned = std::find_if(beyond, points.end(), [](const CurvePoint& p) { return p.plan.has_value(); });
  if (planned == points.end()) {
    out.next = out.last + 1;
    return out;
  }
  out.next = static_cast<std::size_t>(planned - points.begin());
  const Shares before = shares_of(points[out.last]);
  const auto share_before = [&](const std::string& cause) {
    const auto found = std::find_if(before.begin(), before.end(), [&](const auto& s) { return s.first == cause; });
    return found == before.end() ? 0 : found->second;
  };
  double most = 0;
  for (const auto& [cause, share] : shares_of(*planned)) {
    const double earlier = share_before(cause);
    if (share - earlier <= most) continue;
    most = share - earlier;
    out.cause = cause;
    out.share_before = earlier;
    out.share_after = share;
  }
  return out;
}

TrainCurve train_curve(const CurveQuestion& question, ResolvedQuestion job, const std::function<bool()>& stop) {
  return CurveMaker(question, std::move(job), stop).run();
}

TrainCurve train_curve(const CurveQuestion& question, const Catalog& catalog, const std::function<bool()>& stop) {
  return train_curve(question, resolve_job(question.train, catalog), stop);
}

}  // namespace scalecalc
