// The whole run: parts, published records, what is refused.
#include "economics/economics.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/diagnostic.h"
#include "economics/power.h"
#include "economics/stragglers.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

constexpr double kHour = 3600;
constexpr double kDay = 24 * kHour;

/// 54 days of Llama 3 405B on 16,384 H100: 16.8M tokens a step, 2 TB/s of storage (arXiv:2407.21783 section 3.3.1).
RunInput llama3() {
  RunInput in{.tokens = 54 * kDay / 6.46 * 16.78e6,
              .step_tokens = 16.78e6,
              .step_s = 6.46,
              .compute_s = 4.5,
              .mfu = 0.41,
              .chips = 16384,
              .chips_per_host = 8,
              .replicas = 128,
              .parameters = 405.85e9,
              .parameter_bytes = 14,
              .host_link = 64e9,
              .storage = 2e12,
              .restart_s = 600,
              .usd_per_chip_hour = 2};
  in.power = PowerInput{.tdp_w = 700, .host_w = 10200, .chips_per_host = 8};
  // 419 unexpected interruptions in 54 days.
  in.question.mtbf_chip_s = 16384 * 54 * kDay / 419;
  return in;
}

double sum_of_parts(const RunEconomics& e) {
  return std::accumulate(e.time_s.begin(), e.time_s.end(), 0.0, [](double s, const auto& p) { return s + p.second; });
}

TEST(RunFigures, Llama3sInterruptionsLeaveMoreThanNinetyPercent) {
  EXPECT_NEAR(*llama3().question.mtbf_chip_s / kHour, 50'677, 1) << "one GPU";
  for (const CheckpointMode mode : {CheckpointMode::kBlocking, CheckpointMode::kAsync}) {
    RunInput in = llama3();
    in.question.checkpoint = mode;
    const RunFigures run = run_figures(in);
    ASSERT_TRUE(run.economics);
    EXPECT_GT(run.economics->goodput, 0.90) << "published: over 90 % effective training time";
    EXPECT_LT(run.economics->goodput, 0.96);
    // Of the longer run there are more; in 54 days of it the published number.
    EXPECT_NEAR(run.economics->interruptions * 54 * kDay / run.time_s, 419, 1e-6);
    EXPECT_NEAR(run.economics->mtbf_s / kHour, 3.09, 0.01);
  }
}

TEST(RunFigures, PartsSumToTheRunAndPayForSpares) {
  RunInput in = llama3();
  in.question.repair_s = kDay;
  in.question.spares = 6;
  in.question.straggler = 0.05;
  for (const bool elastic : {false, true}) {
    in.question.elastic = elastic;
    const RunFigures run = run_figures(in);
    EXPECT_NEAR(sum_of_parts(*run.economics), run.time_s, 1e-9 * run.time_s);
    EXPECT_NEAR(run.economics->ideal_time_s, 54 * kDay, 1);
    EXPECT_NEAR(run.chip_hours, run.time_s * (16384 + 48) / kHour, 1e-3);
    EXPECT_NEAR(*run.cost_usd, 2 * run.chip_hours, 1e-3);
    EXPECT_NEAR(*run.energy_j, 700 * run.time_s * (16384 + 48), 1e-6 * *run.energy_j) << "rated power, spares too";
    EXPECT_DOUBLE_EQ(run.economics->effective_mfu, 0.41 * run.economics->goodput);
    for (const auto& [part, seconds] : run.economics->time_s) EXPECT_GE(seconds, 0) << part;
    ASSERT_TRUE(run.economics->spares && run.economics->spares->other_time_s);
    RunInput other = in;
    other.question.elastic = !elastic;
    EXPECT_NEAR(*run.economics->spares->other_time_s, run_figures(other).time_s, 1e-9 * run.time_s);
  }
}

TEST(RunFigures, WithoutFailuresAreTheStepsAlone) {
  RunInput in = llama3();
  in.question = {};
  const RunFigures run = run_figures(in);
  EXPECT_FALSE(run.economics);
  EXPECT_NEAR(run.time_s, 54 * kDay, 1);
  EXPECT_NEAR(*run.energy_j, 700 * run.time_s * 16384, 1) << "chips x rated power x time";
}

TEST(RunFigures, WaitsForDataThatStorageCannotFeed) {
  RunInput in = llama3();
  in.question = {};
  const double needed = 16.78e6 / 6.46 * 4;  // bytes a second: 10.4 MB/s
  in.question.storage_bandwidth = in.storage = 2 * needed;
  const RunFigures fed = run_figures(in);
  ASSERT_TRUE(fed.economics) << "asked about";
  EXPECT_NEAR(fed.time_s, 54 * kDay, 1);
  EXPECT_NEAR(fed.economics->data_bytes_per_s, needed, 1e-3);
  in.storage = needed / 2;
  const RunFigures starved = run_figures(in);
  EXPECT_NEAR(starved.time_s, 2 * 54 * kDay, 1) << "as fast as its data";
  EXPECT_NEAR(starved.economics->goodput, 0.5, 1e-9);
  EXPECT_NEAR(sum_of_parts(*starved.economics), starved.time_s, 1e-6 * starved.time_s);
  in.question.straggler = 0.25;  // steps take 1.25 of 2: they wait less, and the run is as long
  EXPECT_NEAR(run_figures(in).time_s, starved.time_s, 1);
  in.question = {};
  EXPECT_TRUE(run_figures(in).economics) << "also where the hardware file's storage is too slow";
  in.question.mtbf_chip_s = 16384 * 1e8;  // a checkpoint takes 1e6 s at this rate
  EXPECT_GT(run_figures(in).time_s, starved.time_s) << "failures come on top";
}

TEST(RunFigures, AnIntervalIsAtLeastAStepAndTheWayToStorage) {
  RunInput in = llama3();
  in.question.checkpoint_interval_s = 1;
  EXPECT_DOUBLE_EQ(run_figures(in).economics->interval_s, 6.46);
  in.question.checkpoint = CheckpointMode::kAsync;
  in.storage = 1e10;  // 568 s
  const RunEconomics e = *run_figures(in).economics;
  EXPECT_NEAR(e.interval_s, e.checkpoint_behind_s - e.checkpoint_blocked_s, 1e-6);
  in.question.checkpoint_interval_s = 1e12;
  EXPECT_NEAR(run_figures(llama3()).economics->checkpoint_bytes, 14 * 405.85e9, 1);
}

TEST(RunFigures, SpreadStorageAndCarbonAreWhatTheyAreMadeOf) {
  RunInput in = llama3();
  in.question.chip_spread = 0.01;
  in.question.power.carbon_g_per_kwh = 400;
  const RunFigures run = run_figures(in);
  ASSERT_TRUE(run.economics && run.power && run.energy_j);
  // The slowest chip holds up the 4.5 s of 6.46 in which chips compute.
  EXPECT_DOUBLE_EQ(run.economics->straggler_share, slowest_chip_share(16384, 0.01) * 4.5 / 6.46);
  EXPECT_DOUBLE_EQ(run.economics->storage_bytes_per_s, run.economics->checkpoint_bytes / run.economics->interval_s);
  EXPECT_DOUBLE_EQ(run.power->carbon_g_per_kwh.value_or(0), 400);
  EXPECT_NEAR(run.power->carbon_kg.value_or(0), *run.energy_j / 3.6e6 * 0.4, 1e-6 * *run.energy_j / 3.6e6);
}

TEST(RunFigures, RefuseAJobThatNeverEnds) {
  RunInput in = llama3();
  in.question.mtbf_chip_s = 10 * kHour;
  EXPECT_THROW(run_figures(in), UserError);
  in.question.mtbf_chip_s = 50'000 * kHour;
  in.question.repair_s = 3650 * kDay;
  in.question.elastic = true;
  in.replicas = 1;
  EXPECT_THROW(run_figures(in), UserError);
}

TEST(RunFigures, AreExplainedToTheBit) {
  RunInput in = llama3();
  in.question.repair_s = kDay;
  in.question.spares = 4;
  in.question.chip_spread = 0.01;
  in.power->basis = PowerBasis::kActivity;
  in.power->pue = 1.1;
  const RunReading<Traced> traced = read_run(Reader<Traced>{}, in);
  const RunFigures run = run_figures(in);
  EXPECT_EQ(reevaluate(traced.total.value()), run.time_s);
  EXPECT_EQ(reevaluate(*traced.cost_usd), *run.cost_usd);
  EXPECT_EQ(reevaluate(traced.energy->value()), *run.energy_j);
  const auto sections = explain_run(in);
  ASSERT_EQ(sections.size(), 4u);
  EXPECT_EQ(sections[0].steps.back().name, "time of the run");
  EXPECT_EQ(sections[3].steps.back().name, "energy");
}

TEST(SlowestChip, IsTheLargestOfNormals) {
  EXPECT_EQ(largest_of_normals(1), 0);
  EXPECT_NEAR(largest_of_normals(2), 0.5642, 0.04);    // 1 / sqrt(pi)
  EXPECT_NEAR(largest_of_normals(100), 2.5076, 0.01);  // tables of normal order statistics
  EXPECT_NEAR(largest_of_normals(1000), 3.2414, 0.015);
  EXPECT_NEAR(slowest_chip_share(1000, 0.01), 0.0335, 0.0005);
  EXPECT_TRUE(std::isinf(slowest_chip_share(1e6, 0.5)));
}

TEST(ChipDraw, FollowsTheStep) {
  PowerInput in{.basis = PowerBasis::kActivity, .tdp_w = 1000, .chips_per_host = 8};
  in.activity = {.computing = 0.5, .reading = 0.3, .waiting = 0.2};
  const Reader<double> reader;
  const ChipDraw<double> draw = chip_draw(reader, in);
  EXPECT_NEAR(draw.working.value(), 1000 * (0.5 + 0.3 * 0.7 + 0.2 * 0.5), 1e-9);
  EXPECT_DOUBLE_EQ(draw.idle.value(), 200);
  in.host_w = 12000;
  in.host_measured_w = 10000;
  EXPECT_DOUBLE_EQ(chip_draw(reader, in).host.value(), 250);
  in.basis = PowerBasis::kServers;
  in.pue = 1.5;
  EXPECT_DOUBLE_EQ(chip_draw(reader, in).busy_total().value(), 1.5 * (1000 + 500));
  in.basis = PowerBasis::kRated;
  EXPECT_DOUBLE_EQ(chip_draw(reader, in).idle_total().value(), 1.5 * 1000);
}

TEST(PowerAssumptions, SayWhatIsCounted) {
  HardwareSpec hw = test::switched_chip();
  hw.tdp = Watts(500);
  const auto said = [&](PowerBasis basis, std::optional<double> pue) {
    return power_assumptions(hw, PowerTerms{.basis = basis, .pue = pue}).front().text;
  };
  EXPECT_EQ(said(PowerBasis::kRated, {}), "energy at the full 500 W of each chip, without host, network or cooling");
  EXPECT_EQ(said(PowerBasis::kRated, 1.2), "energy at the full 500 W of each chip, without host, network");
  EXPECT_EQ(said(PowerBasis::kServers, {}),
            "energy at the rated power of chips and hosts, without the network outside them, without cooling");
  EXPECT_EQ(said(PowerBasis::kServers, 1.2),
            "energy at the rated power of chips and hosts, without the network outside them");
  // [POWER]: a chip draws all of it in compute and 70 % in work bound by memory.
  EXPECT_TRUE(
      said(PowerBasis::kActivity, 1.2).starts_with("chips draw 100 % of their 500 W in compute, 70 % in memory"))
      << said(PowerBasis::kActivity, 1.2);
  hw.tdp.reset();
  EXPECT_EQ(said(PowerBasis::kRated, {}), "chip power is not published: energy is left out");
}

TEST(RunFigures, CheckpointsAreCountedByTheirInterval) {
  RunInput in = llama3();
  in.question.checkpoint_interval_s = 1800;
  const RunEconomics e = *run_figures(in).economics;
  EXPECT_NEAR(e.checkpoints, 54 * kDay / 1800, 1e-6 * e.checkpoints);
}

TEST(PowerAssumptions, AChipAtRestDrawsAFifthWhereItsOwnIdlePowerIsNotPublished) {
  HardwareSpec hw = test::switched_chip();
  hw.tdp = Watts(500);
  const auto said = [&] {
    return power_assumptions(hw, PowerTerms{.basis = PowerBasis::kActivity, .pue = 1.2}).front().text;
  };
  EXPECT_NE(said().find(" and 20 % at rest"), std::string::npos) << said();
  hw.idle_power = Watts(50);
  EXPECT_NE(said().find(" and 10 % at rest"), std::string::npos) << said();
}

}  // namespace
}  // namespace scalecalc
