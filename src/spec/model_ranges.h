// What the sizes of a model may be, wherever one is read: a model file, a measurement's shape, a configuration.
#pragma once

#include "config/fields.h"

namespace scalecalc {

inline constexpr Range kWidthRange{1, 1e7};  // no published dimension comes near ten million
inline constexpr Range kOptionalWidth{0, 1e7};
inline constexpr Range kLayerCount{1, 10'000};
inline constexpr Range kOptionalLayerCount{0, 10'000};
inline constexpr Range kOptionalExperts{0, 1e5};
inline constexpr Range kSharedExperts{0, 1e4};
inline constexpr Range kMtpLayers{1, 16};

}  // namespace scalecalc
