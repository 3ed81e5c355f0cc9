#pragma once

#include "config/fields.h"
#include "config/node.h"
#include "spec/hardware_spec.h"

namespace scalecalc {

/// A family's coefficients with those of the chip's own `efficiency:` block (may be null) put over them.
Efficiency load_efficiency(const ConfigNode& family, const ConfigNode* own, Problems& problems);

}  // namespace scalecalc
