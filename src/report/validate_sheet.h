// Predicted against measured as a sheet.
#pragma once

#include <string>
#include <vector>

#include "report/sheet.h"
#include "validate/validation.h"

namespace scalecalc {

struct ValidateView {
  std::vector<std::string> files;
  std::size_t worst = 0;  ///< list only so many rows, the largest errors first; 0 = all in the files' order
};

Sheet validate_sheet(const Validation& validation, const ValidateQuestion& question, const ValidateView& view);

}  // namespace scalecalc
