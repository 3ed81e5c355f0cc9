// Flags of `scalecalc bounds` to a question.
#pragma once

#include <span>

#include "cli/options.h"
#include "config/catalog.h"
#include "rules/bounds.h"

namespace scalecalc::cli {

std::span<const Flag> bounds_flags();

/// UserError listing every wrong flag; then the model and the hardware are loaded.
BoundsQuestion bounds_question(const Arguments& arguments, const Catalog& catalog);

}  // namespace scalecalc::cli
