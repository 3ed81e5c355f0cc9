// The format that people multiply in where a question names none.
#pragma once

#include <algorithm>
#include <array>
#include <optional>

#include "spec/hardware_spec.h"

namespace scalecalc {

/// fp16 on chips without bf16, such as the V100; wider where neither runs.
inline constexpr std::array kUsualFormats{DType::kBf16, DType::kFp16, DType::kTf32, DType::kFp32};

/// The first of them that the chip has a rate for.
inline std::optional<DType> usual_format(const HardwareSpec& hw) {
  const auto* const found = std::find_if(kUsualFormats.begin(), kUsualFormats.end(), [&](DType format) {
    return hw.matmul_peak.at(static_cast<std::size_t>(format)).has_value();
  });
  return found == kUsualFormats.end() ? std::nullopt : std::optional(*found);
}

}  // namespace scalecalc
