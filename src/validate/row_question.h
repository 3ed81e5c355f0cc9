// One measured run as a question to the engine: its model, its machine, its layout pinned.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/catalog.h"
#include "cost/layout.h"
#include "train/resolve.h"
#include "validate/measurement.h"
#include "validate/row_model.h"

namespace scalecalc {

struct RowQuestion {
  TrainQuestion asked;  ///< what the row says; the search chooses what it leaves open of the layout
  ResolvedQuestion resolved;
  std::vector<std::string> chosen;          ///< dimensions that the row leaves to the search
  StackBasis basis = StackBasis::kDefault;  ///< of the coefficients
};

/// Sets every row's stack from its framework, or if it names none from what its source is called and where it was
/// published (stack_of_source), and its class of run; what the catalog does not know leaves them empty.
void name_stacks(std::vector<Measurement>& rows, const Catalog& catalog);

/// The row's chip. NotPredicted for one that is not known, or that does not publish what is needed (and, where the row
/// has several, its network).
HardwareSpec chip_of(const MeasuredFacts& row, const Catalog& catalog, const std::vector<std::string>& set,
                     std::initializer_list<std::string_view> needs);

/// The precision the engine knows it by: "mxfp8" and "fp8-cs" are fp8.
std::string precision_word(const Measurement& row);

/// `set` as --set of hardware fields; coefficients of `row.stack` where the chip has any. NotPredicted for a row that
/// `train` would refuse.
RowQuestion row_question(const Measurement& row, const Catalog& catalog, const std::vector<std::string>& set,
                         bool ideal);

}  // namespace scalecalc
