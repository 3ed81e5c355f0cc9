// Computes how much slower than the mean the slowest of many chips is.
#include "economics/stragglers.h"

#include <cmath>
#include <limits>

namespace scalecalc {

double largest_of_normals(double n) {
  if (n <= 1) return 0;
  const double above = 0.625 / (n + 0.25);  // of the distribution
  double low = 0;
  double high = 40;
  constexpr int kHalvings = 80;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (std::erfc(middle / std::sqrt(2.0)) / 2 > above ? low : high) = middle;
  }
  return low;
}

double slowest_chip_share(double chips, double spread) {
  const double slowest = 1 - spread * largest_of_normals(chips);
  return slowest > 0 ? 1 / slowest - 1 : std::numeric_limits<double>::infinity();
}

}  // namespace scalecalc
