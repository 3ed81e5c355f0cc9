// Whether the batch is large enough to keep the chips busy, and which one would be.
#pragma once

#include <functional>
#include <optional>

#include "plan/request.h"

namespace scalecalc {

/// Chips are busy while compute and memory-bound work take at least this share of the step.
constexpr double kBusyShare = 0.5;

/// If `fastest` has fewer sequences than chips and leaves them waiting: the smallest batch in tokens, trying doublings,
/// whose fastest plan keeps its chips busy. Nothing if the chips are busy or no batch tried makes them so.
std::optional<double> batch_to_fill(const PlanRequest& request, const Plan& fastest,
                                    const std::function<bool()>& stop = {});

}  // namespace scalecalc
