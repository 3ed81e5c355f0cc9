// Number formats of tensors.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace scalecalc {

enum class DType { kFp64, kFp32, kTf32, kBf16, kFp16, kFp8, kInt8, kFp6, kFp4, kInt4 };
inline constexpr std::size_t kDTypeCount = 10;
inline constexpr std::array<std::string_view, kDTypeCount> kDTypeNames{"fp64", "fp32", "tf32", "bf16", "fp16",
                                                                       "fp8",  "int8", "fp6",  "fp4",  "int4"};

constexpr std::string_view name_of(DType dtype) { return kDTypeNames[static_cast<std::size_t>(dtype)]; }

/// Bytes of one element (tf32 is stored as fp32).
constexpr double bytes_per_element(DType dtype) {
  constexpr std::array<double, kDTypeCount> kBytes{8, 4, 4, 2, 2, 1, 1, 0.75, 0.5, 0.5};
  return kBytes[static_cast<std::size_t>(dtype)];
}

}  // namespace scalecalc
