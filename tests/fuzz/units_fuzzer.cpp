// Any bytes as any kind of quantity: a finite number that prints and reads again, or an explanation.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/units.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace scalecalc;
  constexpr int kKinds = static_cast<int>(UnitKind::kGramsPerKwh) + 1;
  constexpr double kLargestCount = 9007199254740992.0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (int i = 0; i < kKinds; ++i) {
    const auto kind = static_cast<UnitKind>(i);
    const auto parsed = parse_quantity(text, kind, size % 2 == 0);
    if (const UnitError* error = std::get_if<UnitError>(&parsed)) {
      check(!error->message.empty() && !error->hint.empty(), "an error explains itself");
      check(error->message.size() < 400, "an error does not repeat a whole file");
      continue;
    }
    const double value = std::get<double>(parsed);
    check(std::isfinite(value) && value >= 0, "a quantity is finite and not negative");
    if (kind == UnitKind::kCount) check(value <= kLargestCount && value == std::floor(value), "a count is whole");
    // Within a factor the prefixes cover; beyond it rounding may carry over the largest double.
    if (value != 0 && (value < 1e-15 || value > 1e15)) continue;
    check(std::holds_alternative<double>(parse_quantity(format_quantity(value, kind), kind)), "what prints reads");
  }
  return 0;
}
