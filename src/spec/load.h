// Documents to specifications. All rules about what a file may say live in the load_*.cpp files.
#pragma once

#include <string>

#include "config/catalog.h"
#include "config/node.h"
#include "spec/hardware_spec.h"
#include "spec/model_spec.h"

namespace scalecalc {

/// UserError listing every problem of the document.
ModelSpec load_model(const ConfigNode& document);

/// The chip's own `efficiency:` block over its family's file in `catalog`. UserError as above.
HardwareSpec load_hardware(const ConfigNode& document, const Catalog& catalog);

}  // namespace scalecalc
