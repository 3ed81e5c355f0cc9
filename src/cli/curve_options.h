// `scalecalc train` over several counts of chips: --chips as a range, and --pareto.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "cli/flag_reader.h"
#include "cli/options.h"
#include "train/curve.h"

namespace scalecalc::cli {

inline constexpr Flag kParetoFlag{
    "--pareto", 0, FlagKind::kSwitch, "", "the plans that no other beats in both time and cost, instead of a ranking",
    ""};

/// Whether a value of --chips is several counts: 256..16384*2, or 64,512. A number with grouping commas is none.
bool is_sweep(std::string_view chips);

/// The counts of such a value, ascending; empty, with problems, if it is wrong.
std::vector<std::int64_t> chip_counts(FlagReader& reader, std::string_view text, CountRange range);

/// Problems of flags that have no meaning for a curve or a front.
void check_curve_flags(FlagReader& reader, const Arguments& arguments);

/// The curve or the front asked for; nothing if neither is. UserError as train_question().
std::optional<CurveQuestion> curve_question(const Arguments& arguments);

}  // namespace scalecalc::cli
