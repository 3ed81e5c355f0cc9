// YAML text to ConfigNode through yaml-cpp's event API (its Load loops on "," and drops duplicate keys in silence).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/limits.h"
#include "config/node.h"

namespace scalecalc {

/// Parses exactly one document. UserError (exit 2) with file:line:column for: syntax errors, a tab used as
/// indentation, duplicate keys, anchors/aliases to anything but scalars, merge keys, custom tags, nesting deeper than
/// 32, more than `most_nodes` nodes (a YAML bomb), more than one document, an empty document, a truncated one (unclosed
/// quote or bracket).
ConfigNode read_yaml(std::string_view text, const std::string& file_name,
                     std::size_t most_nodes = limits::kDocumentNodes);

}  // namespace scalecalc
