// Minimizes a function of a few bounded variables with NLopt's BOBYQA, for the fits of training coefficients.
#include "calibrate/minimize.h"

#include <nlopt.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "base/check.h"

namespace scalecalc {
namespace {

using Function = std::function<double(const std::vector<double>&)>;

struct Call {
  const Function& f;
  const Stop& stop;
  nlopt_opt solver;
  std::vector<double> best{};
  double least = std::numeric_limits<double>::infinity();
};

double call(unsigned n, const double* x, double*, void* data) {
  Call& c = *static_cast<Call*>(data);
  if (should_stop(c.stop)) nlopt_force_stop(c.solver);
  std::vector<double> at(x, x + n);
  const double value = c.f(at);
  if (value < c.least) {
    c.least = value;
    c.best = std::move(at);
  }
  return value;
}

}  // namespace

std::vector<double> minimize(const Function& f, std::vector<double> start, const Bounds& bounds, const Stop& stop) {
  // BOBYQA builds its model of the function from pairs of variables.
  check(start.size() >= 2, "two variables at least");
  constexpr int kMostCalls = 600;
  constexpr double kTolerance = 1e-4;
  constexpr double kStep = 0.5;
  const auto n = static_cast<unsigned>(start.size());
  const std::unique_ptr<nlopt_opt_s, void (*)(nlopt_opt)> solver(nlopt_create(NLOPT_LN_BOBYQA, n), nlopt_destroy);
  check(solver != nullptr, "no memory for the solver");
  Call function{.f = f, .stop = stop, .solver = solver.get()};
  nlopt_set_min_objective(solver.get(), call, &function);
  nlopt_set_lower_bounds(solver.get(), bounds.low.data());
  nlopt_set_upper_bounds(solver.get(), bounds.high.data());
  nlopt_set_initial_step1(solver.get(), kStep);
  nlopt_set_xtol_abs1(solver.get(), kTolerance);
  nlopt_set_ftol_rel(solver.get(), kTolerance * kTolerance);
  nlopt_set_maxeval(solver.get(), kMostCalls);
  for (std::size_t i = 0; i < start.size(); ++i) start[i] = std::clamp(start[i], bounds.low[i], bounds.high[i]);
  double least = 0;
  const nlopt_result result = nlopt_optimize(solver.get(), start.data(), &least);
  if (result == NLOPT_FORCED_STOP) return function.best;
  // Roundoff ends a search that can improve no more; anything else below zero is a wrong call.
  check(result > 0 || result == NLOPT_ROUNDOFF_LIMITED, "the solver was called wrongly");
  return start;
}

}  // namespace scalecalc
