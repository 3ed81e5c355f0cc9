// Which layers of a model each pipeline stage of a serving engine has (docs/model.md, [SERVE-PP]).
#pragma once

#include <cstdint>
#include <vector>

#include "model/kv_cache.h"
#include "spec/model_spec.h"

namespace scalecalc {

/// What the stages have of each kind of layer, the first stage's first: those of which another has no less of any kind
/// are left out, for they are never the fullest nor the slowest. One if all layers are of one kind.
std::vector<LayersByKind> fullest_stages(const ModelSpec& model, std::int64_t stages);

}  // namespace scalecalc
