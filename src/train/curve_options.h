// `scalecalc train` over several counts of chips: --chips as a range, and --pareto.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "cli/commands.h"
#include "cli/flag_reader.h"
#include "train/curve.h"

namespace scalecalc::cli {

/// Whether a value of --chips is several counts: 256..16384*2, or 64,512. A number with grouping commas is none.
bool is_sweep(std::string_view chips);

/// The counts of such a value, ascending; empty, with problems, if it is wrong.
std::vector<std::int64_t> chip_counts(FlagReader& reader, std::string_view text, CountRange range);

/// One for each TrainMode.
std::span<const Mode> train_modes();
std::optional<std::size_t> train_mode(const Arguments& arguments);

/// That one shape was given for several counts.
void check_curve_flags(FlagReader& reader, const Arguments& arguments);

/// The curve or the front asked for; nothing if neither is. UserError as train_question().
std::optional<CurveQuestion> curve_question(const Arguments& arguments);

}  // namespace scalecalc::cli
