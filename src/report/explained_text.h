// Assumptions and workings as people read them, the same below every command's table.
#pragma once

#include <string>
#include <vector>

#include "base/explained.h"
#include "report/report.h"

namespace scalecalc {

/// The section "Assumed": a line each, with its source and the flag that changes it.
Section assumed_section(const std::vector<Assumption>& assumptions);

/// name = formula = numbers = value [source], a line each, then the remarks.
Section explained_section(const ExplainSection& part, std::string title);

}  // namespace scalecalc
