// What the remat policies keep and run again.
#include "cost/remat.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/fixtures.h"

namespace scalecalc {
namespace {

std::vector<Op<double>> mla_layer(std::int64_t q_lora_rank) {
  ModelSpec model = test::dense_model(1);
  model.attention = {.heads = 4, .kv_heads = 4, .head_dim = 24, .v_head_dim = 16};
  model.attention.mla = MlaSpec{
      .q_lora_rank = q_lora_rank, .kv_lora_rank = 16, .qk_nope_head_dim = 16, .qk_rope_head_dim = 8, .v_head_dim = 16};
  return layer_ops(model, {MixerKind::kMla, FfnKind::kNone}, read_dims(Reader<double>{}, model));
}

Op<double> named(const std::vector<Op<double>>& ops, std::string_view name) {
  return *std::find_if(ops.begin(), ops.end(), [&](const Op<double>& op) { return op.name == name; });
}

/// DeepSeek-V3, arXiv:2412.19437 section 3.2.3: queries, keys and values come back from their latents.
TEST(Remat, LatentsStayAndWhatComesUpFromThemGoes) {
  const std::vector<Op<double>> ops = mla_layer(32);
  double kept = 0;
  for (const Op<double>& op : ops) kept += op.part == Part::kAttention && stays(Remat::kSelective, op) ? op.saved : 0;
  EXPECT_EQ(kept, 32 + 16 + 8 + 4 * (16 + 2)) << "latents, the rotated key, the output with its log-sums";
  for (const char* name : {"query up-projection", "key/value up-projection"}) {
    const Op<double> op = named(ops, name);
    EXPECT_FALSE(runs_again(Remat::kNone, op)) << name;
    for (const Remat remat : {Remat::kSelective, Remat::kAttention, Remat::kMlp, Remat::kFull}) {
      EXPECT_TRUE(runs_again(remat, op)) << name << " under " << name_of(remat);
      EXPECT_FALSE(stays(remat, op)) << name << " under " << name_of(remat);
    }
  }
  EXPECT_FALSE(runs_again(Remat::kSelective, named(ops, "key/value down-projection")));
}

TEST(Remat, AQueryProjectionFromTheLayersInputIsNoCheaperThanOthers) {
  const Op<double> op = named(mla_layer(0), "query projection");
  EXPECT_FALSE(runs_again(Remat::kSelective, op));
  EXPECT_TRUE(stays(Remat::kSelective, op));
}

TEST(Remat, SelectiveIsWhatTheStackNames) {
  Workload workload;
  workload.memory.selective = {"attention"};
  for (const Op<double>& op : mla_layer(32)) {
    const bool named_op = op.name == "attention";
    EXPECT_EQ(runs_again(Remat::kSelective, op, workload), named_op) << op.name;
    if (op.keep == Keep::kSelective || op.keep == Keep::kWithoutRemat) {
      EXPECT_EQ(stays(Remat::kSelective, op, workload), !named_op) << op.name;
    }
  }
  workload.attention = AttentionKernel::kUnfused;
  EXPECT_FALSE(runs_again(Remat::kSelective, named(mla_layer(32), "norm output"), workload))
      << "unfused kernels: their scores alone";
}

}  // namespace
}  // namespace scalecalc
