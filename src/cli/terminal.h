// What the two output streams can show, decided once.
#pragma once

#include <string_view>

#include "cli/environment.h"
#include "report/render.h"

namespace scalecalc::cli {

enum class ColorMode { kAuto, kAlways, kNever };

/// NO_COLOR with any value but the empty one wins over everything except the flag (no-color.org).
bool wants_colour(const Environment& env, ColorMode mode, bool is_tty);

/// Width: COLUMNS, then the terminal's own, then 80; of a pipe COLUMNS, else 0, as wide as the text.
TextOptions text_options(const Environment& env, ColorMode mode);

/// The process itself: its streams and variables.
Environment process_environment(std::ostream& out, std::ostream& err);

}  // namespace scalecalc::cli
