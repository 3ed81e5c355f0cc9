// A synchronous step ends when its slowest chip does.
#pragma once

namespace scalecalc {

/// Expected largest of n draws from the standard normal distribution, by Blom's approximation, the quantile of
/// (n - 0.375) / (n + 0.25), half a per cent low at most: Blom 1958, "Statistical Estimates and Transformed
/// Beta-Variables".
double largest_of_normals(double n);

/// [SLOWEST] How much longer computing takes where `chips` wait for the slowest of them and the speeds of chips spread
/// normally with `spread` of their mean: 1 / (1 - spread z) - 1. Infinite if the slowest would stand still. Measured
/// spreads: arXiv:2208.11035 (8 % between chips of one kind on five machines, the largest 22 %).
double slowest_chip_share(double chips, double spread);

}  // namespace scalecalc
