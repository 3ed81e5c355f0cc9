// What a comparison needs of each system before it is asked: its file, its prices; and the assumptions of several
// answers as one list.
#pragma once

#include <string>
#include <vector>

#include "base/explained.h"
#include "compare/compared.h"
#include "config/catalog.h"

namespace scalecalc {

/// The file with --set hw.… applied. UserError as the catalog and the loader say.
HardwareSpec hardware_compared(const std::string& name, const std::vector<std::string>& sets, const Catalog& catalog);

/// The prices it is asked at: the one the user gave, else those of the file that the filter allows.
std::vector<Price> offers_of(const HardwareSpec& hw, const SystemAsked& asked, const PriceFilter& filter);

/// One list of all; what not every system assumes is said under the names of those that do.
std::vector<Assumption> shared_assumptions(const std::vector<std::string>& names,
                                           const std::vector<std::vector<Assumption>>& each);

/// What a row's chips cost, or that nobody says so.
Assumption price_assumption(const ComparedSystem& row);
/// What is not counted of chips that can be taken back, once for all such rows; nothing if there are none.
/// `failures`: the flag that says how often chips are lost, given or not; empty: the task has none.
std::optional<Assumption> preemption_assumption(const std::vector<const ComparedSystem*>& rows,
                                                std::string_view failures, bool counted);

}  // namespace scalecalc
