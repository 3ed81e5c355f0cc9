// The flags of `scalecalc train` and the question they make.
#pragma once

#include <span>
#include <string_view>

#include "cli/flag_reader.h"
#include "cli/options.h"
#include "train/question.h"

namespace scalecalc::cli {

inline constexpr std::int64_t kMostChips = 16'777'216;  // what the engine answers in a second, and any machine today
inline constexpr CountRange kChipRange{1, kMostChips};

std::span<const Flag> train_flags();

/// UserError with every problem found, in the order of the flags in help. Of several counts of chips the largest is
/// taken.
TrainQuestion train_question(const Arguments& arguments);
/// The same for another command that takes these flags or some of them; problems stay with the reader.
/// Flags about the whole run are not among them (run_options.h).
TrainQuestion read_train_question(FlagReader& reader, const Arguments& arguments, std::string_view command);

}  // namespace scalecalc::cli
