// A fit of efficiency coefficients, of training or of serving, as a sheet.
#pragma once

#include <string>
#include <vector>

#include "calibrate/serving_calibration.h"
#include "calibrate/training_calibration.h"
#include "report/sheet.h"

namespace scalecalc {

Sheet calibrate_sheet(const Calibration& calibration, const std::vector<std::string>& files);
Sheet calibrate_sheet(const ServeCalibration& calibration, const std::vector<std::string>& files);

}  // namespace scalecalc
