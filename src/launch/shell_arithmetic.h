// $((...)) of a script: sums and products of whole numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace scalecalc {

/// Nothing for what is more than that.
std::optional<std::int64_t> arithmetic_value(std::string_view text);

}  // namespace scalecalc
