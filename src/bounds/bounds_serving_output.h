// The serving side of `scalecalc bounds` in its Output: what was asked, and the decoding curve.
#pragma once

#include "bounds/bounds.h"
#include "report/output.h"

namespace scalecalc {

/// What was asked about serving, formats filled in: members "serving.*" of the query. Nothing if only training was
/// asked.
void add_serving_query(Record& query, const BoundsQuestion& question);

/// Adds `points` (the step) and `requests` (what follows for requests), each if it has anything to say.
void add_serving_points(Output& output, const BoundsAnswer& answer);

}  // namespace scalecalc
