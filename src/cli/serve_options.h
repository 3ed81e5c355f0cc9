// The flags of `scalecalc serve` and the question they make.
#pragma once

#include <span>

#include "cli/options.h"
#include "serve/serve_question.h"

namespace scalecalc::cli {

std::span<const Flag> serve_flags();

/// UserError with every problem found.
ServeQuestion serve_question(const Arguments& arguments);

}  // namespace scalecalc::cli
