// The cost of failures and checkpoints: against published intervals and against a simulation.
#include "economics/failures.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace scalecalc {
namespace {

constexpr double kMinute = 60;
constexpr double kSecondsPerHour = 3600;

/// Figures 3 to 5 of Daly 2006: dumps of 5 min.
TEST(CheckpointInterval, IsThatOfDalysFigures) {
  EXPECT_NEAR(daly_interval(24 * kSecondsPerHour, 5 * kMinute) / kMinute, 117, 0.5);
  EXPECT_NEAR(daly_interval(6 * kSecondsPerHour, 5 * kMinute) / kMinute, 57, 0.5);
  EXPECT_NEAR(daly_interval(15 * kMinute, 5 * kMinute) / kMinute, 9.1, 0.05);
  EXPECT_EQ(daly_interval(kMinute, 5 * kMinute), kMinute);
  EXPECT_DOUBLE_EQ(young_interval(2, 9), 6);
}

TEST(CheckpointInterval, ExactOneIsNearDalysAndMeetsItsEquation) {
  for (const double mtbf : {15 * kMinute, 6 * kSecondsPerHour, 24 * kSecondsPerHour}) {
    const double blocked = 5 * kMinute;
    const double t = optimal_interval(mtbf, blocked);
    EXPECT_NEAR((1 - t / mtbf) * std::exp((t + blocked) / mtbf), 1, 1e-12);
    EXPECT_NEAR(t, daly_interval(mtbf, blocked), 0.01 * t);
  }
  EXPECT_EQ(optimal_interval(kSecondsPerHour, 0), 0);
}

struct Case {
  const char* name;
  CheckpointedRun<double> run;
};

CheckpointedRun<double> run_of(double segments, double interval, double blocked, double behind, double restart,
                               double mtbf) {
  return {.work = Seconds(segments * interval),
          .interval = Seconds(interval),
          .blocked = Seconds(blocked),
          .behind = Seconds(behind),
          .restart = Seconds(restart),
          .mtbf = Seconds(mtbf)};
}

struct Simulated {
  double total = 0, restarts = 0, failures = 0;
};

/// Follows one run from event to event: it works, stops for a checkpoint, which is safe `behind` later, fails, goes
/// back to the last safe copy, restarts and may fail in that too. Starts from a copy and ends when its last is safe.
class Simulation {
 public:
  Simulation(const CheckpointedRun<double>& run, std::mt19937_64& random)
      : run_(run), random_(random), until_failure_(1 / run.mtbf.value()) {}

  Simulated go(std::int64_t segments) {
    fail_at_ = until_failure_(random_);
    std::int64_t safe = 0;   // copies
    std::int64_t taken = 0;  // copies that have left the chips
    double taken_at = 0;     // the last of them
    double next = cycle();   // when the one that is being worked on is taken
    while (safe < segments) {
      const bool pending = taken > safe;
      const double safe_at = taken_at + run_.behind.value();
      const double event = pending ? std::min(safe_at, next) : next;
      if (fail_at_ < event) {
        restart();
        taken = safe;
        next = now_ + cycle();
        continue;
      }
      now_ = event;
      if (pending && event == safe_at) {
        safe = taken;
        continue;
      }
      ++taken;
      taken_at = now_;
      next = now_ + cycle();
      if (run_.behind.value() == 0) safe = taken;
    }
    out_.total = now_;
    return out_;
  }

 private:
  double cycle() const { return (run_.interval + run_.blocked).value(); }

  void restart() {
    now_ = fail_at_;
    ++out_.failures;
    while (true) {
      fail_at_ = now_ + until_failure_(random_);
      const double end = now_ + run_.restart.value();
      const double reached = std::min(end, fail_at_);
      out_.restarts += reached - now_;
      now_ = reached;
      if (end <= fail_at_) return;
      ++out_.failures;
    }
  }

  const CheckpointedRun<double>& run_;
  std::mt19937_64& random_;
  std::exponential_distribution<double> until_failure_;
  double now_ = 0, fail_at_ = 0;
  Simulated out_;
};

class FailureLossesAgainstSimulation : public testing::TestWithParam<Case> {};

TEST_P(FailureLossesAgainstSimulation, AgreeInTheMean) {
  const CheckpointedRun<double>& run = GetParam().run;
  constexpr int kRuns = 40000;
  constexpr std::int64_t kSegments = 50;
  std::mt19937_64 random(20261122);
  double sum = 0, squares = 0, restarts = 0, failures = 0;
  for (int i = 0; i < kRuns; ++i) {
    const Simulated one = Simulation(run, random).go(kSegments);
    sum += one.total;
    squares += one.total * one.total;
    restarts += one.restarts;
    failures += one.failures;
  }
  const double mean = sum / kRuns;
  const double error = std::sqrt((squares / kRuns - mean * mean) / kRuns);
  const FailureLosses<double> losses = failure_losses(run);
  // The first copy is safe `behind` later than the others: M e^(R/M) (e^(w/M) - 1), which a long run does not feel.
  const double m = run.mtbf.value();
  const double first = m * std::exp(run.restart.value() / m) * std::expm1(run.behind.value() / m);
  const double expected = (run.work + losses.total()).value() + first;
  EXPECT_NEAR(mean, expected, 4 * error);
  EXPECT_LT(error, 0.01 * mean);
  EXPECT_NEAR(restarts / kRuns, losses.restarts.value() * expected / (expected - first), 0.05 * restarts / kRuns);
  EXPECT_NEAR(failures / kRuns, expected / m, 0.03 * expected / m);
}

INSTANTIATE_TEST_SUITE_P(Runs, FailureLossesAgainstSimulation,
                         testing::Values(Case{"Rare", run_of(50, 600, 20, 0, 300, 20000)},
                                         Case{"Frequent", run_of(50, 600, 60, 0, 400, 900)},
                                         Case{"LongRestart", run_of(50, 300, 10, 0, 2000, 2500)},
                                         Case{"Behind", run_of(50, 600, 5, 300, 300, 3000)},
                                         Case{"BehindAllInterval", run_of(50, 600, 5, 605, 100, 1500)}),
                         [](const auto& c) { return c.param.name; });

TEST(FailureLosses, AreNamedForTheReader) {
  const Reader<Traced> reader;
  CheckpointedRun<Traced> run;
  run.work = read(reader, Seconds(1e6), "work", "");
  run.interval = read(reader, Seconds(600), "interval", "");
  run.blocked = read(reader, Seconds(20), "blocked", "");
  run.restart = read(reader, Seconds(300), "restart", "");
  run.mtbf = read(reader, Seconds(10000), "MTBF", "");
  const FailureLosses<Traced> losses = failure_losses(run);
  const auto steps = explain(losses.restarts.value());
  EXPECT_EQ(steps.back().formula, "expected working time a checkpoint * checkpoints written * expm1(restart / MTBF)");
  EXPECT_EQ(reevaluate(losses.total().value()), losses.total().value().value());
}

/// Daly's estimate ends where a checkpoint takes twice the time between failures: from there on it is that time.
TEST(DalyInterval, IsTheTimeBetweenFailuresWhereCheckpointsTakeTwiceIt) {
  EXPECT_EQ(daly_interval(100, 200), 100);
  EXPECT_EQ(daly_interval(100, 300), 100);
  EXPECT_NEAR(daly_interval(100, 2), 20 * (1 + 0.1 / 3 + 0.01 / 9) - 2, 1e-12);
}

}  // namespace
}  // namespace scalecalc
