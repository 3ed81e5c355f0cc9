// The space of serving layouts.
#pragma once

#include <vector>

#include "serve/serve_question.h"

namespace scalecalc {

/// Every legal layout of exactly `chips` chips within the pins. Without pins of their own: contexts are divided only
/// where attention is not also data-parallel, experts whole or over the tensor ranks or over all; two-dimensional
/// weights on tori alone, for dense models; gathered ones only if a scheme is pinned.
std::vector<ServeLayout> serve_layouts(const ModelSpec& model, const HardwareSpec& hw, std::int64_t chips,
                                       const ServePins& fix, const ServePins& max);

/// Why no layout has these pins: the rules in the way.
std::vector<std::string> serve_obstacles(const ModelSpec& model, std::int64_t chips, const ServePins& fix);

}  // namespace scalecalc
