// --hw, --price, --cloud, --price-kind and --price-date of a comparison: systems, and what their chips cost.
#pragma once

#include <vector>

#include "cli/flag_reader.h"
#include "compare/compared.h"

namespace scalecalc::cli {

/// The systems of --hw with the prices of --price.
std::vector<SystemAsked> compared_systems(FlagReader& reader, const Arguments& arguments);

/// Which of the files' prices count.
PriceFilter price_filter(FlagReader& reader, const Arguments& arguments);

}  // namespace scalecalc::cli
