// What is printed can be read back, to the precision printed; what is read is always a finite number.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/units.h"

namespace scalecalc {
namespace {

constexpr UnitKind kKinds[] = {UnitKind::kCount,          UnitKind::kNumber,         UnitKind::kBytes,
                               UnitKind::kBytesPerSecond, UnitKind::kFlopsPerSecond, UnitKind::kSeconds,
                               UnitKind::kFraction,       UnitKind::kWatts,          UnitKind::kUsdPerHour,
                               UnitKind::kHertz,          UnitKind::kGramsPerKwh};

UnitKind any_kind() { return kKinds[*rc::gen::inRange<std::size_t>(0, std::size(kKinds))]; }

/// A value of the kind, spread over the magnitudes that kind is printed at.
double value_of_kind(UnitKind kind) {
  const double mantissa = 1 + *rc::gen::inRange(0, 900'000'000) / 1e8;
  const int magnitude = *rc::gen::inRange(-9, 20);
  switch (kind) {
    case UnitKind::kCount: return std::floor(mantissa * std::pow(10.0, std::clamp(magnitude, 0, 14)));
    case UnitKind::kFraction: return mantissa / 10 * std::pow(10.0, std::min(magnitude, 0));
    default: return mantissa * std::pow(10.0, magnitude);
  }
}

RC_GTEST_PROP(Units, ParseUndoesFormat, ()) {
  const UnitKind kind = any_kind();
  const double value = value_of_kind(kind);
  const int digits = *rc::gen::inRange(2, 10);
  const std::string text = format_quantity(value, kind, digits);
  const auto parsed = parse_quantity(text, kind);
  const UnitError* error = std::get_if<UnitError>(&parsed);
  RC_LOG() << text << (error != nullptr ? ": " + error->message : "") << '\n';
  RC_ASSERT(error == nullptr);
  // Half a unit in the last place printed, or half a one where small counts are printed whole.
  const double slack = 0.51 * std::pow(10.0, 1 - digits) * value;
  RC_ASSERT(std::abs(std::get<double>(parsed) - value) <= slack);
}

RC_GTEST_PROP(Units, FormatOfParseOfFormatIsTheSameText, ()) {
  const UnitKind kind = any_kind();
  const std::string text = format_quantity(value_of_kind(kind), kind, 4);
  RC_ASSERT(format_quantity(std::get<double>(parse_quantity(text, kind)), kind, 4) == text);
}

RC_GTEST_PROP(Units, AnyTextGivesAFiniteNumberOrAnExplanation, (std::string text)) {
  for (const UnitKind kind : kKinds) {
    const auto parsed = parse_quantity(text, kind, true);
    if (const double* value = std::get_if<double>(&parsed)) {
      RC_ASSERT(std::isfinite(*value) && *value >= 0);
    } else {
      RC_ASSERT(!std::get<UnitError>(parsed).message.empty());
    }
  }
}

}  // namespace
}  // namespace scalecalc
