// A fit of efficiency coefficients, of training or of serving, as an output.
#pragma once

#include <string>
#include <vector>

#include "calibrate/serving_calibration.h"
#include "calibrate/training_calibration.h"
#include "report/output.h"

namespace scalecalc {

Output calibrate_output(const Calibration& calibration, const std::vector<std::string>& files);
Output calibrate_output(const ServeCalibration& calibration, const std::vector<std::string>& files);

/// By how much each coefficient moved.
Plot coefficients_plot(const Calibration& calibration);

}  // namespace scalecalc
