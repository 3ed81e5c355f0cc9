// Lists the divisors of a number, for every search over degrees. Trial division up to the square root: counts of
// chips, layers and sequences are small.
#include "base/divisors.h"

#include "base/check.h"

namespace scalecalc {

std::vector<std::int64_t> divisors(std::int64_t n) {
  check(n >= 1, "divisors of a number below 1");
  std::vector<std::int64_t> found;
  found.reserve(32);  // once: searches ask hundreds of thousands of times
  for (std::int64_t d = 1; d <= n / d; ++d) {
    if (n % d == 0) found.push_back(d);
  }
  for (std::size_t i = found.size() - (found.back() == n / found.back() ? 1 : 0); i-- > 0;) {
    found.push_back(n / found[i]);
  }
  return found;
}

}  // namespace scalecalc
