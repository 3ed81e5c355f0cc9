#include "import/hf_quantization.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "base/text.h"

namespace scalecalc {
namespace {

constexpr std::array<WeightPart, kWeightPartNames.size()> kParts{
    WeightPart::kEmbedding, WeightPart::kHead,   WeightPart::kAttention, WeightPart::kMlp,
    WeightPart::kExperts,   WeightPart::kShared, WeightPart::kRouter};

/// How the quantized weights are stored.
struct Scheme {
  WeightFormat format = WeightFormat::kBf16;
  double bits = 16;
};

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

/// Integer weights with a 16-bit scale for each group; group -1 is a whole row, whose scale weighs nothing.
std::optional<Scheme> integer_scheme(std::int64_t bits, std::int64_t group, bool zero_points) {
  if (bits != 4 && bits != 8) return std::nullopt;
  Scheme out{bits == 4 ? WeightFormat::kInt4 : WeightFormat::kInt8, static_cast<double>(bits)};
  if (group > 0) out.bits += (kScaleBits + (zero_points ? out.bits : 0)) / static_cast<double>(group);
  return out;
}

Scheme prescribed(WeightFormat format) { return {format, bits_of(format)}; }

/// e4m3 with one fp32 scale for each block of a matrix.
Scheme fp8_blocks(std::int64_t rows, std::int64_t columns) {
  return {WeightFormat::kFp8, 8 + 32 / static_cast<double>(rows * columns)};
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

/// The first group of compressed-tensors: number, kind and grouping of the bits.
std::optional<Scheme> compressed_scheme(HfKeys& keys, const ConfigNode& config) {
  const ConfigNode* groups = config.find("config_groups");
  if (groups == nullptr || groups->entries.empty()) return std::nullopt;
  if (groups->entries.size() > 1) {
    keys.warn("quantization_config has several config_groups; the first is taken for all");
  }
  const ConfigNode& group = groups->entries.front().value;
  const ConfigNode* weights = group.find("weights");
  if (weights == nullptr || weights->kind != ConfigNode::Kind::kMap) return std::nullopt;
  const std::int64_t bits = whole_or(keys, *weights, "num_bits", 8, kBitRange);
  const std::int64_t size = whole_or(keys, *weights, "group_size", -1, kGroupRange);
  if (word(*weights, "type") == "float") {
    if (bits == 8) return prescribed(WeightFormat::kFp8);
    if (bits != 4) return std::nullopt;
    const std::string format = word(config, "format") + word(group, "format");
    return prescribed(format.find("mxfp4") != std::string::npos ? WeightFormat::kMxfp4 : WeightFormat::kNvfp4);
  }
  return integer_scheme(bits, size, word(*weights, "symmetric") == "false");
}

std::optional<Scheme> fp8_scheme(HfKeys& keys, const ConfigNode& config) {
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

std::optional<Scheme> bitsandbytes_scheme(HfKeys& keys, const ConfigNode& config) {
  if (is_true(config, "load_in_8bit") || is_true(config, "_load_in_8bit")) return prescribed(WeightFormat::kInt8);
  if (!is_true(config, "load_in_4bit") && !is_true(config, "_load_in_4bit")) return std::nullopt;
  if (word(config, "bnb_4bit_quant_type") == "fp4") {
    keys.remark("bitsandbytes' 4-bit floats are shown as nf4: both take the same bits");
  }
  constexpr double kDoubleQuantizedBits = 4.127;  // arXiv:2305.14314 s. 3: 8-bit scales with scales of their own
  if (is_true(config, "bnb_4bit_use_double_quant")) return Scheme{WeightFormat::kNf4, kDoubleQuantizedBits};
  return prescribed(WeightFormat::kNf4);
}

std::optional<Scheme> scheme_of(HfKeys& keys, const ConfigNode& config, const std::string& method,
                                const std::string& algorithm) {
  if (!algorithm.empty()) return algorithm_scheme(keys, config, algorithm);
  if (method == "fp8") return fp8_scheme(keys, config);
  if (method == "fbgemm_fp8") return prescribed(WeightFormat::kFp8);
  if (method == "mxfp4") return prescribed(WeightFormat::kMxfp4);
  if (method == "compressed-tensors" || method == "modelopt") return compressed_scheme(keys, config);
  if (method == "bitsandbytes") return bitsandbytes_scheme(keys, config);
  if (method == "awq" || method == "gptq") {
    const bool zero_points = method == "awq" ? word(config, "zero_point") != "false" : word(config, "sym") == "false";
    return integer_scheme(whole_or(keys, config, "bits", 4, kBitRange),
                          whole_or(keys, config, "group_size", 128, kGroupRange), zero_points);
  }
  return std::nullopt;
}

/// Modules that stay as they are, under the name each method has for the list.
const ConfigNode* skip_list(const ConfigNode& config) {
  for (const std::string_view key :
       {"exclude_modules", "ignore", "modules_to_not_convert", "ignored_layers", "llm_int8_skip_modules"}) {
    const ConfigNode* found = config.find(key);
    if (found != nullptr && found->kind == ConfigNode::Kind::kSequence) return found;
  }
  return nullptr;
}

WeightFormat read_dtype(HfKeys& keys) {
  const ConfigNode* dtype = keys.find_on_top({"dtype", "torch_dtype"});
  const std::string name = dtype == nullptr || dtype->is_null() ? "" : dtype->text;
  if (name.empty()) {
    keys.defaulted("dtype", "bfloat16", "the file does not say; what most checkpoints have");
    return WeightFormat::kBf16;
  }
  if (name == "bfloat16") return WeightFormat::kBf16;
  if (name == "float16" || name == "half") return WeightFormat::kFp16;
  if (name == "float32" || name == "float") return WeightFormat::kFp32;
  keys.warn(fmt::format("dtype {} is not known: unquantized weights are read as bfloat16", in_quotes(name)));
  return WeightFormat::kBf16;
}

class Reader {
 public:
  Reader(HfKeys& keys, const HfArchitecture& model, WeightFormat plain)
      : keys_(keys), plain_(plain), weights_(model, plain) {}

  /// Formats of all weights under one scheme. False if the method is not known.
  bool apply(const ConfigNode& config) {
    const std::string method = word(config, "quant_method");
    const std::string algorithm = word(config, "quant_algo");
    const ConfigNode* each = config.find("quantized_layers");
    if (each != nullptr && each->kind == ConfigNode::Kind::kMap && !each->entries.empty()) return apply_each(*each);
    const auto scheme = scheme_of(keys_, config, method, algorithm);
    if (!scheme) return false;
    schemes_[scheme->format] = *scheme;
    const ConfigNode* skipped = skip_list(config);
    const bool experts_only = method == "mxfp4";
    for (const WeightPart part :
         {WeightPart::kAttention, WeightPart::kMlp, WeightPart::kExperts, WeightPart::kShared}) {
      if (!experts_only || part == WeightPart::kExperts) weights_.set_part(part, scheme->format);
    }
    // These two list every module they leave out, so that a head which is not listed is quantized.
    const bool lists_all = method == "compressed-tensors" || method == "modelopt" || !algorithm.empty();
    if (lists_all && skipped != nullptr) weights_.set_part(WeightPart::kHead, scheme->format);
    if (skipped == nullptr) return true;
    for (const ConfigNode& item : skipped->items) set(item.text, plain_);
    return true;
  }

  /// The block, with one format for each part: the one most of its weights have.
  void write(MapBuilder& out) {
    std::array<WeightFormat, kParts.size()> main{};
    std::map<WeightFormat, double> total;
    for (std::size_t i = 0; i < kParts.size(); ++i) {
      main[i] = majority(kParts[i]);
      total[main[i]] += weights_.parameters(kParts[i]);
    }
    const auto most =
        std::max_element(total.begin(), total.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    const WeightFormat common = most->first;
    const auto scheme = schemes_.find(common);
    const double bits = scheme == schemes_.end() ? bits_of(common) : scheme->second.bits;
    out.add("weights", name_of(common)).add("bits_per_weight", fmt::format("{:.10g}", bits));
    MapBuilder parts(keys_.span());
    for (std::size_t i = 0; i < kParts.size(); ++i) {
      if (main[i] != common && weights_.parameters(kParts[i]) > 0) parts.add(kWeightPartNames[i], name_of(main[i]));
    }
    if (!parts.empty()) out.add("parts", parts.take());
    if (unknown_ == 0) return;
    keys_.warn(fmt::format("{} module names of the quantization are not understood, such as {}", unknown_,
                           in_quotes(first_unknown_)));
  }

 private:
  /// Mixed precision: every quantized module is listed with its algorithm.
  bool apply_each(const ConfigNode& modules) {
    for (const ConfigNode::Entry& entry : modules.entries) {
      const std::string name = word(entry.value, "quant_algo");
      const auto scheme = algorithm_scheme(keys_, entry.value, name);
      if (!scheme) {
        keys_.warn(fmt::format("quantization algorithm {} is not known", in_quotes(name)));
        return false;
      }
      schemes_[scheme->format] = *scheme;
      set(entry.key, scheme->format);
    }
    return true;
  }

  void set(std::string_view pattern, WeightFormat format) {
    if (weights_.set(pattern, format) != HfWeights::Meaning::kUnknown) return;
    if (unknown_++ == 0) first_unknown_ = pattern;
  }

  WeightFormat majority(WeightPart part) {
    WeightFormat best = plain_;
    double most = weights_.parameters(part, plain_);
    for (const auto& [format, scheme] : schemes_) {
      const double share = weights_.parameters(part, format);
      if (share > most) {
        most = share;
        best = format;
      }
    }
    const double all = weights_.parameters(part);
    if (all > 0 && most < all) {
      keys_.remark(fmt::format("{:.0f}% of the {} weights are {}; all are taken as such", 100 * most / all,
                               kWeightPartNames[static_cast<std::size_t>(part)], name_of(best)));
    }
    return best;
  }

  HfKeys& keys_;
  WeightFormat plain_;
  HfWeights weights_;
  std::map<WeightFormat, Scheme> schemes_;
  std::size_t unknown_ = 0;
  std::string first_unknown_;
};

/// kv_cache_quant_algo is a word; kv_cache_scheme a word or {num_bits, type}.
std::optional<WeightFormat> cache_format(HfKeys& keys, const ConfigNode& config) {
  const ConfigNode* found = config.find("kv_cache_quant_algo");
  if (found == nullptr || found->is_null()) found = config.find("kv_cache_scheme");
  if (found == nullptr || found->is_null()) return std::nullopt;
  if (found->kind == ConfigNode::Kind::kMap) {
    if (word(*found, "num_bits") == "8")
      return word(*found, "type") == "int" ? WeightFormat::kInt8 : WeightFormat::kFp8;
  } else if (upper(found->text) == "FP8") {
    return WeightFormat::kFp8;
  } else if (upper(found->text) == "INT8") {
    return WeightFormat::kInt8;
  } else if (upper(found->text) == "NVFP4") {
    return WeightFormat::kNvfp4;
  }
  keys.warn(fmt::format("the format of the KV cache ({}) is not known", value_text(*found)));
  return std::nullopt;
}

}  // namespace

std::optional<ConfigNode> hf_quantization(HfKeys& keys, const HfArchitecture& model, const ConfigNode* beside) {
  const ConfigNode* config = keys.find_on_top({"quantization_config"});
  if (config != nullptr && config->kind != ConfigNode::Kind::kMap) config = nullptr;
  if (beside != nullptr) {
    const ConfigNode* inner = beside->find("quantization");
    config = inner != nullptr && inner->kind == ConfigNode::Kind::kMap ? inner : beside;
    keys.remark("the quantization is read from hf_quant_config.json");
  }
  const bool says_dtype = keys.find_on_top({"dtype", "torch_dtype"}) != nullptr;
  const WeightFormat plain = read_dtype(keys);
  if (config == nullptr && !says_dtype) return std::nullopt;

  MapBuilder out(config == nullptr ? keys.span() : config->span);
  Reader reader(keys, model, plain);
  if (config != nullptr && !reader.apply(*config)) {
    const std::string algorithm = word(*config, "quant_algo");
    keys.warn(fmt::format("quantization {} is not read: the formats of the weights are left out",
                          in_quotes(algorithm.empty() ? word(*config, "quant_method") : algorithm)));
    return std::nullopt;
  }
  reader.write(out);
  if (const auto kv = config == nullptr ? std::nullopt : cache_format(keys, *config)) out.add("kv", name_of(*kv));
  out.add("source", "hf-config");
  return out.take();
}

}  // namespace scalecalc
