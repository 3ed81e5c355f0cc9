// Predicted against measured, of training or of serving, as a sheet.
#pragma once

#include <string>
#include <vector>

#include "report/sheet.h"
#include "validate/serving_validation.h"
#include "validate/training_validation.h"

namespace scalecalc {

struct ValidateView {
  std::vector<std::string> files;
  std::size_t worst = 0;  ///< list only so many rows, the largest errors first; 0 = all in the files' order
};

/// Of Training and of Serving.
template <class Kind>
Sheet validate_sheet(const ValidationOf<Kind>& validation, const ValidateQuestionOf<Kind>& question,
                     const ValidateView& view);

}  // namespace scalecalc
