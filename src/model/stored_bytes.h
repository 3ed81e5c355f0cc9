// What a checkpoint stores of an operation's weights, by the format of the part they belong to.
#pragma once

#include <string_view>
#include <vector>

#include "model/ops.h"

namespace scalecalc {

/// What most of the weights a token is multiplied by are stored in: of a model with experts, theirs.
inline WeightFormat main_format(const QuantizationSpec& weights) { return weights.format(WeightPart::kExperts); }

/// The part of a checkpoint that a part of the network belongs to; `kind` of the layer, null at the ends.
WeightPart weight_part(Part part, const LayerKind* kind);

/// Bytes of an operation's own weights: matrices and tables in their part's format, all else as norms are. A tied
/// matrix is stored with the embedding.
template <class R>
R stored_bytes(const Op<R>& op, const LayerKind* kind, const QuantizationSpec& formats) {
  const R each(formats.bits(weight_part(op.part, kind)) / 8);
  const R beside(bits_of(formats.format_beside()) / 8);
  const R matrix = op.tied ? R(0.0) : op.weight_parameters();
  // Quantizers leave towers alone, and what mixes residual streams.
  if (op.part == Part::kTower || op.part == Part::kNorm) return (matrix + op.extra_parameters) * beside;
  return matrix * each + op.extra_parameters * (op.part == Part::kEmbedding ? each : beside);
}

inline constexpr std::string_view kStoredBeside = "norms";   ///< norms, biases and what else no quantizer touches
inline constexpr std::string_view kStoredModules = "mtp";    ///< prediction modules, beside the model's own weights
inline constexpr std::string_view kStoredTowers = "towers";  ///< of images and sound, beside the model's own weights

/// Weights of one part in one format.
struct StoredWeights {
  std::string_view part;  ///< of kWeightPartNames, or one of those above
  WeightFormat format = WeightFormat::kBf16;
  double parameters = 0;
  double bytes = 0;
};

/// What stored_bytes() adds up to over the model, by part and format in the order of the parts; MTP modules and towers
/// last.
std::vector<StoredWeights> stored_weights(const ModelSpec& model, const QuantizationSpec& formats);

/// Their sum without MTP modules and towers.
double total_bytes(const std::vector<StoredWeights>& stored);

}  // namespace scalecalc
