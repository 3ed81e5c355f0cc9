// The flags of `scalecalc compare`: its own, and those of train and serve that say what the job is.
#pragma once

#include <optional>
#include <span>

#include "cli/commands.h"
#include "compare/serve_comparison.h"
#include "compare/train_comparison.h"

namespace scalecalc::cli {

std::span<const Flag> compare_flags();
std::span<const Mode> compare_modes();
std::optional<std::size_t> compare_mode(const Arguments& arguments);

/// One of the two is there.
struct CompareAsked {
  std::optional<TrainCompareQuestion> train;
  std::optional<ServeCompareQuestion> serve;
};

/// UserError with every problem found.
CompareAsked compare_asked(const Arguments& arguments);

}  // namespace scalecalc::cli
