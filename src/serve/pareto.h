// The front of tokens/s of a chip against tokens/s of a user.
#pragma once

#include <vector>

#include "serve/serve_question.h"

namespace scalecalc {

/// Marks the points that no other beats in both.
void mark_pareto(std::vector<ServePoint>& points);

}  // namespace scalecalc
