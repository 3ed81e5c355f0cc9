// The flag that chooses whose coefficients a question is answered with.
#pragma once

#include "cli/options.h"

namespace scalecalc::cli {

inline constexpr Flag kStackFlag{
    "--stack",
    0,
    FlagKind::kValue,
    "NAME",
    "software stack whose coefficients to use, or a framework of it (default: the chip's usual one)",
    "maxtext"};

}  // namespace scalecalc::cli
