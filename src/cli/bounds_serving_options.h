// Flags of `scalecalc bounds` that only the serving rules read.
#pragma once

#include <span>

#include "cli/flag_reader.h"
#include "cli/options.h"
#include "config/catalog.h"
#include "rules/bounds.h"

namespace scalecalc::cli {

std::span<const Flag> bounds_serving_flags();

/// Problems go to `reader`. The draft model of --speculative is looked up in `catalog`: UserError if it is unknown.
BoundServing read_bounds_serving(FlagReader& reader, const Arguments& arguments, const Catalog& catalog);

}  // namespace scalecalc::cli
