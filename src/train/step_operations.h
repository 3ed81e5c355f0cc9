// The operations of a plan's forward pass on one chip, for a picture of them under the chip's roofs.
#pragma once

#include <string>
#include <vector>

#include "train/question.h"

namespace scalecalc {

struct StepOperation {
  std::string name;  ///< "MoE layer: router"
  double flops = 0, bytes = 0;
  double time_s = 0;  ///< of a microbatch
};

/// Those that compute: each kind of layer's, and the head's.
std::vector<StepOperation> step_operations(const TrainAnswer& answer, const Plan& plan);

}  // namespace scalecalc
