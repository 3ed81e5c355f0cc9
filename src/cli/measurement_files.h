// What validate and calibrate share: the files and which of their rows count.
#pragma once

#include <string>
#include <vector>

#include "cli/flag_reader.h"
#include "cli/options.h"
#include "validate/serve_validation.h"
#include "validate/validation.h"

namespace scalecalc::cli {

inline constexpr Flag kOnlyFlag{
    "--only",
    0,
    FlagKind::kRepeatable,
    "KEY=NAME,...",
    "only rows of this subset, chip, family, framework, stack, precision, group (of sources) or id; of serving: chip, "
    "stack, phase, batch, model, group or id",
    "chip=h100-sxm"};

std::vector<RowFilter> row_filters(FlagReader& reader, const Arguments& arguments);
/// The same for rows of serving.
std::vector<RowFilter> serve_row_filters(FlagReader& reader, const Arguments& arguments);
/// The measurements/*.yaml of the config directories that hold training runs, sorted within each. UserError if there
/// are none.
std::vector<std::string> shipped_measurement_files(const std::vector<std::string>& directories);
std::vector<Measurement> read_measurement_files(const std::vector<std::string>& files);
/// Whether the files hold rows of serving. UserError if some do and others do not.
bool are_serving(const std::vector<std::string>& files);
std::vector<ServeMeasurement> read_serve_measurement_files(const std::vector<std::string>& files);

}  // namespace scalecalc::cli
