// The list under construction: what the builders of mixers and FFNs have in common.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "model/ops.h"

namespace scalecalc {

/// The projection of a tower's output to keys and values, which it passes once for a sequence.
inline constexpr std::string_view kCrossKeysValues = "cross key/value projection";

/// A dimension of the model file that no question asks a derivative by.
template <class R>
R fixed(std::int64_t value) {
  return R(static_cast<double>(value));
}

template <class R>
class OpList {
 public:
  OpList(const ModelSpec& model, const ModelDims<R>& dims) : model_(model), dims_(dims) {}

  const ModelSpec& model() const { return model_; }
  const ModelDims<R>& dims() const { return dims_; }
  void add(Op<R> op) { ops_.push_back(std::move(op)); }
  Op<R>& last() { return ops_.back(); }
  std::vector<Op<R>> take() { return std::move(ops_); }

  /// A norm keeps its input (`keep_input`; what remat does to it) and its output, which the next matmul's weight
  /// gradient needs and which is cheap to compute again.
  /// `masks`: it stands before a part of the layer that ends in dropout.
  void norm(std::string_view name, const R& width, Keep keep_input, bool masks = false) {
    add({.name = name,
         .kind = OpKind::kVector,
         .part = Part::kNorm,
         .tp = TpRule::kSequence,
         .extra_parameters = width * R(model_.norm_parameters()),
         .reads = width,
         .writes = width,
         .flops = width * R(4.0),
         .saved = width,
         .keep = keep_input,
         .rms_input = model_.norm == NormKind::kRms});
    add({.name = "norm output",
         .kind = OpKind::kVector,
         .part = Part::kNorm,
         .tp = TpRule::kSequence,
         .saved = width,
         .keep = Keep::kWithoutRemat,
         .input = KeptInput::kGathered,
         .masked = masks});
  }

  /// A projection whose output the backward pass needs, divided as `saved_tp` says.
  void matmul(std::string_view name, Part part, TpRule tp, const R& k, const R& n, bool bias, TpRule saved_tp) {
    add({.name = name,
         .kind = OpKind::kMatmul,
         .part = part,
         .tp = tp,
         .k = k,
         .n = n,
         .extra_parameters = bias ? n : R(0.0),
         .saved = n,
         .keep = Keep::kSelective,
         .saved_tp = saved_tp});
  }

  /// A projection back to d_model, added to the residual stream: nothing of it is kept.
  void output(std::string_view name, Part part, const R& width, bool bias) {
    add({.name = name,
         .kind = OpKind::kMatmul,
         .part = part,
         .tp = TpRule::kRow,
         .k = width,
         .n = dims_.d_model,
         .extra_parameters = bias ? dims_.d_model : R(0.0)});
  }

 private:
  const ModelSpec& model_;
  const ModelDims<R>& dims_;
  std::vector<Op<R>> ops_;
};

/// Operations of a layer's mixer, from its normed input to its projected output: attention over keys and values (full,
/// sliding, chunked, mla, strided), or a recurrence with a state (gdn, kda, lightning, conv, mamba1, mamba2, rwkv,
/// rglru). full+mamba2 has both.
template <class R>
void add_attention(OpList<R>& list, const LayerKind& kind);
/// The attention of a full+cross layer to the encoder's output, behind that to the sequence.
template <class R>
void add_cross_attention(OpList<R>& list, const LayerKind& kind);
template <class R>
void add_recurrence(OpList<R>& list, const LayerKind& kind);

}  // namespace scalecalc
