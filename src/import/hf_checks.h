// Every key of a config.json is read, known to change nothing here, or reported.
#pragma once

#include "import/hf_families.h"

namespace scalecalc {

/// Keys that change weights and that the family's reader did not ask for are problems; keys of no known meaning are a
/// warning. After the family's reading.
void report_unread_keys(HfReading& r);

}  // namespace scalecalc
