// tests/data/profiles/step.hlo: ten times a product of 1024 x 512 x 256 and a gather over eight devices side by side,
// then one more product and a scalar summed over pairs eight apart.
#include <gtest/gtest.h>

#include "profile/hlo_program.h"
#include "support/errors.h"
#include "support/scratch.h"
#include "unit/profile/recordings.h"

namespace scalecalc {
namespace {

constexpr double kProductFlops = 2.0 * 1024 * 512 * 256;
constexpr double kProductBytes = 2.0 * (1024 * 512 + 512 * 256 + 1024 * 256);

HloProgram program_of(const std::string& file) { return hlo_program(read_hlo(file), test::switched_chip()); }

TEST(Hlo, LoopsAndFusionsCountAsOftenAsTheyRun) {
  const HloProgram p = program_of(test::recorded("step.hlo"));
  EXPECT_EQ(p.devices, 16);
  EXPECT_TRUE(p.scheduled);
  EXPECT_DOUBLE_EQ(p.flops, 11 * kProductFlops);
  ASSERT_EQ(p.products.size(), 1U);
  EXPECT_EQ(p.products.front().what, "bf16[1024,512] x bf16[512,256]");
  EXPECT_EQ(p.products.front().count, 11);
  const HloWork& matmuls = p.works.front();
  EXPECT_EQ(matmuls.work, DeviceWork::kMatmul);
  EXPECT_DOUBLE_EQ(matmuls.bytes, 11 * kProductBytes + 4096);  // the custom call has a workspace
  EXPECT_NEAR(matmuls.time_s,
              10 * std::max(kProductFlops / 100e12, kProductBytes / 1e12) +
                  std::max(kProductFlops / 100e12, (kProductBytes + 4096) / 1e12),
              1e-15);
  EXPECT_DOUBLE_EQ(p.memory.parameters, 2.0 * (1024 * 512 + 512 * 256));
  EXPECT_DOUBLE_EQ(p.memory.results, 2.0 * 1024 * 256 + 4);
}

TEST(Hlo, GroupsAreAxes) {
  const HloProgram p = program_of(test::recorded("step.hlo"));
  ASSERT_EQ(p.mesh.axes.size(), 2U);
  EXPECT_EQ(p.mesh.axes[0].size, 8);
  EXPECT_EQ(p.mesh.axes[1].size, 2);
  EXPECT_EQ(p.mesh.axes[1].stride, 8);
  ASSERT_EQ(p.collectives.size(), 2U);
  const HloCollective& gather = p.collectives[0];
  EXPECT_EQ(gather.kind, "all-gather");
  EXPECT_EQ(gather.axis, "X");
  EXPECT_EQ(gather.count, 10);
  EXPECT_DOUBLE_EQ(gather.bytes, 10 * 2.0 * 1024 * 256);
  EXPECT_TRUE(gather.asynchronous);
  EXPECT_GE(*gather.time_s, 10 * 7.0 * 2.0 * 1024 * 256 / 400e9);
  EXPECT_EQ(p.collectives[1].axis, "Y");
  EXPECT_EQ(p.collectives[1].groups.count, 8);
  // The gathers are asynchronous and hide under more compute, or it under them.
  EXPECT_NEAR(p.least_s, std::max(p.compute_s, *gather.time_s) + *p.collectives[1].time_s, 1e-15);
  EXPECT_NEAR(p.most_s, p.compute_s + p.communication_s, 1e-15);
}

TEST(Hlo, EveryNotationOfGroups) {
  const auto groups = [](const std::string& attributes) {
    HloInstruction i;
    i.attributes = attributes;
    return hlo_groups(i, 16);
  };
  const auto is = [](const HloGroups& g, std::int64_t size, std::int64_t stride, std::int64_t count) {
    return g.size == size && g.stride == stride && g.count == count;
  };
  EXPECT_TRUE(is(groups(", replica_groups={{0,1,2,3},{4,5,6,7}}, dimensions={0}"), 4, 1, 2));
  EXPECT_TRUE(is(groups(", replica_groups={{0,5,6},{1,2,3}}"), 3, 0, 2));
  EXPECT_TRUE(is(groups(", replica_groups=[2,8]<=[16]"), 8, 1, 2));
  EXPECT_TRUE(is(groups(", replica_groups=[8,2]<=[2,8]T(1,0), channel_id=1"), 2, 8, 8));
  EXPECT_TRUE(is(groups(", replica_groups=[4,4]<=[2,2,4]T(1,0,2)"), 4, 1, 4));
  EXPECT_TRUE(is(groups(", replica_groups={}"), 16, 1, 1));
  const HloGroups mesh = groups(", replica_groups=mesh['fsdp'=4,'tp'=2] {'fsdp'}, dimensions={0}");
  EXPECT_TRUE(is(mesh, 4, 2, 2));
  EXPECT_EQ(mesh.axes, "fsdp");
}

TEST(Hlo, ASliceIsNotItsArray) {
  const test::Scratch scratch;
  const HloProgram p = program_of(
      scratch.put("slice.hlo",
                  "HloModule m, is_scheduled=true\nENTRY %e (p: f32[1000], q: f32[10], i: s32[]) -> f32[1000] {\n"
                  "  %p = f32[1000]{0} parameter(0)\n  %q = f32[10]{0} parameter(1)\n  %i = s32[] parameter(2)\n"
                  "  %s = f32[10]{0} dynamic-slice(%p, %i), dynamic_slice_sizes={10}\n"
                  "  ROOT %u = f32[1000]{0} dynamic-update-slice(%p, %q, %i)\n}\n"));
  EXPECT_DOUBLE_EQ(p.bytes, 2 * 40 + 2 * 40);
}

TEST(Hlo, TripCountOfAConditionWhereNothingElseSaysIt) {
  const test::Scratch scratch;
  std::ostringstream text;
  text << std::ifstream(test::recorded("step.hlo")).rdbuf();
  std::string plain = text.str();
  const std::size_t at = plain.find(", backend_config={\"known_trip_count\"");
  plain.erase(at, plain.find('\n', at) - at);
  EXPECT_DOUBLE_EQ(program_of(scratch.put("a.hlo", plain)).flops, 11 * kProductFlops);
}

// 2 x 64^3 FLOPs in fp32 on a chip of 10 TFLOP/s of it and 100 of bf16.
TEST(Hlo, AProductRunsAtItsFormatsRateOrItIsSaid) {
  const test::Scratch scratch;
  const HloModule module = read_hlo(
      scratch.put("f.hlo",
                  "HloModule f\n\nENTRY %main (a: f32[64,64], b: f32[64,64]) -> f32[64,64] {\n"
                  "  %a = f32[64,64]{1,0} parameter(0)\n  %b = f32[64,64]{1,0} parameter(1)\n"
                  "  ROOT %d = f32[64,64]{1,0} dot(f32[64,64]{1,0} %a, f32[64,64]{1,0} %b), lhs_contracting_dims={1}, "
                  "rhs_contracting_dims={0}\n}\n"));
  HardwareSpec hw = test::switched_chip();
  const auto says_of_rates = [](const HloProgram& p) {
    return std::any_of(p.assumptions.begin(), p.assumptions.end(),
                       [](const Assumption& a) { return a.text.find("fp32 at the bf16 rate") != std::string::npos; });
  };
  hw.matmul_peak.fill(std::nullopt);
  hw.matmul_peak[static_cast<std::size_t>(DType::kBf16)] = FlopsPerSecond(100e12);
  HloProgram p = hlo_program(module, hw);
  EXPECT_NEAR(p.products.front().time_s, 2.0 * 64 * 64 * 64 / 100e12, 1e-18);
  EXPECT_TRUE(says_of_rates(p));
  hw.matmul_peak[static_cast<std::size_t>(DType::kFp32)] = FlopsPerSecond(10e12);
  p = hlo_program(module, hw);
  EXPECT_NEAR(p.products.front().time_s, 2.0 * 64 * 64 * 64 / 10e12, 1e-18);
  EXPECT_FALSE(says_of_rates(p));
  hw.matmul_peak.fill(std::nullopt);
  EXPECT_NE(test::problems_of([&] { hlo_program(module, hw); }).find("publishes no matmul rate"), std::string::npos);
}

TEST(Hlo, WhatIsCutOffIsRefused) {
  const test::Scratch scratch;
  std::ostringstream text;
  text << std::ifstream(test::recorded("step.hlo")).rdbuf();
  const std::string whole = text.str();
  for (std::size_t cut = 40; cut + 3 < whole.size(); cut += 61) {
    const std::string path = scratch.put("cut.hlo", whole.substr(0, cut));
    EXPECT_NE(test::problems_of([&] { program_of(path); }), "") << cut;
  }
  const std::string loop =
      "HloModule m\nENTRY %e (p: f32[2]) -> f32[2] {\n  %p = f32[2] parameter(0)\n"
      "  ROOT %c = f32[2] call(%p), to_apply=%e\n}\n";
  EXPECT_NE(
      test::problems_of([&] { program_of(scratch.put("loop.hlo", loop)); }).find("nested more than 64 levels deep"),
      std::string::npos);
}

}  // namespace
}  // namespace scalecalc
