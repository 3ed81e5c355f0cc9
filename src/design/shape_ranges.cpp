// Derives the proportions of new shapes from the published models of the catalog.
#include "design/shape_ranges.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/check.h"
#include "spec/load.h"

namespace scalecalc {
namespace {

/// Quartiles, between neighbours in proportion.
ShapeRange shape_range_of(std::vector<double> values) {
  check(!values.empty(), "some model has the ratio");
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    const double place = share * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, values.size() - 1);
    return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
  };
  return {at(0.25), at(0.5), at(0.75), values.size()};
}

std::int64_t most_usual(const std::vector<std::int64_t>& values) {
  std::map<std::int64_t, std::size_t> counts;
  for (const std::int64_t value : values) ++counts[value];
  check(!counts.empty(), "some model has the figure");
  return std::max_element(counts.begin(), counts.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

}  // namespace

ShapeRanges shape_ranges_of(const std::vector<ModelSpec>& models) {
  std::vector<double> aspect, ff, experts;
  std::vector<std::int64_t> head_dims, kv_heads;
  for (const ModelSpec& m : models) {
    const auto width = static_cast<double>(m.d_model);
    aspect.push_back(width / static_cast<double>(m.layers()));
    if (!m.moe && m.mlp.gated && m.mlp.d_ff > 0) ff.push_back(static_cast<double>(m.mlp.d_ff) / width);
    if (m.moe) experts.push_back(static_cast<double>(m.moe->top_k * m.moe->d_ff) / width);
    const AttentionSpec& a = m.attention;
    if (a.mla || a.heads == 0) continue;
    head_dims.push_back(a.head_dim);
    if (a.kv_heads < a.heads && a.kv_heads > 1) kv_heads.push_back(a.kv_heads);
  }
  return {shape_range_of(aspect), shape_range_of(ff), shape_range_of(experts), most_usual(head_dims),
          most_usual(kv_heads)};
}

ShapeRanges shape_ranges_of(const Catalog& catalog) {
  std::vector<ModelSpec> models;
  for (const std::string& name : catalog.names(CatalogKind::kModel)) {
    if (name.find('/') == std::string::npos) models.push_back(load_model(catalog.load(CatalogKind::kModel, name)));
  }
  return shape_ranges_of(models);
}

}  // namespace scalecalc
