// A minimum of a function of a few bounded variables, without derivatives.
#pragma once

#include <functional>
#include <vector>

#include "base/stop.h"

namespace scalecalc {

struct Bounds {
  std::vector<double> low, high;
};

/// Where `f` is least, by BOBYQA (Powell 2009) from `start` with steps of about one half; deterministic. `f` must be
/// finite within the bounds. Asked to end: the best until then.
std::vector<double> minimize(const std::function<double(const std::vector<double>&)>& f, std::vector<double> start,
                             const Bounds& bounds, const Stop& stop = {});

}  // namespace scalecalc
