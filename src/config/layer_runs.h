// A list written as runs, `[{repeat: 3, kinds: [a]}, {repeat: 29, kinds: [b, c]}]`, stretched to another length.
#pragma once

#include <cstdint>
#include <optional>

#include "config/node.h"

namespace scalecalc {

/// Entries a list of runs stands for: repeat x kinds, summed. Nothing if `node` is not such a list, or if a repeat is
/// not a count: whoever reads the document says what is wrong with it.
std::optional<std::int64_t> run_length(const ConfigNode& node);

/// Changes `repeat` of the longest run (the first of equals) so that `list` stands for `total` entries; the new value
/// stands at `where`. UserError at `where` if no repeat of one or more gives that total, naming the nearest that can.
/// `list` must have a run_length; `name` is for the message.
void set_run_length(ConfigNode& list, std::int64_t total, std::string_view name, const SourceSpan& where);

}  // namespace scalecalc
