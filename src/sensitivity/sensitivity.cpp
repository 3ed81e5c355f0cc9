// Answers `scalecalc sensitivity`: elasticities, gains of each rate, the balance and the sweep.
#include "sensitivity/sensitivity.h"

#include "train/figures.h"

namespace scalecalc {

SensitivityAnswer sensitivity(const SensitivityQuestion& question, const Catalog& catalog, bool explain,
                              const std::function<bool()>& stop) {
  const auto stopped = [&] { return stop && stop(); };
  SensitivityAnswer out{.question = question, .resolved = resolve(question.train, catalog)};
  PlanRequest request = request_of(question.train, out.resolved);
  request.counts = false;
  Planner planner(request, stop);
  PlanResult found = planner.best({.objective = request.objective, .top = 1});
  if (found.plans.empty()) {
    out.none = answer(question.train, catalog, stop);
    out.complete = !stopped();
    return out;
  }
  out.plan = ranked(out.resolved, request, std::move(found.plans.front()));
  const Plan& plan = out.plan->plan;
  out.elasticities = elasticities(request, plan, question.swing, question.coefficients);
  out.balance = balance(out.resolved, request, plan);
  if (explain)
    out.step = named(read_plan(Reader<Traced>{}, request, plan).time.total(), "step time", "sum of its causes");
  out.reoptimised = reoptimise(out.resolved, request, planner, plan, !question.fixed, stop);
  if (!question.ranges.empty()) {
    out.codesign = codesign(question.train, question.ranges, question.fixed ? &plan : nullptr, catalog, stop);
  }
  out.complete = !stopped();
  return out;
}

}  // namespace scalecalc
