// Which predictions err alike, and what that adds to the band of a step.
#pragma once

#include <cstdint>

#include "spec/hardware_spec.h"
#include "spec/model_spec.h"

namespace scalecalc {

/// From so many chips, and so many tokens a sequence, on; up to so large a d_model.
inline constexpr std::int64_t kLargeScaleChips = 512;
inline constexpr std::int64_t kLongContextTokens = 16'384;
inline constexpr std::int64_t kSmallStepModel = 2'048;

/// The first of: large scale, long context, MoE, small steps, dense.
RunClass run_class(const ModelSpec& model, std::int64_t seq, std::int64_t chips);

/// Seconds.
struct StepBand {
  double low = 0, high = 0;
};

/// `corners`: the step with every coefficient moved by its error, towards speed and away from it. How far they lie from
/// the step and the model's error are independent, so their squares add; of the logarithm.
StepBand step_band(const StepBand& corners, double step, double model_error);

}  // namespace scalecalc
