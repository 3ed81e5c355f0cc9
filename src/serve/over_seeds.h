// What the means of simulations are certain to: over several seeds, or over the parts of one.
#pragma once

#include <optional>
#include <vector>

#include "serve/traffic.h"

namespace scalecalc {

/// Every figure's mean over runs of as many requests on as many servers; counts are added up.
QueueFigures mean_of(const std::vector<QueueFigures>& runs);
/// What a mean over so many runs is certain to, at 95 %.
MeanErrors errors_of(const std::vector<QueueFigures>& runs);
/// The same of one run at a rate: its requests in the order they came are cut into parts, whose means hardly depend on
/// each other where a part is long beside a request. Of throughput, which is the rate's, there is none. Nothing of
/// fewer requests than twenty a part.
std::optional<MeanErrors> errors_of(const QueueResult& run);

}  // namespace scalecalc
