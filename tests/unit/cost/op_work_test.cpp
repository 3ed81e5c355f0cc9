// What one operation moves, computes and launches on one chip, by hand: three sequences of eight tokens, two tensor
// ranks.
#include "cost/op_work.h"

#include <gtest/gtest.h>

#include "cost/remat.h"

namespace scalecalc {
namespace {

/// A chip that moves a byte a second and whose rates nobody knows: an operation takes as many seconds as it moves
/// bytes.
ChipRates<double> moves_bytes() {
  ChipRates<double> out;
  out.hbm = BytesPerSecond(1);
  out.cast = 0.5;
  out.attention = {0, 0, 1};
  return out;
}

/// One that computes a FLOP a second and moves any number of bytes at once.
ChipRates<double> computes_flops() {
  ChipRates<double> out;
  for (FlopsPerSecond& rate : out.matmul) rate = FlopsPerSecond(1);
  out.peak_attention_forward = out.peak_attention_backward = FlopsPerSecond(1);
  out.peak_scan_forward = out.peak_scan_backward = out.vector = FlopsPerSecond(1);
  out.hbm = BytesPerSecond(1e30);
  out.attention = {0, 0, 1};
  return out;
}

class OperationWork : public testing::Test {
 protected:
  OperationWork() {
    workload_.seq = 8;
    workload_.precision = precision_of("bf16");
    workload_.optimizer = optimizer_of("adam", workload_.precision);
  }
  OpWork<double> work(const ChipRates<double>& chip) const { return {Reader<double>{}, chip, workload_, inner_}; }
  double bytes(const Op<double>& op, bool backward = false) const {
    return work(bytes_).work(op, backward).hbm.value();
  }
  double flops(const Op<double>& op, bool backward = false) const {
    return work(flops_).work(op, backward).compute.value();
  }
  double kernels(const Op<double>& op, bool backward = false) const { return work(bytes_).kernels(op, backward); }
  double launches(const Op<double>& op, bool backward = false) const { return work(bytes_).launches(op, backward); }

  Op<double> column() const { return {.kind = OpKind::kMatmul, .tp = TpRule::kColumn, .k = 10, .n = 6}; }
  Op<double> row() const { return {.kind = OpKind::kMatmul, .tp = TpRule::kRow, .k = 10, .n = 6}; }
  Op<double> attention() const {
    return {.kind = OpKind::kAttention, .tp = TpRule::kHeads, .qk_width = 8, .v_width = 4, .heads = 2};
  }
  Op<double> scan() const { return {.kind = OpKind::kScan, .tp = TpRule::kHeads, .reads = 5, .writes = 3, .flops = 7}; }
  Op<double> vector() const {
    return {.kind = OpKind::kVector, .tp = TpRule::kColumn, .reads = 5, .writes = 3, .flops = 9};
  }
  /// Eight experts, two of them for each token.
  Op<double> experts(TpRule rule = TpRule::kExpert) const {
    return {
        .kind = OpKind::kGroupedMatmul, .part = Part::kExperts, .tp = rule, .rows = 2, .k = 10, .n = 6, .matrices = 8};
  }

  const ChipRates<double> bytes_ = moves_bytes(), flops_ = computes_flops();
  Workload workload_;
  InnerDegrees inner_{.tp = 2, .micro_batch_seqs = 3};
};

TEST_F(OperationWork, RanksHaveTheirPart) {
  inner_.ep = 2;
  ChipRates<double> chip = bytes_;
  chip.moe_imbalance = 1.5;
  const auto share = [&](TpRule rule, double groups = 8) { return work(chip).share(rule, groups); };
  EXPECT_EQ(share(TpRule::kColumn), 0.5);
  EXPECT_EQ(share(TpRule::kRow), 0.5);
  EXPECT_EQ(share(TpRule::kHeads), 0.5);
  EXPECT_EQ(share(TpRule::kWhole), 1);
  EXPECT_EQ(share(TpRule::kKvColumn, 8), 0.5);
  EXPECT_EQ(share(TpRule::kKvColumn, 1), 1) << "one KV head is on both";
  EXPECT_EQ(share(TpRule::kSequence), 1);
  EXPECT_EQ(share(TpRule::kExpert), 0.75) << "of the fullest rank";
  EXPECT_EQ(share(TpRule::kExpertRow), 0.75);
  inner_.etp = 2;
  EXPECT_EQ(share(TpRule::kExpertRow), 1.5) << "whole on both ranks of an expert";
  workload_.balanced_experts = true;
  EXPECT_EQ(share(TpRule::kExpert), 0.5);
  inner_.sp = true;
  EXPECT_EQ(share(TpRule::kSequence), 0.5);
}

/// 24 tokens. Column: k 10, n 3 of 6; row: k 5 of 10, n 6. In 2 bytes; gradients of weights are read and written in 4.
TEST_F(OperationWork, AMatmulMovesItsOperandsAndItsProduct) {
  EXPECT_EQ(bytes(column()), 2 * (24 * 10 + 10 * 3 + 24 * 3));
  EXPECT_EQ(bytes(row()), 2 * (24 * 5 + 5 * 6 + 24 * 6));
  const double gradient = 2 * 24 * (10 + 3) + 8 * 30;
  EXPECT_EQ(bytes(column(), true), bytes(column()) + gradient);
  EXPECT_EQ(work(bytes_).weight_gradient(column()).value(), gradient);
  Op<double> op = column();
  op.frozen = true;
  EXPECT_EQ(bytes(op, true), bytes(op));
  EXPECT_EQ(work(bytes_).weight_gradient(op).value(), 0);
  op = column();
  op.rows = 2;
  EXPECT_EQ(bytes(op), 2 * (48 * 10 + 10 * 3 + 48 * 3));
  op.rows = 0;  // stored, not used
  EXPECT_EQ(bytes(op), 0);
  EXPECT_EQ(bytes(op, true), 0);
  op = column();
  op.tp = TpRule::kSequence;
  EXPECT_EQ(bytes(op), 2 * (24 * 10 + 10 * 6 + 24 * 6));
  inner_.sp = true;
  EXPECT_EQ(bytes(op), 2 * (12 * 10 + 10 * 6 + 12 * 6));
  EXPECT_EQ(flops(column()), 2 * 24 * 10 * 3);
  EXPECT_EQ(flops(column(), true), 2 * 2 * 24 * 10 * 3);
}

/// A sum behind it reads and writes 6 elements of a token, 3 of them on each rank.
TEST_F(OperationWork, ASumBehindAMatmulIsAVectorKernel) {
  Op<double> op = column();
  op.reads = op.writes = 6;
  EXPECT_EQ(bytes(op) - bytes(column()), 2 * 24 * 6);
  EXPECT_EQ(bytes(op, true) - bytes(column(), true), 2 * 24 * 6);
  EXPECT_EQ(kernels(op), 2);
  EXPECT_EQ(kernels(op, true), 3);
}

/// [CAST] An element is read in two bytes and written twice in one; half of that shows. Scales of its own are one read
/// more; with one scale and one copy it is written once.
TEST_F(OperationWork, OperandsOfEightBitsAreCast) {
  workload_.precision = precision_of("fp8");
  const double forward = 24 * 10 + 10 * 3 + 2 * 24 * 3, gradient = 24 * (10 + 3) + 8 * 30;
  const auto casts = [&](double each) {
    EXPECT_EQ(bytes(column()), forward + each / 2 * 240);
    EXPECT_EQ(bytes(column(), true), forward + gradient + each / 2 * 72) << "the output's gradient";
    EXPECT_EQ(work(bytes_).weight_gradient(column()).value(), gradient + each / 2 * 72 / 2);
  };
  casts(2 + 2);
  EXPECT_EQ(launches(column()), 1 + 1);
  EXPECT_EQ(launches(column(), true), 2 + 1);
  workload_.runtime.one_copy = true;
  casts(2 + 1);
  workload_.precision.scaling = Scaling::kCurrent;
  casts(4 + 1);
  EXPECT_EQ(launches(column()), 1 + 1.6) << "three small kernels in one call";
  EXPECT_EQ(launches(column(), true), 2 + 1.6);
  workload_.precision.scaling = Scaling::kRow;
  casts(4 + 2);
  workload_.precision.scaling = Scaling::kBlock;
  casts(2 + 2);
  Op<double> head = column();
  head.part = Part::kHead;  // in 16 bits
  EXPECT_EQ(bytes(head), 2 * (24 * 10 + 10 * 3 + 24 * 3));
  EXPECT_EQ(launches(head), 1);
}

TEST_F(OperationWork, RowsWithScalesOfTheirOwnAreMultipliedMoreSlowly) {
  workload_.precision = precision_of("fp8");
  ChipRates<double> chip = flops_;
  chip.row_scaled = 0.5;
  EXPECT_EQ(work(chip).work(column(), false).compute.value(), 1440);
  workload_.precision.scaling = Scaling::kRow;
  EXPECT_EQ(work(chip).work(column(), false).compute.value(), 2880);
  chip.block_scaled = 0.25;
  workload_.precision.scaling = Scaling::kBlock;
  EXPECT_EQ(work(chip).work(column(), false).compute.value(), 5760);
  workload_.precision = precision_of("nvfp4");  // whose rate is of blocks already
  EXPECT_EQ(work(chip).work(column(), false).compute.value(), 1440);
}

/// 8 + 4 elements wide twice over, on 24 tokens of half of the heads. In the mean a query sees four keys.
TEST_F(OperationWork, FlashAttentionReadsAndWritesOnce) {
  EXPECT_EQ(bytes(attention()), 2 * 12 * 2 * 12);
  EXPECT_EQ(bytes(attention(), true), 2 * bytes(attention()));
  EXPECT_EQ(flops(attention()), 2 * 4 * 12 * 12);
  EXPECT_EQ(flops(attention(), true), 2.5 * flops(attention()));
  EXPECT_EQ(kernels(attention()), 1);
  EXPECT_EQ(kernels(attention(), true), 1);
}

/// [UNFUSED] One head of a rank has 24 x 8 scores, of two bytes: written and read by matmuls, four times and a byte of
/// mask between them, backward five times and a byte.
TEST_F(OperationWork, UnfusedAttentionWritesItsScores) {
  workload_.attention = AttentionKernel::kUnfused;
  const double operands = 2 * (12 * 2 * 12 + 2 * 192);
  EXPECT_EQ(bytes(attention()), operands + 192 * (4 * 2 + 1));
  EXPECT_EQ(bytes(attention(), true), 2 * operands + 192 * (5 * 2 + 1));
  const double matmuls = 2 * 8 * 12 * 12, softmax = 192 * 8;
  EXPECT_EQ(flops(attention()), matmuls + softmax);
  EXPECT_EQ(flops(attention(), true), 2 * matmuls + softmax);
  EXPECT_EQ(kernels(attention()), 4);
  EXPECT_EQ(kernels(attention(), true), 6);
}

TEST_F(OperationWork, ARecurrenceRunsAgainInItsBackward) {
  EXPECT_EQ(bytes(scan()), 2 * 8 * 12);
  EXPECT_EQ(bytes(scan(), true), 2 * bytes(scan()));
  EXPECT_EQ(flops(scan()), 7 * 12);
  EXPECT_EQ(flops(scan(), true), 2.5 * 7 * 12);
  EXPECT_EQ(kernels(scan(), true), 1);
  ChipRates<double> chip = flops_;
  chip.vector = FlopsPerSecond(2);
  Op<double> op = scan();
  op.by_element = true;
  EXPECT_EQ(work(chip).work(op, false).compute.value(), 7 * 12 / 2.0);
}

TEST_F(OperationWork, VectorWorkIsTwiceAsMuchBackward) {
  EXPECT_EQ(bytes(vector()), 2 * 8 * 12);
  EXPECT_EQ(bytes(vector(), true), 2 * bytes(vector()));
  EXPECT_EQ(flops(vector()), 9 * 12);
  EXPECT_EQ(flops(vector(), true), 2 * 9 * 12);
  EXPECT_EQ(kernels(vector()), 1);
  EXPECT_EQ(kernels(vector(), true), 2);
  Op<double> nothing = vector();
  nothing.reads = 0;
  EXPECT_EQ(kernels(nothing), 0);
}

/// Two choices of 24 tokens on two tensor ranks that route for themselves; four of eight experts are on a rank.
TEST_F(OperationWork, ExpertsMultiplyWhatIsRoutedToThem) {
  inner_.ep = 2;
  EXPECT_EQ(bytes(experts()), 2 * (24 * 10 + 10 * 6 * 4 + 24 * 6));
  EXPECT_EQ(bytes(experts(TpRule::kExpertRow)), bytes(experts()));
  EXPECT_EQ(flops(experts()), 2 * 24 * 10 * 6);
  ChipRates<double> uneven = bytes_;
  uneven.moe_imbalance = 1.5;
  EXPECT_EQ(work(uneven).work(experts(), false).hbm.value(), 2 * (36 * 10 + 10 * 6 * 4 + 36 * 6));
  inner_.etp = 2;  // both ranks have all tokens, and half of each expert
  EXPECT_EQ(bytes(experts()), 2 * (48 * 10 + 10 * 3 * 4 + 48 * 3));
  EXPECT_EQ(bytes(experts(TpRule::kExpertRow)), 2 * (48 * 5 + 5 * 6 * 4 + 48 * 6));
}

TEST_F(OperationWork, AStackMayLaunchEachExpert) {
  inner_.ep = 2;
  EXPECT_EQ(launches(experts()), 1);
  EXPECT_EQ(launches(experts(), true), 2);
  EXPECT_EQ(work(bytes_).weight_launches(experts()), 1);
  workload_.runtime.launches_each_expert = true;
  EXPECT_EQ(launches(experts()), 4);
  EXPECT_EQ(launches(experts(), true), 8);
  EXPECT_EQ(work(bytes_).weight_launches(experts()), 4);
  EXPECT_EQ(launches(column()), 1);
  workload_.precision = precision_of("fp8");
  EXPECT_EQ(launches(experts()), 4 + 1) << "one call casts for all";
  workload_.precision.scaling = Scaling::kCurrent;
  EXPECT_EQ(launches(experts()), 4 * (1 + 1));
  EXPECT_EQ(launches(experts(), true), 4 * (2 + 1));
}

/// [EXPERT-BIAS] 24 rows of 6 elements: 28 bytes each forward, 40 backward; two kernels for all, and two or five each.
TEST_F(OperationWork, BiasesAreAddedExpertByExpert) {
  inner_.ep = 2;
  Op<double> down = experts(TpRule::kExpertRow);
  const double plain = bytes(down), plain_backward = bytes(down, true);
  down.extra_parameters = 48;
  workload_.runtime.expert_bias_apart = true;
  EXPECT_EQ(bytes(down) - plain, 24 * 6 * 28);
  EXPECT_EQ(bytes(down, true) - plain_backward, 24 * 6 * 40);
  EXPECT_EQ(work(bytes_).bias_kernels(down, false), 2 + 2 * 4);
  EXPECT_EQ(work(bytes_).bias_kernels(down, true), 2 + 5 * 4);
  EXPECT_EQ(work(bytes_).bias_kernels(experts(), true), 0) << "it has none";
  workload_.graphs = GraphCapture::kStep;
  EXPECT_EQ(work(bytes_).bias_kernels(down, true), 0);
}

/// Frozen weights in four bits are read and written in two bytes before each pass, 2 FLOPs each, by a kernel of its
/// own.
TEST_F(OperationWork, PackedWeightsAreUnpackedFirst) {
  workload_.fine_tune = FineTune{.base = BaseFormat::kNf4};
  Op<double> op = column();
  op.part = Part::kAttention;
  EXPECT_EQ(kernels(op), 1) << "it trains";
  op.frozen = true;
  const double stored = base_bytes(*workload_.fine_tune, workload_.precision);
  EXPECT_EQ(bytes(op) - bytes(column()), 30 * (stored + 2));
  EXPECT_EQ(flops(op) - flops(column()), 30 * 2);
  EXPECT_EQ(kernels(op), 2);
  EXPECT_EQ(kernels(op, true), 2);
  op.reads = op.writes = 6;
  EXPECT_EQ(kernels(op), 3) << "and a sum behind it";
  op.part = Part::kRouter;
  EXPECT_EQ(kernels(op), 2) << "never packed";
}

/// Bytes of each of a recipe's elements, and of an optimizer's state and update: Adam keeps two moments and, beside
/// narrower weights, an fp32 copy; an update reads the gradient, reads and writes these and writes the narrow copy.
TEST(RecipeBytes, OfAParameter) {
  for (const std::string_view name : kPrecisionNames) {
    const Precision p = precision_of(name);
    const bool wide = name == "tf32" || name == "fp32";
    EXPECT_EQ(p.weight_bytes, wide ? 4 : 2) << name;
    EXPECT_EQ(p.activation_bytes, wide ? 4 : 2) << name;
    EXPECT_EQ(p.dispatch_bytes, wide ? 4 : name == "fp8" ? 1 : 2) << name;
    EXPECT_EQ(p.gradient_bytes, 4) << name;
    EXPECT_EQ(p.reduced_bytes, 4) << name;
  }
  struct Kept {
    const char* name;
    double state, update, flops;
  };
  for (const Kept& k : {Kept{"adam", 4 + 8, 4 + 2 * 12 + 2, 14}, Kept{"adam-bf16", 4 + 4, 4 + 2 * 8 + 2, 14},
                        Kept{"adam8bit", 4 + 2, 4 + 2 * 6 + 2, 20}, Kept{"sgd", 4 + 4, 4 + 2 * 8 + 2, 4},
                        Kept{"muon", 4 + 4, 4 + 2 * 8 + 2, 4}}) {
    const Optimizer o = optimizer_of(k.name, precision_of("bf16"));
    EXPECT_EQ(o.state_bytes, k.state) << k.name;
    EXPECT_EQ(o.update_bytes, k.update) << k.name;
    EXPECT_EQ(o.update_flops, k.flops) << k.name;
    EXPECT_EQ(o.orthogonalizes, std::string_view(k.name) == "muon");
  }
  const Optimizer own = optimizer_of("adam", precision_of("fp32"));
  EXPECT_EQ(own.state_bytes, 8);
  EXPECT_EQ(own.update_bytes, 4 + 2 * 12);
}

}  // namespace
}  // namespace scalecalc
