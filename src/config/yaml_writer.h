// A tree as YAML text that reads back to the same tree.
#pragma once

#include <string>

#include "config/node.h"

namespace scalecalc {

/// Block style, except for lists of texts and for maps and list items that fit on one line, which are written in
/// brackets. Texts are quoted where YAML would read them as something else. Ends with a newline; the root must be a
/// map.
std::string write_yaml(const ConfigNode& document);

}  // namespace scalecalc
