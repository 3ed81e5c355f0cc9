// Makes the figures that say where each parallel dimension is placed.
#include "report/placement_figures.h"

#include "base/scalar.h"

namespace scalecalc {
namespace {

Record part_record(const PlacedPart& part) {
  Record out{{datum("axis", part.axis), count_figure("members", part.members)}};
  if (!part.torus) return out;
  out.figures.insert(out.figures.end(), {count_figure("of", part.of), count_figure("stride", part.stride),
                                         flag_figure("ring", part.ring)});
  return out;
}

}  // namespace

void add_placement(const std::vector<PlacedGroup>& groups, std::string_view label_after, std::vector<Figure>& out) {
  for (const PlacedGroup& group : groups) {
    const std::string label = label_after.empty() ? "" : group.dimension + std::string(label_after);
    out.push_back(text_figure("placement." + group.dimension, label, group.where));
  }
}

Figure placement_axes(const std::vector<PlacedGroup>& groups) {
  Record out;
  for (const PlacedGroup& group : groups) {
    if (group.parts.empty()) continue;  // the order of the nesting
    std::vector<Record> parts;
    for (const PlacedPart& part : group.parts) parts.push_back(part_record(part));
    out.figures.push_back(records_figure(group.dimension, "", "", std::move(parts)));
  }
  return read_by(Readers::kJson, object_figure("placement_axes", std::move(out)));
}

}  // namespace scalecalc
