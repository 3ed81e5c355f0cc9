#pragma once

#include "config/catalog.h"
#include "config/fields.h"
#include "config/node.h"
#include "spec/hardware_spec.h"

namespace scalecalc {

/// Sets hw.efficiency and hw.stacks: the family's coefficients, over them those of the chip's architecture in the
/// family's `architectures:`, over them those of the chip's own `efficiency:` block
/// (may be null), over these those of each of its `stacks:`; what --set gives in the chip's own block wins over all.
void load_efficiency(const ConfigNode& family, const ConfigNode* own, const Catalog& catalog, HardwareSpec& hw,
                     Problems& problems);

}  // namespace scalecalc
