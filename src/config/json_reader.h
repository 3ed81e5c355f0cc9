// JSON text to the same tree as YAML. A file that claims to be JSON is held to the JSON grammar (RFC 8259), which the
// YAML reader is not: it takes comments, single quotes, trailing commas and bare words.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/limits.h"
#include "config/node.h"

namespace scalecalc {

/// Parses exactly one document. Numbers and words stay as written and are not `quoted`; NaN, Infinity and -Infinity,
/// which Python's json module writes, are words too. A map or list stands at its opening bracket. UserError (exit 2)
/// with file:line:column for: everything the grammar forbids, duplicate keys, lone surrogates, nesting deeper than
/// limits::kTreeLevels,
/// more than `most_nodes` nodes.
ConfigNode read_json(std::string_view text, const std::string& file_name,
                     std::size_t most_nodes = limits::kDocumentNodes);

/// Whether a text without a file name to tell (standard input) is JSON: it opens a map with a quoted key or closes it.
bool looks_like_json(std::string_view text);

}  // namespace scalecalc
