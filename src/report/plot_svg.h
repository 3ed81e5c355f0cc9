// Pictures of an answer for slides and print: one SVG 1.1 file, texts as texts, series told apart by dashes and shapes
// as well as by colour.
#pragma once

#include <string>

#include "report/output.h"

namespace scalecalc {

/// Well-formed for any text; a page as tall as its plots. Without data: what the answer says instead.
std::string render_svg(const Output& output);

}  // namespace scalecalc
