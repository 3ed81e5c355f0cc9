// The front of tokens/s of a chip against tokens/s of a user, or of cost against it.
#pragma once

#include <vector>

#include "serve/serve_question.h"

namespace scalecalc {

/// Marks the points that no other beats in both. Cost counts if it is the objective and any point has a price; those
/// without one are then not marked.
void mark_pareto(std::vector<ServePoint>& points, ServeObjective objective);

}  // namespace scalecalc
