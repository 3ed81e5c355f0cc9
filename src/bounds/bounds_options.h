// Flags of `scalecalc bounds` to a question.
#pragma once

#include <span>

#include "bounds/bounds.h"
#include "cli/commands.h"
#include "cli/flag_reader.h"
#include "config/catalog.h"

namespace scalecalc::cli {

std::span<const Flag> bounds_flags();

/// One for each BoundScope.
std::span<const Mode> bounds_modes();
std::optional<std::size_t> bounds_mode(const Arguments& arguments);

/// UserError listing every wrong flag; then the model and the hardware are loaded.
BoundsQuestion bounds_question(const Arguments& arguments, const Catalog& catalog);

/// The flags about serving; the catalog has the draft of --speculative. Problems stay with the reader.
BoundServing read_bounds_serving(FlagReader& reader, const Catalog& catalog);

}  // namespace scalecalc::cli
