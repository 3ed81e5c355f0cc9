// Hosts in repair: Erlang's formula, and simulations of both ways to go on without a spare.
#include "economics/spares.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace scalecalc {
namespace {

TEST(ErlangB, IsThatOfTheTables) {
  EXPECT_EQ(erlang_b(0, 3), 1);
  EXPECT_DOUBLE_EQ(erlang_b(1, 1), 0.5);
  EXPECT_DOUBLE_EQ(erlang_b(2, 1), 0.2);  // 1/2 / (1 + 1 + 1/2)
  EXPECT_NEAR(erlang_b(10, 4.461), 0.01, 1e-4) << "ten servers lose 1 % at 4.461 erlang";
  EXPECT_EQ(erlang_b(1'000'000, 1), 0);
}

struct Outcome {
  double lost = 0, chance = 0;
};

/// Time in which a job of `pool` does a second of full-speed work, event by event. Elastic: every state has its speed,
/// and growing again costs a restart's worth of work.
Outcome simulate(const HostPool& pool, bool elastic, double work) {
  std::mt19937_64 random(7);
  const auto wait = [&](double rate) { return std::exponential_distribution<double>(rate)(random); };
  double done = 0, time = 0, failures = 0, found_none = 0;
  std::int64_t away = 0;
  const auto whole = [&](std::int64_t gone) {
    const double short_of = std::max<double>(0, static_cast<double>(gone - pool.spares));
    return std::floor(pool.replicas * (pool.hosts - short_of) / pool.hosts + 1e-9);
  };
  while (done < work) {
    const double short_of = std::max<double>(0, static_cast<double>(away - pool.spares));
    const bool stands = !elastic && short_of > 0;
    const double speed = stands ? 0 : whole(away) / pool.replicas;
    const double fail = stands ? 0 : (pool.hosts - short_of) / pool.hosts / pool.mtbf_s;
    const double repair = static_cast<double>(away) / pool.repair_s;
    const double dt = wait(fail + repair);
    time += dt;
    done += dt * speed;
    if (std::uniform_real_distribution<double>()(random) * (fail + repair) < fail) {
      ++failures;
      found_none += away >= pool.spares ? 1 : 0;
      ++away;
    } else {
      const double before = whole(away--);
      if (elastic && whole(away) > before) done -= pool.restart_s * speed;
    }
  }
  return {time / done - 1, found_none / failures};
}

constexpr HostPool kFew{.hosts = 64, .spares = 2, .mtbf_s = 10000, .repair_s = 15000, .restart_s = 300, .replicas = 8};
constexpr HostPool kNone{.hosts = 16, .spares = 0, .mtbf_s = 50000, .repair_s = 8000, .restart_s = 600, .replicas = 16};

TEST(WaitForRepair, AgreesWithSimulation) {
  for (const HostPool& pool : {kFew, kNone}) {
    const Outcome seen = simulate(pool, false, 1e11);
    const Shortage said = wait_for_repair(pool);
    EXPECT_NEAR(said.lost, seen.lost, 0.02 * seen.lost);
    EXPECT_NEAR(said.chance, seen.chance, 0.02 * seen.chance);
  }
}

TEST(RunOnFewer, AgreesWithSimulation) {
  for (const HostPool& pool : {kFew, kNone}) {
    const Outcome seen = simulate(pool, true, 1e11);
    const Shortage said = run_on_fewer(pool);
    EXPECT_NEAR(said.lost, seen.lost, 0.03 * seen.lost);
    EXPECT_NEAR(said.chance, seen.chance, 0.02 * seen.chance);
  }
}

TEST(RunOnFewer, NeedsMoreThanOneDataRank) {
  HostPool pool = kFew;
  pool.replicas = 1;
  EXPECT_GE(run_on_fewer(pool).lost, wait_for_repair(pool).lost) << "one rank stands as if it waited";
}

TEST(RunOnFewer, HoldsForLoadsOfThousands) {
  const HostPool pool{
      .hosts = 20000, .spares = 100, .mtbf_s = 10, .repair_s = 50000, .restart_s = 0, .replicas = 20000};
  // 5,000 hosts would be away were there no end of failures; those that are away do not fail.
  const Shortage found = run_on_fewer(pool);
  EXPECT_NEAR(1 / (1 + found.lost), (20000 + 100 - 20100 * 0.2) / 20000, 1e-3);
  EXPECT_DOUBLE_EQ(found.chance, 1);
}

/// Of four hosts and one spare, those that run fail once in 100 s and are repaired in 10, which costs nothing else:
/// with k in repair the rate is 4, 4, 3, 2 and 1 quarters of that of all, and the data ranks left are 4, 4, 3, 2 and 1.
TEST(RunOnFewer, IsTheChainOfHostsInRepair) {
  const HostPool pool{.hosts = 4, .spares = 1, .mtbf_s = 100, .repair_s = 10, .restart_s = 0, .replicas = 4};
  // p(k + 1) / p(k) = running hosts / 4 x 0.1 / (k + 1).
  const double p[] = {1, 0.1, 0.1 * 0.1 / 2, 0.005 * 0.075 / 3, 0.000125 * 0.05 / 4, 1.5625e-6 * 0.025 / 5};
  double sum = 0, speed = 0, failures = 0, none_left = 0;
  const double running[] = {4, 4, 3, 2, 1, 0};
  for (int k = 0; k < 6; ++k) {
    sum += p[k];
    speed += p[k] * running[k] / 4;
    failures += p[k] * running[k];
    if (k >= 1) none_left += p[k] * running[k];
  }
  const Shortage found = run_on_fewer(pool);
  EXPECT_NEAR(found.lost, sum / speed - 1, 1e-12);
  EXPECT_NEAR(found.chance, none_left / failures, 1e-12);
  // A rank that comes back costs the others a restart of 6 s: k of 10 s, where one fewer ran before.
  HostPool slow = pool;
  slow.restart_s = 6;
  double regrown = 0;
  for (int k = 2; k < 6; ++k) regrown += p[k] * running[k] / 4 * k / 10 * 6;
  EXPECT_NEAR(run_on_fewer(slow).lost, sum / (speed - regrown) - 1, 1e-12);
}

}  // namespace
}  // namespace scalecalc
