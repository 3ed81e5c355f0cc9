// Reads quantization_config and hf_quant_config.json into the `quantization:` block of a model document.
#include "import/hf_quantization.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "base/text.h"
#include "import/hf_schemes.h"

namespace scalecalc {
namespace {

using namespace quantizer;  // NOLINT: what this file is about

constexpr std::array<WeightPart, kWeightPartNames.size()> kParts{
    WeightPart::kEmbedding, WeightPart::kHead,   WeightPart::kAttention, WeightPart::kMlp,
    WeightPart::kExperts,   WeightPart::kShared, WeightPart::kRouter};

/// Modules that stay as they are, under the name each method has for the list.
const ConfigNode* skip_list(const ConfigNode& config) {
  for (const std::string_view key : {"exclude_modules", "ignore", "modules_to_not_convert", "ignored_layers",
                                     "llm_int8_skip_modules", "skip_modules", "exclude", "exclude_layers"}) {
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
      : keys_(keys), plain_(prescribed(plain)), weights_(model, plain_) {}

  /// Every linear layer in one format because the user says so.
  void assume(WeightFormat format, const ConfigNode* config) {
    set_linears(prescribed(format));
    if (config != nullptr) skip(*config);
  }

  /// Formats of all weights under one scheme. False if the method is not known.
  bool apply(const ConfigNode& config, const std::string& method) {
    const std::string algorithm = word(config, "quant_algo");
    const ConfigNode* each = config.find("quantized_layers");
    if (each != nullptr && each->kind == ConfigNode::Kind::kMap && !each->entries.empty()) return apply_each(*each);
    const ConfigNode* groups = config.find("config_groups");
    const bool grouped = algorithm.empty() && (method == "compressed-tensors" || method == "modelopt");
    if (grouped && (groups == nullptr || groups->entries.empty())) return false;
    if (grouped ? !apply_groups(config, *groups) : !apply_one(config, method, algorithm)) return false;
    skip(config);
    return true;
  }

  /// The block, with the format and the mean bits of each part.
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
    if (scheme != schemes_.end() && scheme->second.block) {
      ConfigNode block = MapBuilder(keys_.span()).take();
      block.kind = ConfigNode::Kind::kSequence;
      for (const std::int64_t size : *scheme->second.block) {
        block.items.push_back(text_node(std::to_string(size), keys_.span()));
      }
      out.add("block", std::move(block));
    }
    MapBuilder parts(keys_.span());
    for (std::size_t i = 0; i < kParts.size(); ++i) {
      const double all = weights_.parameters(kParts[i]);
      if (all == 0) continue;
      const double mean = weights_.stored_bits(kParts[i]) / all;
      const double said = main[i] == common ? bits : bits_of(main[i]);
      ConfigNode shares = shares_of(kParts[i]);
      if (shares.items.size() > 1) {
        parts.add(kWeightPartNames[i], std::move(shares));
      } else if (std::abs(mean - said) > 1e-9 * said) {
        MapBuilder own(keys_.span());
        own.add("format", name_of(main[i])).add("bits", fmt::format("{:.10g}", mean));
        parts.add(kWeightPartNames[i], own.take());
      } else if (main[i] != common) {
        parts.add(kWeightPartNames[i], name_of(main[i]));
      }
    }
    if (!parts.empty()) out.add("parts", parts.take());
    if (modules_) out.add("mtp", name_of(*modules_));
    if (unknown_ == 0) return;
    keys_.warn(fmt::format("{} module names of the quantization are not understood, such as {}", unknown_,
                           in_quotes(first_unknown_)));
  }

  /// DeepSeek-V4 says its experts' format beside a quantization by blocks, which leaves its compressors alone.
  void set_experts_dtype(bool blocks) {
    const ConfigNode* said = keys_.find({"expert_dtype"});
    if (said != nullptr && said->text == "fp4" && blocks)
      set_part(WeightPart::kExperts, {WeightFormat::kMxfp4, bits_of(WeightFormat::kMxfp4)});
    for (const std::string_view name : {"compressor", "weights_proj"}) weights_.set_named(name, plain_);
  }

 private:
  bool apply_one(const ConfigNode& config, const std::string& method, const std::string& algorithm) {
    if (method == "quark") return apply_quark(config);
    const auto scheme = scheme_of(keys_, config, method, algorithm);
    if (!scheme) return false;
    if (method == "mxfp4") {  // gpt-oss: experts alone
      set_part(WeightPart::kExperts, *scheme);
      return true;
    }
    set_linears(*scheme);
    if (method == kMlx) {
      set_part(WeightPart::kEmbedding, *scheme);
      set_part(WeightPart::kHead, *scheme);
      // A router that chooses among groups of experts, DeepSeek's and GLM's, is no linear layer there.
      if (!keys_.has({"n_group"})) set_part(WeightPart::kRouter, *scheme);
    }
    if (method == "exl2" || method == "exl3") {
      if (const auto head = exl2_scheme(keys_, config, "head_bits")) set_part(WeightPart::kHead, *head);
    }
    // ModelOpt lists every module it leaves out, so that a head which is not listed is quantized.
    if (!algorithm.empty() && skip_list(config) != nullptr) set_part(WeightPart::kHead, *scheme);
    if (is_true(config, "lm_head")) set_part(WeightPart::kHead, *scheme);
    return overrides(config, method);
  }

  /// Modules with a format of their own, under the key each method has for them.
  bool overrides(const ConfigNode& config, const std::string& method) {
    const auto each = [&](const ConfigNode* map, const auto& scheme_of_module) {
      if (map == nullptr || map->kind != ConfigNode::Kind::kMap) return true;
      for (const ConfigNode::Entry& entry : map->entries) {
        const std::optional<std::pair<std::string, Scheme>> own = scheme_of_module(entry);
        if (!own) return unknown_module(entry.value);
        if (!own->first.empty()) set(own->first, own->second);
      }
      return true;
    };
    using Named = std::optional<std::pair<std::string, Scheme>>;
    const auto named = [](std::string name, std::optional<Scheme> scheme) -> Named {
      return scheme ? Named({std::move(name), *scheme}) : std::nullopt;
    };
    if (method == kMlx) {
      return each(&config, [&](const ConfigNode::Entry& e) -> Named {
        if (e.value.text == "false") return named(e.key, plain_);
        return e.value.kind == ConfigNode::Kind::kMap ? named(e.key, mlx_scheme(keys_, e.value)) : named("", plain_);
      });
    }
    if (method == "gptq") {  // "-:regex" leaves modules out, "+:regex" or a bare one gives them other bits
      return each(config.find("dynamic"), [&](const ConfigNode::Entry& e) -> Named {
        if (e.key.starts_with("-:")) return named(e.key.substr(2), plain_);
        return named(e.key.starts_with("+:") ? e.key.substr(2) : e.key,
                     e.value.find("bits") == nullptr ? gptq_scheme(keys_, config) : gptq_scheme(keys_, e.value));
      });
    }
    if (method.ends_with("auto-round")) {
      return each(config.find("extra_config"), [&](const ConfigNode::Entry& e) -> Named {
        const bool wide = whole_or(keys_, e.value, "bits", 4, {1, 32}) >= 16;
        return named(e.key, wide ? plain_ : auto_round_scheme(keys_, e.value));
      });
    }
    return true;
  }

  bool unknown_module(const ConfigNode& value) {
    keys_.problems().add(value.span, "the format of this module is not known");
    return true;
  }

  bool apply_quark(const ConfigNode& config) {
    const ConfigNode* global = config.find("global_quant_config");
    const ConfigNode* layers = config.find("layer_quant_config");
    bool any = false;
    if (const auto scheme = global == nullptr ? std::nullopt : quark_scheme(keys_, *global)) {
      set_linears(*scheme);
      any = true;
    }
    if (layers == nullptr || layers->kind != ConfigNode::Kind::kMap) return any;
    for (const ConfigNode::Entry& entry : layers->entries) {
      const auto scheme = quark_scheme(keys_, entry.value);
      if (!scheme) return false;
      set(entry.key, *scheme);
      any = true;
    }
    return any;
  }

  /// compressed-tensors: of the groups that match a module the first wins.
  bool apply_groups(const ConfigNode& config, const ConfigNode& groups) {
    for (auto group = groups.entries.rbegin(); group != groups.entries.rend(); ++group) {
      const auto scheme = group_scheme(keys_, config, group->value);
      if (!scheme) return false;
      const ConfigNode* targets = group->value.find("targets");
      bool all = targets == nullptr || targets->items.empty();
      for (const ConfigNode& target : all ? std::vector<ConfigNode>{} : targets->items) {
        if (target.text == "Linear") {
          all = true;
        } else {
          set(target.text, *scheme);
        }
      }
      if (!all) continue;
      set_linears(*scheme);
      if (skip_list(config) != nullptr) set_part(WeightPart::kHead, *scheme);  // it lists all that is left out
    }
    return true;
  }

  /// Mixed precision: every quantized module is listed with its algorithm.
  bool apply_each(const ConfigNode& modules) {
    for (const ConfigNode::Entry& entry : modules.entries) {
      const auto scheme = algorithm_scheme(keys_, entry.value, word(entry.value, "quant_algo"));
      if (!scheme) return unknown_module(entry.value);
      set(entry.key, *scheme);
    }
    return true;
  }

  void skip(const ConfigNode& config) {
    const ConfigNode* skipped = skip_list(config);
    if (skipped == nullptr) return;
    for (const ConfigNode& item : skipped->items) set(item.text, plain_);
  }

  void set_linears(const Scheme& scheme) {
    for (const WeightPart part :
         {WeightPart::kAttention, WeightPart::kMlp, WeightPart::kExperts, WeightPart::kShared}) {
      set_part(part, scheme);
    }
  }

  void set_part(WeightPart part, const Scheme& scheme) {
    schemes_.emplace(scheme.format, scheme);
    weights_.set_part(part, scheme);
  }

  void set(std::string_view pattern, const Scheme& scheme) {
    schemes_.emplace(scheme.format, scheme);
    const HfWeights::Meaning meaning = weights_.set(pattern, scheme);
    if (meaning == HfWeights::Meaning::kModules) modules_ = scheme.format;
    if (meaning != HfWeights::Meaning::kUnknown) return;
    if (unknown_++ == 0) first_unknown_ = pattern;
  }

  /// The formats of a part, most weights first.
  ConfigNode shares_of(WeightPart part) {
    struct Share {
      WeightFormat format;
      double parameters;
    };
    std::vector<Share> found;
    for (std::size_t f = 0; f < kWeightFormatNames.size(); ++f) {
      const auto format = static_cast<WeightFormat>(f);
      if (const double of = weights_.parameters(part, format); of > 0) found.push_back({format, of});
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const Share& a, const Share& b) { return a.parameters > b.parameters; });
    ConfigNode out;
    out.kind = ConfigNode::Kind::kSequence;
    out.span = keys_.span();
    for (const Share& share : found) {
      MapBuilder own(keys_.span());
      own.add("format", name_of(share.format));
      own.add("share", fmt::format("{:.12g}", share.parameters / weights_.parameters(part)));
      own.add("bits", fmt::format("{:.12g}", weights_.stored_bits(part, share.format) / share.parameters));
      out.items.push_back(own.take());
    }
    return out;
  }

  WeightFormat majority(WeightPart part) {
    WeightFormat best = plain_.format;
    double most = weights_.parameters(part, best);
    for (const auto& [format, scheme] : schemes_) {
      const double share = weights_.parameters(part, format);
      if (share > most) {
        most = share;
        best = format;
      }
    }
    const double all = weights_.parameters(part);
    if (all > 0 && most < all) {
      keys_.remark(fmt::format("{:.0f}% of the {} weights are {}; {:.4g} bits each on average", 100 * most / all,
                               kWeightPartNames[static_cast<std::size_t>(part)], name_of(best),
                               weights_.stored_bits(part) / all));
    }
    return best;
  }

  HfKeys& keys_;
  Scheme plain_;
  HfWeights weights_;
  std::map<WeightFormat, Scheme> schemes_;  ///< of each format, as it came first
  std::optional<WeightFormat> modules_;     ///< of MTP modules, where a name says it
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

/// A block that names no method is MLX's, which stands under `quantization`, copied to the other key or not.
std::string method_of(const ConfigNode& config) {
  const std::string method = word(config, "quant_method");
  const bool mlx = method.empty() && word(config, "quant_algo").empty() && config.find("bits") != nullptr;
  return mlx ? kMlx : method;
}

void report_unknown(HfKeys& keys, const ConfigNode& config, const std::string& method) {
  const std::string algorithm = word(config, "quant_algo");
  const std::string name = !algorithm.empty() ? algorithm : method;
  keys.problems().add(config.span,
                      name.empty() ? std::string("the quantization names no method")
                                   : fmt::format("quantization {} is not known, or not as it is set", in_quotes(name)),
                      "--assume weights=FORMAT says how the linear layers are stored, such as int4 or fp8");
}

}  // namespace

std::optional<ConfigNode> hf_quantization(HfKeys& keys, const HfArchitecture& model, const ConfigNode* beside,
                                          std::optional<WeightFormat> assumed) {
  const ConfigNode* config = keys.find_on_top({"quantization_config", "quantization"});
  if (config != nullptr && config->kind != ConfigNode::Kind::kMap) {
    if (!config->is_null()) keys.problems().add(config->span, "a quantization must be a map of its settings");
    config = nullptr;
  }
  if (beside != nullptr) {
    const ConfigNode* inner = beside->find("quantization");
    config = inner != nullptr && inner->kind == ConfigNode::Kind::kMap ? inner : beside;
    keys.remark("the quantization is read from hf_quant_config.json");
  }
  if (config != nullptr && config->entries.empty()) config = nullptr;
  const bool says_dtype = keys.find_on_top({"dtype", "torch_dtype"}) != nullptr;
  const WeightFormat plain = read_dtype(keys);
  if (config == nullptr && !says_dtype && !assumed) return std::nullopt;

  MapBuilder out(config == nullptr ? keys.span() : config->span);
  Reader reader(keys, model, plain);
  if (assumed) {
    keys.warn(fmt::format("linear layers read as {} because --assume says so", name_of(*assumed)));
    reader.assume(*assumed, config);
  } else if (config != nullptr && !reader.apply(*config, method_of(*config))) {
    report_unknown(keys, *config, method_of(*config));
    return std::nullopt;
  }
  if (!assumed) reader.set_experts_dtype(beside == nullptr && (config == nullptr || method_of(*config) == "fp8"));
  reader.write(out);
  if (const auto kv = config == nullptr ? std::nullopt : cache_format(keys, *config)) out.add("kv", name_of(*kv));
  out.add("source", "hf-config");
  return out.take();
}

}  // namespace scalecalc
