// From operation lists to the terms of a step: what each operation's shapes are on one chip of the layout.
#pragma once

#include "serve/serve_work.h"

namespace scalecalc {

template <class R>
class TermBuilder {
 public:
  TermBuilder(const ServeBasis<R>& basis, const ServeLayout& layout);
  /// Everything but the collectives.
  StepTerms<R> build();

  /// Bytes of the weights of a mean layer on one chip, routed experts aside.
  double layer_bytes() const { return layer_bytes_; }
  double dispatch_bytes() const;  ///< of an element sent to an expert

 private:
  void add_op(const Op<R>& op, const LayerKind& kind, const R& layers, bool logits);
  void add_matmul(const Op<R>& op, const LayerKind& kind, const R& layers, bool logits);
  void add_grouped(const Op<R>& op, const R& layers);
  void add_attention(const Op<R>& op, const LayerKind& kind, const R& layers);
  void add_scan(const Op<R>& op, const R& layers);
  void add_vector(const Op<R>& op, const R& layers, bool logits);
  void add_tower(const Op<R>& op, const R& layers, double weight_ways);

  double ways_of(TpRule rule, Part part) const;
  MatmulFormat format(Part part, const LayerKind* kind) const;
  bool is_weight_only(Part part, const LayerKind* kind) const;
  BytesOf<R> bytes(const R& elements, double each) const { return BytesOf<R>(elements * R(each)); }

  const ServeBasis<R>& basis_;
  const ServingSystem& system_;
  const ServeLayout& layout_;
  const ModelSpec& model_;
  const ChipRates<R>& chip_;
  double tensor_ = 1;  ///< ranks that whole-width matmuls divide over; 1 if weights are gathered
  double heads_ = 1;   ///< ranks that heads divide over
  double layer_bytes_ = 0;
  std::vector<double> on_stages_;  ///< layers of the kind being added, on each of the mixes
  StepTerms<R> out_;
};

/// Adds the collectives of a step, its groups placed as given.
template <class R>
void add_collectives(const ServeBasis<R>& basis, const ServeLayout& layout, const Slice& slice,
                     const Placement& placement, const TermBuilder<R>& builder, StepTerms<R>& terms);

}  // namespace scalecalc
