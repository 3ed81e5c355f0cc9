// The flags of `scalecalc compare`: its own, and those of train and serve that say what the job is.
#pragma once

#include <optional>
#include <span>

#include "cli/options.h"
#include "compare/serve_comparison.h"
#include "compare/train_comparison.h"

namespace scalecalc::cli {

std::span<const Flag> compare_flags();

/// One of the two is there.
struct CompareAsked {
  std::optional<TrainCompareQuestion> train;
  std::optional<ServeCompareQuestion> serve;
};

/// UserError with every problem found.
CompareAsked compare_asked(const Arguments& arguments);

}  // namespace scalecalc::cli
