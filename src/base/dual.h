// A value with its exact derivative with respect to one input (forward-mode differentiation). At a kink (max, min)
// the derivative is that of the side taken, the first argument on a tie; ceil has derivative 0.
#pragma once

#include <cmath>

namespace scalecalc {

struct Dual {
  double value = 0;
  double derivative = 0;

  constexpr Dual() = default;
  constexpr Dual(double v) : value(v) {}  // NOLINT(google-explicit-constructor): a constant is a dual
  constexpr Dual(double v, double d) : value(v), derivative(d) {}

  friend constexpr Dual operator+(const Dual& a, const Dual& b) {
    return {a.value + b.value, a.derivative + b.derivative};
  }
  friend constexpr Dual operator-(const Dual& a, const Dual& b) {
    return {a.value - b.value, a.derivative - b.derivative};
  }
  friend constexpr Dual operator*(const Dual& a, const Dual& b) {
    return {a.value * b.value, a.derivative * b.value + a.value * b.derivative};
  }
  friend constexpr Dual operator/(const Dual& a, const Dual& b) {
    return {a.value / b.value, (a.derivative * b.value - a.value * b.derivative) / (b.value * b.value)};
  }
  friend constexpr bool operator<(const Dual& a, const Dual& b) { return a.value < b.value; }
  friend constexpr Dual max(const Dual& a, const Dual& b) { return a.value < b.value ? b : a; }
  friend constexpr Dual min(const Dual& a, const Dual& b) { return b.value < a.value ? b : a; }
  friend Dual ceil(const Dual& a) { return {std::ceil(a.value), 0}; }
  friend Dual sqrt(const Dual& a) {
    const double root = std::sqrt(a.value);
    return {root, a.derivative / (2 * root)};
  }
  friend Dual expm1(const Dual& a) { return {std::expm1(a.value), a.derivative * std::exp(a.value)}; }
  friend Dual log2(const Dual& a) { return {std::log2(a.value), a.derivative / (a.value * std::log(2.0))}; }
};

}  // namespace scalecalc
