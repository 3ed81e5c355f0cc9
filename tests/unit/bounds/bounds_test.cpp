// Rules of thumb on chips and models of round numbers: alpha_ici is 1000 on the torus, alpha 250 behind switches.
#include "bounds/bounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/diagnostic.h"
#include "support/bound_of.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

using test::find;
using test::holds;
using test::value;

BoundsQuestion about(HardwareSpec hw) {
  BoundsQuestion q;
  q.model = test::dense_model();
  q.hw = std::move(hw);
  q.scope = BoundScope::kTraining;
  return q;
}

BoundsQuestion on_torus(std::optional<std::int64_t> chips = 64, double batch = 65536) {
  BoundsQuestion q = about(test::torus_chip());
  q.chips = chips;
  q.training.batch_tokens = batch;
  return q;
}

BoundsQuestion behind_switches(std::int64_t chips = 64, double batch = 65536) {
  BoundsQuestion q = about(test::switched_chip());
  q.chips = chips;
  q.training.batch_tokens = batch;
  return q;
}

const LayerPass& pass(const BoundsAnswer& answer, const std::string& name) {
  const auto at =
      std::find_if(answer.layers.begin(), answer.layers.end(), [&](const LayerPass& p) { return p.name == name; });
  if (at == answer.layers.end()) throw std::runtime_error("no pass " + name);
  return *at;
}

bool left_out(const BoundsAnswer& answer, const std::string& rules) {
  return std::any_of(answer.left_out.begin(), answer.left_out.end(),
                     [&](const LeftOut& item) { return item.rules.find(rules) != std::string::npos; });
}

bool assumes(const BoundsAnswer& answer, const std::string& text, bool warning = false) {
  return std::any_of(answer.assumptions.begin(), answer.assumptions.end(), [&](const Assumption& a) {
    return a.text.find(text) != std::string::npos && a.warning == warning;
  });
}

TEST(BoundsTorus, DataParallelismByAxes) {
  const BoundsAnswer a = bounds(on_torus(64, 64 * 400));
  EXPECT_DOUBLE_EQ(value(a, "ici_intensity"), 1000);
  EXPECT_DOUBLE_EQ(value(a, "fsdp_limit_1_axis"), 1000);
  EXPECT_DOUBLE_EQ(value(a, "fsdp_limit_3_axes"), 1000.0 / 3);
  EXPECT_EQ(holds(a, "fsdp_limit_1_axis"), false);
  EXPECT_EQ(holds(a, "fsdp_limit_3_axes"), true);
  EXPECT_DOUBLE_EQ(value(a, "fsdp_limit"), value(a, "fsdp_limit_3_axes"));
  EXPECT_DOUBLE_EQ(value(a, "fsdp_most_chips"), 64 * 400 / (1000.0 / 3));
  BoundsQuestion one_axis = on_torus();
  one_axis.data_axes = 1;
  EXPECT_DOUBLE_EQ(value(bounds(one_axis), "fsdp_limit"), 1000);
}

TEST(BoundsRun, AnMfuIsAShareOfTheDataSheetWhateverTheEfficiency) {
  BoundsQuestion q = on_torus();
  q.training.tokens = 1e12;
  q.hw.efficiency.matmul[static_cast<std::size_t>(q.compute)].value = 0.5;
  const double ideal = value(bounds(q), "run_time");
  q.ideal = false;
  EXPECT_DOUBLE_EQ(value(bounds(q), "run_time"), ideal);
  EXPECT_DOUBLE_EQ(value(bounds(q), "ici_intensity"), 500);
}

TEST(BoundsTorus, FormatsScaleWhatIsSent) {
  BoundsQuestion q = on_torus();
  q.gradients = DType::kFp32;
  const BoundsAnswer wide = bounds(q);
  EXPECT_DOUBLE_EQ(value(wide, "dp_limit"), 2 * 1000.0 / 3);
  EXPECT_DOUBLE_EQ(value(wide, "fsdp_limit"), 1.5 * 1000.0 / 3);  // backward: (2 + 4) / 4 of it
  q.gradients = std::nullopt;
  q.activations = DType::kInt8;
  EXPECT_DOUBLE_EQ(value(bounds(q), "tp_limit"), 2 * 4.096);
  EXPECT_DOUBLE_EQ(value(bounds(on_torus()), "tp_limit"), 4.096);
}

TEST(BoundsTorus, LinesCarryOneDirectionOnly) {
  BoundsQuestion q = on_torus(std::nullopt);
  q.topology = Shape{2, 2, 2};
  EXPECT_DOUBLE_EQ(value(bounds(q), "ici_intensity"), 2000);
  q.topology = Shape{4, 4, 4};
  EXPECT_DOUBLE_EQ(value(bounds(q), "ici_intensity"), 1000);
  q.topology = Shape{1, 1, 1};
  EXPECT_TRUE(left_out(bounds(q), "FSDP with tensor parallelism"));
  const BoundsAnswer unknown_shape = bounds(on_torus(8));
  EXPECT_TRUE(
      assumes(unknown_shape, "every axis is taken as a closed ring, though no slice of 8 chips has them", true));
}

TEST(BoundsTorus, TheBestSplitMeetsItsTwoTimes) {
  const BoundsAnswer a = bounds(on_torus(256, 256 * 300));
  const double x = value(a, "mixed_optimal_fsdp");
  const double y = value(a, "mixed_optimal_tp");
  EXPECT_NEAR(x * y, 256, 1e-9);
  EXPECT_NEAR(x, std::sqrt(256 * 300 / 4096.0 * 2 * 256), 1e-9);
  EXPECT_NEAR(value(a, "mixed_math_over_comms"), value(a, "mixed_math_over_comms_at_optimum"), 1e-12);
  EXPECT_NEAR(value(a, "mixed_limit"), 1e6 / (2 * 4096.0), 1e-9);
  EXPECT_NEAR(value(a, "mixed_limit_in_turn"), 4 * value(a, "mixed_limit"), 1e-9);
  EXPECT_EQ(holds(a, "mixed_limit"), true);
  EXPECT_EQ(value(a, "mixed_feasible_tp") * value(a, "mixed_feasible_fsdp"), 256);
  EXPECT_EQ(value(a, "mixed_feasible_tp"), 2);
}

TEST(BoundsTorus, NoSplitBeyondTheChips) {
  const BoundsAnswer a = bounds(on_torus(8, 8 * 65536));
  EXPECT_EQ(holds(a, "mixed_optimal_fsdp"), false);
  EXPECT_EQ(value(a, "mixed_feasible_tp"), 1);
  EXPECT_TRUE(left_out(a, "layer times with tensor parallelism"));
}

TEST(BoundsTorus, SlicesShareTheBatch) {
  BoundsQuestion q = on_torus(std::nullopt, 1024 * 200);
  q.pods = 2;
  const BoundsAnswer a = bounds(q);
  EXPECT_EQ(a.asked.chips, 1024);
  EXPECT_DOUBLE_EQ(value(a, "tokens_per_slice"), 512 * 200);
  EXPECT_DOUBLE_EQ(value(a, "dcn_limit"), 20000);
  EXPECT_EQ(holds(a, "dcn_limit"), true);
  EXPECT_NEAR(value(a, "mixed_optimal_fsdp"), std::sqrt(512 * 200 / 4096.0 * 2 * 512), 1e-9);
  EXPECT_NEAR(value(a, "batch_headroom"), 200 / (1e6 / 8192), 1e-9);
  EXPECT_NEAR(pass(a, "dcn_backward").comms_time.value().value(), 8.0 * 1024 * 4096 / (512 * 5e9), 1e-15);
}

TEST(BoundsLayers, FollowTheBooksAlgorithms) {
  BoundsQuestion q = on_torus(64, 65536);
  q.fix.tp = 4;
  const BoundsAnswer a = bounds(q);
  const double bdf = 65536.0 * 1024 * 4096;
  const double df = 1024.0 * 4096;
  const double bd = 65536.0 * 1024;
  EXPECT_DOUBLE_EQ(value_of(pass(a, "fsdp_forward").flops), 4 * bdf / 64);
  EXPECT_DOUBLE_EQ(value_of(pass(a, "dp_backward").flops), 8 * bdf / 64);
  EXPECT_EQ(value_of(pass(a, "dp_forward").bytes), 0);
  EXPECT_DOUBLE_EQ(value_of(pass(a, "dp_backward").bytes), 8 * df);
  EXPECT_DOUBLE_EQ(value_of(pass(a, "fsdp_forward").bytes), 4 * df);
  EXPECT_DOUBLE_EQ(value_of(pass(a, "tp_forward").bytes), 4 * bd / 16);
  EXPECT_DOUBLE_EQ(value_of(pass(a, "fsdp_tp_forward").bytes), 4 * bd / 16 + 4 * df / 4);
  EXPECT_DOUBLE_EQ(value_of(pass(a, "fsdp_tp_backward").bytes), 6 * bd / 16 + 8 * df / 4);
  EXPECT_DOUBLE_EQ(value_of(pass(a, "fsdp_tp_backward_input_kept").bytes), 4 * bd / 16 + 8 * df / 4);
  EXPECT_DOUBLE_EQ(value_of(pass(a, "fsdp_tp_backward_as_printed").bytes), 8 * bd / 16 + 8 * df / 4);
  EXPECT_FALSE(pass(a, "fsdp_tp_backward_as_printed").note.empty());
  EXPECT_DOUBLE_EQ(value_of(pass(a, "fsdp_tp_forward").data_time), 4 * df / (4 * 2 * 100e9));
  EXPECT_DOUBLE_EQ(value_of(pass(a, "fsdp_tp_forward").tensor_time), 4 * bd / (16 * 100e9));
  for (const LayerPass& p : a.layers) {
    EXPECT_EQ(value_of(p.comms_time), std::max(value_of(p.data_time), value_of(p.tensor_time))) << p.name;
    EXPECT_EQ(p.compute_bound, value_of(p.comms_time) < value_of(p.math_time)) << p.name;
  }
}

TEST(BoundsSwitched, NodeAndNetwork) {
  const BoundsAnswer a = bounds(behind_switches(64, 64 * 200));
  EXPECT_DOUBLE_EQ(value(a, "scale_up_intensity"), 250);
  EXPECT_DOUBLE_EQ(value(a, "scale_out_intensity"), 250);
  EXPECT_DOUBLE_EQ(value(a, "dp_limit"), 250);
  EXPECT_EQ(holds(a, "dp_limit"), false);
  EXPECT_DOUBLE_EQ(value(a, "dp_limit_on_these_nodes"), 250 * 7.0 / 8);
  EXPECT_DOUBLE_EQ(value(a, "tp_limit"), 4096 / 250.0);
  EXPECT_EQ(value(a, "tp_power_of_two"), 8);
  EXPECT_DOUBLE_EQ(value(a, "tp_limit_two_nodes"), 8 + 4096 / 250.0);
  EXPECT_EQ(find(a, "reduction_bandwidth"), nullptr);
}

TEST(BoundsSwitched, TheSlowerOfNodeAndNetworkBinds) {
  BoundsQuestion q = behind_switches();
  q.hw.network[1].switched.bandwidth_per_chip = BytesPerSecond(500e9);
  const BoundsAnswer a = bounds(q);
  EXPECT_DOUBLE_EQ(value(a, "scale_out_intensity"), 25);
  EXPECT_DOUBLE_EQ(value(a, "dp_limit"), 250);
}

TEST(BoundsSwitched, ModelParallelismOverNodesSharesTheNetwork) {
  BoundsQuestion q = behind_switches(64, 64 * 100);
  q.fix = {.tp = 8, .pp = 4};
  const BoundsAnswer a = bounds(q);
  EXPECT_DOUBLE_EQ(value(a, "reduction_bandwidth"), 4 * 400e9);
  EXPECT_DOUBLE_EQ(value(a, "dp_limit_with_model_parallelism"), 250.0 / 4);
  EXPECT_EQ(holds(a, "dp_limit_with_model_parallelism"), true);
  BoundsQuestion nodes = behind_switches(64, 64 * 100);
  nodes.nodes_spanned = 4;
  EXPECT_DOUBLE_EQ(value(bounds(nodes), "dp_limit_with_model_parallelism"), 250.0 / 4);
  q.fix = {.tp = 4};
  EXPECT_DOUBLE_EQ(value(bounds(q), "dp_limit_with_model_parallelism"), 250);
}

TEST(BoundsSwitched, OneNodeNeedsNoNetwork) {
  BoundsQuestion q = behind_switches(8, 8 * 300);
  q.hw.network[1].switched.bandwidth_per_chip = BytesPerSecond(1e9);
  const BoundsAnswer a = bounds(q);
  EXPECT_TRUE(pass(a, "fsdp_forward").compute_bound);
  EXPECT_NE(a.verdict.front().find("Data parallelism alone is compute-bound"), std::string::npos) << a.verdict.front();
  EXPECT_EQ(find(a, "dp_limit_on_these_nodes"), nullptr);
}

TEST(BoundsExperts, MoreWeightsThanFlops) {
  BoundsQuestion q = behind_switches(64, 64 * 5000);
  q.model = test::moe_model();
  q.fix.ep = 32;
  const BoundsAnswer a = bounds(q);
  EXPECT_DOUBLE_EQ(value(a, "expert_sparsity"), 4);
  EXPECT_DOUBLE_EQ(value(a, "dp_limit"), 4 * 250);
  EXPECT_DOUBLE_EQ(value(a, "ep_wide_min_d_ff"), 8 * 250);
  EXPECT_EQ(holds(a, "ep_wide_min_d_ff"), false);
  EXPECT_DOUBLE_EQ(value(a, "ep_narrow_min_d_ff"), 250 * (32 - 8) / 2.0);
  EXPECT_DOUBLE_EQ(value(a, "ep_math_time"), 4 * 5000.0 * 2 * 1024 * 1024 / 100e12);
  EXPECT_DOUBLE_EQ(value(a, "ep_comms_time"), 4 * 5000.0 * 1024 * (32 - 8) / 400e9 * (8 * 2 / 32.0));
  EXPECT_TRUE(assumes(a, "1 of 8 layers, which have another feed-forward and shared experts"));
  BoundsQuestion torus = on_torus();
  torus.model = test::moe_model();
  EXPECT_TRUE(left_out(bounds(torus), "expert parallelism"));
  EXPECT_DOUBLE_EQ(value(bounds(torus), "fsdp_limit"), 4 * 1000.0 / 3);
}

TEST(BoundsDegrees, ProductAndSequences) {
  BoundsQuestion q = behind_switches(64, 32 * 1024);
  q.training.seq = 1024;
  q.fix = {.dp = 4, .tp = 8, .pp = 2};
  const BoundsAnswer a = bounds(q);
  EXPECT_EQ(value(a, "model_parallel_degree"), 16);
  EXPECT_EQ(value(a, "degrees_product"), 64);
  EXPECT_EQ(holds(a, "degrees_product"), true);
  EXPECT_EQ(value(a, "sequences_per_batch"), 32);
  EXPECT_EQ(holds(a, "sequences_per_batch"), true);
  q.fix.dp = 2;
  EXPECT_EQ(holds(bounds(q), "degrees_product"), false);
  q.fix = {.dp = 8, .tp = 8, .ep = 4};  // experts laid over the data ranks
  EXPECT_EQ(holds(bounds(q), "degrees_product"), true);
  q.fix = {};
  EXPECT_EQ(holds(bounds(q), "sequences_per_batch"), false);
  q.chips.reset();
  q.fix = {.dp = 2, .tp = 8};
  EXPECT_EQ(bounds(q).asked.chips, 16);
}

TEST(BoundsPipeline, BubbleAndTransfers) {
  BoundsQuestion q = behind_switches(64, 65536);
  q.fix = {.tp = 8, .pp = 4, .microbatches = 16};
  const BoundsAnswer a = bounds(q);
  EXPECT_DOUBLE_EQ(value(a, "pp_bubble"), 3.0 / 19);
  EXPECT_DOUBLE_EQ(value(a, "pp_hop_time"), 2 * 65536.0 / 2 * 1024 / (400e9 * 16));
  EXPECT_DOUBLE_EQ(value(a, "pp_transfer_time"), value(a, "pp_hop_time") * 18);
  q.fix.microbatches.reset();
  EXPECT_TRUE(left_out(bounds(q), "pipeline bubble"));
}

TEST(BoundsMemory, StateAndCheckpoints) {
  BoundsQuestion q = on_torus(64, 65536);
  q.parameters = 8e9;
  q.training.checkpoints = CheckpointPolicy{CheckpointPolicy::Kind::kMlp, 0};
  const BoundsAnswer a = bounds(q);
  EXPECT_EQ(value(a, "state_bytes_per_parameter"), 10);
  EXPECT_EQ(value(a, "framework_bytes_per_parameter"), 18);
  EXPECT_EQ(value(a, "state_bytes"), 80e9);
  EXPECT_EQ(holds(a, "dp_largest_model"), false);
  EXPECT_EQ(value(a, "state_chips"), 3);
  EXPECT_EQ(value(a, "checkpoint_bytes_all"), 20 * 2 * 65536.0 * 1024 * 8);
  EXPECT_EQ(value(a, "checkpoint_bytes"), 2 * 65536.0 * (2 * 4096 + 1024) * 8);
  EXPECT_EQ(value(a, "training_bytes"), value(a, "state_bytes") + value(a, "checkpoint_bytes"));
  EXPECT_EQ(holds(a, "training_bytes_per_chip"), true);
  q.training.optimizer = "adam8bit";
  EXPECT_EQ(value(bounds(q), "state_bytes_per_parameter"), 4);
  q.training.optimizer = "muon";
  q.weights = DType::kFp32;
  EXPECT_EQ(value(bounds(q), "state_bytes_per_parameter"), 8);
  q.fix.tp = 4;
  EXPECT_EQ(value(bounds(q), "state_bytes_per_chip_replicated"), 8 * 8e9 / 4);
}

TEST(BoundsRun, DaysAndDollars) {
  BoundsQuestion q = on_torus(100, 1e6);
  q.parameters = 1e9;
  q.training.tokens = 1e12;
  q.training.mfu = 0.5;
  q.training.price = 2;
  q.training.gpu_hours = 1e5;
  const BoundsAnswer a = bounds(q);
  EXPECT_DOUBLE_EQ(value(a, "training_flops"), 6e21);
  EXPECT_DOUBLE_EQ(value(a, "run_time"), 6e21 / (100 * 100e12 * 0.5));
  EXPECT_DOUBLE_EQ(value(a, "run_days"), value(a, "run_time") / 86400);
  EXPECT_DOUBLE_EQ(value(a, "chip_hours"), 100 * value(a, "run_time") / 3600);
  EXPECT_DOUBLE_EQ(value(a, "cost"), 2 * value(a, "chip_hours"));
  EXPECT_DOUBLE_EQ(value(a, "steps"), 1e6);
  EXPECT_DOUBLE_EQ(value(a, "step_time") * value(a, "steps"), value(a, "run_time"));
  EXPECT_DOUBLE_EQ(value(a, "measured_mfu"), 6e21 / (1e5 * 3600 * 100e12));
  EXPECT_TRUE(assumes(a, "count nobody builds", true));  // 100 chips are no slice of this torus
}

TEST(BoundsParameters, CountedStatedOrGiven) {
  BoundsQuestion q = on_torus();
  const double counted = *bounds(q).asked.parameters;
  EXPECT_GT(counted, 1e8);
  q.model->official.stated = 123e6;
  EXPECT_EQ(bounds(q).asked.parameters, counted);
  q.stated_parameters = true;
  EXPECT_EQ(bounds(q).asked.parameters, 123e6);
  q.model->official.stated = 0;
  EXPECT_THROW(bounds(q), UserError);
  q.stated_parameters = false;
  q.active_parameters = 2 * counted;
  EXPECT_THROW(bounds(q), UserError);
  q.active_parameters = counted / 2;
  EXPECT_DOUBLE_EQ(value(bounds(q), "flops_per_token"), 3 * counted);
}

TEST(BoundsOfASize, NameWhatTheyLeaveOut) {
  BoundsQuestion q = behind_switches();
  q.model.reset();
  q.parameters = 70e9;
  const BoundsAnswer a = bounds(q);
  EXPECT_EQ(value(a, "state_bytes"), 700e9);
  EXPECT_TRUE(left_out(a, "tensor parallelism"));
  EXPECT_TRUE(left_out(a, "times of one layer"));
  EXPECT_TRUE(left_out(a, "activations kept"));
  EXPECT_TRUE(left_out(a, "the training run"));
  EXPECT_TRUE(a.layers.empty());
}

TEST(BoundsDefaults, AreThoseOfTheModelsTrainingAndSaidSo) {
  BoundsQuestion q = about(test::torus_chip());
  q.chips = 64;
  q.model->training.tokens = 1e12;
  q.model->training.seq = 2048;
  q.model->training.batch_tokens = 2e6;
  q.model->training.source = "a paper";
  const BoundsAnswer a = bounds(q);
  EXPECT_EQ(a.asked.batch_tokens, 2e6);
  EXPECT_EQ(a.asked.seq, 2048);
  EXPECT_EQ(a.asked.tokens, 1e12);
  EXPECT_TRUE(assumes(a, "batch of 2M tokens"));
  q.scope = BoundScope::kServing;
  EXPECT_EQ(bounds(q).asked.batch_tokens, std::nullopt);
  EXPECT_EQ(find(bounds(q), "fsdp_limit"), nullptr);
}

TEST(BoundsCalibrated, ScalesRates) {
  BoundsQuestion q = on_torus();
  q.ideal = false;
  q.hw.efficiency.matmul[static_cast<std::size_t>(DType::kBf16)] = {0.5, 0, "test"};
  q.hw.efficiency.link_scale_up = {0.8, 0, "test"};
  EXPECT_NEAR(value(bounds(q), "ici_intensity"), 1000 * 0.5 / 0.8, 1e-9);
}

TEST(BoundsVersus, ComparesTheMachines) {
  BoundsQuestion q = about(test::switched_chip());
  q.versus = test::torus_chip();
  const BoundsAnswer a = bounds(q);
  EXPECT_DOUBLE_EQ(value(a, "compute_gain"), 1);
  EXPECT_DOUBLE_EQ(value(a, "tensor_intensity_gain"), 250.0 / 1000);
  EXPECT_DOUBLE_EQ(value(a, "data_intensity_gain"), 250.0 / (1000.0 / 3));
}

TEST(BoundsQuestions, ThatContradictThemselves) {
  BoundsQuestion switched = behind_switches();
  switched.pods = 2;
  EXPECT_THROW(bounds(switched), UserError);
  switched = behind_switches(64);
  switched.fix.tp = 3;
  EXPECT_THROW(bounds(switched), UserError);
  switched = behind_switches();
  switched.tensor_axes = 1;
  EXPECT_THROW(bounds(switched), UserError);
  BoundsQuestion torus = on_torus();
  torus.topology = Shape{4, 4, 8};
  EXPECT_THROW(bounds(torus), UserError);  // --chips says 64
  torus = on_torus(100);
  torus.slices = 3;
  EXPECT_THROW(bounds(torus), UserError);
  torus = on_torus();
  torus.data_axes = 4;
  EXPECT_THROW(bounds(torus), UserError);
  torus = on_torus();
  torus.training.batch_tokens.reset();
  torus.training.batch_seqs = 8;
  torus.model->training = {};
  EXPECT_THROW(bounds(torus), UserError);
  torus = on_torus();
  torus.compute = DType::kInt4;
  EXPECT_THROW(bounds(torus), UserError);
}

TEST(BoundsMissingFigures, AreNamedAndTheRestIsAnswered) {
  BoundsQuestion q = behind_switches();
  q.hw.unpublished.push_back({"hbm.capacity", {}, ""});
  BoundsAnswer a = bounds(q);
  EXPECT_TRUE(left_out(a, "what fits"));
  EXPECT_EQ(find(a, "state_chips"), nullptr);
  EXPECT_DOUBLE_EQ(value(a, "dp_limit"), 250);
  q = behind_switches();
  q.hw.unpublished.push_back({"network.leaf.bandwidth_per_chip", {}, ""});
  a = bounds(q);
  EXPECT_EQ(find(a, "dp_limit"), nullptr);
  EXPECT_DOUBLE_EQ(value(a, "tp_limit"), 4096 / 250.0);
  EXPECT_EQ(a.verdict.front().find("Data parallelism alone is compute-bound"), 0U);
  q.hw.network.clear();
  q.hw.unpublished.clear();
  a = bounds(q);
  EXPECT_TRUE(left_out(a, "data, tensor and mixed parallelism"));
  EXPECT_EQ(value(a, "state_bytes_per_parameter"), 10);
  EXPECT_TRUE(assumes(a, "is not known", true));
  q = on_torus();
  q.hw.network[0].torus.pod.clear();
  q.hw.network[0].torus.max_chips = 0;
  q.hw.unpublished.push_back({"network.ici.pod", {}, ""});
  a = bounds(q);
  EXPECT_EQ(find(a, "fsdp_pod_batch"), nullptr);
  EXPECT_DOUBLE_EQ(value(a, "fsdp_limit"), 1000.0 / 3);
  q.pods = 2;
  q.chips.reset();
  EXPECT_THROW(bounds(q), UserError);
}

TEST(BoundsRules, AreNamedOnceInOrderOfTheirGroupsWithUnitAndSource) {
  BoundsQuestion q = on_torus();
  q.training.tokens = 1e12;
  const BoundsAnswer a = bounds(q);
  EXPECT_TRUE(std::is_sorted(a.bounds.begin(), a.bounds.end(),
                             [](const Bound& x, const Bound& y) { return x.group < y.group; }));
  for (const Bound& bound : a.bounds) {
    EXPECT_FALSE(bound.name.empty());
    EXPECT_FALSE(bound.symbol.empty()) << bound.name;
    EXPECT_FALSE(bound.condition.empty()) << bound.name;
    EXPECT_FALSE(bound.source.empty()) << bound.name;
    EXPECT_TRUE(std::isfinite(bound.value.value())) << bound.name;
    EXPECT_FALSE(bound.unit.empty()) << bound.name;
    EXPECT_EQ(reevaluate(bound.value), bound.value.value()) << bound.name;
  }
}

/// n_max = B M_X M_Y F / alpha^2: 65,536 x 2 x 4,096 / 10^6.
TEST(BoundsTorus, TheMostChipsOfFsdpWithTensorParallelism) {
  const BoundsAnswer a = bounds(on_torus(std::nullopt, 65536));
  EXPECT_NEAR(value(a, "mixed_most_chips"), 65536.0 * 2 * 4096 / 1e6, 1e-6);
  // On so many chips the batch is the least that the best split needs.
  const BoundsAnswer at = bounds(on_torus(512, 65536));
  EXPECT_NEAR(value(at, "mixed_min_batch"), 65536.0 * 512 / value(a, "mixed_most_chips"), 1e-6);
}

/// Without a model the limits of the chip alone, equal to those of any dense one.
TEST(BoundsOfNoModel, AreThoseThatHoldForEveryDenseOne) {
  for (const HardwareSpec& hw : {test::torus_chip(), test::switched_chip()}) {
    BoundsQuestion q = about(hw);
    q.scope = BoundScope::kBoth;
    const BoundsAnswer dense = bounds(q);
    q.model.reset();
    const BoundsAnswer none = bounds(q);
    EXPECT_FALSE(none.asked.parameters);
    EXPECT_TRUE(none.layers.empty());
    EXPECT_TRUE(none.points.empty());
    EXPECT_TRUE(left_out(none, "memory and the run"));
    EXPECT_EQ(value(none, "fsdp_limit"), value(dense, "fsdp_limit"));
    EXPECT_EQ(value(none, "critical_batch"), value(dense, "critical_batch"));
    for (const Bound& bound : none.bounds) {
      EXPECT_EQ(bound.value.value(), value(dense, bound.name)) << bound.name;
    }
  }
}

/// F = 4096, 250 FLOPs a byte inside a node of 8 and 2000 beyond: 16.4 chips, and 8 + 2.05 of them.
TEST(BoundsSwitched, TensorParallelismOverNodesKeepsWithinBothNetworks) {
  const BoundsAnswer a = bounds(behind_switches());
  EXPECT_EQ(value(a, "tp_limit_over_nodes"), std::min(value(a, "tp_limit"), value(a, "tp_limit_two_nodes")));
}

}  // namespace
}  // namespace scalecalc
