#include "roofline/operation.h"

#include <gtest/gtest.h>

namespace scalecalc {
namespace {

const OperandTypes kBf16;

double total_bytes(const OperationWork& work) {
  return value_of(work.input) + value_of(work.weight) + value_of(work.result);
}

TEST(Operation, MatmulCountsEachOperandInItsOwnFormat) {
  const OperandTypes types{DType::kBf16, DType::kInt4, DType::kFp32, DType::kBf16};
  const OperationWork work = work_of(Matmul{.rows = 3, .contraction = 5, .columns = 7}, types, {});
  EXPECT_EQ(value_of(work.flops), 2 * 3 * 5 * 7);
  EXPECT_EQ(value_of(work.run), value_of(work.flops));
  EXPECT_EQ(value_of(work.input), 2 * 3 * 5);
  EXPECT_EQ(value_of(work.weight), 0.5 * 5 * 7);
  EXPECT_EQ(value_of(work.result), 4 * 3 * 7);
  EXPECT_EQ(value_of(work.exchanged), 0);
  EXPECT_FALSE(work.useful);
}

TEST(Operation, MatricesMultiplyEverything) {
  const Matmul one{.rows = 3, .contraction = 5, .columns = 7};
  Matmul four = one;
  four.matrices = 4;
  EXPECT_EQ(value_of(work_of(four, kBf16, {}).flops), 4 * value_of(work_of(one, kBf16, {}).flops));
  EXPECT_EQ(total_bytes(work_of(four, kBf16, {})), 4 * total_bytes(work_of(one, kBf16, {})));
}

TEST(Operation, WeightsOfEachRowAreAMatmulOfOneRowForEach) {
  const Matmul own{.rows = 6, .contraction = 5, .columns = 7, .per_row_weights = true};
  const Matmul batched{.matrices = 6, .rows = 1, .contraction = 5, .columns = 7};
  EXPECT_EQ(value_of(work_of(own, kBf16, {}).flops), value_of(work_of(batched, kBf16, {}).flops));
  EXPECT_EQ(total_bytes(work_of(own, kBf16, {})), total_bytes(work_of(batched, kBf16, {})));
}

TEST(Operation, TilesReadAnOperandForEachRowOrColumnOfThem) {
  Matmul m{.rows = 8, .contraction = 16, .columns = 32};
  m.tile = MatmulTile{4, 8, 8};
  const OperationWork whole = work_of(m, kBf16, {});
  EXPECT_EQ(value_of(whole.input), 2 * 8 * 16 * 4);
  EXPECT_EQ(value_of(whole.weight), 2 * 16 * 32 * 2);
  EXPECT_EQ(value_of(whole.result), 2 * 8 * 32);
  EXPECT_DOUBLE_EQ(value_of(*whole.tile_intensity), 4.0 * 8 / (4 + 8));
  m.rows = 9;  // a third row of tiles, hardly filled
  EXPECT_EQ(value_of(work_of(m, kBf16, {}).weight), 2 * 16 * 32 * 3);
}

TEST(Operation, PaddingFillsTheWeightsDimensions) {
  const OperationWork work = work_of(Matmul{.rows = 8, .contraction = 100, .columns = 300, .pad = 256}, kBf16, {});
  EXPECT_EQ(value_of(work.run), 2.0 * 8 * 256 * 512);
  EXPECT_DOUBLE_EQ(work.useful->value(), 30000.0 / (256 * 512));
  EXPECT_EQ(value_of(work.weight), 2 * 100 * 300);
}

TEST(Operation, ASplitDimensionLeavesCopiesOfWhatLacksIt) {
  const Matmul m{.rows = 8, .contraction = 16, .columns = 32};
  const OperationWork one = work_of(m, kBf16, {});
  const OperationWork batch = work_of(m, kBf16, {4, MatmulSplit::kBatch});
  EXPECT_EQ(value_of(batch.weight), 4 * value_of(one.weight));
  EXPECT_EQ(value_of(batch.input), value_of(one.input));
  EXPECT_EQ(value_of(batch.exchanged), 0);
  const OperationWork contraction = work_of(m, kBf16, {4, MatmulSplit::kContraction});
  EXPECT_EQ(value_of(contraction.result), 4 * value_of(one.result));
  EXPECT_EQ(value_of(contraction.exchanged), value_of(one.result));
  const OperationWork output = work_of(m, kBf16, {4, MatmulSplit::kOutput});
  EXPECT_EQ(value_of(output.input), 4 * value_of(one.input));
  EXPECT_EQ(value_of(output.exchanged), value_of(one.input));
  EXPECT_EQ(value_of(output.flops), value_of(one.flops));
  EXPECT_EQ(total_bytes(work_of(m, kBf16, {4, MatmulSplit::kEven})), total_bytes(one));
}

TEST(Operation, AttentionMovesKeysAndValuesOncePerKvHead) {
  Attention a{.sequences = 3, .heads = 8, .kv_heads = 2, .head_dim = 64, .query = 5, .kv = 100};
  const OperationWork full = work_of(a, kBf16, {});
  EXPECT_EQ(value_of(full.flops), 4.0 * 3 * 5 * 100 * 8 * 64);
  EXPECT_EQ(value_of(full.input), 2.0 * 3 * 5 * 8 * 64);
  EXPECT_EQ(value_of(full.weight), 2.0 * 2 * 3 * 100 * 2 * 64);
  EXPECT_EQ(value_of(full.result), value_of(full.input));
  a.causal = true;
  EXPECT_DOUBLE_EQ(value_of(work_of(a, kBf16, {}).flops), value_of(full.flops) * (100 - 2.5) / 100);
  a.query = 100;
  EXPECT_DOUBLE_EQ(value_of(work_of(a, kBf16, {}).flops), 4.0 * 3 * 100 * 50 * 8 * 64);
}

TEST(Operation, AttentionBackwardComputesScoresAgain) {
  Attention a{.heads = 8, .kv_heads = 8, .head_dim = 64, .query = 128, .kv = 128};
  const OperationWork forward = work_of(a, kBf16, {});
  a.backward = true;
  const OperationWork backward = work_of(a, kBf16, {});
  EXPECT_EQ(value_of(backward.flops), 2.5 * value_of(forward.flops));
  EXPECT_EQ(total_bytes(backward), 2 * total_bytes(forward));
}

TEST(Operation, AContractionCountsEveryIndexOnce) {
  // A[b,i,k] B[b,k,j] -> C[b,i,j]
  Contraction c{"bik,bkj->bij",
                {{"b", 2, true, true, true},
                 {"i", 3, true, false, true},
                 {"k", 5, true, true, false},
                 {"j", 7, false, true, true}}};
  const OperationWork work = work_of(c, kBf16, {});
  EXPECT_EQ(value_of(work.flops), 2 * 2 * 3 * 5 * 7);
  EXPECT_EQ(value_of(work.input), 2 * 2 * 3 * 5);
  EXPECT_EQ(value_of(work.weight), 2 * 2 * 5 * 7);
  EXPECT_EQ(value_of(work.result), 2 * 2 * 3 * 7);
  for (ContractionIndex& index : c.indices) index.in_result = true;  // nothing is summed: no additions
  EXPECT_EQ(value_of(work_of(c, kBf16, {}).flops), 2 * 3 * 5 * 7);
}

TEST(Operation, VectorWorkAndGivenWork) {
  const OperandTypes fp32{DType::kFp32, DType::kFp32, DType::kFp32, DType::kFp32};
  const OperationWork add = work_of(Elementwise{.elements = 10, .inputs = 3, .flops = 2}, fp32, {});
  EXPECT_EQ(value_of(add.flops), 20);
  EXPECT_EQ(total_bytes(add), 4 * (3 + 1) * 10);
  const OperationWork dot = work_of(DotProduct{10}, fp32, {});
  EXPECT_EQ(value_of(dot.flops), 19);
  EXPECT_EQ(total_bytes(dot), 4 * (10 + 10 + 1));
  const OperationWork load = work_of(ParameterLoad{10}, kBf16, {});
  EXPECT_EQ(value_of(load.flops), 0);
  EXPECT_EQ(total_bytes(load), 20);
  EXPECT_EQ(value_of(load.weight), 20);
  const OperationWork given = work_of(GivenWork{5, 6}, kBf16, {});
  EXPECT_EQ(value_of(given.flops), 5);
  EXPECT_EQ(total_bytes(given), 6);
}

TEST(Operation, IsDescribedWithItsFormats) {
  const OperandTypes types{DType::kBf16, DType::kInt8, DType::kBf16, DType::kBf16};
  const Matmul m{.rows = 512, .contraction = 8192, .columns = 28672};
  EXPECT_EQ(describe(m, types, ""), "bf16[512,8192] x int8[8192,28672] -> bf16[512,28672]");
  EXPECT_EQ(describe(m, types, "batch"), "bf16[B,8192] x int8[8192,28672] -> bf16[B,28672]");
  Matmul special = m;
  special.per_row_weights = true;
  special.pad = 128;
  EXPECT_EQ(describe(special, types, ""), "bf16[512,8192] x int8[512,8192,28672] -> bf16[512,28672] padded to 128");
  special = m;
  special.matrices = 16;
  special.tile = MatmulTile{64, 128, 256};
  EXPECT_EQ(describe(special, types, ""),
            "16 times bf16[512,8192] x int8[8192,28672] -> bf16[512,28672] in tiles of 64x128x256");
  const Attention a{.heads = 32, .kv_heads = 1, .head_dim = 128, .query = 1, .kv = 8192, .causal = true};
  EXPECT_EQ(describe(a, types, ""),
            "causal attention, 32 query heads on 1 KV head of 128, 1 sequence of 1 query on 8,192 keys");
  EXPECT_EQ(describe(a, types, "kv"),
            "causal attention, 32 query heads on 1 KV head of 128, 1 sequence of 1 query on S keys");
  EXPECT_EQ(describe(Elementwise{.elements = 8}, types, ""), "2 arrays bf16[8] -> bf16[8], 1 FLOP on each element");
  EXPECT_EQ(describe(DotProduct{8}, types, "elements"), "bf16[n] . int8[n] -> bf16");
  EXPECT_EQ(describe(ParameterLoad{70e9}, types, ""), "70B parameters in int8, read once");
  EXPECT_EQ(describe(GivenWork{1e12, 0}, types, ""), "1 TFLOP");
  EXPECT_EQ(describe(GivenWork{1e12, 4e9}, types, ""), "1 TFLOP and 4 GB");
  EXPECT_EQ(describe(GivenWork{0, 4e9}, types, ""), "4 GB");
}

}  // namespace
}  // namespace scalecalc
