// Compares two plans dimension by dimension and cause by cause, for --why-not and --from.
#include "train/compare_layouts.h"

#include <algorithm>
#include <cmath>

#include "plan/dimensions.h"

namespace scalecalc {
namespace {

using NamedFigures = std::vector<std::pair<std::string, double>>;

/// NamedFigures that differ, the largest difference first. Both lists have the same names in the same order.
std::vector<ComparedFigure> differences(const NamedFigures& best, const NamedFigures& other, double scale) {
  std::vector<ComparedFigure> out;
  for (std::size_t i = 0; i < best.size() && i < other.size(); ++i) {
    ComparedFigure figure{best[i].first, best[i].second, other[i].second * scale};
    if (figure.change() != 0) out.push_back(std::move(figure));
  }
  std::stable_sort(out.begin(), out.end(), [](const ComparedFigure& a, const ComparedFigure& b) {
    return std::abs(a.change()) > std::abs(b.change());
  });
  return out;
}

std::vector<ComparedDimension> dimensions(const Plan& best, const Plan& other) {
  std::vector<ComparedDimension> out;
  if (best.slice.name() != other.slice.name()) out.push_back({"machine", best.slice.name(), other.slice.name()});
  for (const LayoutDimension& d : layout_dimensions()) {
    const std::int64_t ours = d.value(best.layout);
    const std::int64_t theirs = d.value(other.layout);
    if (ours != theirs) out.push_back({std::string(d.name), value_text(d, ours), value_text(d, theirs)});
  }
  return out;
}

}  // namespace

PlanComparison compare_plans(const RankedPlan& best, const RankedPlan& other) {
  PlanComparison out;
  out.scale = best.plan.batch_seqs / other.plan.batch_seqs;
  out.slower = out.scale * other.plan.step_s / best.plan.step_s - 1;
  out.dimensions = dimensions(best.plan, other.plan);
  out.time_s = differences(best.figures.time_s, other.figures.time_s, out.scale);
  out.memory_bytes = differences(best.figures.memory_bytes, other.figures.memory_bytes, 1);
  return out;
}

}  // namespace scalecalc
