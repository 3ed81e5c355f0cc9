// What a model file may say, and what the loader refuses, in the words the user reads.
#include <gtest/gtest.h>

#include "config/yaml_reader.h"
#include "spec/load.h"

namespace scalecalc {
namespace {

std::string model_errors(const std::string& yaml) {
  try {
    load_model(read_yaml(yaml, "m.yaml"));
    return "";
  } catch (const UserError& e) {
    std::string out;
    for (const Diagnostic& d : e.diagnostics()) {
      out += d.where.file.str() + ":" + std::to_string(d.where.line) + ":" + std::to_string(d.where.column) + ": " +
             d.message + (d.hint.empty() ? "" : " | " + d.hint) + "\n";
    }
    return out;
  }
}

constexpr const char* kModelHead =
    "schema: scalecalc-model/1\nname: m\ntitle: M\nd_model: 64\nvocab: 100\nmax_seq: 128\nnorm: {kind: rmsnorm}\n"
    "mlp: {d_ff: 128}\n";
constexpr const char* kHeads = "attention: {kind: mha, heads: 4, head_dim: 16}\n";

std::string model(const std::string& rest) { return kModelHead + rest; }
ModelSpec loaded(const std::string& rest) { return load_model(read_yaml(model(rest), "m.yaml")); }

TEST(LoadModel, AcceptsTheSmallestModel) {
  const ModelSpec m = loaded(std::string(kHeads) + "layers: [{repeat: 2, kinds: [full/dense]}]\n");
  EXPECT_EQ(m.layers(), 2);
  EXPECT_EQ(m.kinds, (std::vector<LayerKind>{{}}));
  EXPECT_FALSE(m.training.tokens || m.training.seq || m.training.batch_tokens || m.training.precision);
  EXPECT_TRUE(m.final_norm);
}

TEST(LoadModel, ExplainsALayerKindItDoesNotKnow) {
  EXPECT_EQ(model_errors(model(std::string(kHeads) + "layers: [{repeat: 2, kinds: [full/dens]}]\n")),
            "m.yaml:10:30: unknown layer kind 'full/dens', expected MIXER/FFN with a mixer of full, sliding, chunked, "
            "mla, gdn, kda, lightning, conv, mamba1, mamba2, rwkv, rglru, full+mamba2, csa, hca, cross, full+cross, "
            "sliding+cross, strided, none and an FFN "
            "of dense, moe, none | did "
            "you mean 'full/dense'?\n");
  const std::string both = model_errors(model(std::string(kHeads) + "layers: [{repeat: 2, kinds: [none/none]}]\n"));
  EXPECT_NE(both.find("not both none"), std::string::npos) << both;
}

TEST(LoadModel, BlocksThatALayerNeedsMustBeThere) {
  EXPECT_EQ(model_errors(model(std::string(kHeads) + "layers: [{repeat: 2, kinds: [sliding/moe]}]\n")),
            "m.yaml:10:30: a moe layer needs the model's moe: block\n"
            "m.yaml:10:30: a sliding layer needs attention.window\n");
  const std::pair<const char*, const char*> cases[] = {
      {"chunked/dense", "a chunked layer needs attention.chunk"},
      {"mla/dense", "an mla layer needs attention of kind mla"},
      {"gdn/dense", "a gdn layer needs linear: of kind gdn"},
      {"lightning/none", "a lightning layer needs linear: of kind lightning"},
      {"mamba1/dense", "a mamba1 layer needs ssm: of kind mamba1"},
      {"mamba2/none", "a mamba2 layer needs ssm: of kind mamba2"},
  };
  for (const auto& [kind, message] : cases) {
    const std::string errors =
        model_errors(model(std::string(kHeads) + "layers: [{repeat: 2, kinds: [" + kind + "]}]\n"));
    EXPECT_EQ(errors, std::string("m.yaml:10:30: ") + message + "\n") << kind;
  }
}

TEST(LoadModel, HeadsMustBeAMultipleOfKvHeads) {
  EXPECT_EQ(model_errors(model("attention: {kind: gqa, heads: 6, kv_heads: 4, head_dim: 16}\n"
                               "layers: [{repeat: 2, kinds: [full/dense]}]\n")),
            "m.yaml:9:12: heads (6) must be a multiple of kv_heads (4)\n");
  EXPECT_EQ(model_errors(
                model("attention: {kind: gqa, heads: 6, kv_heads: 3, head_dim: 16, window: 8,\n"
                      "  local: {heads: 6, kv_heads: 4, head_dim: 16}}\nlayers: [{repeat: 2, kinds: [full/dense]}]\n")),
            "m.yaml:10:10: heads (6) must be a multiple of kv_heads (4)\n");
}

TEST(LoadModel, ReadsEveryKindOfMixer) {
  const ModelSpec m = loaded(
      "attention: {kind: gqa, heads: 8, kv_heads: 2, head_dim: 16, v_head_dim: 8, window: 32, chunk: 64, output_gate: "
      "true,\n  qk_norm: full, local: {heads: 4, kv_heads: 4, head_dim: 24}, indexer: {heads: 2, head_dim: 8, top_k: "
      "16}}\n"
      "linear: {kind: gdn, key_heads: 2, key_head_dim: 8, value_heads: 4, value_head_dim: 16, conv_kernel: 4}\n"
      "ssm: {kind: mamba2, heads: 8, head_dim: 16, groups: 2, d_state: 32, d_conv: 4}\n"
      "moe: {experts: 8, top_k: 2, d_ff: 32, shared_experts: 2, latent: 16}\n"
      "layers:\n  - {repeat: 2, kinds: [full/dense, sliding/moe, chunked/none]}\n"
      "  - {repeat: 1, kinds: [gdn/moe, mamba2/none, none/moe], norms: 1}\n"
      "  - {repeat: 3, kinds: [none/dense], d_ff: 256}\n");
  EXPECT_EQ(m.layers(), 12);
  ASSERT_EQ(m.kinds.size(), 7U);
  EXPECT_EQ(m.attention.shape(MixerKind::kFull), (AttentionShape{8, 2, 16, 8}));
  EXPECT_EQ(m.attention.shape(MixerKind::kSliding), (AttentionShape{4, 4, 24, 24}));
  EXPECT_EQ(m.attention.qk_norm, QkNorm::kFull);
  EXPECT_EQ(m.attention.indexer->top_k, 16);
  EXPECT_EQ(m.gdn->value_heads, 4);
  EXPECT_EQ(m.mamba2->d_inner(), 128);
  EXPECT_EQ(m.moe->latent, 16);
  EXPECT_EQ(m.moe->shared_d_ff, 64) << "two shared experts of an expert's width";
  EXPECT_EQ(m.kinds[3], (LayerKind{MixerKind::kGdn, FfnKind::kMoe, false, std::nullopt, 1}));
  EXPECT_EQ(m.norms_of(m.kinds[3]), 1);
  EXPECT_EQ(m.d_ff_of(m.kinds[6]), 256);
  EXPECT_EQ(m.d_ff_of(m.kinds[0]), 128);
}

TEST(LoadModel, WhatAGroupRepeatsOfTheModelIsNoKindOfItsOwn) {
  const ModelSpec m = loaded(std::string(kHeads) +
                             "layers:\n  - {repeat: 1, kinds: [full/dense]}\n"
                             "  - {repeat: 1, kinds: [full/dense], d_ff: 128, norms: 2}\n");
  EXPECT_EQ(m.kinds.size(), 1U);
}

TEST(LoadModel, AStateSpaceModelNeedsNeitherHeadsNorMlp) {
  const ModelSpec m = load_model(read_yaml(
      "schema: scalecalc-model/1\nname: m\ntitle: M\nd_model: 64\nvocab: 100\nmax_seq: 128\n"
      "norm: {kind: rmsnorm, per_layer: 1}\nssm: {kind: mamba1, d_inner: 128, d_state: 16, d_conv: 4, dt_rank: 4}\n"
      "layers: [{repeat: 4, kinds: [mamba1/none]}]\n",
      "m.yaml"));
  EXPECT_EQ(m.attention.heads, 0);
  EXPECT_EQ(m.mamba1->dt_rank, 4);
}

TEST(LoadModel, WidthsAndNormsMustFitTheLayer) {
  EXPECT_EQ(model_errors("schema: scalecalc-model/1\nname: m\ntitle: M\nd_model: 64\nvocab: 100\nmax_seq: 128\n"
                         "norm: {kind: rmsnorm, per_layer: 4}\nmlp: {gated: false}\n" +
                         std::string(kHeads) + "layers: [{repeat: 2, kinds: [full/dense, full/none], norms: 3}]\n"),
            "m.yaml:10:30: a dense layer needs a width: mlp.d_ff, or d_ff beside its kinds\n"
            "m.yaml:10:42: a full/none layer has room for 2 norms, before and after each part, not for 3\n");
  EXPECT_EQ(model_errors(model(std::string(kHeads) + "moe: {experts: 4, top_k: 1, d_ff: 64}\n"
                                                     "layers: [{repeat: 2, kinds: [full/moe], d_ff: 32}]\n")),
            "m.yaml:11:10: d_ff is the width of dense layers, and this entry has none | the width of an expert is "
            "moe.d_ff\n");
}

TEST(LoadModel, AsManyDifferentLayersAsCostsAreKeptFor) {
  std::string layers = "layers:\n";
  for (int i = 0; i < 17; ++i) {
    layers += "  - {repeat: 1, kinds: [full/dense], d_ff: " + std::to_string(256 + i) + "}\n";
  }
  EXPECT_EQ(model_errors(model(kHeads + layers)), "m.yaml:27:25: more than 16 different layers in one model\n");
}

TEST(LoadModel, GroupedHeadsOfRecurrencesMustDivide) {
  EXPECT_EQ(model_errors(model("linear: {kind: gdn, key_heads: 4, key_head_dim: 8, value_heads: 6, value_head_dim: 8, "
                               "conv_kernel: 4}\nlayers: [{repeat: 1, kinds: [gdn/dense]}]\n")),
            "m.yaml:9:9: value_heads (6) must be a multiple of key_heads (4)\n");
  EXPECT_EQ(model_errors(model("ssm: {kind: mamba2, heads: 6, head_dim: 8, groups: 4, d_state: 8, d_conv: 4}\n"
                               "layers: [{repeat: 1, kinds: [mamba2/dense]}]\n")),
            "m.yaml:9:6: heads (6) must be a multiple of groups (4)\n");
}

TEST(LoadModel, TrainingFactsMayBeKnownInPart) {
  const ModelSpec m = loaded(std::string(kHeads) +
                             "layers: [{repeat: 2, kinds: [full/dense]}]\ntraining: {tokens: 1.5T, source: [x]}\n");
  EXPECT_EQ(m.training.tokens, 1.5e12);
  EXPECT_FALSE(m.training.batch_tokens);
  EXPECT_EQ(m.training.source, "x");
}

TEST(LoadModel, HasSoManyLayersAltogether) {
  const std::string half = "{repeat: 10000, kinds: [full/dense]}";
  EXPECT_EQ(model_errors(model(std::string(kHeads) + "layers: [" + half + "]\n")), "");
  EXPECT_NE(model_errors(model(std::string(kHeads) + "layers: [" + half + ", " + half + "]\n"))
                .find("more than 10000 layers"),
            std::string::npos);
}

}  // namespace
}  // namespace scalecalc
