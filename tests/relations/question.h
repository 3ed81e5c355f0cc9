// Random questions by the grammar of the command line: a base that has an answer, and flags of its command's own table.
#pragma once

#include <string>
#include <vector>

#include "fuzz/choices.h"
#include "spec/hardware_spec.h"

namespace scalecalc::relations {

using Words = std::vector<std::string>;

/// Returns a chip of the catalog, which may have no network and leave figures out.
const HardwareSpec& chip_named(const std::string& name);

/// A question of any command that answers at once. Some are wrong: a name that does not exist, a value out of range.
Words random_question(fuzz::Choices& choose);

/// One that has an answer, of a command whose numbers depend on the chip's rates: `words[0]` says which.
Words random_timing(fuzz::Choices& choose);

}  // namespace scalecalc::relations
