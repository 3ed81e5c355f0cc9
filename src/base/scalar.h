// The three readings of a formula. Every cost formula is a template over its scalar R and is evaluated as
//   double    the planner's hot loop;
//   Dual      value and exact derivative with respect to one chosen input;
//   Traced    the expression itself, with names, units and sources, for --explain.
// Inputs enter through Reader<R>, so that a formula never knows which reading it is in.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/quantity.h"
#include "base/traced.h"

namespace scalecalc {

// A value with its exact derivative with respect to one input (forward-mode differentiation). At a kink (max, min)
// the derivative is that of the side taken, the first argument on a tie; ceil has derivative 0.
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

/// The plain value of any reading; only for choosing a branch that all readings must take alike.
inline double value_of(double x) { return x; }
inline double value_of(const Dual& x) { return x.value; }
inline double value_of(const Traced& x) { return x.value(); }
template <Dim D, class R>
double value_of(const Quantity<D, R>& x) {
  return value_of(x.value());
}

inline double ceil(double x) { return std::ceil(x); }
inline double sqrt(double x) { return std::sqrt(x); }
inline double log2(double x) { return std::log2(x); }
/// e^x - 1, exact where x is small.
inline double expm1(double x) { return std::expm1(x); }
inline double power(double x, double exponent) { return std::pow(x, exponent); }

/// Gives a result its name ("prefix name") and the place its formula comes from; only the traced reading keeps them.
template <class X>
inline const X& named(const X& x, std::string_view, std::string_view, std::string_view = {}) {
  return x;
}
inline Traced named(const Traced& x, std::string_view name, std::string_view source, std::string_view prefix = {},
                    Dim unit = {}) {
  return x.with_name(prefix.empty() ? std::string(name) : std::string(prefix) + " " + std::string(name), source, unit);
}
template <Dim D>
inline Quantity<D, Traced> named(const Quantity<D, Traced>& x, std::string_view name, std::string_view source,
                                 std::string_view prefix = {}) {
  return Quantity<D, Traced>(named(x.value(), name, source, prefix, D));
}

/// Where a formula's inputs come from. `name` is the path a user would give --set (hw.hbm.bandwidth), or a layout
/// dimension (tp); `error` is the relative uncertainty of a fitted coefficient, 0 for a fact.
template <class R>
class Reader;

template <>
class Reader<double> {
 public:
  double input(double value, std::string_view, std::string_view, Dim = {}, double = 0) const { return value; }
  /// A count that formulas take as a whole number, as a share of itself: 1. It lets a derivative by the count exist.
  double whole(double, std::string_view) const { return 1; }
};

template <>
class Reader<Dual> {
 public:
  /// Derivatives are taken with respect to the input of this name.
  explicit Reader(std::string with_respect_to) : names_{std::move(with_respect_to)} {}
  /// Or with respect to a common factor on the inputs of these names, which are read at `factor` times their values.
  Reader(std::vector<std::string> names, double factor) : names_(std::move(names)), factor_(factor), by_factor_(true) {}

  Dual input(double value, std::string_view name, std::string_view, Dim = {}, double = 0) const {
    if (!asked(name)) return {value, 0};
    return {value * factor_, by_factor_ ? value : 1.0};
  }
  Dual whole(double count, std::string_view name) const {
    if (!asked(name)) return {1, 0};
    return {factor_, by_factor_ ? 1.0 : 1.0 / count};
  }

 private:
  bool asked(std::string_view name) const { return std::find(names_.begin(), names_.end(), name) != names_.end(); }

  std::vector<std::string> names_;
  double factor_ = 1;
  bool by_factor_ = false;
};

template <>
class Reader<Traced> {
 public:
  Traced input(double value, std::string_view name, std::string_view source, Dim unit = {}, double = 0) const {
    return Traced::leaf(value, name, source, unit);
  }
  Traced whole(double, std::string_view) const { return 1.0; }
};

/// A typed input: reader.input with the unit taken from the quantity.
template <Dim D, class R>
Quantity<D, R> read(const Reader<R>& reader, const Quantity<D>& value, std::string_view name, std::string_view source,
                    double error = 0) {
  return Quantity<D, R>(reader.input(value.value(), name, source, D, error));
}

/// Reads inputs with their names, for answers that explain themselves.
inline const Reader<Traced> kReader;

inline double to_double(std::int64_t count) { return static_cast<double>(count); }

}  // namespace scalecalc
