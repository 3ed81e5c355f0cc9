// What the whole run is asked with, and what an answer says of it.
#include "train/run_terms.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/diagnostic.h"

namespace scalecalc {
namespace {

TrainQuestion asked() {
  TrainQuestion q{.model = "llama3-8b", .hardware = "h100-sxm", .chips = 64, .tokens = 1e12};
  q.fix = {.dp = 64, .tp = 1, .pp = 1};
  q.top = 1;
  return q;
}

bool assumes(const TrainAnswer& a, std::string_view flag, std::string_view text) {
  return std::any_of(a.assumptions.begin(), a.assumptions.end(),
                     [&](const Assumption& x) { return x.flag == flag && x.text.find(text) != std::string::npos; });
}

RunFigures run_of(const TrainAnswer& a) { return *a.plans.at(0).figures.run; }

TEST(RunTerms, FailuresLengthenTheRunAndNothingElse) {
  TrainQuestion q = asked();
  const TrainAnswer calm = answer(q, Catalog());
  q.run.mtbf_chip_s = 5000 * 3600;
  q.run.storage_bandwidth = 10e9;
  const TrainAnswer rough = answer(q, Catalog());
  EXPECT_EQ(rough.plans[0].plan.step_s, calm.plans[0].plan.step_s);
  EXPECT_EQ(run_of(rough).economics->ideal_time_s, run_of(calm).time_s);
  EXPECT_GT(run_of(rough).time_s, run_of(calm).time_s);
  EXPECT_NEAR(*run_of(rough).cost_usd / *run_of(calm).cost_usd, run_of(rough).time_s / run_of(calm).time_s, 1e-12);
  EXPECT_NEAR(run_of(rough).economics->checkpoint_bytes / 8.03e9, 14, 0.1) << "bf16 weights, fp32 copy, two moments";
  EXPECT_NEAR(run_of(rough).economics->checkpoint_blocked_s, 14 * 8.03e9 / 10e9, 0.1);
  EXPECT_TRUE(assumes(calm, "--mtbf, --straggler", "not counted"));
  EXPECT_FALSE(assumes(rough, "--mtbf, --straggler", "not counted"));
  EXPECT_TRUE(assumes(rough, "--straggler", "not counted"));
  EXPECT_TRUE(assumes(rough, "--restart-time", "10 min"));
}

TEST(RunTerms, StorageIsTheHostsTogetherOrAWarning) {
  TrainQuestion q = asked();
  q.run.mtbf_chip_s = 5000 * 3600;
  const TrainAnswer unknown = answer(q, Catalog());
  EXPECT_TRUE(assumes(unknown, "--storage-bandwidth", "is not known"));
  q.set = {"hw.host.storage_bandwidth=2GB/s"};
  const TrainAnswer hosts = answer(q, Catalog());
  EXPECT_TRUE(assumes(hosts, "--storage-bandwidth", "2 GB/s to storage from each host"));
  EXPECT_NEAR(run_of(hosts).economics->checkpoint_blocked_s, 14 * 8.03e9 / 16e9, 0.1);
}

TEST(RunTerms, APrecisionOfFourBytesIsSavedOnce) {
  TrainQuestion q = asked();
  q.precision = "fp32";
  q.fix = {};
  q.run.mtbf_chip_s = 5000 * 3600;
  q.run.storage_bandwidth = 10e9;
  EXPECT_NEAR(run_of(answer(q, Catalog())).economics->checkpoint_bytes / 8.03e9, 12, 0.1);
}

TEST(RunTerms, NothingIsSaidOfARunWithoutLength) {
  TrainQuestion q = asked();
  q.model = "llama3-8b";
  q.tokens.reset();
  q.set = {};
  ResolvedQuestion job;
  job.hw.tdp = Watts(700);
  q.run.mtbf_chip_s = 1;
  add_run_terms(q, job);
  EXPECT_TRUE(job.assumptions.empty());
  job.workload.tokens = 1e12;
  EXPECT_THROW(add_run_terms(q, job), UserError) << "neither the link to the host nor storage is known";
}

TEST(RunTerms, PowerFollowsWhatIsAsked) {
  TrainQuestion q = asked();
  const double rated = *run_of(answer(q, Catalog())).energy_j;
  q.run.power = {.basis = PowerBasis::kServers, .pue = 1.5, .carbon_g_per_kwh = 100};
  const TrainAnswer servers = answer(q, Catalog());
  EXPECT_NEAR(*run_of(servers).energy_j / rated, 1.5 * 10200 / 5600, 1e-9);
  EXPECT_NEAR(*run_of(servers).power->carbon_kg, *run_of(servers).energy_j / 3.6e6 * 0.1, 1e-3);
  q.run.power = {.basis = PowerBasis::kActivity};
  const RunPower activity = *run_of(answer(q, Catalog())).power;
  EXPECT_LT(activity.chip_w, 700);
  EXPECT_GT(activity.chip_w, 500) << "most of the step is compute";
  EXPECT_DOUBLE_EQ(activity.host_w, (8480 - 5600) / 8.0);
}

}  // namespace
}  // namespace scalecalc
