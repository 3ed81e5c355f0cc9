// Terms of operations against figures worked out by hand.
#include "cost/op_term.h"

#include <gtest/gtest.h>

namespace scalecalc {
namespace {

ChipRates<double> chip() {
  ChipRates<double> out;
  out.matmul.fill(FlopsPerSecond(0));
  out.matmul[static_cast<std::size_t>(DType::kBf16)] = FlopsPerSecond(600);
  out.matmul[static_cast<std::size_t>(DType::kFp8)] = FlopsPerSecond(1200);
  out.matmul[static_cast<std::size_t>(DType::kFp4)] = FlopsPerSecond(2400);
  out.peak_attention_forward = FlopsPerSecond(300);
  out.vector = FlopsPerSecond(10);
  out.half_dim = 100;
  out.half_rows = 100;
  out.grouped = 0.5;
  out.grouped_half_rows = 20;
  out.block_scaled = 0.75;
  out.row_scaled = 0.5;
  return out;
}

TEST(OpTerm, AMatmulReachesHalfOfItsRateAtHalfDimInEachDimension) {
  const MatmulTerm<double> term = dense_term<double>(chip(), {}, 100, 300);
  EXPECT_DOUBLE_EQ(term.row_flops.value(), 2 * 100 * 300);
  EXPECT_DOUBLE_EQ(term.matrix_bytes.value(), 2 * 100 * 300);
  EXPECT_DOUBLE_EQ(term.row_bytes.value(), 2 * 100 + 2 * 300);
  EXPECT_DOUBLE_EQ(term.rate.value(), 600 * (1.0 / 2) * (3.0 / 4));
  EXPECT_DOUBLE_EQ(term.rate_at(100, 1).value(), term.rate.value() / 2);
}

TEST(OpTerm, PaddedRowsTakeAsLongAsTheShapeSays) {
  const MatmulTerm<double> term = grouped_term<double>(chip(), {}, 100, 300);
  EXPECT_DOUBLE_EQ(term.rate.value(), 0.5 * 600 * (1.0 / 2) * (3.0 / 4));
  const double rows = 60, matrices = 4;  // 15 rows each
  EXPECT_DOUBLE_EQ(term.padded(rows, matrices), 60 + 20 * 4);
  EXPECT_DOUBLE_EQ(rows / term.rate_at(rows, matrices).value(), term.padded(rows, matrices) / term.rate.value());
}

TEST(OpTerm, ScalesOfNarrowOperandsSetTheRate) {
  const auto rate = [](DType dtype, Scaling scaling, double activation_bytes = 2) {
    ChipRates<double> plain = chip();
    plain.half_dim = 0;
    return dense_term<double>(plain, {.dtype = dtype, .scaling = scaling, .activation_bytes = activation_bytes}, 64, 64)
        .rate.value();
  };
  EXPECT_DOUBLE_EQ(rate(DType::kFp8, Scaling::kDelayed), 1200);
  EXPECT_DOUBLE_EQ(rate(DType::kFp8, Scaling::kBlock), 900);
  EXPECT_DOUBLE_EQ(rate(DType::kFp8, Scaling::kRow), 600);
  EXPECT_DOUBLE_EQ(rate(DType::kFp8, Scaling::kBlock, 1), 1200);  // nothing is cast
  EXPECT_DOUBLE_EQ(rate(DType::kBf16, Scaling::kBlock), 600);
  EXPECT_DOUBLE_EQ(rate(DType::kFp4, Scaling::kBlock), 2400);  // its rate is of blocks
}

TEST(OpTerm, AttentionWaitsInShortContextsAndNarrowHeads) {
  ChipRates<double> rates = chip();
  rates.attention = {.half_context = 500, .half_head_dim = 64, .head_width = 128};
  Op<double> op;
  op.kind = OpKind::kAttention;
  op.heads = 8;
  op.qk_width = op.v_width = 8 * 64;
  const AttentionTerm<double> term = attention_term<double>(rates, rates.peak_attention_forward, op, 2, 2);
  EXPECT_DOUBLE_EQ(term.row_bytes.value(), 2 * (512 + 512) / 2);
  EXPECT_DOUBLE_EQ(term.rate.value(), 300 * (64.0 / 128) * (192.0 / 128));
  EXPECT_DOUBLE_EQ(term.rate_at(500).value(), term.rate.value() / 2);
}

TEST(OpTerm, ARecurrenceInChunksHasItsOwnRate) {
  Op<double> op;
  op.kind = OpKind::kScan;
  op.flops = 40;
  op.reads = 3;
  op.writes = 1;
  const RowTerm<double> chunks = row_term<double>(chip(), FlopsPerSecond(77), op, 0.25, 2);
  EXPECT_DOUBLE_EQ(chunks.row_flops.value(), 10);
  EXPECT_DOUBLE_EQ(chunks.row_bytes.value(), 2);
  EXPECT_DOUBLE_EQ(chunks.rate.value(), 77);
  op.by_element = true;
  EXPECT_DOUBLE_EQ(row_term<double>(chip(), FlopsPerSecond(77), op, 1, 2).rate.value(), 10);
}

}  // namespace
}  // namespace scalecalc
