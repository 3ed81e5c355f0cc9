// The flags of `scalecalc train` and the question they make.
#pragma once

#include <span>

#include "cli/options.h"
#include "train/question.h"

namespace scalecalc::cli {

std::span<const Flag> train_flags();

/// UserError with every problem found, in the order of the flags in help.
TrainQuestion train_question(const Arguments& arguments);

}  // namespace scalecalc::cli
