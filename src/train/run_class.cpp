// Assigns a prediction to a class of measured runs, and widens the band of its step by that class's error.
#include "train/run_class.h"

#include <cmath>

namespace scalecalc {

RunClass run_class(const ModelSpec& model, std::int64_t seq, std::int64_t chips) {
  if (chips >= kLargeScaleChips) return RunClass::kLargeScale;
  if (seq >= kLongContextTokens) return RunClass::kLongContext;
  if (model.moe) return RunClass::kMoe;
  return model.d_model <= kSmallStepModel ? RunClass::kSmallSteps : RunClass::kDense;
}

StepBand step_band(const StepBand& corners, double step, double model_error) {
  if (model_error == 0) return corners;
  const auto reach = [&](double corner) { return std::hypot(std::log(corner / step), model_error); };
  return {step * std::exp(-reach(corners.low)), step * std::exp(reach(corners.high))};
}

}  // namespace scalecalc
