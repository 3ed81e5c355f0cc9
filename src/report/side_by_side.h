// Few records of many figures: one line per figure, one column per record.
#pragma once

#include <vector>

#include "report/output.h"

namespace scalecalc {

/// Columns are named by the records' first figures; headings gather the figures that follow, and the records inside a
/// figure are spelled out below it, under its label and their own names. A line stands if any record has the figure.
Table side_by_side(const std::vector<Record>& records);

}  // namespace scalecalc
