// What validate and calibrate share: the files and which of their rows count.
#pragma once

#include <string>
#include <vector>

#include "cli/flag_reader.h"
#include "cli/options.h"
#include "validate/validation.h"

namespace scalecalc::cli {

inline constexpr Flag kOnlyFlag{
    "--only",
    0,
    FlagKind::kRepeatable,
    "KEY=NAME,...",
    "only rows of this subset, chip, family, framework, stack, precision, group (of sources) or id",
    "chip=h100-sxm"};

std::vector<RowFilter> row_filters(FlagReader& reader, const Arguments& arguments);
struct MeasurementFiles {
  std::vector<std::string> files;  ///< that were read
  std::vector<Measurement> rows;
};
/// The rows of the files; of none, those of the catalog's measurements.
MeasurementFiles read_measurement_files(const std::vector<std::string>& files, const Catalog& catalog);

}  // namespace scalecalc::cli
