// Predicted against measured, of training, serving or RL, as an output.
#pragma once

#include <string>
#include <vector>

#include "report/output.h"
#include "validate/rl_validation.h"
#include "validate/serving_validation.h"
#include "validate/training_validation.h"

namespace scalecalc {

struct ValidateView {
  std::vector<std::string> files;
  std::size_t worst = 0;  ///< list only so many rows, the largest errors first; 0 = all in the files' order
};

/// Of Training, of Serving and of RlSteps.
template <class Kind>
Output validate_output(const ValidationOf<Kind>& validation, const ValidateQuestionOf<Kind>& question,
                       const ValidateView& view);

/// Each row's prediction over its measurement, and how many rows err by how much.
template <class Kind>
std::vector<Plot> validation_plots(const ValidationOf<Kind>& validation);

}  // namespace scalecalc
