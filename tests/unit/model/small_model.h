// The small model of tests by hand: d_model 64, d_ff 128, four heads of 16 and two of keys and values.
#pragma once

#include "spec/model_spec.h"

namespace scalecalc::test {

inline ModelSpec small_model() {
  ModelSpec model;
  model.d_model = 64;
  model.vocab = 100;
  model.attention = {.heads = 4, .kv_heads = 2, .head_dim = 16};
  model.mlp = {.d_ff = 128};
  model.norms_per_layer = 1;
  model.kinds = {{MixerKind::kFull, FfnKind::kNone}};
  model.layer_kind = {0};
  return model;
}

}  // namespace scalecalc::test
