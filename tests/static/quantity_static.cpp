// Compiles or fails as a whole: dimensions combine as physics says, and mixing them is no valid expression.
#include <concepts>
#include <type_traits>

#include "base/quantity.h"

namespace scalecalc {
namespace {

template <class A, class B>
concept Addable = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept Subtractable = requires(A a, B b) {
  a - b;
};
template <class A, class B>
concept Comparable = requires(A a, B b) {
  a < b;
};
template <class A, class B>
concept Maximisable = requires(A a, B b) {
  max(a, b);
};

static_assert(std::same_as<decltype(Bytes{} / Seconds{}), BytesPerSecond>);
static_assert(std::same_as<decltype(Flops{} / FlopsPerSecond{}), Seconds>);
static_assert(std::same_as<decltype(Flops{} / Bytes{}), FlopsPerByte>);
static_assert(std::same_as<decltype(BytesPerSecond{} * Seconds{}), Bytes>);
static_assert(std::same_as<decltype(Seconds{} / Bytes{}), SecondsPerByte>);
static_assert(std::same_as<decltype(1.0 / BytesPerSecond{}), SecondsPerByte>);
static_assert(std::same_as<decltype(Watts{} * Seconds{}), Joules>);
static_assert(std::same_as<decltype(UsdPerSecond{} * Seconds{}), Usd>);

// A quotient of equals is a plain number.
static_assert(std::same_as<decltype(Bytes{} / Bytes{}), double>);
static_assert(std::same_as<decltype(SecondsPerByte{} * BytesPerSecond{}), double>);
static_assert(std::same_as<decltype(Bytes{} * 2.0), Bytes>);

static_assert(Addable<Bytes, Bytes>);
static_assert(!Addable<Bytes, BytesPerSecond>);
static_assert(!Addable<Bytes, Flops>);
static_assert(!Addable<Bytes, double>);
static_assert(!Subtractable<Seconds, Bytes>);
static_assert(Comparable<Seconds, Seconds>);
static_assert(!Comparable<Seconds, Bytes>);
static_assert(!Comparable<Seconds, double>);
static_assert(Maximisable<Seconds, Seconds>);
static_assert(!Maximisable<Seconds, Flops>);

// Numbers become quantities only where someone says so, and never the other way round.
static_assert(!std::convertible_to<double, Bytes>);
static_assert(!std::convertible_to<Bytes, double>);
static_assert(std::constructible_from<Bytes, double>);
static_assert(!std::convertible_to<Bytes, Flops>);

static_assert(sizeof(Bytes) == sizeof(double));
static_assert(std::is_trivially_copyable_v<Bytes>);
static_assert((Bytes(6) / Seconds(2)).value() == 3);
static_assert(max(Bytes(1), Bytes(2)).value() == 2);

}  // namespace
}  // namespace scalecalc
