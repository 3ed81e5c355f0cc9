// Formats by the settings of each quantization method. Sources: the methods' own configuration classes; ModelOpt's
// names of algorithms.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "import/hf_quantization.h"

namespace scalecalc::quantizer {

using Scheme = HfScheme;

inline constexpr const char* kMlx = "mlx";  ///< MLX names no method

/// The scalar under a key; empty if there is none.
std::string word(const ConfigNode& map, std::string_view key);
bool is_true(const ConfigNode& map, std::string_view key);
/// A whole number under a key; `otherwise` if it is absent or null. Reported if it is no number in the range.
std::int64_t whole_or(HfKeys& keys, const ConfigNode& map, std::string_view key, std::int64_t otherwise, Range range);
std::string upper(std::string text);
Scheme prescribed(WeightFormat format);
/// ModelOpt's name of an algorithm.
std::optional<Scheme> algorithm_scheme(HfKeys& keys, const ConfigNode& config, const std::string& name);
/// One group of compressed-tensors: number, kind and grouping of the bits.
std::optional<Scheme> group_scheme(HfKeys& keys, const ConfigNode& config, const ConfigNode& group);
/// EXL2: mixed widths of one mean.
std::optional<Scheme> exl2_scheme(HfKeys& keys, const ConfigNode& config, std::string_view key);
/// MLX: affine integers with a 16-bit scale and offset for each group, or a floating format.
std::optional<Scheme> mlx_scheme(HfKeys& keys, const ConfigNode& config);
/// AMD Quark: of a list of steps the last is what is stored.
std::optional<Scheme> quark_scheme(HfKeys& keys, const ConfigNode& spec);
/// Integers packed as GPTQ and AWQ do.
std::optional<Scheme> packed_scheme(HfKeys& keys, const ConfigNode& config, bool zero_points);
/// GPTQ's checkpoints have the group of each input in 32 bits (g_idx) beside every matrix.
std::optional<Scheme> gptq_scheme(HfKeys& keys, const ConfigNode& config);
std::optional<Scheme> auto_round_scheme(HfKeys& keys, const ConfigNode& config);
/// That of all linear layers by the method, or ModelOpt's algorithm if one is named; nothing if it is not known.
std::optional<Scheme> scheme_of(HfKeys& keys, const ConfigNode& config, const std::string& method,
                                const std::string& algorithm);

}  // namespace scalecalc::quantizer
