// Layouts, causes and reasons in words, for every command that shows a training plan.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "train/question.h"

namespace scalecalc {

/// "fsdp 1120, tp 4+sp, cp 2": the degrees above one.
std::string degrees_text(const Layout& layout);
/// "mb 1 x 4, remat selective, zero 3": what else tells two layouts apart.
std::string recipe_text(const Layout& layout);
/// Both: "fsdp 1120, tp 4+sp; mb 1 x 4, remat selective, zero 3".
std::string layout_words(const Layout& layout);
/// "--fix dp=1,fsdp=1120,...": the flag that leaves exactly this layout, or all that differ in one dimension.
FlagChange fix_flag(const Layout& layout, std::string_view without = "");
std::string fix_text(const Layout& layout);

/// "plan 3, recommended", "plan 2": the one shown in detail.
std::string detailed_name(const TrainAnswer& answer);
/// Its place in the ranking; nothing for a recommended plan that is not among those shown.
std::optional<double> detailed_rank(const TrainAnswer& answer);

/// "Training", or with which adapters a model is fine-tuned.
std::string training_words(const Workload& workload);
/// "batch 4.19M tokens, sequences of 8,192, bf16, adam": what a step does, in titles.
std::string workload_words(const Workload& workload);

/// A cause of the step: its key and what people call it.
struct StepCause {
  std::string_view key;
  std::string_view words;
};
/// All of them, in the order of the contract.
std::span<const StepCause> step_causes();

/// A cause of the step in words ("tensor-parallel communication"); a name that is none stays as it is.
std::string cause_words(std::string_view key);

/// Key of a Reject in JSON, in the order of the enum: "batch_small".
std::string_view key_of(Reject reason);

/// The sum of figures with names.
double sum_of(const std::vector<std::pair<std::string, double>>& figures);

/// "software: torchtitan 2026-08 (default; --stack NAME chooses another)", or what was typed.
std::string software_text(std::string_view software, const TrainQuestion& question);
/// Flags of the assumptions that decide about any training job.
std::vector<std::string> deciding_of_training();

}  // namespace scalecalc
