// A fit of serving coefficients as a sheet.
#pragma once

#include <string>
#include <vector>

#include "calibrate/serve_calibration.h"
#include "report/sheet.h"

namespace scalecalc {

Sheet serve_calibrate_sheet(const ServeCalibration& calibration, const std::vector<std::string>& files);

}  // namespace scalecalc
