// A fit of efficiency coefficients as a sheet.
#pragma once

#include <string>
#include <vector>

#include "calibrate/calibration.h"
#include "report/sheet.h"

namespace scalecalc {

Sheet calibrate_sheet(const Calibration& calibration, const std::vector<std::string>& files);

}  // namespace scalecalc
