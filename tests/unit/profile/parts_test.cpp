#include <gtest/gtest.h>

#include "profile/kernel_names.h"
#include "profile/shapes.h"
#include "profile/steps.h"
#include "profile/time_parts.h"

namespace scalecalc {
namespace {

TEST(KernelNames, RealNamesAreWhatTheyAre) {
  const std::vector<std::pair<const char*, DeviceWork>> kNames{
      {"ncclDevKernel_AllGather_RING_LL(ncclDevComm*)", DeviceWork::kCollective},
      {"ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", DeviceWork::kSendReceive},
      {"void dpsk::ep::internode::combine<false, 8>(int4*)", DeviceWork::kCollective},
      {"nvjet_tst_64x16_64x16_2x4_2cta_h_bz_bias_TNT", DeviceWork::kMatmul},
      {"Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x192x64_MI16x16x1_SN", DeviceWork::kMatmul},
      {"void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128>>", DeviceWork::kAttention},
      {"fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCausal", DeviceWork::kAttention},
      {"void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>>", DeviceWork::kOptimizer},
      {"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>", DeviceWork::kVector},
      {"triton_poi_fused__to_copy_1", DeviceWork::kVector},
      {"Memcpy HtoD (Pageable -> Device)", DeviceWork::kCopy},
      {"sm80_xmma_fprop_implicit_gemm_indexed_tf32f32", DeviceWork::kConvolution},
      {"convert_fusion.3", DeviceWork::kVector},
      {"convolution.7", DeviceWork::kConvolution},
      {"something_of_ours", DeviceWork::kUnknown}};
  for (const auto& [name, work] : kNames) EXPECT_EQ(work_of_kernel(name), work) << name;
  for (const KernelPattern& pattern : kernel_patterns()) EXPECT_FALSE(pattern.source.empty()) << pattern.parts;
}

TEST(Shapes, ProductsByTheirOperands) {
  const auto work = [](RecordedOp op) { return shaped_work(op, DeviceWork::kMatmul, ""); };
  const auto product = [&](const char* name, const char* dims, const char* types) {
    return std::get<Matmul>(work({.name = name, .dims = dims, .types = types})->operation);
  };
  const Matmul batched = product("aten::bmm", "[[16,128,64],[16,64,32]]", R"(["float","float"])");
  EXPECT_EQ(batched.matrices, 16);
  EXPECT_EQ(batched.rows, 128);
  EXPECT_EQ(batched.contraction, 64);
  EXPECT_EQ(batched.columns, 32);
  const Matmul biased = product("aten::addmm", "[[32],[10,64],[64,32],[],[]]",
                                R"(["c10::Half","c10::Half","c10::Half","Scalar","Scalar"])");
  EXPECT_EQ(biased.rows * biased.contraction * biased.columns, 10 * 64 * 32);
  EXPECT_EQ(product("aten::linear", "[[2,5,64],[32,64]]", R"(["c10::BFloat16","c10::BFloat16"])").rows, 10);
  EXPECT_FALSE(work({.name = "aten::mm", .dims = "[[4,5],[6,7]]", .types = R"(["float","float"])"}));
  EXPECT_FALSE(work({.name = "aten::mm", .dims = "[[4,-5],[6,7]]", .types = R"(["float","float"])"}));
  EXPECT_FALSE(work({.name = "aten::mm", .dims = "[]", .types = "[]"}));
}

TEST(Shapes, AttentionByHeadsAndMask) {
  const auto found =
      shaped_work({.name = "aten::_scaled_dot_product_flash_attention",
                   .dims = "[[2,32,128,64],[2,8,256,64],[2,8,256,64],[],[],[]]",
                   .types = R"(["c10::BFloat16","c10::BFloat16","c10::BFloat16","Scalar","Scalar","Scalar"])",
                   .values = R"(["","","","0.","True","False"])"},
                  DeviceWork::kAttention, "");
  const Attention& attention = std::get<Attention>(found->operation);
  EXPECT_EQ(attention.heads, 32);
  EXPECT_EQ(attention.kv_heads, 8);
  EXPECT_EQ(attention.query, 128);
  EXPECT_EQ(attention.kv, 256);
  EXPECT_TRUE(attention.causal);
}

TEST(Shapes, MicrosecondsAreExact) {
  EXPECT_EQ(ticks_of_microseconds("1700000000000000.125", 1'700'000'000'000'000), 125'000);
  EXPECT_EQ(ticks_of_microseconds("12", 10), 2'000'000);
  EXPECT_EQ(ticks_of_microseconds("0.000001", 0), 1);
  EXPECT_EQ(ticks_of_microseconds("1.5e3", 0), 1'500'000'000);
  EXPECT_EQ(ticks_of_microseconds("-2.25", 0), -2'250'000);
  for (const char* wrong : {"", "abc", "NaN", "Infinity", "1.2x", "99999999999999999999", "1e40"}) {
    EXPECT_FALSE(ticks_of_microseconds(wrong, 0)) << wrong;
  }
}

/// A layer of two kernels four times, with an embedding before and a head behind them, `steps` times.
Recording layered(int steps) {
  Recording out;
  for (const char* name : {"embedding", "gemm", "norm", "head_gemm"}) out.names.push_back({name, work_of_kernel(name)});
  out.devices = {"GPU 0"};
  out.lanes = {{0, "7"}};
  Ticks at = 0;
  const auto put = [&](std::uint32_t name) {
    out.events.push_back({at, at + 10, kNoTick, 0, name, 0, 0});
    at += 12;
  };
  for (int s = 0; s < steps; ++s) {
    put(0);
    for (int layer = 0; layer < 4; ++layer) {
      put(1);
      put(2);
    }
    put(3);
  }
  return out;
}

// The layer repeats more often than the step, but an embedding and a head are left over then.
TEST(Steps, ThoseThatRepeatAreStepsAndNotLayers) {
  const Recording several = layered(5);
  const FoundSteps found = find_steps(several, 0, several.events);
  ASSERT_EQ(found.windows.size(), 4U);
  EXPECT_EQ(found.windows[1].end - found.windows[1].start, 120);
  const Recording one = layered(1);
  EXPECT_EQ(find_steps(one, 0, one.events).windows.size(), 1U);
}

TEST(TimeParts, PartsSumToTheWindowWhateverOverlaps) {
  Recording recording;
  recording.names = {{"gemm", DeviceWork::kMatmul}, {"nccl", DeviceWork::kCollective}, {"x", DeviceWork::kUnknown}};
  recording.lanes = {{0, "a"}, {0, "b"}};
  const std::vector<RecordedEvent> events{{0, 50, kNoTick, 0, 0, 0, 0},
                                          {20, 40, kNoTick, 0, 2, 0, 0},
                                          {30, 90, kNoTick, 0, 1, 0, 1},
                                          {80, 120, kNoTick, 0, 1, 0, 1},
                                          {150, 160, 140, 0, 0, 0, 0}};
  const TimeParts parts =
      time_parts(recording, events, std::vector<std::uint16_t>{0, 0, 1, 1, 0}, leaf_pieces(events), {10, 155, ""});
  ASSERT_EQ(parts.groups.size(), 1U);
  EXPECT_EQ(parts.groups[0].exposed, 70);
  EXPECT_EQ(parts.groups[0].running, 90);  // 30..120: the matmul runs beside 30..50
  EXPECT_EQ(parts.total(), 145);
  const auto counted = [&](DeviceWork work) { return parts.counted.at(static_cast<std::size_t>(work)); };
  EXPECT_EQ(counted(DeviceWork::kMatmul), 10 + 10 + 5);  // 10..20, 40..50, 150..155: x runs inside it
  EXPECT_EQ(counted(DeviceWork::kUnknown), 20);
  EXPECT_EQ(counted(DeviceWork::kCollective), 70);
  EXPECT_EQ(parts.idle[0], 20);
  EXPECT_EQ(parts.idle[1], 10);
  EXPECT_EQ(parts.hidden, 20);
}

}  // namespace
}  // namespace scalecalc
