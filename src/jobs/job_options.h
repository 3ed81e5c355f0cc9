// The flags of `scalecalc distill` and `scalecalc rl`, those of train and serve among them, and the questions they
// make.
#pragma once

#include <span>

#include "cli/commands.h"
#include "distill/distill.h"
#include "rl/rl.h"

namespace scalecalc::cli {

std::span<const Flag> distill_flags();
std::span<const Flag> rl_flags();

/// One for each DistillLoss.
std::span<const Mode> distill_modes();
std::optional<std::size_t> distill_mode(const Arguments& arguments);

/// UserError with every problem found.
DistillQuestion distill_question(const Arguments& arguments);
RlQuestion rl_question(const Arguments& arguments);

}  // namespace scalecalc::cli
