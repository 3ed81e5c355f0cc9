// Pictures of an answer as text: lines of braille dots, or of ASCII where the stream shows no more.
#pragma once

#include <string>

#include "report/output.h"
#include "report/render.h"

namespace scalecalc {

/// No line is wider than the options' columns, from 30 on; of none 80, and never more than 100. Without data: what the
/// answer says instead.
std::string render_plots(const Output& output, const TextOptions& options);

}  // namespace scalecalc
