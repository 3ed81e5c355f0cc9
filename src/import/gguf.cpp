// Reads the header of a GGUF file as the keys of a config.json and the formats of its tensors.
#include "import/gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <map>
#include <vector>

#include "base/diagnostic.h"
#include "base/limits.h"
#include "base/text.h"
#include "import/hf_config.h"
#include "spec/quantization_spec.h"

namespace scalecalc {
namespace {

/// A block of each of ggml's types: elements, bytes (ggml-org/ggml: src/ggml-common.h), and what is nearest here.
struct GgmlType {
  std::uint32_t id;
  double elements, bytes;
  WeightFormat format;
};
constexpr std::array kGgmlTypes{
    GgmlType{0, 1, 4, WeightFormat::kFp32},      GgmlType{1, 1, 2, WeightFormat::kFp16},
    GgmlType{2, 32, 18, WeightFormat::kInt4},    GgmlType{3, 32, 20, WeightFormat::kInt4},
    GgmlType{6, 32, 22, WeightFormat::kInt5},    GgmlType{7, 32, 24, WeightFormat::kInt5},
    GgmlType{8, 32, 34, WeightFormat::kInt8},    GgmlType{9, 32, 36, WeightFormat::kInt8},
    GgmlType{10, 256, 84, WeightFormat::kInt2},  GgmlType{11, 256, 110, WeightFormat::kInt3},
    GgmlType{12, 256, 144, WeightFormat::kInt4}, GgmlType{13, 256, 176, WeightFormat::kInt5},
    GgmlType{14, 256, 210, WeightFormat::kInt6}, GgmlType{15, 256, 292, WeightFormat::kInt8},
    GgmlType{16, 256, 66, WeightFormat::kInt2},  GgmlType{17, 256, 74, WeightFormat::kInt2},
    GgmlType{18, 256, 98, WeightFormat::kInt3},  GgmlType{19, 256, 50, WeightFormat::kInt2},
    GgmlType{20, 32, 18, WeightFormat::kInt4},   GgmlType{21, 256, 110, WeightFormat::kInt3},
    GgmlType{22, 256, 82, WeightFormat::kInt2},  GgmlType{23, 256, 136, WeightFormat::kInt4},
    GgmlType{29, 256, 56, WeightFormat::kInt2},  GgmlType{30, 1, 2, WeightFormat::kBf16},
    GgmlType{34, 256, 54, WeightFormat::kInt2},  GgmlType{35, 256, 66, WeightFormat::kInt2},
    GgmlType{39, 32, 17, WeightFormat::kMxfp4}};

/// Architectures by their names in GGUF and here; a llama with experts is Mixtral.
struct GgufFamily {
  std::string_view architecture, model_type;
};
constexpr std::array kGgufFamilies{
    GgufFamily{"llama", "llama"},           GgufFamily{"qwen2", "qwen2"},        GgufFamily{"qwen2moe", "qwen2_moe"},
    GgufFamily{"qwen3", "qwen3"},           GgufFamily{"qwen3moe", "qwen3_moe"}, GgufFamily{"gemma", "gemma"},
    GgufFamily{"gemma2", "gemma2"},         GgufFamily{"gemma3", "gemma3_text"}, GgufFamily{"phi3", "phi3"},
    GgufFamily{"deepseek2", "deepseek_v3"}, GgufFamily{"gpt-oss", "gpt_oss"},    GgufFamily{"olmo2", "olmo2"},
    GgufFamily{"starcoder2", "starcoder2"}, GgufFamily{"granite", "granite"},    GgufFamily{"smollm3", "smollm3"}};

/// A key's last part, and the key of a config.json that says the same.
struct GgufKey {
  std::string_view key, name;
};
constexpr std::array kGgufKeys{GgufKey{"block_count", "num_hidden_layers"},
                               GgufKey{"embedding_length", "hidden_size"},
                               GgufKey{"feed_forward_length", "intermediate_size"},
                               GgufKey{"context_length", "max_position_embeddings"},
                               GgufKey{"attention.head_count", "num_attention_heads"},
                               GgufKey{"attention.head_count_kv", "num_key_value_heads"},
                               GgufKey{"attention.key_length", "head_dim"},
                               GgufKey{"attention.sliding_window", "sliding_window"},
                               GgufKey{"expert_count", "num_experts"},
                               GgufKey{"expert_used_count", "num_experts_per_tok"},
                               GgufKey{"expert_feed_forward_length", "moe_intermediate_size"},
                               GgufKey{"expert_shared_feed_forward_length", "shared_expert_intermediate_size"},
                               GgufKey{"expert_shared_count", "n_shared_experts"},
                               GgufKey{"leading_dense_block_count", "first_k_dense_replace"},
                               GgufKey{"attention.q_lora_rank", "q_lora_rank"},
                               GgufKey{"attention.kv_lora_rank", "kv_lora_rank"}};

struct Tensor {
  std::string name;
  double elements = 0;
  const GgmlType* type = nullptr;
};

class HeaderReader {
 public:
  explicit HeaderReader(const std::string& path) : path_(path), in_(path, std::ios::binary) {
    if (!in_) fail("cannot be opened");
  }

  void read() {
    std::array<char, 4> magic{};
    if (!in_.read(magic.data(), 4) || std::string_view(magic.data(), 4) != "GGUF") fail("is no GGUF file");
    const auto version = number<std::uint32_t>();
    if (version < 2 || version > 3) fail(fmt::format("is of version {} of GGUF; 2 and 3 are read", version));
    const auto described = bounded(number<std::uint64_t>(), limits::kGgufEntries, "tensors");
    const auto keys = bounded(number<std::uint64_t>(), limits::kGgufEntries, "keys");
    for (std::uint64_t i = 0; i < keys; ++i) {
      std::string key = text();
      const auto type = number<std::uint32_t>();
      value(key, type, 0);
    }
    for (std::uint64_t i = 0; i < described; ++i) tensor();
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw UserError({{place(), fmt::format("{} {}", path_, why), ""}});
  }

  SourceSpan place() const {
    SourceSpan out;
    out.file = path_;
    out.line = out.column = 1;
    return out;
  }

  std::map<std::string, std::string> words;      ///< texts and numbers as texts
  std::map<std::string, std::uint64_t> lengths;  ///< of arrays
  std::vector<Tensor> tensors;

 private:
  template <class T>
  T number() {
    T out{};
    std::array<char, sizeof(T)> raw{};
    if (!in_.read(raw.data(), sizeof(T))) fail("ends within its header");
    std::copy(raw.begin(), raw.end(), reinterpret_cast<char*>(&out));  // NOLINT: little-endian, as the file
    return out;
  }

  std::uint64_t bounded(std::uint64_t count, std::uint64_t most, const char* what) const {
    if (count > most) fail(fmt::format("says that it has {} {}", count, what));
    return count;
  }

  std::string text() {
    std::string out(bounded(number<std::uint64_t>(), limits::kGgufValues, "characters in a text"), '\0');
    if (!in_.read(out.data(), static_cast<std::streamsize>(out.size()))) fail("ends within its header");
    return out;
  }

  template <class T>
  void keep(const std::string& key) {
    words[key] = fmt::format("{}", number<T>());
  }

  void value(const std::string& key, std::uint32_t type, int depth) {
    switch (type) {
      case 0: return keep<std::uint8_t>(key);
      case 1: return keep<std::int8_t>(key);
      case 2: return keep<std::uint16_t>(key);
      case 3: return keep<std::int16_t>(key);
      case 4: return keep<std::uint32_t>(key);
      case 5: return keep<std::int32_t>(key);
      case 6: return keep<float>(key);
      case 7: words[key] = number<std::uint8_t>() != 0 ? "true" : "false"; return;
      case 8: words[key] = text(); return;
      case 9: return array(key, depth);
      case 10: return keep<std::uint64_t>(key);
      case 11: return keep<std::int64_t>(key);
      case 12: return keep<double>(key);
      default: fail(fmt::format("has a value of kind {}, which is not known", type));
    }
  }

  /// Of arrays the length is kept, and of numbers the first where all are the same.
  void array(const std::string& key, int depth) {
    if (depth > limits::kGgufLevels) fail("nests arrays too deep");
    const auto type = number<std::uint32_t>();
    const auto count = bounded(number<std::uint64_t>(), limits::kGgufValues, "values in an array");
    std::string first;
    bool same = true;
    for (std::uint64_t i = 0; i < count; ++i) {
      value(key, type, depth + 1);
      if (i == 0) first = words[key];
      same = same && words[key] == first;
    }
    if (!same || count == 0) words.erase(key);
    lengths[key] = count;
  }

  void tensor() {
    Tensor out;
    out.name = text();
    const auto dimensions = bounded(number<std::uint32_t>(), 8, "dimensions of a tensor");
    out.elements = 1;
    for (std::uint64_t d = 0; d < dimensions; ++d) out.elements *= static_cast<double>(number<std::uint64_t>());
    const auto id = number<std::uint32_t>();
    number<std::uint64_t>();  // where its data stand
    const auto* const found =
        std::find_if(kGgmlTypes.begin(), kGgmlTypes.end(), [&](const GgmlType& t) { return t.id == id; });
    if (found == kGgmlTypes.end()) fail(fmt::format("stores {} in type {} of ggml, which is not known", out.name, id));
    out.type = found;
    tensors.push_back(std::move(out));
  }

  const std::string path_;
  std::ifstream in_;
};

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// The part a tensor belongs to; nothing of norms and biases.
std::optional<WeightPart> part_of(std::string_view name) {
  if (name.ends_with(".bias") || has(name, "norm") || has(name, "rope") || has(name, "sinks")) return std::nullopt;
  if (name.starts_with("token_embd")) return WeightPart::kEmbedding;
  if (name.starts_with("output")) return WeightPart::kHead;
  if (has(name, "ffn_gate_inp_shexp") || has(name, "shexp")) return WeightPart::kShared;
  if (has(name, "ffn_gate_inp")) return WeightPart::kRouter;
  if (has(name, "_exps")) return WeightPart::kExperts;
  if (has(name, "ffn")) return WeightPart::kMlp;
  return WeightPart::kAttention;
}

/// Formats of the parts: {weights, bits_per_weight, parts}.
ConfigNode stored_formats(const std::vector<Tensor>& tensors, const SourceSpan& where) {
  struct Share {
    double elements = 0, bytes = 0;
  };
  std::array<std::map<WeightFormat, Share>, kWeightPartNames.size()> parts;
  std::map<WeightFormat, Share> all;
  for (const Tensor& t : tensors) {
    const auto part = part_of(t.name);
    if (!part) continue;
    const double bytes = t.elements / t.type->elements * t.type->bytes;
    for (Share* share : {&parts[static_cast<std::size_t>(*part)][t.type->format], &all[t.type->format]}) {
      share->elements += t.elements;
      share->bytes += bytes;
    }
  }
  MapBuilder out(where);
  if (all.empty()) return out.take();
  const auto most = std::max_element(
      all.begin(), all.end(), [](const auto& a, const auto& b) { return a.second.elements < b.second.elements; });
  const auto bits = [](const Share& s) { return fmt::format("{:.12g}", 8 * s.bytes / s.elements); };
  out.add("weights", name_of(most->first)).add("bits_per_weight", bits(most->second));
  MapBuilder own(where);
  for (std::size_t p = 0; p < parts.size(); ++p) {
    double elements = 0;
    for (const auto& [format, share] : parts[p]) elements += share.elements;
    if (elements == 0) continue;
    ConfigNode list;
    list.kind = ConfigNode::Kind::kSequence;
    list.span = where;
    for (const auto& [format, share] : parts[p]) {
      MapBuilder item(where);
      item.add("format", name_of(format)).add("share", fmt::format("{:.15g}", share.elements / elements));
      item.add("bits", bits(share));
      list.items.push_back(item.take());
    }
    own.add(kWeightPartNames[p], std::move(list));
  }
  out.add("parts", own.take()).add("source", "hf-config");
  return out.take();
}

}  // namespace

bool is_gguf(std::string_view path) { return path.ends_with(".gguf"); }

GgufModel read_gguf(const std::string& path) {
  HeaderReader header(path);
  header.read();
  const std::string architecture = header.words["general.architecture"];
  const auto* const family = std::find_if(kGgufFamilies.begin(), kGgufFamilies.end(),
                                          [&](const GgufFamily& f) { return f.architecture == architecture; });
  if (family == kGgufFamilies.end()) {
    std::vector<std::string> known;
    for (const GgufFamily& f : kGgufFamilies) known.emplace_back(f.architecture);
    throw UserError({{header.place(), fmt::format("architecture {} of GGUF is not read", in_quotes(architecture)),
                      "read: " + join(known, ", ") + "; the config.json of the model it was made of says the rest"}});
  }
  const SourceSpan where = header.place();
  const auto said = [&](std::string_view key) {
    const auto found = header.words.find(architecture + "." + std::string(key));
    return found == header.words.end() ? std::string() : found->second;
  };
  const auto any_tensor = [&](std::string_view part) {
    return std::any_of(header.tensors.begin(), header.tensors.end(),
                       [&](const Tensor& t) { return has(t.name, part); });
  };
  const bool experts = !said("expert_count").empty() && said("expert_count") != "0";
  MapBuilder config(where);
  std::string_view model_type = experts && architecture == "llama" ? "mixtral" : family->model_type;
  if (model_type == "deepseek_v3" && !any_tensor("exp_probs_b")) model_type = "deepseek_v2";
  ConfigNode type = text_node(model_type, where);
  type.quoted = true;
  config.add("model_type", std::move(type));
  const bool latent = !said("attention.kv_lora_rank").empty();
  for (const GgufKey& key : kGgufKeys) {
    const std::string value = said(key.key);
    if (value.empty() || (latent && key.name == "head_dim") || (latent && key.name == "num_key_value_heads")) continue;
    if (value == "0" && (key.name == "num_experts" || key.name == "num_experts_per_tok")) continue;
    config.add(key.name == "num_experts" && latent ? "n_routed_experts" : key.name, text_node(value, where));
  }
  if (latent) {
    const auto size = [&](std::string_view key, std::string_view otherwise) {
      const std::string text = said(key).empty() ? said(otherwise) : said(key);
      constexpr long long kWidest = 1'000'000'000;
      long long out = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
      if (!text.empty() && (error != std::errc() || out < 0 || out > kWidest)) {
        header.fail(fmt::format("says that {}.{} is {}", architecture, key, in_quotes(text)));
      }
      return out;
    };
    const long long rope = size("rope.dimension_count", "rope.dimension_count");
    const long long keys = size("attention.key_length_mla", "attention.key_length");
    config.add("qk_rope_head_dim", text_node(std::to_string(rope), where));
    config.add("qk_nope_head_dim", text_node(std::to_string(keys - rope), where));
    config.add("v_head_dim",
               text_node(std::to_string(size("attention.value_length_mla", "attention.value_length")), where));
  }
  const std::string vocab = said("vocab_size");
  const auto tokens = header.lengths.find("tokenizer.ggml.tokens");
  if (tokens != header.lengths.end()) {
    config.add("vocab_size", text_node(std::to_string(tokens->second), where));
  } else if (!vocab.empty()) {
    config.add("vocab_size", text_node(vocab, where));
  }
  GgufModel out;
  out.tensors = header.tensors.size();
  bool head = false;
  for (const Tensor& t : header.tensors) {
    head = head || t.name == "output.weight";
    out.bytes += t.elements / t.type->elements * t.type->bytes;
  }
  config.add("tie_word_embeddings", text_node(head ? "false" : "true", where));
  out.config = config.take();
  out.quantization = stored_formats(header.tensors, where);
  return out;
}

}  // namespace scalecalc
