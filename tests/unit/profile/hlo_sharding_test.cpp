// Annotations as cuts over a mesh, the mesh from annotations and groups, and what a program holds: expectations from
// XLA's own definitions (xla/hlo/ir/hlo_sharding.h, tile_assignment.h) worked out by hand.
#include "profile/hlo_sharding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "profile/hlo_memory.h"
#include "profile/hlo_program.h"
#include "support/errors.h"
#include "support/scratch.h"
#include "unit/profile/recordings.h"

namespace scalecalc {
namespace {

using Devices = std::vector<std::int64_t>;

TEST(HloMesh, DevicesAsNestedSteps) {
  EXPECT_EQ(mesh_factors(Devices{0, 1, 2, 3}), (MeshFactors{{4, 1}}));
  EXPECT_EQ(mesh_factors(Devices{3, 11}), (MeshFactors{{2, 8}}));
  EXPECT_EQ(mesh_factors(Devices{0, 1, 8, 9}), (MeshFactors{{2, 1}, {2, 8}}));
  EXPECT_EQ(mesh_factors(Devices{0, 8, 1, 9}), (MeshFactors{{2, 8}, {2, 1}}));
  EXPECT_EQ(mesh_factors(Devices{5}), MeshFactors{});
  EXPECT_EQ(mesh_factors(Devices{0, 1, 3}), std::nullopt);
  EXPECT_EQ(mesh_factors(Devices{1, 0}), std::nullopt);
}

// reshape(iota(8), [2,4]) transposed is 0 4 1 5 2 6 3 7.
TEST(HloMesh, IotaIsReshapedAndTransposed) {
  EXPECT_EQ(iota_devices("[8]"), (Devices{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(iota_devices("[2,4]T(1,0)"), (Devices{0, 4, 1, 5, 2, 6, 3, 7}));
  EXPECT_EQ(iota_devices("[2,4]T(1,1)"), std::nullopt);
  EXPECT_EQ(iota_devices("[2,4]T(2,0)"), std::nullopt);
  EXPECT_EQ(iota_devices("[99999999,99999999]"), std::nullopt);
}

TEST(HloMesh, BordersOfPartsAreAxes) {
  const std::array<MeshFactors, 3> parts{MeshFactors{{8, 1}}, MeshFactors{{2, 16}}, MeshFactors{{8, 1}, {2, 8}}};
  const HloMesh mesh = mesh_of(parts, 32);
  ASSERT_EQ(mesh.axes.size(), 3U);
  EXPECT_EQ(mesh.axes[0].size, 8);
  EXPECT_EQ(mesh.axes[1].size, 2);
  EXPECT_EQ(mesh.axes[2].stride, 16);
  EXPECT_EQ(mesh.names(*mesh.axes_of({{16, 1}})), "Y,X");
  EXPECT_EQ(mesh.names(*mesh.axes_of({{8, 1}, {2, 16}})), "Z,X");
  EXPECT_FALSE(mesh.axes_of({{4, 1}}));
  const std::vector<std::pair<std::int64_t, std::int64_t>> pairs{{0, 16}, {1, 17}, {16, 0}};
  EXPECT_EQ(mesh.names(mesh.axes_between(pairs)), "Z");
}

std::string written(const std::string& annotation, std::size_t dims, const HloMesh& mesh,
                    const std::string& header = "") {
  const auto cuts = hlo_sharding(annotation, dims, header);
  if (!cuts) return "none";
  constexpr std::array<const char*, 4> kNames{"I", "J", "K", "L"};
  const auto out = sharding_notation({kNames.begin(), kNames.begin() + static_cast<std::ptrdiff_t>(dims)},
                                     {std::vector<double>(dims, 1), *cuts}, mesh);
  return out ? *out : "no axes";
}

TEST(HloSharding, EveryNotationIsNamedAxes) {
  const HloMesh mesh = named_mesh({{"X", 2}, {"Y", 4}}, "");
  EXPECT_EQ(written("{devices=[2,4]<=[8]}", 2, mesh), "[I_X, J_Y]");
  EXPECT_EQ(written("{devices=[4,2]<=[2,4]T(1,0)}", 2, mesh), "[I_Y, J_X]");
  EXPECT_EQ(written("{devices=[8,1]<=[8]}", 2, mesh), "[I_{X,Y}, J]");
  EXPECT_EQ(written("{devices=[1,2,4]<=[8] last_tile_dim_replicate}", 2, mesh), "[I, J_X]");
  EXPECT_EQ(written("{devices=[4,1,2]0,4,1,5,2,6,3,7 last_tile_dim_replicate}", 2, mesh), "[I_Y, J]");
  EXPECT_EQ(written("{devices=[2,1,2,2]<=[8] last_tile_dims={manual, replicated}}", 2, mesh), "[I_X, J]");
  EXPECT_EQ(written("{replicated}", 2, mesh), "[I, J]");
  EXPECT_EQ(written("{mesh['X'=2,'Y'=4], [{'Y'}, {}]}", 2, mesh), "[I_Y, J]");
  EXPECT_EQ(written(R"("#sdy.sharding<@mesh, [{\"X\"}, {\"Y\", ?}]>")", 2, mesh,
                    R"(frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["X"=2, "Y"=4]>}})"),
            "[I_X, J_Y]");
  EXPECT_EQ(written("{maximal device=0}", 2, mesh), "none");
  EXPECT_EQ(written("{devices=[2,4]<=[9]}", 2, mesh), "none");
  EXPECT_EQ(written("{devices=[2,2]<=[4]}", 2, mesh), "no axes");
}

constexpr const char* kPartitioned =
    "HloModule m, is_scheduled=true, num_partitions=8\n"
    "ENTRY %e_spmd (x: bf16[4,64], w: bf16[16,128]) -> bf16[4,128] {\n"
    "  %x = bf16[4,64]{1,0} parameter(0), sharding={devices=[2,1,4]<=[8] last_tile_dim_replicate}\n"
    "  %w = bf16[16,128]{1,0} parameter(1), sharding={devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}, "
    "metadata={op_name=\"params['w']\"}\n"
    "  %g = bf16[64,128]{1,0} all-gather(%w), replica_groups=[2,4]<=[8], dimensions={0}\n"
    "  ROOT %d = bf16[4,128]{1,0} dot(%x, %g), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n";

// Four chips of Y hold 16 rows each of w, gathered before the product; the two of X half the batch each.
TEST(HloSharding, AProductIsWhatMatmulContinuesFrom) {
  const test::Scratch scratch;
  const HloProgram p = hlo_program(read_hlo(scratch.put("p.hlo", kPartitioned)), test::switched_chip());
  ASSERT_EQ(p.mesh.axes.size(), 2U);
  EXPECT_EQ(p.mesh.axes[0].size, 4);
  ASSERT_EQ(p.sharded.size(), 1U);
  EXPECT_EQ(p.sharded[0].expression, "A[I_Y, J] * W[J_X, K] -> C[I_Y, K]");
  EXPECT_EQ(p.sharded[0].command,
            "matmul \"A[I_Y, J] * W[J_X, K] -> C[I_Y, K]\" --mesh Y=2,X=4 --dims I=8,J=64,K=128 --dtype bf16");
  ASSERT_EQ(p.arrays.size(), 2U);
  EXPECT_EQ(p.arrays[0].name, "params['w']");
  EXPECT_EQ(p.arrays[0].notation, "[I_X, J]");
  EXPECT_EQ(p.arrays[0].sizes, "I=64,J=128");
  EXPECT_EQ(p.collectives.front().axis, "X");
}

// Before partitioning shapes are whole: 4 ways over the batch, 2 over the columns, as jax.jit's lower() writes it.
TEST(HloSharding, BeforePartitioningShapesAreWhole) {
  const test::Scratch scratch;
  const std::string text =
      "HloModule m, num_partitions=8\nENTRY %main (x: bf16[1024,512], w: bf16[512,256]) -> bf16[1024,256] {\n"
      "  %x = bf16[1024,512]{1,0} parameter(0)\n"
      "  %y = bf16[1024,512]{1,0} custom-call(%x), custom_call_target=\"Sharding\", sharding={devices=[4,1,2]<=[8] "
      "last_tile_dim_replicate}\n"
      "  %w = bf16[512,256]{1,0} parameter(1), sharding={devices=[1,2,4]<=[4,2]T(1,0) last_tile_dim_replicate}\n"
      "  %f = f32[1024,512]{1,0} convert(%y)\n"
      "  %z = bf16[1024,512]{1,0} convert(%f)\n"
      "  %t = bf16[512,1024]{0,1} transpose(%z), dimensions={1,0}\n"
      "  ROOT %d = bf16[1024,256]{1,0} dot(%t, %w), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n}\n";
  const HloProgram p = hlo_program(read_hlo(scratch.put("p.hlo", text)), test::switched_chip());
  ASSERT_EQ(p.sharded.size(), 1U);
  EXPECT_EQ(p.sharded[0].command,
            "matmul \"A[J, I_Y] * W[J, K_X] -> C[I_Y, K_X]\" --mesh Y=4,X=2 --dims I=1024,J=512,K=256 --dtype bf16");
  const auto says = [](const Assumption& a) { return a.text.find("of all devices together") != std::string::npos; };
  EXPECT_TRUE(std::any_of(p.assumptions.begin(), p.assumptions.end(), says));
}

TEST(HloSharding, TheMeshMayBeGiven) {
  const test::Scratch scratch;
  const std::string file = scratch.put("p.hlo", kPartitioned);
  const HloProgram p = hlo_program(read_hlo(file), test::switched_chip(), {{"data", 2}, {"model", 4}});
  EXPECT_EQ(p.sharded[0].expression, "A[I_{data}, J] * W[J_{model}, K] -> C[I_{data}, K]");
  EXPECT_EQ(p.collectives.front().axis, "model");
  const auto wrong = [&] { hlo_program(read_hlo(file), test::switched_chip(), {{"data", 4}}); };
  EXPECT_NE(test::problems_of(wrong).find("--mesh has 4 devices"), std::string::npos);
}

// Parameters 512 + 4096 bytes; the gathered weight of 16,384 lives to the product, whose result is 1024.
TEST(HloMemory, BuffersLiveToTheirLastReader) {
  const test::Scratch scratch;
  const HloMemory m = hlo_memory(read_hlo(scratch.put("p.hlo", kPartitioned)));
  EXPECT_EQ(m.parameters, 512 + 4096);
  EXPECT_EQ(m.results, 1024);
  EXPECT_EQ(m.aliased, 0);
  EXPECT_EQ(m.temporaries, 16384 + 1024);
  EXPECT_EQ(m.at, "d");
  EXPECT_EQ(m.peak(), 512 + 4096 + 16384 + 1024);
}

// a (400 bytes) lives from its making to c; b dies in c; c is the result, in the donated parameter. The loop's body
// holds 800 bytes more beside its state, which is passed on in place.
TEST(HloMemory, DonatedParametersLoopsAndMemorySpaces) {
  const test::Scratch scratch;
  const std::string text =
      "HloModule m, is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }\n"
      "%body (s: (f32[100], s32[])) -> (f32[100], s32[]) {\n"
      "  %s = (f32[100]{0}, s32[]) parameter(0)\n"
      "  %v = f32[100]{0} get-tuple-element(%s), index=0\n"
      "  %n = s32[] get-tuple-element(%s), index=1\n"
      "  %wide = f32[200]{0} concatenate(%v, %v), dimensions={0}\n"
      "  %vmem = f32[5000]{0:T(1024)S(1)} broadcast(%n), dimensions={}\n"
      "  %next = f32[100]{0} slice(%wide), slice={[0:100]}\n"
      "  ROOT %t = (f32[100]{0}, s32[]) tuple(%next, %n)\n}\n"
      "%cond (s.1: (f32[100], s32[])) -> pred[] {\n"
      "  %s.1 = (f32[100]{0}, s32[]) parameter(0)\n"
      "  ROOT %true = pred[] constant(true)\n}\n"
      "ENTRY %e (p: f32[100]) -> f32[100] {\n"
      "  %p = f32[100]{0} parameter(0)\n"
      "  %a = f32[100]{0} negate(%p)\n"
      "  %zero = s32[] constant(0)\n"
      "  %init = (f32[100]{0}, s32[]) tuple(%a, %zero)\n"
      "  %loop = (f32[100]{0}, s32[]) while(%init), condition=%cond, body=%body\n"
      "  %b = f32[100]{0} get-tuple-element(%loop), index=0\n"
      "  ROOT %c = f32[100]{0} add(%b, %b)\n}\n";
  const HloMemory m = hlo_memory(read_hlo(scratch.put("m.hlo", text)));
  EXPECT_EQ(m.parameters, 400);
  EXPECT_EQ(m.results, 400);
  EXPECT_EQ(m.aliased, 400);
  EXPECT_EQ(m.constants, 4);
  EXPECT_EQ(m.temporaries, 400 + 800);
  EXPECT_EQ(m.at, "loop");
}

// f32[3,5] in tiles of 8 x 128: the book's chapter 9 pads likewise.
TEST(HloMemory, TilesOfTheLayoutAreWhole) {
  const test::Scratch scratch;
  const HloMemory m = hlo_memory(read_hlo(
      scratch.put("t.hlo",
                  "HloModule m, is_scheduled=true\nENTRY %e (p: f32[3,5]) -> f32[3,5] {\n"
                  "  %p = f32[3,5]{1,0:T(8,128)} parameter(0)\n  ROOT %c = f32[3,5]{1,0:T(8,128)} negate(%p)\n}\n")));
  EXPECT_EQ(m.parameters, 8 * 128 * 4);
}

// Ten bytes a second of HBM would hide nothing; at the data sheet's rates the gather is waited for at once.
TEST(HloProgram, WhatIsStartedRunsUntilItIsWaitedFor) {
  const HloProgram p = hlo_program(read_hlo(test::recorded("step.hlo")), test::switched_chip());
  ASSERT_TRUE(p.scheduled_s);
  // Each gather is waited for directly after its start: nothing hides it.
  EXPECT_NEAR(*p.scheduled_s, p.most_s, 1e-12);
  EXPECT_GE(*p.scheduled_s, p.least_s);
}

}  // namespace
}  // namespace scalecalc
