// One simulation over several seeds.
#pragma once

#include <vector>

#include "serve/traffic.h"

namespace scalecalc {

/// Every figure's mean over runs of as many requests on as many servers; counts are added up.
QueueFigures mean_of(const std::vector<QueueFigures>& runs);
/// What a mean over so many runs is certain to, at 95 %.
SeedErrors errors_of(const std::vector<QueueFigures>& runs);

}  // namespace scalecalc
