// A parsed document as a short text, so that the built-in catalog is parsed when the program is built and not each time
// it runs: yaml-cpp takes most of a millisecond for one file, and a list of all chips reads a hundred.
#pragma once

#include <string>
#include <string_view>

#include "config/node.h"

namespace scalecalc {

/// The document that read_yaml made of `text`, without its file name and what stands in the text, which unpack() is
/// given again.
std::string pack(const ConfigNode& document, std::string_view text);

/// The document that pack() took, as if read_yaml had read `text` from `file`. InternalError if `packed` is not whole.
ConfigNode unpack(std::string_view packed, std::string_view text, const std::string& file);

}  // namespace scalecalc
