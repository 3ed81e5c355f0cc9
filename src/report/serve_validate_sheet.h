// Predicted against measured serving figures as a sheet.
#pragma once

#include "report/sheet.h"
#include "report/validate_sheet.h"
#include "validate/serve_validation.h"

namespace scalecalc {

Sheet serve_validate_sheet(const ServeValidation& validation, const ServeValidateQuestion& question,
                           const ValidateView& view);

}  // namespace scalecalc
