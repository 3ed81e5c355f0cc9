// XLA's own classes of operations, and what they are to us.
#pragma once

#include <optional>
#include <string_view>

#include "profile/recording.h"

namespace scalecalc {

/// Of `hlo_category`: on TPUs a matrix product is a convolution. Nothing for one we do not know, or none.
std::optional<DeviceWork> work_of_hlo_category(std::string_view category);

}  // namespace scalecalc
