// A value with bounds: lower <= value <= upper, where `value` is exactly what the double reading gives and the bounds
// follow from the uncertainty of the inputs by interval arithmetic. Branches are taken on `value`, as double does.
#pragma once

#include <algorithm>
#include <cmath>

namespace scalecalc {

struct Interval {
  double value = 0;
  double low = 0;
  double high = 0;

  constexpr Interval() = default;
  constexpr Interval(double v) : value(v), low(v), high(v) {}  // NOLINT(google-explicit-constructor): a constant
  constexpr Interval(double v, double l, double h) : value(v), low(l), high(h) {}

  friend constexpr Interval operator+(const Interval& a, const Interval& b) {
    return {a.value + b.value, a.low + b.low, a.high + b.high};
  }
  friend constexpr Interval operator-(const Interval& a, const Interval& b) {
    return {a.value - b.value, a.low - b.high, a.high - b.low};
  }
  friend constexpr Interval operator*(const Interval& a, const Interval& b) {
    const double ll = a.low * b.low;
    const double lh = a.low * b.high;
    const double hl = a.high * b.low;
    const double hh = a.high * b.high;
    return {a.value * b.value, std::min({ll, lh, hl, hh}), std::max({ll, lh, hl, hh})};
  }
  /// The divisor's bounds must not contain zero: rates and degrees are positive.
  friend constexpr Interval operator/(const Interval& a, const Interval& b) {
    const double ll = a.low / b.low;
    const double lh = a.low / b.high;
    const double hl = a.high / b.low;
    const double hh = a.high / b.high;
    return {a.value / b.value, std::min({ll, lh, hl, hh}), std::max({ll, lh, hl, hh})};
  }
  friend constexpr bool operator<(const Interval& a, const Interval& b) { return a.value < b.value; }
  friend constexpr Interval max(const Interval& a, const Interval& b) {
    return {a.value < b.value ? b.value : a.value, std::max(a.low, b.low), std::max(a.high, b.high)};
  }
  friend constexpr Interval min(const Interval& a, const Interval& b) {
    return {b.value < a.value ? b.value : a.value, std::min(a.low, b.low), std::min(a.high, b.high)};
  }
  friend Interval ceil(const Interval& a) { return {std::ceil(a.value), std::ceil(a.low), std::ceil(a.high)}; }
  friend Interval sqrt(const Interval& a) { return {std::sqrt(a.value), std::sqrt(a.low), std::sqrt(a.high)}; }
  friend Interval expm1(const Interval& a) { return {std::expm1(a.value), std::expm1(a.low), std::expm1(a.high)}; }
  friend Interval log2(const Interval& a) { return {std::log2(a.value), std::log2(a.low), std::log2(a.high)}; }
};

}  // namespace scalecalc
