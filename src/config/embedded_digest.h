// What the built-in catalog's files hash to, worked out when the program is built: 2 MB a study would read for it.
#pragma once

#include <string_view>

namespace scalecalc {

/// SHA-256 in hexadecimal of every file's path, size and text, in the order of embedded_catalog().
std::string_view embedded_catalog_sha256();

}  // namespace scalecalc
