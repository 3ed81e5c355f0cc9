// The answer of `scalecalc sensitivity` as a Sheet.
#pragma once

#include "report/sheet.h"
#include "sensitivity/sensitivity.h"

namespace scalecalc {

Sheet sensitivity_sheet(const SensitivityAnswer& answer);

// Its parts, one file.
Block elasticity_block(const SensitivityAnswer& answer);
Block rate_change_block(const SensitivityAnswer& answer);
Block balance_block(const SensitivityAnswer& answer);
Block codesign_block(const Codesign& sweep);

/// A quantity as people read it: "1.23 TB/s".
std::string quantity_text(double value, const Dim& unit);

}  // namespace scalecalc
