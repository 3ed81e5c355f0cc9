// `scalecalc lint` of a server's launch file.
#pragma once

#include <string>

#include "cli/options.h"
#include "launch/launch_files_options.h"
#include "launch/lint_output.h"

namespace scalecalc::cli {

/// `model` as `serve` takes it; of `arguments` --hw, --chips, --stack and --set.
LintReport lint_serving(const LaunchInput& input, const std::string& model, const Arguments& arguments,
                        const Catalog& catalog, const Environment& env);

}  // namespace scalecalc::cli
