#include "profile/gap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "config/catalog.h"
#include "config/yaml_reader.h"
#include "profile/kernel_rows.h"
#include "support/scratch.h"
#include "unit/profile/recordings.h"
#include "validate/kernel_measurement.h"

namespace scalecalc {
namespace {

TEST(Gap, BothColumnsSumToTheirStep) {
  TrainQuestion q{.model = "llama3-8b", .hardware = "h100-sxm", .chips = 8};
  const TrainAnswer job = answer(q, Catalog());
  const ProfileAnswer found = test::profiled(test::recorded("kineto.json"));
  const GapAnswer gap = explain_gap(found, job, job.plans.front());
  double measured = 0, predicted = 0, last = INFINITY;
  for (const GapTerm& term : gap.terms) {
    measured += term.measured_s;
    predicted += term.predicted_s;
    EXPECT_LE(std::abs(term.more_s()), last);
    last = std::abs(term.more_s());
  }
  EXPECT_NEAR(measured, found.step_s, 1e-12);
  EXPECT_NEAR(predicted / job.plans.front().plan.step_s, 1, 1e-9);
  double all_exposed = 0;
  for (const GapCommunication& c : gap.communication) {
    all_exposed += c.measured_exposed_s;
    EXPECT_GE(c.predicted_s.value_or(1), c.predicted_exposed_s);
    EXPECT_GE(c.measured_s.value_or(1), c.measured_exposed_s);
  }
  EXPECT_NEAR(all_exposed, found.ranks.front().exposed_s(), 1e-12);
  EXPECT_NEAR(gap.flops / (job.plans.front().figures.hfu * 989.4e12 * job.plans.front().plan.step_s), 1, 1e-3);
}

// A layout of 8 tensor ranks, 4 stages and 2 data ranks of 4 shards: what is told apart, and by what.
TEST(Gap, AGroupIsADimensionByItsNameItsKindOrItsSize) {
  Layout layout{.dp = 2, .fsdp = 4, .tp = 8, .pp = 4, .ep = 2};
  const auto is = [&](const CommunicationGroup& group) {
    const GroupDimension out = dimension_of(group, layout);
    return std::string(out.dimension) + " " + std::string(out.by);
  };
  EXPECT_EQ(is({"all-reduce", 8, "TENSOR_MODEL_PARALLEL_GROUP"}), "tp name");
  EXPECT_EQ(is({"all-gather", 4, "DATA_PARALLEL_GROUP_WITH_CP"}), "data name");
  EXPECT_EQ(is({"all-reduce", 4, "EXPERT_DATA_PARALLEL_GROUP"}), "data name");
  EXPECT_EQ(is({"all-to-all", 2, "EXPERT_MODEL_PARALLEL_GROUP"}), "ep name");
  EXPECT_EQ(is({"all-gather", 4, "mesh_fsdp"}), "data name");
  EXPECT_EQ(is({"send and receive", 0, ""}), "pp kind");
  EXPECT_EQ(is({"all-to-all", 0, ""}), "ep kind");
  EXPECT_EQ(is({"all-gather", 4, ""}), "data size");
  EXPECT_EQ(is({"all-gather", 2, ""}), "unknown ");  // two copies of the shards, or two expert ranks
  EXPECT_EQ(is({"all-gather", 8, ""}), "unknown ");  // eight tensor ranks, and eight data ranks
  EXPECT_EQ(is({"all-gather", 0, "default_pg"}), "unknown ");
  layout = {.fsdp = 8, .pp = 2};
  EXPECT_EQ(is({"all-gather", 0, ""}), "data kind");
  layout = {.cp = 4};
  EXPECT_EQ(is({"collective", 0, ""}), "cp kind");
}

// 10 us of all-reduce in the first counted step hide under compute, or not: as parts_test has it, by group.
TEST(Gap, CommunicationOfTheGroupsSumsToWhatIsExposed) {
  const ProfileAnswer found = test::profiled(test::recorded("kineto.json"));
  double exposed = 0, running = 0;
  for (const ProfiledGroup& group : found.groups) {
    exposed += group.exposed_s;
    running += group.running_s;
    EXPECT_LE(group.exposed_s, group.running_s);
  }
  EXPECT_NEAR(exposed * 1e6,
              test::work_us(found, DeviceWork::kCollective) + test::work_us(found, DeviceWork::kSendReceive), 1e-6);
  EXPECT_GE(running, found.communication_s - 1e-12);
}

// A matmul of 8 s, beside its end and half a second longer a gather over the eight data ranks that the layout alone
// has.
TEST(Gap, CommunicationStandsBesideItsOwnDimension) {
  const test::Scratch scratch;
  const std::string file = scratch.put("step.json",
                                       "{\"traceEvents\": [\n{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": "
                                       "\"sm90_xmma_gemm_bf16\", \"pid\": 0, \"tid\": 7, "
                                       "\"ts\": 0, \"dur\": 8000000},\n{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": "
                                       "\"ncclDevKernel_AllGather_RING_LL\", "
                                       "\"pid\": 0, \"tid\": 20, \"ts\": 7500000, \"dur\": 1000000, \"args\": "
                                       "{\"Collective name\": \"_allgather_base\", "
                                       "\"Out msg nelems\": 1000, \"Group size\": 8, \"dtype\": \"BFloat16\"}}\n]}\n");
  TrainQuestion q{.model = "llama3-8b", .hardware = "h100-sxm", .chips = 8};
  TrainAnswer job = answer(q, Catalog());
  RankedPlan plan = job.plans.front();
  const Layout& layout = plan.plan.layout;
  ASSERT_EQ(layout.tp * layout.pp * layout.cp * layout.ep, 1);
  const GapAnswer gap = explain_gap(test::profiled(file), job, plan);
  ASSERT_EQ(gap.communication.size(), 1U);
  const GapCommunication& data = gap.communication.front();
  EXPECT_EQ(data.dimension, "data");
  EXPECT_EQ(data.groups, std::vector<std::string>{"all-gather over 8 (by kind)"});
  EXPECT_NEAR(data.measured_exposed_s, 0.5, 1e-9);
  EXPECT_NEAR(*data.measured_s, 1.0, 1e-9);
  EXPECT_GT(*data.predicted_s, data.predicted_exposed_s);  // most of it hides
  const auto is = [](const char* name) { return [name](const GapTerm& term) { return term.term == name; }; };
  const auto term = std::find_if(gap.terms.begin(), gap.terms.end(), is("exposed: data ranks"));
  ASSERT_NE(term, gap.terms.end());
  EXPECT_NEAR(term->measured_s, 0.5, 1e-9);
  EXPECT_EQ(std::count_if(gap.terms.begin(), gap.terms.end(), is("exposed communication")), 0);
}

// 40 us for the product, 10 us for the sum, of which calibrate is told nothing: it is too short.
TEST(Gap, KernelRowsAreWhatCalibrateReads) {
  const KernelRows rows = kernel_rows(test::profiled(test::recorded("kineto.json")));
  const auto read = read_kernels(read_yaml(rows.yaml, "kernels.yaml"));
  ASSERT_EQ(read.size(), rows.count);
  ASSERT_EQ(read.size(), 1U);
  EXPECT_NEAR(read.front().seconds, 40e-6, 1e-12);
  const Matmul& product = std::get<Matmul>(std::get<RooflineQuestion>(read.front().work).operations.front());
  EXPECT_EQ(product.rows * product.contraction * product.columns, 1e9);
}

}  // namespace
}  // namespace scalecalc
