// Where parallel dimensions lie, for people as text and for files as axes too.
#pragma once

#include <vector>

#include "network/placement.h"
#include "report/output.h"

namespace scalecalc {

/// "placement.tp": "x:4/16", for each group.
void add_placement(const std::vector<PlacedGroup>& groups, std::string_view label_after, std::vector<Figure>& out);
/// JSON's "placement_axes": of each group the axes or tiers with its members on them.
Figure placement_axes(const std::vector<PlacedGroup>& groups);

}  // namespace scalecalc
