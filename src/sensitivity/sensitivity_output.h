// The answer of `scalecalc sensitivity` as an Output.
#pragma once

#include "report/output.h"
#include "sensitivity/sensitivity.h"
#include "sensitivity/serving.h"

namespace scalecalc {

Output sensitivity_output(const SensitivityAnswer& answer);
Output sensitivity_output(const ServeSensitivity& answer);

// Its parts, one file.
Block elasticity_block(const SensitivityAnswer& answer);
Block rate_change_block(const SensitivityAnswer& answer);
Block balance_block(const SensitivityAnswer& answer);
Block codesign_block(const Codesign& sweep);

/// As which figure a quantity is written; a number where it is none of a report's.
Format format_of(const Dim& unit);
/// A quantity as people read it: "1.23 TB/s".
std::string quantity_text(double value, const Dim& unit);

/// What each input does to the step, that of the widest swing first.
Plot tornado_plot(const std::vector<InputElasticity>& elasticities, double swing);
/// The tornado of the inputs, and the curves of --set ranges.
std::vector<Plot> sensitivity_plots(const SensitivityAnswer& answer);

}  // namespace scalecalc
