// Trial division up to the square root: counts of chips, layers and sequences are small.
#include "base/divisors.h"

#include "base/check.h"

namespace scalecalc {

std::vector<std::int64_t> divisors(std::int64_t n) {
  check(n >= 1, "divisors of a number below 1");
  std::vector<std::int64_t> found;
  std::vector<std::int64_t> partners;
  for (std::int64_t d = 1; d <= n / d; ++d) {
    if (n % d != 0) continue;
    found.push_back(d);
    if (d != n / d) partners.push_back(n / d);
  }
  found.insert(found.end(), partners.rbegin(), partners.rend());
  return found;
}

}  // namespace scalecalc
