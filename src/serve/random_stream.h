// Random numbers that are the same on every platform: std::mt19937_64 is specified to the bit, the standard library's
// distributions are not, and neither is std::log.
#pragma once

#include <cstdint>
#include <random>

namespace scalecalc {

class RandomStream {
 public:
  explicit RandomStream(std::uint64_t seed) : engine_(seed) {}

  /// Uniform in [0, 1), a multiple of 2^-53.
  double uniform() { return static_cast<double>(engine_() >> 11) * 0x1.0p-53; }

  /// Exponential with mean 1 by comparisons alone: von Neumann, "Various techniques used in connection with random
  /// digits", NBS Applied Mathematics Series 12 (1951), 36-38. A descending run of odd length accepts its first number.
  double exponential() {
    for (double whole = 0;; whole += 1) {
      const double first = uniform();
      bool odd = true;
      for (double last = first;; odd = !odd) {
        const double next = uniform();
        if (next >= last) break;
        last = next;
      }
      if (odd) return whole + first;
    }
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace scalecalc
