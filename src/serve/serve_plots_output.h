// The pictures of a serving answer: its Pareto front, and what a page shows of its points.
#pragma once

#include <vector>

#include "report/plot.h"
#include "serve/serve_question.h"

namespace scalecalc {

/// Throughput of a chip against speed for a user.
Plot serve_plot(const ServeAnswer& answer);
/// And of some of its points the decode step and a chip's memory by part, of the best its operations under the chip's
/// roofs and where it lies.
std::vector<Plot> serve_page_plots(const ServeAnswer& answer);

}  // namespace scalecalc
