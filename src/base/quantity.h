// Typed quantities: a number that knows it is bytes, FLOPs, seconds, dollars or joules, or any product of their
// powers, so that the field's classic mistakes (bytes against bytes per second, per chip against total time) do
// not compile. One scalar in the SI base unit, no run-time cost (tests/bench/quantity_bench.cpp measures it).
//
// R is the reading of the number: double for the planner, Dual or Traced for the other two
// (see base/scalar.h). What the types cannot tell apart are two quantities of one dimension, such as per-chip and
// total bytes: names carry that.
#pragma once

#include <compare>
#include <string>

namespace scalecalc {

/// Powers of the base units. Tokens and counts are dimensionless.
struct Dim {
  int byte = 0;
  int flop = 0;
  int second = 0;
  int usd = 0;
  int joule = 0;
  friend constexpr bool operator==(const Dim&, const Dim&) = default;
};

constexpr Dim operator+(const Dim& a, const Dim& b) {
  return {a.byte + b.byte, a.flop + b.flop, a.second + b.second, a.usd + b.usd, a.joule + b.joule};
}
constexpr Dim operator-(const Dim& a, const Dim& b) {
  return {a.byte - b.byte, a.flop - b.flop, a.second - b.second, a.usd - b.usd, a.joule - b.joule};
}

/// Name of a dimension for people: "bytes", "FLOP/s", "s", "" for a plain number.
std::string unit_name(const Dim& dim);

constexpr double max(double a, double b) { return a < b ? b : a; }
constexpr double min(double a, double b) { return b < a ? b : a; }

template <Dim D, class R = double>
class Quantity {
 public:
  static constexpr Dim dim = D;
  using Scalar = R;

  constexpr Quantity() = default;
  constexpr explicit Quantity(const R& value) : value_(value) {}

  /// The bare number in SI base units; only borders (loading, printing) need it.
  constexpr const R& value() const { return value_; }

  constexpr Quantity& operator+=(const Quantity& o) {
    value_ = value_ + o.value_;
    return *this;
  }
  constexpr Quantity& operator-=(const Quantity& o) {
    value_ = value_ - o.value_;
    return *this;
  }

  friend constexpr Quantity operator+(const Quantity& a, const Quantity& b) { return Quantity(a.value_ + b.value_); }
  friend constexpr Quantity operator-(const Quantity& a, const Quantity& b) { return Quantity(a.value_ - b.value_); }
  friend constexpr Quantity operator*(const Quantity& a, const R& k) { return Quantity(a.value_ * k); }
  friend constexpr Quantity operator*(const R& k, const Quantity& a) { return Quantity(k * a.value_); }
  friend constexpr Quantity operator/(const Quantity& a, const R& k) { return Quantity(a.value_ / k); }
  friend constexpr bool operator<(const Quantity& a, const Quantity& b) { return a.value_ < b.value_; }
  friend constexpr bool operator>(const Quantity& a, const Quantity& b) { return b.value_ < a.value_; }

  // By value and as hidden friends: std::max by reference spills to the stack (measured, docs/performance.md).
  friend constexpr Quantity max(const Quantity& a, const Quantity& b) {
    using scalecalc::max;
    return Quantity(max(a.value_, b.value_));
  }
  friend constexpr Quantity min(const Quantity& a, const Quantity& b) {
    using scalecalc::min;
    return Quantity(min(a.value_, b.value_));
  }

 private:
  R value_{};
};

/// Products and quotients add and subtract dimensions; a dimensionless result is a plain R again.
template <Dim A, Dim B, class R>
constexpr auto operator*(const Quantity<A, R>& a, const Quantity<B, R>& b) {
  if constexpr (A + B == Dim{}) {
    return R(a.value() * b.value());
  } else {
    return Quantity<A + B, R>(a.value() * b.value());
  }
}
template <Dim A, Dim B, class R>
constexpr auto operator/(const Quantity<A, R>& a, const Quantity<B, R>& b) {
  if constexpr (A == B) {
    return R(a.value() / b.value());
  } else {
    return Quantity<A - B, R>(a.value() / b.value());
  }
}
template <Dim B, class R>
constexpr auto operator/(const R& a, const Quantity<B, R>& b) {
  return Quantity<Dim{} - B, R>(a / b.value());
}

inline constexpr Dim kByteDim{.byte = 1};
inline constexpr Dim kFlopDim{.flop = 1};
inline constexpr Dim kSecondDim{.second = 1};
inline constexpr Dim kUsdDim{.usd = 1};
inline constexpr Dim kJouleDim{.joule = 1};

template <class R>
using BytesOf = Quantity<kByteDim, R>;
template <class R>
using FlopsOf = Quantity<kFlopDim, R>;
template <class R>
using SecondsOf = Quantity<kSecondDim, R>;
template <class R>
using BytesPerSecondOf = Quantity<kByteDim - kSecondDim, R>;
template <class R>
using FlopsPerSecondOf = Quantity<kFlopDim - kSecondDim, R>;
template <class R>
using SecondsPerByteOf = Quantity<kSecondDim - kByteDim, R>;
template <class R>
using FlopsPerByteOf = Quantity<kFlopDim - kByteDim, R>;

using Bytes = BytesOf<double>;
using Flops = FlopsOf<double>;
using Seconds = SecondsOf<double>;
using BytesPerSecond = BytesPerSecondOf<double>;
using FlopsPerSecond = FlopsPerSecondOf<double>;
using SecondsPerByte = SecondsPerByteOf<double>;
using FlopsPerByte = FlopsPerByteOf<double>;
using Usd = Quantity<kUsdDim>;
using UsdPerSecond = Quantity<kUsdDim - kSecondDim>;
using Joules = Quantity<kJouleDim>;
using Watts = Quantity<kJouleDim - kSecondDim>;
using Hertz = Quantity<Dim{} - kSecondDim>;

}  // namespace scalecalc
