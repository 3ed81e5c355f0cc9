// Any bytes as a sweep of any unit: finite values, not too many, or an explanation.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/check.h"
#include "base/sweep.h"
#include "base/units.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace scalecalc;
  if (size == 0) return 0;
  constexpr int kKinds = static_cast<int>(UnitKind::kGramsPerKwh) + 1;
  const auto kind = static_cast<UnitKind>(data[0] % kKinds);
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto read = parse_sweep(text, kind);
  if (const auto* values = std::get_if<std::vector<double>>(&read)) {
    check(!values->empty() && values->size() <= scalecalc::limits::kSweepValues, "a sweep has values, and an end");
    for (const double value : *values) check(std::isfinite(value) && value >= 0, "values of a sweep are finite");
  }
  return 0;
}
