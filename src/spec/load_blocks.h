// The blocks of a model file that describe one part of a layer. Problems are added, never thrown, so that a file is
// mended once; a block with problems comes back with harmless values.
#pragma once

#include "config/fields.h"
#include "spec/model_ranges.h"
#include "spec/model_spec.h"

namespace scalecalc {

AttentionSpec load_attention(const ConfigNode& node, Problems& problems);
MlpSpec load_mlp(const ConfigNode& node, Problems& problems);
MoeSpec load_moe(const ConfigNode& node, Problems& problems);
/// `linear:` sets gdn or lightning, `ssm:` sets mamba1 or mamba2, by its kind.
void load_linear(const ConfigNode& node, ModelSpec& model, Problems& problems);
void load_ssm(const ConfigNode& node, ModelSpec& model, Problems& problems);

/// "sliding/moe" to a kind of layer. Reports words it does not know (then nothing comes back) and blocks of the model
/// that the kind needs.
std::optional<LayerKind> read_layer_kind(const ConfigNode& node, const ModelSpec& model, Problems& problems);

}  // namespace scalecalc
