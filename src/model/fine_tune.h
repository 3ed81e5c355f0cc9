// Fine-tuning with low-rank adapters, as a change of operation lists. LoRA (Hu et al. 2021, arXiv:2106.09685 section
// 4.1): a weight matrix W of k x n stays as it is, and y = x W + x A B is trained through A of k x r and B of r x n.
// QLoRA (Dettmers et al. 2023, arXiv:2305.14314 section 3): W lies in memory in 4 bits and is unpacked for each matmul.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/ops.h"

namespace scalecalc {

/// Projections that carry adapters; bits of FineTune::targets.
inline constexpr std::array<std::string_view, 8> kLoraTargetNames{"q",    "k",  "v",    "o",
                                                                  "gate", "up", "down", "recurrent"};
inline constexpr std::uint8_t kLoraQ = 1, kLoraK = 2, kLoraV = 4, kLoraO = 8, kLoraGate = 16, kLoraUp = 32,
                              kLoraDown = 64, kLoraRecurrent = 128;
inline constexpr std::uint8_t kLoraAttention = kLoraQ | kLoraK | kLoraV | kLoraO;
inline constexpr std::uint8_t kLoraMlp = kLoraGate | kLoraUp | kLoraDown;
inline constexpr std::uint8_t kLoraAll = 255;

/// How the frozen matrices of the layers lie in memory.
enum class BaseFormat : std::uint8_t { kBf16, kFp8, kInt8, kNf4 };
inline constexpr std::array<std::string_view, 4> kBaseFormatNames{"bf16", "fp8", "int8", "nf4"};

/// Bits a weight, with its share of the scales. NF4: blocks of 64 with an 8-bit scale, whose blocks of 256 have one in
/// 32 bits: 4 + 8/64 + 32/(64 x 256) = 4.127 (arXiv:2305.14314 section 3, double quantization). Scales of whole rows or
/// tensors (fp8, int8) are not counted.
constexpr double bits_of(BaseFormat format) {
  switch (format) {
    case BaseFormat::kBf16: return 16;
    case BaseFormat::kFp8:
    case BaseFormat::kInt8: return 8;
    case BaseFormat::kNf4: break;
  }
  return 4.0 + 8.0 / 64 + 32.0 / (64 * 256);
}

/// What is trained instead of the whole model: adapters beside frozen weights.
struct FineTune {
  std::int64_t rank = 16;
  std::uint8_t targets = kLoraAll;
  bool experts = false;            ///< each routed expert's matrices carry adapters of their own
  std::optional<BaseFormat> base;  ///< absent: as the recipe keeps weights

  friend bool operator==(const FineTune&, const FineTune&) = default;
};

/// "q,k,v,o".
std::string target_names(std::uint8_t targets);

/// The operations of a layer, an end or an MTP module while adapters train: every weight frozen, each target followed
/// by its two small matmuls, and of what the backward pass keeps only what it still needs.
template <class R>
std::vector<Op<R>> adapted(std::vector<Op<R>> ops, const FineTune& tune);

/// The same, or the operations as they are where the whole model trains.
template <class R>
std::vector<Op<R>> trained(std::vector<Op<R>> ops, const std::optional<FineTune>& tune) {
  return tune ? adapted(std::move(ops), *tune) : ops;
}

}  // namespace scalecalc
