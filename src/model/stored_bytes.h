// What a checkpoint stores of an operation's weights, by the format of the part they belong to.
#pragma once

#include "model/ops.h"

namespace scalecalc {

/// The part of a checkpoint that a part of the network belongs to; `kind` of the layer, null at the ends.
WeightPart weight_part(Part part, const LayerKind* kind);

/// Bytes of an operation's own weights: matrices and tables in their part's format, all else in 16 bits. A tied matrix
/// is stored with the embedding.
template <class R>
R stored_bytes(const Op<R>& op, const LayerKind* kind, const QuantizationSpec& formats) {
  const R each(formats.bits(weight_part(op.part, kind)) / 8);
  const R matrix = op.tied ? R(0.0) : op.weight_parameters();
  return matrix * each + op.extra_parameters * (op.part == Part::kEmbedding ? each : R(2.0));
}

}  // namespace scalecalc
