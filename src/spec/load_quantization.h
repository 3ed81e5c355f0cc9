#pragma once

#include "config/fields.h"
#include "config/node.h"
#include "spec/quantization_spec.h"

namespace scalecalc {

/// The `quantization:` block of a model file. Problems are added; the result is usable in any case.
QuantizationSpec load_quantization(const ConfigNode& node, Problems& problems);

}  // namespace scalecalc
