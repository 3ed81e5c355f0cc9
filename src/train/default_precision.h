// The precision of a training question that names none: as the model was trained, if the chip has rates for it and the
// stack trains in it; otherwise one that both have.
#pragma once

#include <optional>
#include <string>

#include "train/resolve.h"

namespace scalecalc {

/// Whether the chip publishes the rates a recipe computes at, and its list of those it does.
bool has_rates(const HardwareSpec& hw, const Precision& precision);
std::string rates_listed(const HardwareSpec& hw);
/// Whether a release trains in the precision asked for, or in one of those people train in, on this model and chip.
bool trains_in(ResolvedQuestion question, const StackRelease& release, const std::optional<std::string>& asked);
/// Where a field of the model's training comes from, as assumptions say it.
std::string trained_source(const TrainingFacts& facts, const char* field);
/// Sets the workload's precision and says so. Needs model, hw and launcher. UserError if the chip has no rate to train
/// at.
void assume_precision(ResolvedQuestion& out);
/// Where scales of 8-bit operands come from: as asked, or as the stack has it, which is said. Needs the workload's
/// runtime. UserError if one is asked and no operand is in fp8.
void choose_fp8_recipe(std::optional<Scaling> asked, ResolvedQuestion& out);

}  // namespace scalecalc
