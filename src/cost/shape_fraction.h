// How much of the rate of large matmuls a small one reaches.
#pragma once

namespace scalecalc {

/// Fraction of the large-matmul rate that [m, k] x [k, n] reaches: x / (x + h) in each dimension. h = half_dim.
template <class R>
R shape_fraction(const R& half_dim, const R& m, const R& n, const R& k);

}  // namespace scalecalc
