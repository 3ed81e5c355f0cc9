// The economics of a run over random ones: losses do not fall when things fail more often, the best interval is best,
// the parts sum up.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "base/diagnostic.h"
#include "economics/economics.h"
#include "economics/spares.h"

namespace scalecalc {
namespace {

/// A number spread evenly in its logarithm.
rc::Gen<double> spread(double least, double most) {
  return rc::gen::map(rc::gen::inRange(0, 1'000'000), [=](int i) { return least * std::pow(most / least, i * 1e-6); });
}

/// A run that ends: what lies between two copies is at most some failures long.
CheckpointedRun<double> any_run() {
  const double mtbf = *spread(100, 1e8);
  CheckpointedRun<double> run;
  run.mtbf = Seconds(mtbf);
  run.interval = Seconds(mtbf * *spread(1e-5, 3));
  run.blocked = Seconds(mtbf * *spread(1e-7, 1));
  run.behind = Seconds(*rc::gen::arbitrary<bool>() ? 0 : (run.interval + run.blocked).value() * *spread(1e-3, 1));
  run.restart = Seconds(mtbf * *spread(1e-6, 2));
  run.work = Seconds(run.interval.value() * *spread(1, 1e5));
  return run;
}

double total(const CheckpointedRun<double>& run) { return (run.work + failure_losses(run).total()).value(); }

RC_GTEST_PROP(RunProperty, FailuresFartherApartNeverCost, ()) {
  CheckpointedRun<double> run = any_run();
  const double before = total(run);
  run.mtbf = run.mtbf * *spread(1, 100);
  RC_ASSERT(total(run) <= before * (1 + 1e-9));
}

RC_GTEST_PROP(RunProperty, LongerRestartsAndCheckpointsNeverHelp, ()) {
  const CheckpointedRun<double> run = any_run();
  for (Seconds CheckpointedRun<double>::*part :
       {&CheckpointedRun<double>::restart, &CheckpointedRun<double>::blocked}) {
    CheckpointedRun<double> longer = run;
    longer.*part = longer.*part * *spread(1, 3);
    RC_ASSERT(total(longer) >= total(run) * (1 - 1e-9));
  }
}

RC_GTEST_PROP(RunProperty, TheBestIntervalIsBest, ()) {
  CheckpointedRun<double> run = any_run();
  run.behind = Seconds(0);
  run.interval = Seconds(optimal_interval(run.mtbf.value(), run.blocked.value()));
  const double best = total(run);
  for (const double factor : {0.5, 0.9, 0.99, 1.01, 1.1, 2.0}) {
    CheckpointedRun<double> other = run;
    other.interval = run.interval * factor;
    RC_ASSERT(total(other) >= best * (1 - 1e-9));
  }
}

RC_GTEST_PROP(RunProperty, DerivativeIsTheFiniteDifference, ()) {
  const CheckpointedRun<double> run = any_run();
  const auto at = [&](double mtbf) {
    CheckpointedRun<double> moved = run;
    moved.mtbf = Seconds(mtbf);
    return total(moved);
  };
  CheckpointedRun<Dual> dual;
  dual.work = SecondsOf<Dual>(run.work.value());
  dual.interval = SecondsOf<Dual>(run.interval.value());
  dual.blocked = SecondsOf<Dual>(run.blocked.value());
  dual.behind = SecondsOf<Dual>(run.behind.value());
  dual.restart = SecondsOf<Dual>(run.restart.value());
  const double m = run.mtbf.value();
  dual.mtbf = SecondsOf<Dual>(Dual(m, 1));
  const Dual found = failure_losses(dual).total().value();
  const double h = 1e-5 * m;
  const double slope = (at(m + h) - at(m - h)) / (2 * h);
  RC_ASSERT(std::abs(found.derivative - slope) <= 1e-4 * std::abs(slope) + 1e-6 * at(m) / m);
}

RunInput any_input() {
  RunInput in;
  in.step_s = *spread(0.1, 100);
  in.compute_s = in.step_s * *spread(0.1, 1);
  in.step_tokens = *spread(1e4, 1e8);
  in.tokens = in.step_tokens * *spread(10, 1e7);
  in.mfu = *spread(0.05, 0.8);
  in.chips_per_host = *rc::gen::inRange(1, 17);
  in.chips = in.chips_per_host * *rc::gen::inRange(1, 2000);
  in.replicas = std::max(1.0, std::floor(in.chips / in.chips_per_host / *rc::gen::inRange(1, 33)));
  in.parameters = *spread(1e8, 1e13);
  in.parameter_bytes = 14;
  in.host_link = *spread(1e9, 1e12);
  in.storage = *spread(1e10, 1e14);
  in.restart_s = *spread(1, 7200);
  in.usd_per_chip_hour = 2;
  in.power = PowerInput{.basis = static_cast<PowerBasis>(*rc::gen::inRange(0, 3)), .tdp_w = 700, .host_w = 12000};
  in.power->chips_per_host = in.chips_per_host;
  RunQuestion& q = in.question;
  q.mtbf_chip_s = in.chips * *spread(3e4, 1e9);
  q.checkpoint = *rc::gen::arbitrary<bool>() ? CheckpointMode::kAsync : CheckpointMode::kBlocking;
  if (*rc::gen::arbitrary<bool>()) q.straggler = *spread(1e-3, 1);
  if (*rc::gen::arbitrary<bool>()) {
    q.repair_s = *spread(60, 1e5);
    q.spares = *rc::gen::inRange(0, 50);
    q.elastic = in.replicas > 4 && *rc::gen::arbitrary<bool>();
  }
  return in;
}

/// Nothing if failures leave such a run no time.
std::optional<RunFigures> figures_of(const RunInput& in) {
  try {
    return run_figures(in);
  } catch (const UserError&) {
    return std::nullopt;
  }
}

RC_GTEST_PROP(RunProperty, PartsSumAndGoodputIsAShare, ()) {
  const RunInput in = any_input();
  const std::optional<RunFigures> run = figures_of(in);
  RC_PRE(run.has_value());
  const RunEconomics& e = *run->economics;
  double sum = 0;
  for (const auto& [part, seconds] : e.time_s) {
    RC_ASSERT(seconds >= 0);
    sum += seconds;
  }
  RC_ASSERT(std::abs(sum - run->time_s) <= 1e-9 * run->time_s);
  RC_ASSERT(e.goodput > 0 && e.goodput <= 1);
  RC_ASSERT(e.effective_mfu <= in.mfu);
  RC_ASSERT(run->time_s >= e.ideal_time_s);
  RC_ASSERT(run->chip_hours >= run->time_s * in.chips / 3600 * (1 - 1e-12));
  RC_ASSERT(*run->energy_j <= run->power->facility_w * run->time_s * (1 + 1e-9));
}

RC_GTEST_PROP(RunProperty, MoreSparesNeverWaitLonger, ()) {
  HostPool pool{.hosts = static_cast<double>(*rc::gen::inRange(1, 3000)),
                .spares = *rc::gen::inRange(0, 40),
                .mtbf_s = *spread(1e3, 1e7),
                .repair_s = *spread(60, 1e5),
                .restart_s = 0};
  pool.replicas = pool.hosts;
  const Shortage wait = wait_for_repair(pool);
  const Shortage fewer = run_on_fewer(pool);
  RC_ASSERT(fewer.lost <= wait.lost * (1 + 1e-9) || wait.lost < 1e-12);
  ++pool.spares;
  RC_ASSERT(wait_for_repair(pool).lost <= wait.lost);
  RC_ASSERT(wait_for_repair(pool).chance <= wait.chance);
}

}  // namespace
}  // namespace scalecalc
