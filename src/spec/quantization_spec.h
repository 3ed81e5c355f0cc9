// How a checkpoint stores its weights: one format for most of them, others part by part.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace scalecalc {

/// Storage formats of weights and caches. Those of 4 and 8 bits may come with scales: mxfp4 and mxfp8 with one e8m0 for
/// 32 elements (OCP MX 1.0), nvfp4 with one e4m3 for 16 elements, nf4 with a 16-bit one for 64 (arXiv:2305.14314).
enum class WeightFormat : std::uint8_t {
  kFp32,
  kBf16,
  kFp16,
  kFp8,
  kMxfp8,
  kInt8,
  kInt6,
  kInt5,
  kInt4,
  kNf4,
  kMxfp4,
  kNvfp4,
  kInt3,
  kInt2
};
inline constexpr std::array<std::string_view, 14> kWeightFormatNames{
    "fp32", "bf16", "fp16", "fp8", "mxfp8", "int8", "int6", "int5", "int4", "nf4", "mxfp4", "nvfp4", "int3", "int2"};
constexpr std::string_view name_of(WeightFormat format) { return kWeightFormatNames[static_cast<std::size_t>(format)]; }

/// Bits of one element with the scales the format prescribes; fp8 and integers prescribe none.
constexpr double bits_of(WeightFormat format) {
  constexpr std::array<double, kWeightFormatNames.size()> kBits{32, 16, 16, 8, 8.25, 8, 6, 5, 4, 4.5, 4.25, 4.5, 3, 2};
  return kBits[static_cast<std::size_t>(format)];
}

/// Parts of a model that a checkpoint may store in a format of their own. Norms and biases stay as they are.
enum class WeightPart : std::uint8_t { kEmbedding, kHead, kAttention, kMlp, kExperts, kShared, kRouter };
inline constexpr std::array<std::string_view, 7> kWeightPartNames{"embedding", "head",   "attention", "mlp",
                                                                  "experts",   "shared", "router"};

/// Weights of a part in one format: their share of the part's, and the bits each takes with its scales.
struct StoredShare {
  WeightFormat format = WeightFormat::kBf16;
  double share = 1;
  double bits = 16;
};

struct QuantizationSpec {
  WeightFormat weights = WeightFormat::kBf16;  ///< of every part that `parts` does not name
  double bits_per_weight = 16;                 ///< of that format, with its scales
  std::optional<WeightFormat> mtp;             ///< of MTP modules; absent: as the layers
  std::optional<WeightFormat> kv;              ///< of the cache; absent: as activations
  std::array<std::optional<WeightFormat>, kWeightPartNames.size()> parts;
  /// Of the part's weights on average, where they are not all of its format or have other scales than it prescribes.
  std::array<std::optional<double>, kWeightPartNames.size()> part_bits;
  /// Of parts in several formats, each with its share; the part's own format is that of most, its bits their mean.
  std::array<std::vector<StoredShare>, kWeightPartNames.size()> part_shares;
  /// Rows and columns of an fp8 matrix that share a scale; absent: a whole tensor, or each of its rows, does.
  std::optional<std::array<std::int64_t, 2>> block;
  std::string source;

  /// Whether matmuls with most weights of a part have a scale for each short block.
  bool by_blocks(WeightPart part) const {
    return format(part) == WeightFormat::kMxfp8 || (format(part) == WeightFormat::kFp8 && block);
  }
  /// Format of most weights of a part.
  WeightFormat format(WeightPart part) const { return parts[static_cast<std::size_t>(part)].value_or(weights); }
  /// Bits a weight of a part takes, with scales.
  double bits(WeightPart part) const {
    if (const auto own = part_bits[static_cast<std::size_t>(part)]) return *own;
    return format(part) == weights ? bits_per_weight : bits_of(format(part));
  }
  /// The formats of a part; one unless its weights differ.
  std::vector<StoredShare> shares(WeightPart part) const {
    const std::vector<StoredShare>& own = part_shares[static_cast<std::size_t>(part)];
    return own.empty() ? std::vector<StoredShare>{{format(part), 1, bits(part)}} : own;
  }
  /// Those of MTP modules.
  QuantizationSpec of_modules() const {
    return mtp ? QuantizationSpec{.weights = *mtp, .bits_per_weight = bits_of(*mtp), .kv = kv, .source = source}
               : *this;
  }
  /// What no quantizer touches, norms and biases: the embedding's format where that is none of a quantizer's.
  WeightFormat format_beside() const {
    const WeightFormat plain = format(WeightPart::kEmbedding);
    return plain == WeightFormat::kFp32 || plain == WeightFormat::kFp16 ? plain : WeightFormat::kBf16;
  }
};

}  // namespace scalecalc
