// [SHAPE] How much of the rate of large matmuls, and of attention in long contexts, a small one reaches: the only place
// where the law stands.
#pragma once

#include "base/scalar.h"

namespace scalecalc {

/// Share of a rate that work of size x reaches, which is half of it at x = half.
template <class R>
R shape_share(const R& x, const R& half) {
  return x / (x + half);
}

/// Fraction of the large-matmul rate that [m, k] x [k, n] reaches: in each dimension. h = half_dim.
template <class R>
R shape_fraction(const R& half_dim, const R& m, const R& n, const R& k) {
  return shape_share(m, half_dim) * shape_share(n, half_dim) * shape_share(k, half_dim);
}

/// [ATTENTION-SHAPE] Where attention falls short of its rate in long contexts and wide heads. Short contexts waste the
/// blocks that the mask cuts and the start of each row of blocks; narrow heads wait for exponentials, of which there is
/// one a score however narrow the head is, or leave part of a systolic array idle.
template <class R>
struct AttentionShortfall {
  R half_context{0.0};   ///< tokens; the rate falls by c / (c + this) at a mean context of c
  R half_head_dim{0.0};  ///< and by d / (d + this) for heads narrower than the width below, where it is 1
  R head_width{128.0};

  /// With heads of `head_dim`, in contexts long enough.
  R of_heads(const R& head_dim) const {
    return shape_share(min(head_width, head_dim), half_head_dim) * ((head_width + half_head_dim) / head_width);
  }
};

/// Fraction of that rate with a mean context of `context` tokens and heads of `head_dim`.
template <class R>
R attention_fraction(const AttentionShortfall<R>& shortfall, const R& context, const R& head_dim) {
  return shape_share(context, shortfall.half_context) * shortfall.of_heads(head_dim);
}

}  // namespace scalecalc
