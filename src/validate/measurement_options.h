// What validate and calibrate share: the files and which of their rows count.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/flag_reader.h"
#include "cli/options.h"
#include "validate/kernel_measurement.h"
#include "validate/rl_validation.h"
#include "validate/serving_validation.h"
#include "validate/splits.h"
#include "validate/training_validation.h"

namespace scalecalc::cli {

inline constexpr Flag kOnlyFlag =
    text("--only", "KEY=NAME,...|SECTION",
         "only rows of this subset, class, chip, family, framework, stack, precision, group (of sources) or id; of "
         "serving: "
         "chip, stack, phase, batch, model, group or id; of RL: chip, model, policy, group or id; or of the text this "
         "section",
         "chip=h100-sxm")
        .repeatable();

/// "--half": all rows, or those of one half (configs/splits.yaml).
template <auto... kMembers>
constexpr Flag half_flag(std::string_view help) {
  return word<kMembers...>("--half", kRowHalfNames, help);
}

std::vector<RowFilter> row_filters(FlagReader& reader, const Arguments& arguments);
/// The same for rows of serving, and of RL.
std::vector<RowFilter> serve_row_filters(FlagReader& reader, const Arguments& arguments);
std::vector<RowFilter> rl_row_filters(FlagReader& reader, const Arguments& arguments);

struct MeasuredRows {
  std::vector<std::string> files;          ///< that were read
  std::string files_and_half;              ///< the same in words: "train.yaml, train-2.yaml (fit half)"
  std::vector<Measurement> rows;           ///< of training
  std::vector<ServeMeasurement> serving;   ///< nothing if there are rows of another kind
  std::vector<RlMeasurement> rl;           ///< nothing if there are rows of another kind
  std::vector<KernelMeasurement> kernels;  ///< and collectives, beside training runs or alone
};
/// The rows of the files (paths, or names of the catalog's sets; of nccl-tests their output as it is); of none, those
/// of the catalog's training runs that are not held out. Of `half` alone; where none is given, all rows of a user's
/// file and the fit half of a set that ships. UserError if files hold rows of different kinds, or none of the half.
MeasuredRows read_measurement_files(const std::vector<std::string>& files, std::optional<RowHalf> half,
                                    const Catalog& catalog);

/// The half that --half names; nothing if it is not given, or names none.
std::optional<RowHalf> asked_half(const Arguments& arguments);

}  // namespace scalecalc::cli
