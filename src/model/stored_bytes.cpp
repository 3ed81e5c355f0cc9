#include "model/stored_bytes.h"

namespace scalecalc {

WeightPart weight_part(Part part, const LayerKind* kind) {
  switch (part) {
    case Part::kAttention:
    case Part::kNorm:
    case Part::kMtp: return WeightPart::kAttention;
    case Part::kMlp: return kind != nullptr && kind->ffn == FfnKind::kMoe ? WeightPart::kShared : WeightPart::kMlp;
    case Part::kExperts: return WeightPart::kExperts;
    case Part::kRouter: return WeightPart::kRouter;
    case Part::kEmbedding: return WeightPart::kEmbedding;
    case Part::kHead: return WeightPart::kHead;
  }
  return WeightPart::kMlp;
}

}  // namespace scalecalc
