// The architecture as a row of measurements states it.
#pragma once

#include "config/fields.h"
#include "validate/measurement.h"

namespace scalecalc {

/// A `model_shape` in the keys of docs/accuracy.md. Keys it has no place for are kept by name.
ModelShape read_shape(const ConfigNode& node, Problems& problems);

/// The same in the keys of a Hugging Face configuration (num_hidden_layers, hidden_size ...), as sources of serving
/// figures quote them.
ModelShape read_hf_shape(const ConfigNode& node, Problems& problems);

}  // namespace scalecalc
