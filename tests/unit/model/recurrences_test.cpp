// Every operation of every recurrent mixer by hand, with d_model 64: elements per token that it reads, writes and
// keeps, FLOPs of kernels and of conventions, elements of the state (docs/model.md, "FLOPs of a recurrence").
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/ops.h"

namespace scalecalc {
namespace {

using Lines = std::vector<std::string>;

/// "name: k x n, + extra parameters" of a projection; of the others what moves, is computed and kept.
std::string line_of(const Op<double>& op) {
  std::string out(op.name);
  if (op.kind == OpKind::kMatmul) {
    out += fmt::format(": {:g} x {:g}", op.k, op.n);
  } else {
    out += fmt::format(": {:.9g} in, {:.9g} out, {:.9g} FLOPs, {:.9g} kept", op.reads, op.writes, op.flops, op.saved);
  }
  if (op.kind == OpKind::kScan) {
    out += fmt::format(", state {:g}, counted {:g}{}", op.state, op.recurrence, op.by_element ? ", by element" : "");
  }
  if (op.extra_parameters > 0) out += fmt::format(", + {:g}", op.extra_parameters);
  return out;
}

Lines mixer_of(const ModelSpec& model, MixerKind mixer, bool reuse = false) {
  Lines out;
  for (const Op<double>& op : layer_ops(model, {mixer, FfnKind::kNone, reuse}, read_dims(Reader<double>{}, model))) {
    if (op.part == Part::kAttention) out.push_back(line_of(op));
  }
  return out;
}

ModelSpec model_64() {
  ModelSpec model;
  model.d_model = 64;
  model.vocab = 100;
  model.attention = {.heads = 4, .kv_heads = 2, .head_dim = 16};
  model.norms_per_layer = 1;
  return model;
}

/// Two key heads of 8, four value heads of 16: keys 16, values 64, state 4 x 8 x 16. In chunks of 64 a head computes
/// 2 x 64 (3 x 8 + 2 x 16) a token and keeps 64 of a chunk's triangle.
TEST(Recurrences, GatedDeltaNet) {
  ModelSpec model = model_64();
  model.gdn = {.key_heads = 2, .key_head_dim = 8, .value_heads = 4, .value_head_dim = 16, .conv_kernel = 4};
  EXPECT_EQ(mixer_of(model, MixerKind::kGdn),
            (Lines{"query, key, value and gate projection: 64 x 160", "decay and write strength projection: 64 x 8",
                   "short convolution: 96 in, 96 out, 1152 FLOPs, 96 kept, + 384",
                   "gated delta rule: 104 in, 64 out, 31744 FLOPs, 320 kept, state 512, counted 4096, + 8",
                   "gated norm: 128 in, 64 out, 512 FLOPs, 64 kept, + 16", "output projection: 64 x 64"}));
}

/// Four heads of 16: state 4 x 16 x 16. In chunks of 64 a head computes 2 x 64 x 5 x 16 a token.
TEST(Recurrences, KimiDeltaAttention) {
  ModelSpec model = model_64();
  model.kda = {.heads = 4, .head_dim = 16, .conv_kernel = 4};
  const std::string rule = "kimi delta rule: 260 in, 64 out, 47104 FLOPs, 320 kept, state 1024, counted 8192, + 68";
  EXPECT_EQ(mixer_of(model, MixerKind::kKda),
            (Lines{"query, key and value projection: 64 x 192",
                   "short convolution: 192 in, 192 out, 2304 FLOPs, 192 kept, + 768", "decay down-projection: 64 x 16",
                   "decay up-projection: 16 x 64", "write strength projection: 64 x 4", rule,
                   "output gate down-projection: 64 x 16", "output gate up-projection: 16 x 64",
                   "gated norm: 128 in, 64 out, 512 FLOPs, 64 kept, + 16", "output projection: 64 x 64"}));
  model.kda->full_rank_decay = model.kda->full_rank_gate = true;
  EXPECT_EQ(mixer_of(model, MixerKind::kKda),
            (Lines{"query, key and value projection: 64 x 192",
                   "short convolution: 192 in, 192 out, 2304 FLOPs, 192 kept, + 768", "decay projection: 64 x 64",
                   "write strength projection: 64 x 4", rule, "output gate projection: 64 x 64",
                   "gated norm: 128 in, 64 out, 512 FLOPs, 64 kept, + 16", "output projection: 64 x 64"}));
}

/// Three taps of two FLOPs and an activation of four; each of two gates is a product.
TEST(Recurrences, GatedConvolution) {
  ModelSpec model = model_64();
  model.conv = {.kernel = 3};
  EXPECT_EQ(
      mixer_of(model, MixerKind::kConv),
      (Lines{"input and gates projection: 64 x 192", "short convolution: 64 in, 64 out, 640 FLOPs, 64 kept, + 192",
             "gates: 192 in, 64 out, 128 FLOPs, 64 kept", "output projection: 64 x 64"}));
}

/// Four heads of 16, in chunks of 256: 4 x 256 x 64 a token, and 4 an element of the state.
TEST(Recurrences, Lightning) {
  ModelSpec model = model_64();
  model.lightning = {.heads = 4, .head_dim = 16, .qk_norm = true};
  EXPECT_EQ(mixer_of(model, MixerKind::kLightning),
            (Lines{"query, key and value projection: 64 x 192",
                   "query, key and value activation: 192 in, 192 out, 768 FLOPs, 192 kept", "gate projection: 64 x 64",
                   "query and key norms: 128 in, 128 out, 512 FLOPs, 128 kept, + 32",
                   "lightning attention: 192 in, 64 out, 69632 FLOPs, 64 kept, state 1024, counted 4096",
                   "gated output norm: 128 in, 64 out, 512 FLOPs, 64 kept, + 64", "output projection: 64 x 64"}));
}

/// 128 channels of 8 states, a step of rank 4: 4 + 2 x 8 are selected for each token.
TEST(Recurrences, Mamba1) {
  ModelSpec model = model_64();
  model.mamba1 = {.norms = true, .d_inner = 128, .d_state = 8, .d_conv = 4, .dt_rank = 4};
  EXPECT_EQ(
      mixer_of(model, MixerKind::kMamba1),
      (Lines{"input and gate projection: 64 x 256", "short convolution: 128 in, 128 out, 1536 FLOPs, 128 kept, + 640",
             "step and state projection: 128 x 20", "step and state norms: 20 in, 20 out, 80 FLOPs, 20 kept, + 20",
             "step projection: 4 x 128, + 128",
             "selective scan: 272 in, 128 out, 9216 FLOPs, 128 kept, state 1024, counted 9216, by element, + 1152",
             "gate: 256 in, 128 out, 512 FLOPs, 128 kept", "output projection: 128 x 64"}));
}

/// Eight heads of 16, two groups of 8 states: 128 channels, projections of 2 x 2 x 8. In chunks of 256 it computes 256
/// (32 + 2 x 128) a token, and 4 an element of the state.
TEST(Recurrences, Mamba2) {
  ModelSpec model = model_64();
  model.mamba2 = {.heads = 8, .head_dim = 16, .groups = 2, .d_state = 8, .d_conv = 4};
  Lines lines{"input, gate and step projection: 64 x 264",
              "state projection: 64 x 32",
              "short convolution: 160 in, 160 out, 1920 FLOPs, 160 kept, + 800",
              "state space scan: 168 in, 128 out, 77824 FLOPs, 128 kept, state 1024, counted 7168, + 24",
              "gated norm: 256 in, 128 out, 1024 FLOPs, 128 kept, + 128",
              "output projection: 128 x 64"};
  EXPECT_EQ(mixer_of(model, MixerKind::kMamba2), lines);
  model.mamba2->norm = false;
  lines[4] = "gate: 256 in, 128 out, 512 FLOPs, 128 kept";
  EXPECT_EQ(mixer_of(model, MixerKind::kMamba2), lines);
}

/// 64 channels; from 5 on heads of 16, whose state is 64 x 16. What each projection reads is mixed: 3, 4, 5 and 6 ways.
class RwkvVersions : public testing::Test {
 protected:
  Lines lines(std::int64_t version, bool shares = false) {
    ModelSpec model = model_64();
    model.rwkv = RwkvSpec{.version = version,
                          .width = 64,
                          .head_dim = version == 4 ? 0 : 16,
                          .mix_rank = 4,
                          .decay_rank = 8,
                          .rate_rank = 6,
                          .value_rank = 5,
                          .gate_rank = 10};
    return mixer_of(model, MixerKind::kRwkv, shares);
  }
};

TEST_F(RwkvVersions, FourHasThreeElementsAChannel) {
  EXPECT_EQ(lines(4),
            (Lines{"token shift: 128 in, 192 out, 576 FLOPs, 192 kept, + 192",
                   "receptance, key and value projection: 64 x 192",
                   "wkv recurrence: 256 in, 64 out, 1536 FLOPs, 64 kept, state 192, counted 1536, by element, "
                   "+ 128",
                   "receptance gate: 128 in, 64 out, 256 FLOPs, 64 kept", "output projection: 64 x 64"}));
}

TEST_F(RwkvVersions, FiveHasHeadsAndAGate) {
  EXPECT_EQ(lines(5),
            (Lines{"token shift: 128 in, 256 out, 768 FLOPs, 256 kept, + 256",
                   "receptance, key, value and gate projection: 64 x 256",
                   "wkv recurrence: 256 in, 64 out, 7168 FLOPs, 64 kept, state 1024, counted 7168, by "
                   "element, + 128",
                   "group norm and gate: 128 in, 64 out, 512 FLOPs, 64 kept, + 128", "output projection: 64 x 64"}));
}

TEST_F(RwkvVersions, SixMixesAndDecaysByTheToken) {
  EXPECT_EQ(
      lines(6),
      (Lines{"mixing down-projection: 64 x 20", "mixing up-projection: 4 x 320, + 64",
             "token shift: 128 in, 320 out, 960 FLOPs, 320 kept, + 320",
             "receptance, key, value and gate projection: 64 x 256", "decay adapter: 64 x 8", "decay adapter: 8 x 64",
             "wkv recurrence: 256 in, 64 out, 7168 FLOPs, 64 kept, state 1024, counted 7168, by "
             "element, + 128",
             "group norm and gate: 128 in, 64 out, 512 FLOPs, 64 kept, + 128", "output projection: 64 x 64"}));
}

TEST_F(RwkvVersions, SevenLearnsByTheDeltaRule) {
  Lines expected{"token shift: 128 in, 384 out, 1152 FLOPs, 384 kept, + 384",
                 "receptance, key and value projection: 64 x 192",
                 "decay adapter: 64 x 8",
                 "decay adapter: 8 x 64",
                 "learning rate adapter: 64 x 6",
                 "learning rate adapter: 6 x 64, + 64",
                 "gate adapter: 64 x 10",
                 "gate adapter: 10 x 64",
                 "wkv recurrence: 384 in, 64 out, 9216 FLOPs, 64 kept, state 1024, counted 9216, by element, + 256",
                 "group norm and gate: 128 in, 64 out, 512 FLOPs, 64 kept, + 128",
                 "output projection: 64 x 64"};
  EXPECT_EQ(lines(7), expected);
  // Behind the first layer its values are mixed with that layer's.
  expected.insert(expected.begin() + 8, {"value residual adapter: 64 x 5", "value residual adapter: 5 x 64, + 64"});
  EXPECT_EQ(lines(7, true), expected);
}

/// 64 channels in four blocks of 16, whose gates are projected from their own block.
TEST(Recurrences, Griffin) {
  ModelSpec model = model_64();
  model.rglru = {.width = 64, .blocks = 4, .conv_kernel = 4};
  EXPECT_EQ(mixer_of(model, MixerKind::kRglru),
            (Lines{"input and gate branch projection: 64 x 128, + 128",
                   "short convolution: 64 in, 64 out, 768 FLOPs, 64 kept, + 320",
                   "recurrence and input gates: 16 x 128, + 128",
                   "real-gated linear recurrence: 192 in, 64 out, 640 FLOPs, 64 kept, state 64, counted 640, by "
                   "element, + 64",
                   "gate: 128 in, 64 out, 256 FLOPs, 64 kept", "output projection: 64 x 64, + 64"}));
}

}  // namespace
}  // namespace scalecalc
