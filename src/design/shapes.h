// The shapes that `model design` chooses from, and the model file each of them makes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "design/shape_ranges.h"
#include "import/named_model.h"

namespace scalecalc {

struct ExpertChoice {
  std::int64_t experts = 0;
  std::int64_t top_k = 0;
};

struct DesignShape {
  std::int64_t d_model = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t d_ff = 0;  ///< of an expert where there are some
  std::int64_t vocab = 0;
  std::optional<ExpertChoice> experts;
  friend bool operator==(const DesignShape& a, const DesignShape& b) {
    return a.d_model == b.d_model && a.layers == b.layers && a.d_ff == b.d_ff;
  }
};

/// How the model is to be trained: goes into its file, so that `train` asks the same question.
struct TrainingRecipe {
  double tokens = 0;
  std::int64_t seq = 0;
  double batch_tokens = 0;
  std::string precision;
  std::string optimizer;
};

/// A vocabulary that divides over the usual tensor degrees into whole tiles: the next multiple of 1,024.
std::int64_t padded_vocab(std::int64_t vocab);

/// Every shape of the grid: docs/model.md, [SHAPES]. `vocab` is padded.
std::vector<DesignShape> shapes(const ShapeRanges& ranges, std::int64_t vocab,
                                const std::optional<ExpertChoice>& experts);

/// The file of a model of schema scalecalc-model/1: RMSNorm, grouped queries, gated MLPs, untied embeddings.
ModelDocument document_of(const DesignShape& shape, const TrainingRecipe& recipe, const std::string& name);

/// Ways the shape divides evenly into tiles of 128: the largest power of two.
std::int64_t tensor_ways(const DesignShape& shape);
/// The largest power of two that divides the layers.
std::int64_t pipeline_ways(const DesignShape& shape);

}  // namespace scalecalc
