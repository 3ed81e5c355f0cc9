// The operations of one engine step on one chip, for a picture of them under the chip's roofs.
#pragma once

#include <string_view>
#include <vector>

#include "serve/serving_cost.h"

namespace scalecalc {

/// One of a layer; of how many layers (times the parts that a step is cut into).
struct ServeOperation {
  std::string_view name;
  double layers = 1;
  double flops = 0, bytes = 0, time_s = 0;
};

/// Their times, each of all its layers, sum to the step's local().
std::vector<ServeOperation> step_operations(const StepTerms<double>& terms, const StepRows<double>& rows);

/// The rows of a step as one chip of the layout has them.
StepRows<double> rows_of(const ServeStep& step, const ServeLayout& layout);

}  // namespace scalecalc
