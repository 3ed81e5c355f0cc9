// An array written with its sizes, as the scaling book writes operands of a collective: bf16[1024_X,4096_Y]. A
// subscript names the mesh axes a dimension is cut over; 28672/8 is one eighth of a dimension.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/units.h"
#include "spec/dtype.h"

namespace scalecalc {

struct SizedDimension {
  std::int64_t size = 1;  ///< of the whole array, the divisor applied
  std::string subscript;  ///< as written: "X", "XY", "{X,dcn}" without its braces; empty if not cut
};

struct SizedArray {
  std::string text;
  DType dtype = DType::kBf16;
  std::vector<SizedDimension> dims;
};

/// The error says what was found and shows the form.
std::variant<SizedArray, UnitError> parse_sized_array(std::string_view text);

}  // namespace scalecalc
