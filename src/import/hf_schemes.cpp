// Maps the settings of each quantization method to number formats.
#include "import/hf_schemes.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"

namespace scalecalc::quantizer {

std::string word(const ConfigNode& map, std::string_view key) {
  const ConfigNode* found = map.find(key);
  return found == nullptr || found->is_null() || found->kind != ConfigNode::Kind::kScalar ? "" : found->text;
}

bool is_true(const ConfigNode& map, std::string_view key) { return word(map, key) == "true"; }

/// A whole number under a key; `otherwise` if it is absent or null. Reported if it is no number in the range.
std::int64_t whole_or(HfKeys& keys, const ConfigNode& map, std::string_view key, std::int64_t otherwise, Range range) {
  const ConfigNode* found = map.find(key);
  if (found == nullptr || found->is_null()) return otherwise;
  const auto value = keys.whole(*found, key, range);
  return value ? value->value : otherwise;
}

std::string upper(std::string text) {
  for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return text;
}

constexpr Range kBitRange{1, 16};
constexpr Range kGroupRange{-1, 1e6};
constexpr double kScaleBits = 16;  // scales of integer groups are 16-bit floats

static std::optional<WeightFormat> integer_format(std::int64_t bits) {
  switch (bits) {
    case 2: return WeightFormat::kInt2;
    case 3: return WeightFormat::kInt3;
    case 4: return WeightFormat::kInt4;
    case 5: return WeightFormat::kInt5;
    case 6: return WeightFormat::kInt6;
    case 8: return WeightFormat::kInt8;
    default: return std::nullopt;
  }
}

/// Integer weights with `beside` bits of scale and offset for each group; group -1 is a whole row, where they weigh
/// nothing.
static std::optional<Scheme> grouped_scheme(std::int64_t bits, std::int64_t group, double beside) {
  const auto format = integer_format(bits);
  if (!format) return std::nullopt;
  Scheme out{*format, static_cast<double>(bits)};
  if (group > 0) out.bits += beside / static_cast<double>(group);
  return out;
}

/// The same with a 16-bit scale, and a zero point as wide as the weights where there is one.
static std::optional<Scheme> integer_scheme(std::int64_t bits, std::int64_t group, bool zero_points) {
  return grouped_scheme(bits, group, kScaleBits + (zero_points ? static_cast<double>(bits) : 0));
}

Scheme prescribed(WeightFormat format) { return {format, bits_of(format)}; }

/// e4m3 with one fp32 scale for each block of a matrix.
static Scheme fp8_blocks(std::int64_t rows, std::int64_t columns) {
  return {
      .format = WeightFormat::kFp8, .bits = 8 + 32 / static_cast<double>(rows * columns), .block = {{rows, columns}}};
}

/// ModelOpt's name of an algorithm.
std::optional<Scheme> algorithm_scheme(HfKeys& keys, const ConfigNode& config, const std::string& name) {
  const std::string algorithm = upper(name);
  const std::int64_t group = whole_or(keys, config, "group_size", 128, kGroupRange);
  if (algorithm == "FP8" || algorithm == "FP8_PER_CHANNEL_PER_TOKEN") return prescribed(WeightFormat::kFp8);
  if (algorithm == "FP8_PB_WO") return fp8_blocks(128, 128);
  if (algorithm == "MXFP8") return prescribed(WeightFormat::kMxfp8);
  if (algorithm == "NVFP4" || algorithm == "W4A16_NVFP4" || algorithm == "NVFP4_AWQ") {
    return prescribed(WeightFormat::kNvfp4);
  }
  if (algorithm == "MXFP4" || algorithm == "W4A8_MXFP4_FP8") return prescribed(WeightFormat::kMxfp4);
  if (algorithm == "INT8_SQ" || algorithm == "W8A8_SQ_PER_CHANNEL" || algorithm == "W8A16") {
    return prescribed(WeightFormat::kInt8);
  }
  if (algorithm == "W4A16" || algorithm == "W4A16_AWQ" || algorithm == "W4A8_AWQ" || algorithm == "INT4_AWQ") {
    return integer_scheme(4, group, false);
  }
  return std::nullopt;
}

/// One group of compressed-tensors: number, kind and grouping of the bits.
std::optional<Scheme> group_scheme(HfKeys& keys, const ConfigNode& config, const ConfigNode& group) {
  const ConfigNode* weights = group.find("weights");
  if (weights == nullptr || weights->kind != ConfigNode::Kind::kMap) return std::nullopt;
  const std::int64_t bits = whole_or(keys, *weights, "num_bits", 8, kBitRange);
  const std::int64_t size = whole_or(keys, *weights, "group_size", -1, kGroupRange);
  if (word(*weights, "type") == "float") {
    if (bits == 8) return prescribed(size == 32 ? WeightFormat::kMxfp8 : WeightFormat::kFp8);
    if (bits != 4) return std::nullopt;
    const std::string format = word(config, "format") + word(group, "format");
    return prescribed(format.find("mxfp4") != std::string::npos ? WeightFormat::kMxfp4 : WeightFormat::kNvfp4);
  }
  return integer_scheme(bits, size, word(*weights, "symmetric") == "false");
}

static std::optional<Scheme> fp8_scheme(HfKeys& keys, const ConfigNode& config) {
  const ConfigNode* block = config.find("weight_block_size");
  if (block == nullptr || block->is_null()) return prescribed(WeightFormat::kFp8);
  if (block->items.size() != 2) {
    keys.problems().add(block->span, "'weight_block_size' must be a list of two numbers");
    return std::nullopt;
  }
  const auto rows = keys.whole(block->items[0], "weight_block_size", {1, 1e6});
  const auto columns = keys.whole(block->items[1], "weight_block_size", {1, 1e6});
  if (!rows || !columns) return std::nullopt;
  return fp8_blocks(rows->value, columns->value);
}

static std::optional<Scheme> bitsandbytes_scheme(HfKeys& keys, const ConfigNode& config) {
  if (is_true(config, "load_in_8bit") || is_true(config, "_load_in_8bit")) return prescribed(WeightFormat::kInt8);
  if (!is_true(config, "load_in_4bit") && !is_true(config, "_load_in_4bit")) return std::nullopt;
  if (word(config, "bnb_4bit_quant_type") == "fp4") {
    keys.remark("bitsandbytes' 4-bit floats are shown as nf4: both take the same bits");
  }
  constexpr double kDoubleQuantizedBits = 4.127;  // arXiv:2305.14314 s. 3: 8-bit scales with scales of their own
  if (is_true(config, "bnb_4bit_use_double_quant")) return Scheme{WeightFormat::kNf4, kDoubleQuantizedBits};
  return prescribed(WeightFormat::kNf4);
}

/// MLX: affine integers with a 16-bit scale and offset for each group, or a floating format.
std::optional<Scheme> mlx_scheme(HfKeys& keys, const ConfigNode& config) {
  const std::string mode = word(config, "mode");
  if (mode == "mxfp4") return prescribed(WeightFormat::kMxfp4);
  if (mode == "mxfp8") return prescribed(WeightFormat::kMxfp8);
  if (mode == "nvfp4") return prescribed(WeightFormat::kNvfp4);
  if (!mode.empty() && mode != "affine") return std::nullopt;
  return grouped_scheme(whole_or(keys, config, "bits", 4, kBitRange),
                        whole_or(keys, config, "group_size", 64, kGroupRange), 2 * kScaleBits);
}

/// HQQ: a scale and a zero point of 16 bits for each group.
static std::optional<Scheme> hqq_scheme(HfKeys& keys, const ConfigNode& config) {
  const ConfigNode* inner = config.find("quant_config");
  const ConfigNode* weights = inner == nullptr ? nullptr : inner->find("weight_quant_params");
  if (weights == nullptr || weights->kind != ConfigNode::Kind::kMap) return std::nullopt;
  return grouped_scheme(whole_or(keys, *weights, "nbits", 4, kBitRange),
                        whole_or(keys, *weights, "group_size", 64, kGroupRange), 2 * kScaleBits);
}

/// EXL2: mixed widths of one mean.
std::optional<Scheme> exl2_scheme(HfKeys& keys, const ConfigNode& config, std::string_view key) {
  const ConfigNode* bits = config.find(key);
  if (bits == nullptr || bits->is_null()) return std::nullopt;
  const auto mean = keys.decimal(*bits, key, {1.5, 8.5});
  if (!mean) return std::nullopt;
  const auto format = integer_format(std::llround(*mean));
  return format ? std::optional(Scheme{*format, *mean}) : std::optional(Scheme{WeightFormat::kInt8, *mean});
}

/// AMD Quark: of a list of steps the last is what is stored.
std::optional<Scheme> quark_scheme(HfKeys& keys, const ConfigNode& spec) {
  const ConfigNode* weight = spec.find("weight");
  if (weight != nullptr && weight->kind == ConfigNode::Kind::kSequence && !weight->items.empty()) {
    weight = &weight->items.back();
  }
  if (weight == nullptr || weight->kind != ConfigNode::Kind::kMap) return std::nullopt;
  const std::string type = word(*weight, "dtype");
  const std::int64_t group =
      word(*weight, "qscheme") == "per_group" ? whole_or(keys, *weight, "group_size", 32, kGroupRange) : -1;
  if (type == "fp4") return prescribed(WeightFormat::kMxfp4);
  if (type.starts_with("fp8")) return prescribed(WeightFormat::kFp8);
  if (type == "int4" || type == "uint4") return integer_scheme(4, group, type == "uint4");
  if (type == "int8" || type == "uint8") return integer_scheme(8, group, type == "uint8");
  return std::nullopt;
}

/// torchao: the name of a configuration, as text or as {default: {_type, _data}}.
static std::optional<Scheme> torchao_scheme(HfKeys& keys, const ConfigNode& config) {
  const ConfigNode* type = config.find("quant_type");
  if (type == nullptr) return std::nullopt;
  const ConfigNode* of_all = type->find("default");
  const std::string name = lower_case(of_all == nullptr ? type->text : word(*of_all, "_type"));
  const ConfigNode* data = of_all == nullptr ? config.find("quant_type_kwargs") : of_all->find("_data");
  if (name.find("float8") != std::string::npos) return prescribed(WeightFormat::kFp8);
  if (name.find("int4") != std::string::npos) {
    return grouped_scheme(4, data == nullptr ? 128 : whole_or(keys, *data, "group_size", 128, kGroupRange),
                          2 * kScaleBits);
  }
  if (name.find("int8") != std::string::npos) return prescribed(WeightFormat::kInt8);
  return std::nullopt;
}

/// GPTQ stores the packed zero points of symmetric weights too; AWQ leaves them out where it has none.
std::optional<Scheme> packed_scheme(HfKeys& keys, const ConfigNode& config, bool zero_points) {
  const bool short_names = config.find("w_bit") != nullptr;
  return integer_scheme(whole_or(keys, config, short_names ? "w_bit" : "bits", 4, kBitRange),
                        whole_or(keys, config, short_names ? "q_group_size" : "group_size", 128, kGroupRange),
                        zero_points);
}

std::optional<Scheme> gptq_scheme(HfKeys& keys, const ConfigNode& config) {
  std::optional<Scheme> out = packed_scheme(keys, config, true);
  if (out) out->bits_per_input = 32;
  return out;
}

std::optional<Scheme> auto_round_scheme(HfKeys& keys, const ConfigNode& config) {
  const std::string type = word(config, "data_type");
  if (type.starts_with("nv_fp")) return prescribed(WeightFormat::kNvfp4);
  if (type.starts_with("mx_fp")) {
    const std::int64_t bits = whole_or(keys, config, "bits", 4, kBitRange);
    return prescribed(bits == 4 ? WeightFormat::kMxfp4 : WeightFormat::kMxfp8);
  }
  if (type.starts_with("fp")) return prescribed(WeightFormat::kFp8);
  return packed_scheme(keys, config, true);
}

std::optional<Scheme> scheme_of(HfKeys& keys, const ConfigNode& config, const std::string& method,
                                const std::string& algorithm) {
  if (!algorithm.empty()) return algorithm_scheme(keys, config, algorithm);
  if (method == "fp8") return fp8_scheme(keys, config);
  if (method == "fbgemm_fp8") return prescribed(WeightFormat::kFp8);
  if (method == "mxfp4") return prescribed(WeightFormat::kMxfp4);
  if (method == "bitsandbytes") return bitsandbytes_scheme(keys, config);
  if (method == "awq") return packed_scheme(keys, config, word(config, "zero_point") != "false");
  if (method == "gptq") return gptq_scheme(keys, config);
  if (method == "auto-round" || method == "intel/auto-round") return auto_round_scheme(keys, config);
  if (method == "hqq") return hqq_scheme(keys, config);
  if (method == "exl2" || method == "exl3") return exl2_scheme(keys, config, "bits");
  if (method == "torchao") return torchao_scheme(keys, config);
  if (method == kMlx) return mlx_scheme(keys, config);
  return std::nullopt;
}

}  // namespace scalecalc::quantizer
