// `extends:` of hardware, models and stacks: an in-house variant is the lines that differ.
#pragma once

#include "config/node.h"

namespace scalecalc {

/// `own` over the document it extends. Maps are merged by key; lists whose items have names (network tiers) by name,
/// names that the base has not behind them; everything else of `own` replaces. The base's name and aliases stay its
/// own; its title is taken over with the variant's name behind it. Every value keeps its place in the file it is from.
ConfigNode extended(ConfigNode base, const ConfigNode& own);

}  // namespace scalecalc
