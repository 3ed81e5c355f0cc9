// `scalecalc model design`, an action of the model command with flags of its own.
#pragma once

#include <span>

#include "base/diagnostic.h"
#include "cli/environment.h"
#include "cli/options.h"

namespace scalecalc::cli {

/// Its flags but those that `model MODEL` has too: --seq, --batch-tokens, --set, --explain.
std::span<const Flag> design_flags();

ExitCode run_model_design(const Arguments& arguments, Environment& env);

}  // namespace scalecalc::cli
