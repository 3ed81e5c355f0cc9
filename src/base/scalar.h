// The four readings of a formula. Every cost formula is a template over its scalar R and is evaluated as
//   double    the planner's hot loop;
//   Dual      value and exact derivative with respect to one chosen input;
//   Traced    the expression itself, with names, units and sources, for --explain;
//   Interval  the value with the bounds that the uncertainty of the efficiency coefficients gives it.
// Inputs enter through Reader<R>, so that a formula never knows which reading it is in.
#pragma once

#include <cmath>
#include <string>
#include <string_view>

#include "base/dual.h"
#include "base/interval.h"
#include "base/quantity.h"
#include "base/traced.h"

namespace scalecalc {

/// The plain value of any reading; only for choosing a branch that all readings must take alike.
inline double value_of(double x) { return x; }
inline double value_of(const Dual& x) { return x.value; }
inline double value_of(const Interval& x) { return x.value; }
inline double value_of(const Traced& x) { return x.value(); }
template <Dim D, class R>
double value_of(const Quantity<D, R>& x) {
  return value_of(x.value());
}

inline double ceil(double x) { return std::ceil(x); }
inline double sqrt(double x) { return std::sqrt(x); }
inline double log2(double x) { return std::log2(x); }
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
};

template <>
class Reader<Dual> {
 public:
  /// Derivatives are taken with respect to the input of this name.
  explicit Reader(std::string with_respect_to) : with_respect_to_(std::move(with_respect_to)) {}
  Dual input(double value, std::string_view name, std::string_view, Dim = {}, double = 0) const {
    return {value, name == with_respect_to_ ? 1.0 : 0.0};
  }

 private:
  std::string with_respect_to_;
};

template <>
class Reader<Interval> {
 public:
  Interval input(double value, std::string_view, std::string_view, Dim = {}, double error = 0) const {
    // A coefficient up to 1 is a share, or a time far below a second: neither can pass 1.
    const double high = value * (1 + error);
    return {value, value * (1 - error), value <= 1 && high > 1 ? 1 : high};
  }
};

template <>
class Reader<Traced> {
 public:
  Traced input(double value, std::string_view name, std::string_view source, Dim unit = {}, double = 0) const {
    return Traced::leaf(value, name, source, unit);
  }
};

/// A typed input: reader.input with the unit taken from the quantity.
template <Dim D, class R>
Quantity<D, R> read(const Reader<R>& reader, const Quantity<D>& value, std::string_view name, std::string_view source,
                    double error = 0) {
  return Quantity<D, R>(reader.input(value.value(), name, source, D, error));
}

}  // namespace scalecalc
