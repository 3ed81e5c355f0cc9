// --fix tp=8,remat=full,... and --max tp=16,...: bounds on layout dimensions.
#pragma once

#include "cli/flag_reader.h"
#include "plan/request.h"

namespace scalecalc::cli {

/// A flag that pins one dimension whose values are few: "--remat" with "auto" and its values as words.
Flag layout_flag(std::string_view dimension, std::string_view help);

/// Reads the texts "tp=8,remat=full" of one filter into it; `flag` names their place in messages.
void read_layout_pins(FlagReader& reader, std::string_view flag, const std::vector<std::string>& texts,
                      LayoutFilter& filter);

/// Reads every `flag` ("--fix" or "--max") into `filter`. Words (remat, offload) can only be pinned.
void read_layout_filter(FlagReader& reader, const Arguments& arguments, std::string_view flag, LayoutFilter& filter);

/// --remat, --zero, --schedule, --cp-comm, --offload and --ep-overlap, after --fix; one that says otherwise is a
/// problem.
void read_layout_flags(FlagReader& reader, LayoutFilter& fix);

}  // namespace scalecalc::cli
