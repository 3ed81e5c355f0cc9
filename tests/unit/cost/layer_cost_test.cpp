// What layers of each kind send and hold per chip, for one sequence of 2,048 tokens of the small test models.
#include "cost/layer_cost.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/fixtures.h"

namespace scalecalc {
namespace {

constexpr double kSeq = 2048;

NetworkCost<double> costs_of(const ModelSpec& model, const InnerDegrees& inner, const Workload& workload,
                             const HardwareSpec& hw = test::switched_chip()) {
  const Reader<double> reader;
  const ChipRates<double> chip = read_chip(reader, hw, hw.efficiency, DType::kBf16);
  return network_cost(reader, model, read_model(reader, model), chip, workload, inner);
}

NetworkCost<double> costs(const ModelSpec& model, const InnerDegrees& inner,
                          AttentionKernel attention = AttentionKernel::kFlash) {
  Workload workload = test::workload();
  workload.attention = attention;
  return costs_of(model, inner, workload);
}

/// Bytes of a microbatch that the layer keeps without remat.
double kept_whole(const LayerCost<double>& cost) { return cost.saved[0].value(); }

LayerCost<double> cost_of(const LayerKind& kind, const InnerDegrees& inner, bool parallel = false) {
  ModelSpec model = test::hybrid_model(7, parallel);
  model.kinds = {kind};
  model.layer_kind = {0};
  return costs(model, inner).kinds[0];
}

/// Bytes that a layer keeps of a microbatch under a stack's rules.
double kept(const LayerKind& kind, const InnerDegrees& inner, const Workload& workload, Remat remat = Remat::kNone) {
  const HardwareSpec hw = test::switched_chip();
  const Reader<double> reader;
  const ChipRates<double> chip = read_chip(reader, hw, hw.efficiency, DType::kBf16);
  ModelSpec model = test::hybrid_model(7, false);
  model.kinds = {kind};
  model.layer_kind = {0};
  const NetworkCost<double> costs = network_cost(reader, model, read_model(reader, model), chip, workload, inner);
  return costs.kinds[0].saved[static_cast<std::size_t>(remat)].value();
}

constexpr InnerDegrees kTensor{.tp = 4};
constexpr InnerDegrees kSequence{.tp = 4, .sp = true};

TEST(TensorCommunication, OneSumPerPartThatEndsInARowDividedProjection) {
  const struct {
    LayerKind kind;
    double sums;
  } cases[] = {{{MixerKind::kFull, FfnKind::kDense}, 2},  {{MixerKind::kFull, FfnKind::kNone}, 1},
               {{MixerKind::kNone, FfnKind::kDense}, 1},  {{MixerKind::kGdn, FfnKind::kDense}, 2},
               {{MixerKind::kMamba2, FfnKind::kNone}, 1}, {{MixerKind::kNone, FfnKind::kMoe}, 1}};
  for (const auto& [kind, sums] : cases) {
    const LayerCost<double> plain = cost_of(kind, kTensor);
    EXPECT_EQ(plain.forward.tp_reduces, sums) << label_of(kind);
    EXPECT_EQ(plain.backward.tp_reduces, sums) << label_of(kind);
    const LayerCost<double> sharded = cost_of(kind, kSequence);
    EXPECT_EQ(sharded.forward.tp_gathers, 2 * sums) << label_of(kind);
    EXPECT_EQ(sharded.backward.tp_gathers, 3 * sums) << label_of(kind);
    EXPECT_EQ(sharded.tp_bytes.value(), kSeq * 1024 * 2) << label_of(kind);
  }
}

/// Forward the head's input is gathered. Backward its gradient is scattered and, for the weights' gradient, the input
/// gathered again; the embedding has no such input.
TEST(TensorCommunication, TheHeadGathersItsInputAgain) {
  const NetworkCost<double> sharded = costs(test::dense_model(1), kSequence);
  EXPECT_EQ(sharded.head.forward.tp_gathers, 1);
  EXPECT_EQ(sharded.head.backward.tp_gathers, 2);
  EXPECT_EQ(sharded.embedding.backward.tp_gathers, 1);
  EXPECT_EQ(costs(test::dense_model(1), kTensor).head.backward.tp_reduces, 1);
}

/// PaLM, arXiv:2204.02311: mixer and MLP of a parallel block share their input and their sum.
TEST(TensorCommunication, AParallelBlockSumsOnce) {
  const LayerKind kind{MixerKind::kFull, FfnKind::kDense};
  EXPECT_EQ(cost_of(kind, kTensor, true).forward.tp_reduces, 1);
  EXPECT_EQ(cost_of(kind, kSequence, true).backward.tp_gathers, 3);
}

/// 34 s b h against 32 without the masks of two dropouts (Korthikanti et al. 2022, arXiv:2205.05198 equation 1).
TEST(TensorsKept, DropoutKeepsAByteAnElementTwice) {
  const LayerKind kind{MixerKind::kFull, FfnKind::kDense};
  Workload workload = test::workload();
  const double without = kept(kind, {}, workload);
  workload.dropout = true;
  EXPECT_DOUBLE_EQ(kept(kind, {}, workload) - without, 2 * kSeq * 1024);
  EXPECT_EQ(kept(kind, {}, workload, Remat::kFull), kSeq * 1024 * 2);
}

TEST(TensorsKept, InputsThatStayGatheredAreWhole) {
  const LayerKind kind{MixerKind::kFull, FfnKind::kDense};
  Workload workload = test::workload();
  const double sharded = kept(kind, kSequence, workload);
  workload.memory.keeps_gathered = true;
  EXPECT_DOUBLE_EQ(kept(kind, kSequence, workload) - sharded, 2 * kSeq * 1024 * 2 * 3 / 4) << "two of them, of 4 ranks";
}

/// Bytes a token of a dense layer of 1,024 that the rule adds.
double more_kept(const ModelSpec& model, void (*rule)(StackMemory&), Remat remat = Remat::kNone) {
  Workload workload = test::workload();
  const auto bytes = [&] {
    return costs_of(model, {}, workload).kinds[0].saved[static_cast<std::size_t>(remat)].value() / kSeq;
  };
  const double plain = bytes();
  rule(workload.memory);
  return bytes() - plain;
}

/// x.float() takes the place of the stream's 2 bytes in both norms, and the normalized 4 are for the weight's gradient;
/// what runs again keeps the stream alone.
TEST(TensorsKept, NormsThatComputeInFp32KeepItSo) {
  const auto rule = [](StackMemory& m) { m.norm_input_bytes = m.norm_result_bytes = 4; };
  ModelSpec model = test::dense_model(1);
  EXPECT_DOUBLE_EQ(more_kept(model, rule), 2 * (2 + 4) * 1024.0);
  EXPECT_DOUBLE_EQ(more_kept(model, rule, Remat::kSelective), 0);
  EXPECT_DOUBLE_EQ(more_kept(model, rule, Remat::kFull), 0);
  model.norm = NormKind::kLayer;
  EXPECT_DOUBLE_EQ(more_kept(model, rule), 0) << "which has a kernel of its own";
}

/// 16 query heads of 64 on 4 of keys and values: copied for each, 2 x 1,024 elements stay in the place of 2 x 256, and
/// no view of the projection; heads that share nothing are not copied, and 2 x 1,024 rotated elements lie beside it.
TEST(TensorsKept, ViewsAndCopiesOfTheProjection) {
  const ModelSpec grouped = test::dense_model(1);
  const auto both = [](StackMemory& m) { m.fused_projection = m.repeats_keys = true; };
  const auto views = [](StackMemory& m) { m.fused_projection = true; };
  EXPECT_DOUBLE_EQ(more_kept(grouped, both), 2 * 2 * (1024.0 - 256));
  EXPECT_DOUBLE_EQ(more_kept(grouped, views), 0);
  ModelSpec apart = grouped;
  apart.attention.kv_heads = apart.attention.heads;
  EXPECT_DOUBLE_EQ(more_kept(apart, both), 2 * 2 * 1024.0);
  EXPECT_DOUBLE_EQ(more_kept(apart, views, Remat::kFull), 0);
}

/// Two gathers of gradients and two scatters are left of six. Selective remat drops both inputs and gathers them again,
/// as does the part that attention or mlp leaves alone; a part that runs again has its own two exchanges.
TEST(TensorCommunication, InputsThatStayGatheredAreNotGatheredAgain) {
  Workload workload = test::workload();
  workload.memory.keeps_gathered = true;
  const LayerCost<double> cost = costs_of(test::dense_model(1), kSequence, workload).kinds[0];
  EXPECT_EQ(cost.forward.tp_gathers, 4);
  EXPECT_EQ(cost.backward.tp_gathers, 4);
  const auto again = [&](Remat remat) { return cost.recompute[static_cast<std::size_t>(remat)].tp_gathers; };
  EXPECT_EQ(again(Remat::kNone), 0);
  EXPECT_EQ(again(Remat::kSelective), 2);
  EXPECT_EQ(again(Remat::kAttention), 2 + 1);
  EXPECT_EQ(again(Remat::kMlp), 2 + 1);
  EXPECT_EQ(again(Remat::kFull), 4);
}

TEST(TensorsKept, ExpertsOutputsGoWhereTheStackWeightsTheirInputs) {
  const LayerKind kind{MixerKind::kFull, FfnKind::kMoe};
  const ModelSpec model = test::hybrid_model(7, false);
  Workload workload = test::workload();
  const double all = kept(kind, {}, workload);
  workload.memory.keeps_expert_outputs = false;
  EXPECT_DOUBLE_EQ(all - kept(kind, {}, workload),
                   kSeq * 2 * static_cast<double>(model.moe->top_k * model.moe->latent));
}

/// Four ranks that share every expert gather the tokens: the dispatched copies and the outputs, 2 x 1,024 elements of a
/// token each, are whole on all four, a quarter on each rank that has experts of its own. Gate, up and their product
/// are a quarter either way.
TEST(TensorsKept, RanksOfOneExpertKeepTheGatheredTokensWhole) {
  ModelSpec model = test::moe_model();
  model.kinds = {{MixerKind::kNone, FfnKind::kMoe}};
  model.layer_kind = {0};
  const double apart = kept_whole(costs(model, kSequence).kinds[0]);
  InnerDegrees together = kSequence;
  together.etp = 4;
  EXPECT_DOUBLE_EQ(kept_whole(costs(model, together).kinds[0]) - apart, 2 * kSeq * 2 * 1024 * 2 * 3 / 4);
}

/// Both normed inputs and the activation function's output feed matmuls.
TEST(TensorsKept, Fp8RecipesKeepMatmulInputsInEightBits) {
  const LayerKind kind{MixerKind::kFull, FfnKind::kDense};
  const ModelSpec model = test::hybrid_model(7, false);
  Workload workload = test::workload();
  const double wide = kept(kind, {}, workload);
  workload.memory.quantized_inputs = true;
  EXPECT_EQ(kept(kind, {}, workload), wide) << "not in bf16";
  workload.precision = precision_of("fp8");
  EXPECT_DOUBLE_EQ(wide - kept(kind, {}, workload), kSeq * static_cast<double>(2 * model.d_model + model.mlp.d_ff));
}

/// Gate and up-projection leave what the activation reads, a byte an element less of each.
TEST(TensorsKept, ActivationInputsInEightBits) {
  const LayerKind kind{MixerKind::kFull, FfnKind::kDense};
  const ModelSpec model = test::hybrid_model(7, false);
  Workload workload = test::workload();
  const double wide = kept(kind, {}, workload);
  workload.memory.fp8_activation_inputs = true;
  EXPECT_DOUBLE_EQ(wide - kept(kind, {}, workload), kSeq * static_cast<double>(2 * model.mlp.d_ff));
}

/// Mamba 1 sums the step and state projections, 64 + 2 x 16 of 1,024 elements of two bytes, before its scan: one whole
/// collective, however narrow.
TEST(TensorCommunication, MambaOneSumsInsideItsMixer) {
  for (const InnerDegrees& inner : {kTensor, kSequence}) {
    const Phase<double> forward = cost_of({MixerKind::kMamba1, FfnKind::kNone}, inner).forward;
    EXPECT_EQ(forward.tp_reduces, inner.sp ? 0 : 1);
    EXPECT_EQ(forward.tp_inner_reduces, 1);
    EXPECT_EQ(forward.tp_inner_bytes.value(), kSeq * 96.0 * 2);
  }
}

/// What 8-bit matmuls read is gathered in one byte an element, not two; what they write is scattered as it is. There
/// are as many collectives either way.
TEST(TensorCommunication, EightBitGathersAreAsManyAndHalfAsWide) {
  const ModelSpec model = test::dense_model(1);
  Workload workload = test::workload();
  workload.precision = precision_of("fp8");
  const LayerCost<double> wide = costs_of(model, kSequence, workload).kinds[0];
  workload.runtime.quantized_gathers = true;
  const LayerCost<double> narrow = costs_of(model, kSequence, workload).kinds[0];
  EXPECT_EQ(narrow.tp_narrow_bytes.value(), wide.tp_bytes.value() / 2);
  EXPECT_EQ(wide.forward.tp_narrow_gathers, 0);
  EXPECT_EQ(narrow.forward.tp_narrow_gathers, 2);
  EXPECT_EQ(narrow.backward.tp_narrow_gathers, 4);
  for (const auto phase : {&LayerCost<double>::forward, &LayerCost<double>::backward}) {
    EXPECT_EQ((narrow.*phase).tp_gathers, 2);
    EXPECT_EQ((narrow.*phase).tp_collectives(), (wide.*phase).tp_collectives());
  }
  EXPECT_EQ(narrow.recompute[static_cast<std::size_t>(Remat::kFull)].tp_collectives(), 4);
}

TEST(ContextCommunication, AWindowSendsItsReachAndARecurrenceItsStates) {
  const InnerDegrees inner{.cp = 4};
  const double kv = 2 * 4 * 64 * 2;  // keys and values of a token in bytes
  EXPECT_EQ(cost_of({MixerKind::kFull, FfnKind::kNone}, inner).cp_bytes.value(), kSeq * kv);
  EXPECT_EQ(cost_of({MixerKind::kSliding, FfnKind::kNone}, inner).cp_bytes.value(), kSeq * kv * (256 / kSeq + 1.0 / 4));
  const LayerCost<double> gdn = cost_of({MixerKind::kGdn, FfnKind::kNone}, inner);
  EXPECT_EQ(gdn.cp_bytes.value(), 4 * 16 * 64 * 64 * 4) << "four ranks' states in fp32";
  EXPECT_EQ(gdn.forward.cp_gathers, 1);
  EXPECT_EQ(gdn.backward.cp_gathers, 1);
  EXPECT_EQ(cost_of({MixerKind::kNone, FfnKind::kDense}, inner).forward.cp_gathers, 0);
}

TEST(ExpertCommunication, LatentExpertsSendLatentTokens) {
  ModelSpec model = test::hybrid_model();
  model.kinds = {{MixerKind::kNone, FfnKind::kMoe}};
  model.layer_kind = {0};
  const InnerDegrees inner{.ep = 4};
  EXPECT_EQ(costs(model, inner).kinds[0].forward.ep_bytes.value(), kSeq * 2 * 512 * (2 + 2));
  model.moe->latent = 0;
  EXPECT_EQ(costs(model, inner).kinds[0].forward.ep_bytes.value(), kSeq * 2 * 1024 * (2 + 2));
}

/// Five iterations of 4 m^2 n + 2 m^3 on m x n. Experts of 1,024 x 256: 5 (4 x 256 + 2 x 256^2 / 1,024) = 5,760 of each
/// element of 8 x 3 matrices, half of them on each of two ranks. Queries and output 1,024 square: 5 x 6 x 1,024 of
/// each; keys with values 1,024 x 512: 5 (4 x 512 + 2 x 512^2 / 1,024); the router's short side is its eight experts.
TEST(Muon, TheShortSideIsTheMatrixsOwn) {
  ModelSpec model = test::moe_model();
  model.kinds = {{MixerKind::kFull, FfnKind::kMoe}};
  model.layer_kind = {0};
  model.moe->d_ff = 256;
  model.moe->shared_experts = model.moe->shared_d_ff = 0;
  Workload workload = test::workload();
  EXPECT_EQ(costs_of(model, {}, workload).kinds[0].orthogonal_experts.value(), 0) << "Adam";
  workload.optimizer = optimizer_of("muon", workload.precision);
  const NetworkCost<double> cost = costs_of(model, {.ep = 2}, workload);
  EXPECT_DOUBLE_EQ(cost.kinds[0].orthogonal_experts.value(), 8.0 * 3 * 1024 * 256 * 5760 / 2);
  const double square = 2.0 * 1024 * 1024 * 5 * 6 * 1024;
  const double keys = 1024.0 * 512 * 5 * (4 * 512 + 2 * 512.0 * 512 / 1024);
  const double router = 1024.0 * 8 * 5 * (4 * 8 + 2 * 8.0 * 8 / 1024);
  EXPECT_DOUBLE_EQ(cost.kinds[0].orthogonal.value(), square + keys + router);
  EXPECT_EQ(cost.head.orthogonal.value(), 0);
}

/// One sequence of 16 tokens, two of eight experts each, is bound by memory. Each of three matrices of 1,024 x 1,024 an
/// expert, 8 x 2^20 weights w, with 32 rows: the input's gradient moves 2 (32 x 1,024 x 2 + w) bytes, the weights'
/// reads 2 x 32 x 2,048 and adds to fp32 gradients, 8 w.
TEST(WeightGradients, AreAddedToThoseThatAreThere) {
  ModelSpec model = test::moe_model();
  model.kinds = {{MixerKind::kNone, FfnKind::kMoe}};
  model.layer_kind = {0};
  model.moe->shared_experts = model.moe->shared_d_ff = 0;
  Workload workload = test::workload(16, 1);
  const LayerCost<double> fp32 = costs_of(model, {}, workload).kinds[0];
  workload.memory.gradient_bytes["bf16"] = 2;
  const LayerCost<double> half = costs_of(model, {}, workload).kinds[0];
  const double weights = 8.0 * 1024 * 1024;
  const double hbm = test::switched_chip().hbm_bandwidth.value();
  // The router's 1,024 x 8 weights are added to as well.
  EXPECT_NEAR((fp32.backward.work.hbm - half.backward.work.hbm).value(), (3 * weights + 8192) * (8 - 4) / hbm, 1e-12);
  const double each = 2 * 32 * 2048 + 8 * weights;
  const double router = 2 * 16 * (1024 + 8) + 8 * 8192;
  EXPECT_NEAR(fp32.weight_gradient.value(), (3 * each + router) / hbm, 1e-12);
}

/// 2,048 tokens, two of eight experts each, of width 1,024 to 1,024 and back. The fullest rank has 1.25 times the mean:
/// that much more is sent there and back, 2,048 x 2 x 1,024 x (2 + 2) bytes; multiplied, 2 x 2 x 1,024^2 FLOPs in each
/// of three matrices; and kept, the dispatched copy, gate, up, their product and the output of every token and choice.
TEST(ExpertLoad, TheFullestRanksTokensAreSentMultipliedAndKept) {
  ModelSpec model = test::moe_model();
  model.kinds = {{MixerKind::kNone, FfnKind::kMoe}};
  model.layer_kind = {0};
  HardwareSpec hw = test::switched_chip();
  const InnerDegrees inner{.ep = 4};
  const LayerCost<double> mean = costs_of(model, inner, test::workload(), hw).kinds[0];
  hw.efficiency.moe_imbalance.value = 1.25;
  const LayerCost<double> fullest = costs_of(model, inner, test::workload(), hw).kinds[0];
  EXPECT_DOUBLE_EQ(fullest.forward.ep_bytes.value(), 1.25 * kSeq * 2 * 1024 * (2 + 2));
  EXPECT_DOUBLE_EQ(fullest.backward.ep_bytes.value() / mean.backward.ep_bytes.value(), 1.25);
  const double matrices = kSeq * 2 * 3 * 2 * 1024 * 1024;
  EXPECT_GT((fullest.forward.work.flops - mean.forward.work.flops).value(), 0.25 * matrices);
  EXPECT_DOUBLE_EQ(kept_whole(fullest) - kept_whole(mean), 0.25 * kSeq * 2 * 5 * 1024 * 2);
  EXPECT_EQ(fullest.expert_parameters, mean.expert_parameters);
  Workload even = test::workload();
  even.balanced_experts = true;
  EXPECT_EQ(kept_whole(costs_of(model, inner, even, hw).kinds[0]), kept_whole(mean));
  const LayerCost<double> alone = costs_of(model, {}, test::workload(), hw).kinds[0];
  EXPECT_EQ(kept_whole(alone), kept_whole(mean)) << "without expert ranks every rank has the tokens that it routes";
}

/// [EXPERT-BIAS] 2,048 tokens, two choices each, 1,024 wide. Forward in fp32: 4 bytes written; 2 + 4 read and 4
/// written; 4 and 4; 4 and 2: 28. Backward: 2 and 4; 4 and 2, 2 and 2; twice 4, 4 and 4: 40. Two of eight experts on a
/// rank: two kernels each and two for all, then five each and two.
TEST(ExpertBias, IsAddedExpertByExpertWhereTheStackDoes) {
  ModelSpec model = test::moe_model();
  model.kinds = {{MixerKind::kNone, FfnKind::kMoe}};
  model.layer_kind = {0};
  HardwareSpec hw = test::switched_chip();
  hw.efficiency.kernel_overhead.value = 1e-6;
  Workload workload = test::workload();
  workload.balanced_experts = true;
  const InnerDegrees inner{.ep = 4};
  const auto with = [&](bool bias, bool apart, GraphCapture graphs) {
    model.moe->expert_bias = bias;
    workload.runtime.expert_bias_apart = apart;
    workload.graphs = graphs;
    return costs_of(model, inner, workload, hw).kinds[0];
  };
  const LayerCost<double> joined = with(true, false, GraphCapture::kNone);
  const LayerCost<double> apart = with(true, true, GraphCapture::kNone);
  const double bytes = kSeq * 2 * 1024 / hw.hbm_bandwidth.value();
  const auto more = [&](const Phase<double>& a, const Phase<double>& b) { return (a.work.hbm - b.work.hbm).value(); };
  EXPECT_NEAR(more(apart.forward, joined.forward), 28 * bytes, 1e-12);
  EXPECT_NEAR(more(apart.backward, joined.backward), 40 * bytes, 1e-12);
  EXPECT_NEAR(apart.forward.launches - joined.forward.launches, 2 * 2 + 2, 1e-9);
  EXPECT_NEAR((apart.backward.work.overhead - joined.backward.work.overhead).value(), (2 * 5 + 2) * 1e-6, 1e-12);
  EXPECT_EQ(with(true, true, GraphCapture::kStep).forward.work.hbm.value(), joined.forward.work.hbm.value())
      << "no loop is captured";
  EXPECT_EQ(with(false, true, GraphCapture::kNone).forward.work.hbm.value(),
            with(false, false, GraphCapture::kNone).forward.work.hbm.value());
}

/// [CAST] On the ideal chip with casts in the open. 16 bits read and 8 written twice: 4 bytes an element; with a scale
/// from the tensor itself it is read once more, 6; written once, 3 and 5.
class Casts : public testing::Test {
 protected:
  Casts() {
    hw.efficiency.cast.value = 1;
    workload.precision = precision_of("fp8");
  }
  Phase<double> forward(const ModelSpec& model, std::optional<Scaling> scaling, bool one_copy = false) {
    workload.precision.scaling = scaling;
    workload.runtime.one_copy = one_copy;
    return costs_of(model, {}, workload, hw).kinds[0].forward;
  }
  double seconds(const ModelSpec& model, std::optional<Scaling> scaling, bool one_copy = false) {
    HardwareSpec without = hw;
    without.efficiency.cast.value = 0;
    const double whole = forward(model, scaling, one_copy).work.hbm.value();
    return whole - costs_of(model, {}, workload, without).kinds[0].forward.work.hbm.value();
  }
  static ModelSpec experts() {
    ModelSpec model = test::moe_model();
    model.kinds = {{MixerKind::kNone, FfnKind::kMoe}};
    model.layer_kind = {0};
    return model;
  }
  HardwareSpec hw = test::switched_chip();
  Workload workload = test::workload();
};

TEST_F(Casts, ReadOnceMoreWhereScalesComeFromTheTensor) {
  const ModelSpec model = test::dense_model(1);
  const double element = seconds(model, Scaling::kDelayed) / 4;
  EXPECT_GE(element, kSeq * (4 * 1024 + 4096) / hw.hbm_bandwidth.value()) << "the inputs of both parts";
  EXPECT_NEAR(seconds(model, Scaling::kCurrent), 6 * element, 1e-9 * element);
  EXPECT_NEAR(seconds(model, Scaling::kRow), 6 * element, 1e-9 * element);
  EXPECT_NEAR(seconds(model, Scaling::kBlock), 4 * element, 1e-9 * element);
  EXPECT_NEAR(seconds(model, Scaling::kDelayed, true), 3 * element, 1e-9 * element);
  EXPECT_NEAR(seconds(model, Scaling::kCurrent, true), 5 * element, 1e-9 * element);
  EXPECT_NEAR(seconds(model, Scaling::kBlock, true), 4 * element, 1e-9 * element) << "scales differ by layout";
}

TEST_F(Casts, AreAsTheSoftwareDoesWhereNobodySays) {
  const ModelSpec model = test::dense_model(1);
  const double delayed = seconds(model, {});
  EXPECT_EQ(delayed, seconds(model, Scaling::kDelayed));
  workload.runtime.current_scaling = true;
  EXPECT_EQ(seconds(model, {}), seconds(model, Scaling::kCurrent));
  EXPECT_EQ(seconds(model, Scaling::kDelayed), delayed);
}

/// Of three grouped matmuls of eight experts: where each expert's kernels are its own, a cast is one for each, or one
/// for all whose scales are there beforehand. Of the shared expert's three the maximum is cleared and found and the
/// scale made by three launches of a fifth of an operation each, where it comes from the tensor.
TEST_F(Casts, OfExpertsAreLaunchedForEach) {
  const ModelSpec model = experts();
  workload.runtime.launches_each_expert = true;
  const double delayed = forward(model, Scaling::kDelayed).work.overhead.value();
  EXPECT_EQ(delayed, 0) << "the ideal host takes no time";
  hw.efficiency.host_overhead.value = 1e-6;
  const auto launched = [&](Scaling scaling) {
    const Phase<double> phase = forward(model, scaling);
    return phase.launches + std::round(phase.work.overhead.value() * 1e6);
  };
  const double once = launched(Scaling::kDelayed), each = launched(Scaling::kBlock);
  const double matmuls = (each - once) / 7;
  EXPECT_EQ(matmuls, std::floor(matmuls));
  EXPECT_GE(matmuls, 2);
  EXPECT_NEAR(launched(Scaling::kCurrent) - each, 3 * 3 * 0.2, 1e-9);
}

TEST_F(Casts, AScaleForEachRowCostsTheRateThatItsCoefficientSays) {
  const ModelSpec model = test::dense_model(1);
  hw.efficiency.matmul[static_cast<std::size_t>(DType::kFp8)].value = 0.5;
  const double halved = forward(model, Scaling::kCurrent).work.compute.value();
  hw.efficiency.matmul[static_cast<std::size_t>(DType::kFp8)].value = 1;
  const double whole = forward(model, Scaling::kCurrent).work.compute.value();
  hw.efficiency.row_scaled.value = 0.5;
  EXPECT_NEAR(forward(model, Scaling::kRow).work.compute.value(), halved, 1e-12);
  EXPECT_EQ(forward(model, Scaling::kCurrent).work.compute.value(), whole);
}

/// Two choices of 2,048 tokens, 512 wide: out in a byte and back in two. The backward sends the outputs' gradients out
/// as the forward sent tokens (DeepSeek-V3, arXiv:2412.19437 section 3.3.3), and theirs of the inputs back.
TEST(ExpertCommunication, Fp8RecipesDispatchGradientsInEightBitsToo) {
  ModelSpec model = test::hybrid_model();
  model.kinds = {{MixerKind::kNone, FfnKind::kMoe}};
  model.layer_kind = {0};
  Workload workload = test::workload();
  workload.precision = precision_of("fp8");
  const LayerCost<double> cost = costs_of(model, {.ep = 4}, workload).kinds[0];
  EXPECT_EQ(cost.forward.ep_bytes.value(), kSeq * 2 * 512 * (1 + 2));
  EXPECT_EQ(cost.backward.ep_bytes.value(), kSeq * 2 * 512 * (1 + 2));
}

TEST(ParametersPerChip, StateProjectionsAreRepeatedBeyondTheirGroups) {
  const LayerKind kind{MixerKind::kMamba2, FfnKind::kNone, false, std::nullopt, 0};
  const double whole = cost_of(kind, {}).dense_parameters;
  const double projected = 1024 * 2 * 4 * 64;             // of four groups
  const double small = 5 * (2048 + 512) + 3 * 32 + 2048;  // convolution, per head, norm: on every rank
  const double divided = whole - projected - small;
  EXPECT_EQ(cost_of(kind, {.tp = 4}).dense_parameters, divided / 4 + projected / 4 + small);
  EXPECT_EQ(cost_of(kind, {.tp = 16}).dense_parameters, divided / 16 + projected / 4 + small);
}

TEST(ParametersPerChip, ATiedMatrixIsToldApart) {
  ModelSpec model = test::dense_model(2);
  EXPECT_EQ(costs(model, {}).head.tied_parameters, 0);
  model.tied_embeddings = true;
  const LayerCost<double> head = costs(model, {.tp = 4}).head;
  EXPECT_EQ(head.tied_parameters, 32000 * 1024 / 4);
  EXPECT_EQ(head.dense_parameters - head.tied_parameters, 1024) << "the final norm";
}

/// Korthikanti et al. 2022, arXiv:2205.05198 equation 1: the scores add 5 a s^2 bytes to what a layer keeps, and
/// selective remat drops them and nothing else (equation 6).
TEST(UnfusedAttention, KeepsItsScores) {
  constexpr double kHeads = 16;
  const ModelSpec model = test::dense_model(1);
  for (const double tp : {1.0, 4.0}) {
    const InnerDegrees inner{.tp = static_cast<std::int64_t>(tp)};
    const LayerCost<double> flash = costs(model, inner).kinds[0];
    const LayerCost<double> unfused = costs(model, inner, AttentionKernel::kUnfused).kinds[0];
    const auto saved = [](const LayerCost<double>& layer, Remat remat) {
      return layer.saved[static_cast<std::size_t>(remat)].value();
    };
    const double scores = 5 * kHeads * kSeq * kSeq / tp;
    EXPECT_DOUBLE_EQ(saved(unfused, Remat::kNone), saved(flash, Remat::kNone) + scores);
    EXPECT_DOUBLE_EQ(saved(unfused, Remat::kSelective), saved(flash, Remat::kNone));
    EXPECT_DOUBLE_EQ(saved(unfused, Remat::kMlp), saved(flash, Remat::kMlp) + scores);
    EXPECT_DOUBLE_EQ(saved(unfused, Remat::kAttention), saved(flash, Remat::kAttention));
    EXPECT_DOUBLE_EQ(saved(unfused, Remat::kFull), saved(flash, Remat::kFull));
  }
}

/// The masked half is computed too; what selective remat repeats is the attention's forward and nothing else.
TEST(UnfusedAttention, ComputesEveryScoreAndPassesOverThem) {
  const ModelSpec model = test::dense_model(1);
  const LayerCost<double> flash = costs(model, {}).kinds[0];
  const LayerCost<double> unfused = costs(model, {}, AttentionKernel::kUnfused).kinds[0];
  const double causal = 2 * (kSeq / 2) * 2 * 1024 * kSeq;
  const double softmax = 8 * 16 * kSeq * kSeq;
  EXPECT_DOUBLE_EQ(unfused.forward.work.flops.value(), flash.forward.work.flops.value() + causal + softmax);
  EXPECT_DOUBLE_EQ(unfused.backward.work.flops.value(), flash.backward.work.flops.value() + 1.5 * causal + softmax);
  const Phase<double>& again = unfused.recompute[static_cast<std::size_t>(Remat::kSelective)];
  EXPECT_DOUBLE_EQ(again.work.flops.value(), 2 * causal + softmax);
  // Softmax and dropout pass over the scores, 16 heads of 2,048 x 2,048, four times in 2 bytes and once in 1.
  const double passes = 9 * 16 * kSeq * kSeq / test::switched_chip().hbm_bandwidth.value();
  EXPECT_GT(unfused.forward.work.hbm.value(), flash.forward.work.hbm.value() + passes);
}

TEST(Labels, NameTheLayersOfAModelApart) {
  EXPECT_EQ(label_of({MixerKind::kFull, FfnKind::kDense}), "layer");
  EXPECT_EQ(label_of({MixerKind::kMla, FfnKind::kMoe}), "MoE layer");
  EXPECT_EQ(label_of({MixerKind::kSliding, FfnKind::kMoe}), "sliding MoE layer");
  EXPECT_EQ(label_of({MixerKind::kMamba2, FfnKind::kNone}), "mamba2-only layer");
  EXPECT_EQ(label_of({MixerKind::kFull, FfnKind::kNone}), "attention-only layer");
  EXPECT_EQ(label_of({MixerKind::kNone, FfnKind::kMoe}), "MoE-only layer");
  EXPECT_EQ(label_of({MixerKind::kNone, FfnKind::kDense, false, 2816}), "MLP-only layer of d_ff 2816");
}

/// A layer of a tower runs again whole or not at all, and its communication with it; as one of the model's it has
/// parts.
TEST(RematCommunication, OfATowerRepeatsUnderFullRematAlone) {
  const auto tower_layer = [](const InnerDegrees& inner, const StackMemory& memory) {
    ModelSpec model = test::dense_model(1);
    TowerSpec tower;
    constexpr std::int64_t kLayers = 2;
    tower.network = test::dense_model(kLayers);
    tower.per_token = 1;
    model.towers = {tower};
    Workload workload = test::workload();
    workload.memory = memory;
    const NetworkCost<double> cost = costs_of(model, inner, workload);
    const auto layers = std::find_if(cost.towers.begin(), cost.towers.end(),
                                     [](const TowerCost<double>& part) { return part.count == kLayers; });
    return std::pair{layers->layer, cost.kinds.at(0)};
  };
  StackMemory gathered;
  gathered.keeps_gathered = true;
  for (const CpComm comm : {CpComm::kAllGather, CpComm::kRing, CpComm::kUlysses}) {
    for (const bool sp : {false, true}) {
      for (const StackMemory& memory : {StackMemory{}, gathered}) {
        const auto [tower, layer] = tower_layer({.tp = 2, .cp = 2, .sp = sp, .cp_comm = comm}, memory);
        const auto of = [](const LayerCost<double>& cost, Remat remat) {
          return cost.recompute[static_cast<std::size_t>(remat)];
        };
        const auto sums = [](const Phase<double>& p) { return p.tp_collectives(); };
        const auto exchanges = [](const Phase<double>& p) { return p.cp_collectives(); };
        EXPECT_GT(sums(of(layer, Remat::kAttention)), 0);
        EXPECT_GT(exchanges(of(layer, Remat::kAttention)), 0);
        EXPECT_GT(sums(of(layer, Remat::kMlp)), 0);
        // What stays gathered and is dropped by either policy is gathered again, both inputs as by selective remat.
        const double dropped = sums(of(tower, Remat::kSelective));
        EXPECT_EQ(dropped, sp && memory.keeps_gathered ? 2 : 0);
        for (const Remat remat : {Remat::kAttention, Remat::kMlp}) {
          EXPECT_EQ(sums(of(tower, remat)), dropped) << name_of(remat);
          EXPECT_EQ(exchanges(of(tower, remat)), 0) << name_of(remat);
        }
        EXPECT_EQ(sums(of(tower, Remat::kFull)), sums(tower.forward));
        EXPECT_EQ(exchanges(of(tower, Remat::kFull)), exchanges(tower.forward));
      }
    }
  }
}

}  // namespace
}  // namespace scalecalc
