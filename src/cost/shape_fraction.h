// How much of the rate of large matmuls, and of attention in long contexts, a small one reaches.
#pragma once

namespace scalecalc {

/// Fraction of the large-matmul rate that [m, k] x [k, n] reaches: x / (x + h) in each dimension. h = half_dim.
template <class R>
R shape_fraction(const R& half_dim, const R& m, const R& n, const R& k);

/// [ATTENTION-SHAPE] Where attention falls short of its rate in long contexts and wide heads.
template <class R>
struct AttentionShortfall {
  R half_context{0.0};   ///< tokens; the rate falls by c / (c + this) at a mean context of c
  R half_head_dim{0.0};  ///< and by d / (d + this) for heads narrower than the width below, where it is 1
  R head_width{128.0};
};

/// Fraction of that rate with a mean context of `context` tokens and heads of `head_dim`. Short contexts waste the
/// blocks that the mask cuts and the start of each row of blocks; narrow heads wait for exponentials, of which there is
/// one a score however narrow the head is, or leave part of a systolic array idle.
template <class R>
R attention_fraction(const AttentionShortfall<R>& shortfall, const R& context, const R& head_dim);

}  // namespace scalecalc
