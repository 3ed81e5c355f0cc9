// `scalecalc train` over several counts of chips: from the question to the outputs.
#pragma once

#include "base/diagnostic.h"
#include "cli/environment.h"
#include "cli/options.h"
#include "train/curve.h"

namespace scalecalc::cli {

ExitCode run_train_curve(const CurveQuestion& question, const Arguments& arguments, Environment& env);

}  // namespace scalecalc::cli
