// Documents to specifications. All rules about what a file may say live in the load_*.cpp files.
#pragma once

#include <string>
#include <vector>

#include "config/catalog.h"
#include "config/fields.h"
#include "config/node.h"
#include "spec/hardware_spec.h"
#include "spec/model_spec.h"

namespace scalecalc {

/// UserError listing every problem of the document. `asked` is given the fields that it may have.
ModelSpec load_model(const ConfigNode& document, std::vector<AskedField>* asked = nullptr);

/// Whether the caller minds figures that the file declares `unpublished`, or a chip that stands alone.
enum class Unpublished {
  kRefused,  ///< UserError: the caller may take every figure for given and hw.network for not empty
  kAllowed,  ///< the caller looks at hw.unpublished and hw.network itself (require_published)
};

/// A chip without its coefficients, whose block is not looked into. UserError as above.
HardwareSpec load_data_sheet(const ConfigNode& document);
/// The chip's own `efficiency:` block over its family's file in `catalog`. UserError as above.
HardwareSpec load_hardware(const ConfigNode& document, const Catalog& catalog,
                           Unpublished unpublished = Unpublished::kRefused, std::vector<AskedField>* asked = nullptr);

}  // namespace scalecalc
