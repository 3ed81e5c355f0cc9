#include "import/hf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "base/text.h"
#include "import/hf_document.h"
#include "import/hf_families.h"
#include "import/hf_quantization.h"

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

TextConfig text_config(const ConfigNode& top) {
  for (const std::string_view key : {"text_config", "llm_config", "language_config"}) {
    if (const ConfigNode* found = child_map(top, key)) return {found, std::string(key)};
  }
  if (const ConfigNode* thinker = child_map(top, "thinker_config")) {
    if (const ConfigNode* found = child_map(*thinker, "text_config")) return {found, "thinker_config.text_config"};
  }
  return {&top, ""};
}

const ConfigNode* model_type_of(const ConfigNode& map) {
  const ConfigNode* found = map.find("model_type");
  return found == nullptr || found->is_null() || found->kind != ConfigNode::Kind::kScalar ? nullptr : found;
}

/// The first class under `architectures`, or null.
const ConfigNode* architecture_of(const ConfigNode& map) {
  const ConfigNode* list = map.find("architectures");
  return list == nullptr || list->items.empty() ? nullptr : &list->items.front();
}

[[noreturn]] void fail(const SourceSpan& where, std::string message, std::string hint) {
  throw UserError({{where, std::move(message), std::move(hint)}});
}

using HfStructure = std::array<std::string_view, 5>;

std::string known_families() { return "known: " + join(known_hf_families(), ", "); }

const HfFamily& checked(const HfFamily& family, const SourceSpan& where) {
  if (!family.refused.empty()) {
    fail(where, fmt::format("models of family '{}' are not read: {}", family.name, family.refused), kOwnFile);
  }
  return family;
}

/// What the file says it is: model_type of the language model, of the whole, or else the class.
const HfFamily& family_of(const ConfigNode& top, const ConfigNode& text) {
  const ConfigNode* found = nullptr;
  for (const ConfigNode* map : {&text, &top}) {
    const ConfigNode* type = model_type_of(*map);
    if (type == nullptr) continue;
    if (const HfFamily* family = find_hf_family(type->text)) return checked(*family, type->span);
    if (found == nullptr) found = type;
  }
  const std::string others = known_families() + "; --assume FAMILY reads the file as one of them";
  if (found != nullptr) fail(found->span, fmt::format("'model_type' {} is not known", in_quotes(found->text)), others);
  for (const ConfigNode* map : {&text, &top}) {
    const ConfigNode* architecture = architecture_of(*map);
    if (architecture == nullptr) continue;
    if (const HfFamily* family = find_hf_family_of_class(architecture->text)) {
      return checked(*family, architecture->span);
    }
    if (found == nullptr) found = architecture;
  }
  if (found != nullptr) fail(found->span, fmt::format("architecture {} is not known", in_quotes(found->text)), others);
  fail(top.span, "the file has no 'model_type' and no 'architectures' to tell its family", others);
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

/// Keys of things that change a model's weights, those of one quantity in one group. A file that has one which its
/// family's reader did not ask for is not what it says it is.
constexpr std::array kStructure{
    HfStructure{"num_local_experts", "num_experts", "n_routed_experts", "num_routed_experts", "moe_num_experts"},
    HfStructure{"n_shared_experts", "num_shared_experts"},
    HfStructure{"shared_expert_intermediate_size"},
    HfStructure{"kv_lora_rank"},
    HfStructure{"index_n_heads"},
    HfStructure{"linear_num_key_heads"},
    HfStructure{"linear_attn_config"},
    HfStructure{"ssm_state_size", "mamba_d_state"},
    HfStructure{"mamba_num_heads"},
    HfStructure{"hybrid_override_pattern", "layers_block_type"},
    HfStructure{"hybrid_layer_pattern"},
    HfStructure{"block_configs"},
    HfStructure{"attn_type_list"},
    HfStructure{"compress_ratios"},
    HfStructure{"hidden_size_per_layer_input"},
    HfStructure{"num_kv_shared_layers"},
    HfStructure{"global_head_dim"},
    HfStructure{"swa_head_dim"},
    HfStructure{"moe_latent_size"},
    HfStructure{"attn_layer_period"},
    HfStructure{"word_embed_proj_dim"},
};

/// What was read of a group, or null.
const ConfigNode* read_of(const HfKeys& keys, const HfStructure& group) {
  for (const std::string_view key : group) {
    const ConfigNode* value = key.empty() ? nullptr : keys.text().find(key);
    if (value != nullptr && keys.was_read(*value)) return value;
  }
  return nullptr;
}

/// 0, 1 and false are how files say that they have none.
bool says_none(const ConfigNode& value) {
  return value.is_null() || value.text == "0" || value.text == "1" || value.text == "false";
}

void report_unread_structure(HfKeys& keys, const HfFamily& family) {
  for (const HfStructure& group : kStructure) {
    const ConfigNode* known = read_of(keys, group);
    for (const std::string_view key : group) {
      const ConfigNode* value = key.empty() ? nullptr : keys.text().find(key);
      if (value == nullptr || keys.was_read(*value)) continue;
      if (known != nullptr ? value->is_null() || value->text == known->text : says_none(*value)) continue;
      const std::string message =
          known != nullptr ? fmt::format("'{}' is {}, and another key says {}", key, value_text(*value), known->text)
                           : fmt::format("'{}' is set, and models of family '{}' have no such thing", key, family.name);
      keys.problems().add(value->span, message, known != nullptr ? "" : "is 'model_type' right?");
    }
  }
  const ConfigNode* types = keys.text().find("layer_types");
  if (types == nullptr || keys.was_read(*types)) return;
  for (const ConfigNode& item : types->items) {
    if (item.text == "full_attention" || item.text == "attention") continue;
    keys.problems().add(item.span,
                        fmt::format("layer type {} is not known of family '{}'", in_quotes(item.text), family.name));
    return;
  }
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
  const double total = HfWeights(m, WeightFormat::kBf16).parameters();
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
  const fs::path path(top.span.file);
  std::string name;
  if (path.filename() == "config.json") {
    fs::path directory = path.parent_path();
    if (is_commit(directory.filename().string()) && directory.parent_path().filename() == "snapshots") {
      directory = directory.parent_path().parent_path();
    }
    name = last_part(directory.string());
  } else if (path.extension() == ".json") {
    name = path.stem().string();
  }
  const ConfigNode* said = top.find("_name_or_path");
  if (name.empty() && said != nullptr && said->kind == ConfigNode::Kind::kScalar) name = last_part(said->text);
  return name.empty() ? std::string(family.name) : name;
}

void remark_on_towers(HfKeys& keys) {
  for (const std::string_view key : {"vision_config", "audio_config"}) {
    if (child_map(keys.top(), key) == nullptr) continue;
    keys.remark(fmt::format("the language model alone is read: {} is not counted", key));
  }
}

}  // namespace

bool is_hf_config(const ConfigNode& document) {
  if (document.find("schema") != nullptr) return false;
  constexpr std::array<std::string_view, 6> kSigns{"model_type",  "architectures", "transformers_version",
                                                   "hidden_size", "text_config",   "n_embd"};
  return std::any_of(kSigns.begin(), kSigns.end(), [&](std::string_view key) { return document.find(key) != nullptr; });
}

ImportedModel import_hf_config(const ConfigNode& config, const ConfigNode* beside, const std::string& assume) {
  ImportedModel out;
  const TextConfig text = text_config(config);
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
  family.read(reading);
  check_heads(keys, model);
  report_unread_structure(keys, family);
  // What follows relies on sizes that fit each other.
  problems.throw_if_any();

  out.document = model_document(model, model_name(config, family), config.span);
  if (auto quantization = hf_quantization(keys, model, beside)) {
    SourceSpan where = quantization->span;
    out.document.entries.push_back({"quantization", std::move(where), *std::move(quantization)});
  }
  check_total(keys, model);
  remark_on_towers(keys);
  keys.list_ignored();
  problems.throw_if_any();
  return out;
}

}  // namespace scalecalc
