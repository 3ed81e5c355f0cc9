// Turns a Hugging Face config.json into a model document with notes on each choice.
#include "import/hf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "base/text.h"
#include "import/hf_checks.h"
#include "import/hf_class.h"
#include "import/hf_families.h"
#include "import/hf_quantization.h"
#include "import/hf_towers.h"
#include "spec/model_spec.h"

namespace scalecalc {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOwnFile = "describe the model in a scalecalc-model/1 file: docs/howto/add-model.md";

/// The map with the sizes of the language model, and what it is called.
struct TextConfig {
  const ConfigNode* map = nullptr;
  std::string prefix;
};

const ConfigNode* child_map(const ConfigNode& map, std::string_view key) {
  const ConfigNode* found = map.find(key);
  return found != nullptr && found->kind == ConfigNode::Kind::kMap ? found : nullptr;
}

/// The part with the sizes must be one: read as if it were not there, its model would be another.
void check_parts(const ConfigNode& top) {
  for (const std::string_view key : {"text_config", "llm_config", "language_config", "thinker_config"}) {
    const ConfigNode* found = top.find(key);
    if (found == nullptr || found->is_null() || found->kind == ConfigNode::Kind::kMap) continue;
    throw UserError({{found->span, fmt::format("'{}' must be a map, not {}", key, kind_name(found->kind)), ""}});
  }
}

TextConfig text_config(const ConfigNode& top) {
  for (const std::string_view key : {"text_config", "llm_config", "language_config"}) {
    if (const ConfigNode* found = child_map(top, key)) return {found, std::string(key)};
  }
  if (const ConfigNode* thinker = child_map(top, "thinker_config")) {
    if (const ConfigNode* found = child_map(*thinker, "text_config")) return {found, "thinker_config.text_config"};
  }
  // Of encoders with decoders those whose stacks are maps of their own.
  const ConfigNode* type = top.find("model_type");
  if (type != nullptr && type->text == "t5gemma") {
    if (const ConfigNode* found = child_map(top, "decoder")) return {found, "decoder"};
  }
  return {&top, ""};
}

const ConfigNode* model_type_of(const ConfigNode& map) {
  const ConfigNode* found = map.find("model_type");
  return found == nullptr || found->is_null() || found->kind != ConfigNode::Kind::kScalar ? nullptr : found;
}

[[noreturn]] void fail(const SourceSpan& where, std::string message, std::string hint) {
  throw UserError({{where, std::move(message), std::move(hint)}});
}

std::string known_families() { return "known: " + join(known_hf_families(), ", "); }

const HfFamily& checked(const HfFamily& family, const SourceSpan& where) {
  if (!family.refused.empty()) {
    fail(where, fmt::format("models of family '{}' are not read: {}", family.name, family.refused), kOwnFile);
  }
  return family;
}

/// LLaVA's own files say "llava" whatever language model is in them, and their class says which.
const HfFamily* family_of_type(const ConfigNode& map, std::string_view type) {
  const HfFamily* by_class = type == "llava" ? find_hf_family_of_class(hf_class(map).stem) : nullptr;
  return by_class != nullptr ? by_class : find_hf_family(type);
}

/// What the file says it is: for a draft the class, else model_type of the language model, of the whole, or the class.
const HfFamily& family_of(const ConfigNode& top, const ConfigNode& text) {
  const ConfigNode* found = nullptr;
  const HfClass draft = hf_class(text);
  if (draft.eagle3) {
    if (const HfFamily* family = find_hf_family_of_class(draft.stem)) return *family;
    fail(draft.node->span,
         fmt::format("architecture {} is a draft with a layer that is not known", in_quotes(draft.node->text)),
         kOwnFile);
  }
  for (const ConfigNode* map : {&text, &top}) {
    const ConfigNode* type = model_type_of(*map);
    if (type == nullptr) continue;
    if (const HfFamily* family = family_of_type(*map, type->text)) return checked(*family, type->span);
    if (found == nullptr) found = type;
  }
  const std::string others = known_families() + "; --assume FAMILY reads the file as one of them";
  if (found != nullptr) fail(found->span, fmt::format("'model_type' {} is not known", in_quotes(found->text)), others);
  for (const ConfigNode* map : {&text, &top}) {
    const HfClass named = hf_class(*map);
    if (named.node == nullptr) continue;
    if (const HfFamily* family = find_hf_family_of_class(named.stem)) return checked(*family, named.node->span);
    if (found == nullptr) found = named.node;
  }
  if (found != nullptr) fail(found->span, fmt::format("architecture {} is not known", in_quotes(found->text)), others);
  fail(top.span, "the file has no 'model_type' and no 'architectures' to tell its family", others);
}

struct Assumed {
  std::string family;  ///< empty: the file says which
  std::optional<WeightFormat> weights;
};

/// FAMILY, weights=FORMAT, or both with a comma between.
Assumed assumptions_of(const std::string& asked) {
  constexpr std::string_view kWeights = "weights=";
  Assumed out;
  for (std::string_view rest = asked; !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    std::string_view item = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    if (!item.starts_with(kWeights)) {
      out.family = item;
      continue;
    }
    item.remove_prefix(kWeights.size());
    const auto* const found = std::find(kWeightFormatNames.begin(), kWeightFormatNames.end(), item);
    if (found == kWeightFormatNames.end()) {
      const std::vector<std::string> known(kWeightFormatNames.begin(), kWeightFormatNames.end());
      throw UserError(fmt::format("--assume {}: no format of that name is known", in_quotes(asked)),
                      "known: " + join(known, ", "));
    }
    out.weights = static_cast<WeightFormat>(found - kWeightFormatNames.begin());
  }
  return out;
}

const HfFamily& assumed_family(const ConfigNode& top, const ConfigNode& text, const std::string& assume,
                               ImportNotes& notes) {
  const HfFamily* family = find_hf_family(assume);
  if (family == nullptr) {
    std::string hint = did_you_mean(nearest(assume, known_hf_families()));
    if (!hint.empty()) hint += ' ';
    throw UserError(fmt::format("--assume {}: no family of that name is known", in_quotes(assume)),
                    hint + known_families());
  }
  checked(*family, top.span);
  const ConfigNode* type = model_type_of(text) != nullptr ? model_type_of(text) : model_type_of(top);
  const std::string said = type == nullptr ? "no model_type" : "model_type " + in_quotes(type->text);
  notes.warnings.push_back(
      fmt::format("read as family '{}' because --assume says so; the file says {}", family->name, said));
  return *family;
}

void check_heads(HfKeys& keys, const HfArchitecture& m) {
  if (m.mla || m.kv_heads.value == 0 || !m.heads.known || !m.kv_heads.known) return;
  if (m.heads.value % m.kv_heads.value == 0) return;
  const SourceSpan& where = m.kv_heads.where.line > 0 ? m.kv_heads.where : m.heads.where;
  keys.problems().add(where, fmt::format("num_attention_heads ({}) is not a multiple of num_key_value_heads ({})",
                                         m.heads.value, m.kv_heads.value));
}

/// Totals far from any model's say that a size was misread or mistyped.
void check_total(HfKeys& keys, const HfArchitecture& m) {
  constexpr double kFewest = 1e5;
  constexpr double kMost = 1e13;
  const double total = HfWeights(m, HfScheme{}).parameters();
  if (total >= kFewest && total <= kMost) return;
  keys.warn(fmt::format("the sizes make {:.3g} parameters, which no published model has", total));
}

/// Whether a text is the name of a commit, as the directories of the Hub's cache are called.
bool is_commit(std::string_view text) {
  return text.size() == 40 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// The last part of a name such as Qwen/Qwen3-8B; the Hub's cache writes models--Qwen--Qwen3-8B.
std::string last_part(std::string_view name) {
  while (name.ends_with('/')) name.remove_suffix(1);
  if (const std::size_t slash = name.rfind('/'); slash != std::string_view::npos) name.remove_prefix(slash + 1);
  if (name.starts_with("models--")) name.remove_prefix(name.rfind("--") + 2);
  return name == "." || name == ".." ? "" : std::string(name);
}

/// A config.json is called like the directory it lies in, other files by their own name.
std::string model_name(const ConfigNode& top, const HfFamily& family) {
  const fs::path path(top.span.file.str());
  std::string name;
  if (path.filename() == "config.json") {
    fs::path directory = path.parent_path();
    if (is_commit(directory.filename().string()) && directory.parent_path().filename() == "snapshots") {
      directory = directory.parent_path().parent_path();
    }
    name = last_part(directory.string());
  } else if (path.extension() == ".json" || path.extension() == ".gguf") {
    name = path.stem().string();
  }
  const ConfigNode* said = top.find("_name_or_path");
  if (name.empty() && said != nullptr && said->kind == ConfigNode::Kind::kScalar) name = last_part(said->text);
  return name.empty() ? std::string(family.name) : name;
}

}  // namespace

bool is_hf_config(const ConfigNode& document) {
  if (document.find("schema") != nullptr) return false;
  constexpr std::array<std::string_view, 6> kSigns{"model_type",  "architectures", "transformers_version",
                                                   "hidden_size", "text_config",   "n_embd"};
  return std::any_of(kSigns.begin(), kSigns.end(), [&](std::string_view key) { return document.find(key) != nullptr; });
}

namespace {

/// The class around a language model: of a thinker beside a talker the thinker's. One that the file names for causal
/// language models has a head, whatever it is called.
HfClass wrapper_class(const ConfigNode& top) {
  const ConfigNode* thinker = child_map(top, "thinker_config");
  HfClass out = hf_class(thinker != nullptr ? *thinker : top);
  const ConfigNode* autos = child_map(top, "auto_map");
  const ConfigNode* causal = autos == nullptr ? nullptr : autos->find("AutoModelForCausalLM");
  if (out.node != nullptr && causal != nullptr && causal->text.ends_with('.' + out.node->text)) {
    out.head = HfHead::kVocabulary;
  }
  return out;
}

/// What gates the MLP, in the words of model files; empty for what is usual or has no word. A file that says nothing
/// has that of its family.
std::string_view gate_activation(HfKeys& keys, std::string_view of_family) {
  for (const char* name : {"hidden_activation", "hidden_act"}) {
    const ConfigNode* node = keys.find({name});
    if (node == nullptr || node->is_null()) continue;
    if (node->text.starts_with("gelu")) return "gelu";
    return node->text == "quick_gelu" ? "quick_gelu" : node->text == "relu" ? "relu" : "";
  }
  if (!of_family.empty()) keys.defaulted("hidden_activation", std::string(of_family), kClassDefault);
  return of_family;
}

}  // namespace

ImportedModel import_hf_config(const ConfigNode& config, const ConfigNode* beside, const std::string& asked) {
  ImportedModel out;
  check_parts(config);
  const TextConfig text = text_config(config);
  const auto [assume, assumed_weights] = assumptions_of(asked);
  const HfFamily& family =
      assume.empty() ? family_of(config, *text.map) : assumed_family(config, *text.map, assume, out.notes);
  out.notes.file = config.span.file;
  out.notes.family = family.name;

  Problems problems;
  HfKeys keys(config, *text.map, text.prefix, problems, out.notes);
  keys.find_on_top({"model_type"});
  keys.find_on_top({"architectures"});
  HfArchitecture model;
  HfReading reading{family, keys, model};
  // The class of a wrapper says which head there is, that of the language model itself which family.
  const HfClass own = hf_class(*text.map);
  const HfClass whole = text.map == &config ? own : wrapper_class(config);
  const bool wrapper_says = whole.head != HfHead::kUnsaid && whole.head != HfHead::kOther;
  if (assume.empty()) check_class(reading, own);
  problems.throw_if_any();
  family.read(reading);
  if (own.eagle3) {
    read_eagle3(reading);
  } else {
    set_head(reading, wrapper_says ? whole : own);
  }
  model.activation = gate_activation(keys, model.activation);
  read_towers(reading);
  check_heads(keys, model);
  report_unread_keys(reading);
  // What follows relies on sizes that fit each other.
  problems.throw_if_any();

  out.document = model_document(model, model_name(config, family), config.span);
  if (auto quantization = hf_quantization(keys, model, beside, assumed_weights)) {
    SourceSpan where = quantization->span;
    out.document.entries.push_back({"quantization", std::move(where), *std::move(quantization)});
  }
  check_total(keys, model);
  keys.list_ignored();
  problems.throw_if_any();
  return out;
}

namespace {

/// Layers [begin, begin + period) again and again, `repeat` times.
struct Group {
  std::size_t begin = 0;
  std::size_t period = 1;
  std::size_t repeat = 1;
};

/// The cheapest way to write the layers down, where a group costs one and each of its kinds one more. A group has one
/// width for its dense layers and one number of norms.
std::vector<Group> fewest_groups(const std::vector<HfLayer>& layers) {
  constexpr std::size_t kLongestPeriod = 16;
  const std::size_t n = layers.size();
  std::vector<std::size_t> kind;  // the first layer that equals it
  std::vector<std::size_t> kinds;
  for (std::size_t i = 0; i < n; ++i) {
    const auto same = std::find_if(kinds.begin(), kinds.end(), [&](std::size_t k) { return layers[k] == layers[i]; });
    kind.push_back(same == kinds.end() ? kinds.emplace_back(i) : *same);
  }
  if (kinds.size() == 1) return {{0, 1, n}};    // nothing is shorter
  std::vector<std::size_t> cost(n + 1, n * 3);  // of the layers from i on
  std::vector<Group> first(n + 1);
  cost[n] = 0;
  std::array<std::size_t, kLongestPeriod + 1> alike{};  // from i on, layers that equal the one a period later
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t period = 1; period <= kLongestPeriod; ++period) {
      alike[period] = i + period < n && kind[i] == kind[i + period] ? alike[period] + 1 : 0;
    }
    const HfLayer* dense = nullptr;
    for (std::size_t period = 1; period <= std::min(kLongestPeriod, n - i); ++period) {
      const HfLayer& last = layers[i + period - 1];
      if (last.norms != layers[i].norms) break;
      if (last.ffn == "dense") {
        if (dense != nullptr && dense->d_ff != last.d_ff) break;
        dense = &last;
      }
      for (std::size_t end = i + period; end <= i + period + alike[period]; end += period) {
        if (cost[end] + period + 1 >= cost[i]) continue;
        cost[i] = cost[end] + period + 1;
        first[i] = {i, period, (end - i) / period};
      }
    }
  }
  std::vector<Group> out;
  for (std::size_t i = 0; i < n; i += out.back().period * out.back().repeat) out.push_back(first[i]);
  return out;
}

std::string kind_text(const HfLayer& layer) {
  return fmt::format("{}/{}{}", layer.mixer, layer.ffn,
                     layer.reuse    ? "/reuse"
                     : layer.whole  ? "/whole"
                     : layer.hashed ? "/hash"
                                    : "");
}

ConfigNode norm_node(const HfArchitecture& m, const SourceSpan& where) {
  MapBuilder out(where);
  out.add("kind", m.layernorm ? "layernorm" : "rmsnorm").add("per_layer", Size{m.norms_per_layer, where});
  if (!m.norm_weights) out.add("weights", "false");
  if (m.layernorm) out.add("bias", m.norm_bias ? "true" : "false");
  return out.take();
}

ConfigNode attention_node(const HfArchitecture& m, const SourceSpan& where) {
  MapBuilder out(where);
  if (m.mla) {
    out.add("kind", text_node("mla", m.heads.where)).add("heads", m.heads).add_if("q_lora_rank", m.mla->q_lora_rank);
    out.add("kv_lora_rank", m.mla->kv_lora_rank).add("qk_nope_head_dim", m.mla->qk_nope_head_dim);
    out.add("qk_rope_head_dim", m.mla->qk_rope_head_dim).add("v_head_dim", m.mla->v_head_dim);
  } else {
    const bool mha = m.kv_heads.value == m.heads.value;
    out.add("kind", text_node(mha ? "mha" : m.kv_heads.value == 1 ? "mqa" : "gqa", m.heads.where));
    out.add("heads", m.heads).add("kv_heads", m.kv_heads).add("head_dim", m.head_dim);
    out.add_if("v_head_dim", m.v_head_dim);
  }
  if (m.local) {
    MapBuilder local(where);
    local.add("heads", m.local->heads).add("kv_heads", m.local->kv_heads).add("head_dim", m.local->head_dim);
    local.add("v_head_dim", m.local->v_head_dim);
    if (m.local_sinks.value_or(m.sinks) != m.sinks) local.add("sinks", *m.local_sinks ? "true" : "false");
    out.add("local", local.take());
  }
  out.add_if("window", m.window).add_if("chunk", m.chunk);
  if (!m.causal) out.add("causal", "false");
  out.add_if("cross_tokens", m.cross_tokens).add_if("cross_gates", m.cross_gates);
  if (!m.key_bias) out.add("key_bias", "false");
  out.add_if("reuse_stored", m.reuse_stored);
  out.add_if("qkv_bias", m.qkv_bias).add_if("o_bias", m.o_bias).add_if("sinks", m.sinks);
  out.add_if("output_gate", m.output_gate).add_if("head_gate", m.head_gate).add_if("shared_kv", m.shared_kv);
  if (m.qk_norm != "none") out.add("qk_norm", m.qk_norm);
  if (m.indexer) {
    MapBuilder indexer(where);
    indexer.add("heads", m.indexer->heads).add("head_dim", m.indexer->head_dim).add("top_k", m.indexer->top_k);
    if (!m.indexer->weights) indexer.add("weights", "false");
    out.add("indexer", indexer.take());
  }
  if (m.compressed) {
    MapBuilder compressed(where);
    compressed.add("q_lora_rank", m.compressed->q_lora_rank).add("o_lora_rank", m.compressed->o_lora_rank);
    compressed.add("o_groups", m.compressed->o_groups).add("csa_ratio", m.compressed->csa_ratio);
    compressed.add("hca_ratio", m.compressed->hca_ratio);
    out.add("compressed", compressed.take());
  }
  if (m.strided) {
    MapBuilder strided(where);
    out.add("strided", strided.add("local", m.strided->local).add("stride", m.strided->stride).take());
  }
  if (m.disentangled) {
    MapBuilder positions(where);
    positions.add("positions", m.disentangled->positions).add_if("own_projections", m.disentangled->own_projections);
    out.add("disentangled", positions.take());
  }
  return out.take();
}

ConfigNode mlp_node(const HfArchitecture& m, const SourceSpan& where) {
  MapBuilder out(where);
  if (m.has_ffn("dense")) out.add_if("d_ff", m.d_ff);
  out.add("gated", m.gated ? "true" : "false").add_if("bias", m.mlp_bias);
  out.add_if("activation_weights", Size{m.activation_weights, where});
  out.add_if("token_shift", Size{m.token_shift, where}).add_if("receptance", m.receptance);
  if (m.gated && !m.activation.empty()) out.add("activation", std::string(m.activation));
  return out.take();
}

ConfigNode moe_node(const HfMoe& moe, const SourceSpan& where) {
  MapBuilder out(where);
  out.add("experts", moe.experts).add("top_k", moe.top_k).add("d_ff", moe.d_ff);
  out.add_if("shared_experts", moe.shared_experts).add_if("shared_d_ff", moe.shared_d_ff);
  out.add_if("n_group", moe.n_group).add_if("topk_group", moe.topk_group);
  out.add_if("latent", moe.latent).add_if("router_bias", moe.router_bias);
  out.add_if("router_correction_bias", moe.router_correction_bias).add_if("expert_bias", moe.expert_bias);
  out.add_if("shared_gate", moe.shared_gate).add_if("zero_experts", moe.zero_experts);
  out.add_if("branch_norms", moe.branch_norms).add_if("latent_norm", moe.latent_norm);
  out.add_if("router_scale", moe.router_scale);
  return out.take();
}

void add_linear(const HfArchitecture& m, MapBuilder& document, const SourceSpan& where) {
  MapBuilder out(where);
  if (m.has_mixer("gdn") && m.gdn) {
    out.add("kind", text_node("gdn", m.gdn->key_heads.where)).add("key_heads", m.gdn->key_heads);
    out.add("key_head_dim", m.gdn->key_head_dim).add("value_heads", m.gdn->value_heads);
    out.add("value_head_dim", m.gdn->value_head_dim).add("conv_kernel", m.gdn->conv_kernel);
  } else if (m.has_mixer("kda") && m.kda) {
    out.add("kind", text_node("kda", m.kda->heads.where)).add("heads", m.kda->heads);
    out.add("head_dim", m.kda->head_dim).add("conv_kernel", m.kda->conv_kernel);
    out.add_if("full_rank_gate", m.kda->full_rank_gate).add_if("full_rank_decay", m.kda->full_rank_decay);
  } else if (m.has_mixer("conv")) {
    out.add("kind", text_node("conv", m.conv_kernel.where)).add("kernel", m.conv_kernel);
  } else if (m.has_mixer("lightning") && m.lightning) {
    out.add("kind", text_node("lightning", m.lightning->heads.where));
    out.add("heads", m.lightning->heads).add("head_dim", m.lightning->head_dim);
    out.add_if("qk_norm", m.lightning->qk_norm);
  } else if (m.has_mixer("rwkv") && m.rwkv) {
    const HfRwkv& w = *m.rwkv;
    out.add("kind", text_node("rwkv", w.width.where)).add("version", Size{w.version, w.width.where});
    out.add("width", w.width).add_if("head_dim", w.head_dim).add_if("mix_rank", w.mix_rank);
    out.add_if("decay_rank", w.decay_rank).add_if("rate_rank", w.rate_rank).add_if("value_rank", w.value_rank);
    out.add_if("gate_rank", w.gate_rank);
  } else if (m.has_mixer("rglru") && m.rglru) {
    out.add("kind", text_node("rglru", m.rglru->width.where)).add("width", m.rglru->width);
    out.add("blocks", m.rglru->blocks).add("conv_kernel", m.rglru->conv_kernel);
  }
  if (!out.empty()) document.add("linear", out.take());
}

void add_ssm(const HfArchitecture& m, MapBuilder& document, const SourceSpan& where) {
  MapBuilder out(where);
  if (m.has_mixer("mamba1") && m.mamba1) {
    out.add("kind", text_node("mamba1", m.mamba1->d_inner.where)).add("d_inner", m.mamba1->d_inner);
    out.add("d_state", m.mamba1->d_state).add("d_conv", m.mamba1->d_conv).add("dt_rank", m.mamba1->dt_rank);
    if (!m.mamba1->norms) out.add("norms", "false");
  } else if ((m.has_mixer("mamba2") || m.has_mixer("full+mamba2")) && m.mamba2) {
    out.add("kind", text_node("mamba2", m.mamba2->heads.where)).add("heads", m.mamba2->heads);
    out.add("head_dim", m.mamba2->head_dim).add("groups", m.mamba2->groups);
    out.add("d_state", m.mamba2->d_state).add("d_conv", m.mamba2->d_conv);
    if (m.mamba2->chunk.value != Mamba2Spec{}.chunk) out.add("chunk", m.mamba2->chunk);
    if (!m.mamba2->norm) out.add("norm", "false");
  }
  if (!out.empty()) document.add("ssm", out.take());
}

}  // namespace

ConfigNode text_node(std::string_view text, const SourceSpan& where) {
  ConfigNode node;
  node.text = text;
  node.span = where;
  return node;
}

MapBuilder& MapBuilder::add(std::string_view key, ConfigNode value) {
  if (node_.entries.empty()) node_.span = value.span;
  SourceSpan where = value.span;
  node_.entries.push_back({std::string(key), std::move(where), std::move(value)});
  return *this;
}

MapBuilder& MapBuilder::add(std::string_view key, const Size& size) {
  return add(key, text_node(std::to_string(size.value), size.where));
}

MapBuilder& MapBuilder::add(std::string_view key, std::string_view text) {
  return add(key, text_node(text, node_.span));
}

MapBuilder& MapBuilder::add_if(std::string_view key, const Size& size) {
  return size.value == 0 ? *this : add(key, size);
}

MapBuilder& MapBuilder::add_if(std::string_view key, bool flag) { return flag ? add(key, "true") : *this; }

ConfigNode layers_node(const std::vector<HfLayer>& layers, const SourceSpan& where) {
  ConfigNode out;
  out.kind = ConfigNode::Kind::kSequence;
  out.span = where;
  for (const Group& group : fewest_groups(layers)) {
    ConfigNode kinds;
    kinds.kind = ConfigNode::Kind::kSequence;
    kinds.span = where;
    std::int64_t d_ff = 0;
    for (std::size_t i = group.begin; i < group.begin + group.period; ++i) {
      kinds.items.push_back(text_node(kind_text(layers[i]), where));
      if (layers[i].ffn == "dense") d_ff = layers[i].d_ff;
    }
    MapBuilder entry(where);
    entry.add("repeat", Size{static_cast<std::int64_t>(group.repeat), where}).add("kinds", std::move(kinds));
    entry.add_if("d_ff", Size{d_ff, where});
    if (layers[group.begin].norms >= 0) entry.add("norms", Size{layers[group.begin].norms, where});
    out.items.push_back(entry.take());
  }
  return out;
}

ConfigNode model_document(const HfArchitecture& m, const std::string& name, const SourceSpan& where) {
  MapBuilder out(where);
  ConfigNode source;
  source.kind = ConfigNode::Kind::kSequence;
  source.span = where;
  source.items.push_back(text_node("hf-config", where));
  MapBuilder sources(where);
  sources.add("hf-config", fmt::format("Hugging Face config.json: {}", where.file.str()));
  ConfigNode label = text_node(name, where);
  label.quoted = true;  // whatever the directory is called, it is a text
  out.add("schema", text_node("scalecalc-model/1", where)).add("name", label).add("title", label);
  out.add("source", std::move(source)).add("sources", sources.take());
  out.add("d_model", m.d_model).add("vocab", m.vocab).add("max_seq", m.max_seq);
  out.add_if("learned_positions", m.learned_positions).add_if("embedding_dim", m.embedding_dim);
  out.add_if("embedding_bias", m.embedding_bias);
  out.add_if("input_tokens", m.input_tokens).add_if("position_biases", m.position_biases);
  out.add("tied_embeddings", text_node(m.tied_embeddings ? "true" : "false", where));
  out.add_if("embedding_norm", m.embedding_norm).add_if("head_bias", m.head_bias);
  if (m.head_outputs) out.add("head_outputs", *m.head_outputs);
  if (m.draft) {
    MapBuilder draft(where);
    draft.add("target_d_model", m.draft->target_d_model).add("target_layers", m.draft->target_layers);
    out.add("draft", draft.take());
  }
  if (!m.final_norm) out.add("final_norm", text_node("false", where));
  out.add_if("layer_scale", m.layer_scale).add_if("residual_block", m.residual_block);
  if (m.streams.value > 1) {
    MapBuilder streams(where);
    out.add("streams", streams.add("count", m.streams).add("kind", m.stream_kind).take());
  }
  out.add_if("laurel_rank", m.laurel_rank);
  if (m.head_dense != "none") out.add("head_dense", m.head_dense);
  if (!m.towers.empty()) out.add("towers", towers_node(m.towers, where));
  if (m.per_layer) {
    MapBuilder table(where);
    table.add("width", m.per_layer->width).add("vocab", m.per_layer->vocab);
    out.add("per_layer_embedding", table.take());
  }
  if (m.ngrams) {
    MapBuilder tables(where);
    tables.add("tables", m.ngrams->tables).add("rows", m.ngrams->rows).add("width", m.ngrams->width);
    out.add("ngram_embedding", tables.take());
  }
  out.add_if("parallel_block", m.parallel_block).add("norm", norm_node(m, where));
  const bool attends = m.has_mixer("full") || m.has_mixer("sliding") || m.has_mixer("chunked") || m.has_mixer("mla") ||
                       m.has_mixer("full+mamba2") || m.has_mixer("csa") || m.has_mixer("hca") || m.has_mixer("cross") ||
                       m.has_mixer("full+cross") || m.has_mixer("sliding+cross") || m.has_mixer("strided");
  if (attends) out.add("attention", attention_node(m, where));
  add_linear(m, out, where);
  add_ssm(m, out, where);
  if (m.has_ffn("dense") || m.has_ffn("moe")) out.add("mlp", mlp_node(m, where));
  if (m.moe && m.has_ffn("moe")) out.add("moe", moe_node(*m.moe, where));
  out.add("layers", layers_node(m.layers, where));
  if (m.mtp_layers.value > 0) {
    MapBuilder mtp(where);
    mtp.add("layers", m.mtp_layers).add("kind", text_node(kind_text(m.mtp_kind), m.mtp_layers.where));
    out.add("mtp", mtp.take());
  }
  return out.take();
}

}  // namespace scalecalc
