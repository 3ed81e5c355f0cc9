// Rows of a study as people read them: what was asked, how it went and a few figures.
#pragma once

#include <string>
#include <vector>

#include "batch/row.h"
#include "report/plot.h"
#include "report/report.h"

namespace scalecalc {

class ResultsTable {
 public:
  /// `figures`: of the answer's columns these alone, in this order; those that no row has are left out.
  ResultsTable(std::string title, const std::vector<RowColumn>& columns, const std::vector<std::string>& figures);

  void add(const Json& row);
  /// Columns that say the same in every row move above the table.
  Report report() &&;
  /// The first figures over the first input that takes several numbers, a curve for each choice of the others.
  std::vector<Plot> plots() const;

 private:
  Report report_;
};

}  // namespace scalecalc
