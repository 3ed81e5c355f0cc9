// What the build has deflated into the program (zlib), whole again.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace scalecalc {

/// The `size` bytes that `bytes` were made of. InternalError if they are not whole.
std::string inflated(std::string_view bytes, std::size_t size);

}  // namespace scalecalc
