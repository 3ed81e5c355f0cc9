// The flags of `scalecalc train` and the question they make.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "cli/flag_reader.h"
#include "cli/shared_flags.h"
#include "train/question.h"
#include "train/resolve.h"

namespace scalecalc::cli {

/// Ways to ask train: one count of chips; several, which draw a curve; the front of one count.
enum class TrainMode { kRanking, kCurve, kFront };

std::span<const Flag> train_flags();

/// UserError with every problem found. Of several counts of chips the largest is taken.
TrainQuestion train_question(const Arguments& arguments);
/// UserError for flags about what is not known of this job: the whole run without its tokens, energy without watts.
void refuse_meaningless(const Arguments& arguments, const ResolvedQuestion& job);
/// Bits of FineTune::targets for the words of --lora-targets; nothing where a word is none of the flag's.
std::optional<std::uint8_t> lora_targets_of(const std::string& text);

/// With what was asked, whether of one count or of several.
Output with_train_query(Output output, const Arguments& arguments, const TrainAnswer& answer);
/// For another command that has these flags or some of them; problems stay with the reader. Without what only train
/// has: the whole run (run_options.h), --why-not and --from.
TrainQuestion read_train_question(FlagReader& reader, const Arguments& arguments);
/// The same without the machine: --chips is the command's own to read.
TrainQuestion read_train_job(FlagReader& reader, const Arguments& arguments);

}  // namespace scalecalc::cli
