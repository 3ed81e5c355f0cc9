// How published models are proportioned: the ranges that shapes are enumerated over.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/catalog.h"
#include "spec/model_spec.h"

namespace scalecalc {

/// The middle half of what models do.
struct ShapeRange {
  double low = 0, median = 0, high = 0;
  std::size_t models = 0;
};

struct ShapeRanges {
  ShapeRange aspect;        ///< d_model over layers
  ShapeRange ff_ratio;      ///< d_ff over d_model, of dense models with gated MLPs
  ShapeRange expert_ratio;  ///< top_k times an expert's d_ff over d_model
  std::int64_t head_dim;    ///< the most usual
  std::int64_t kv_heads;    ///< the most usual where queries share them
};

ShapeRanges shape_ranges_of(const std::vector<ModelSpec>& models);
/// Of the catalog, the book's own versions of its models left out.
ShapeRanges shape_ranges_of(const Catalog& catalog);

}  // namespace scalecalc
