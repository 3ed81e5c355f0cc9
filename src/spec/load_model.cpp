#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "config/fields.h"
#include "spec/load.h"

namespace scalecalc {
namespace {

constexpr Range kWidth{1, 1e7};  // no published dimension comes near ten million

void load_mla(Fields& fields, AttentionSpec& attention) {
  MlaSpec mla;
  mla.q_lora_rank = fields.optional_count("q_lora_rank", kWidth).value_or(0);
  mla.kv_lora_rank = fields.count("kv_lora_rank", kWidth);
  mla.qk_nope_head_dim = fields.count("qk_nope_head_dim", kWidth);
  mla.qk_rope_head_dim = fields.count("qk_rope_head_dim", kWidth);
  mla.v_head_dim = fields.count("v_head_dim", kWidth);
  attention.kv_heads = attention.heads;
  attention.head_dim = mla.qk_nope_head_dim + mla.qk_rope_head_dim;
  attention.mla = mla;
}

AttentionSpec load_attention(const ConfigNode& node, Problems& problems) {
  Fields fields(node, "attention", problems);
  AttentionSpec out;
  const std::size_t kind = fields.word("kind", {"mha", "gqa", "mqa", "mla"});
  out.heads = fields.count("heads", kWidth);
  if (kind == 3) {
    load_mla(fields, out);
  } else {
    out.head_dim = fields.count("head_dim", kWidth);
    const auto kv_heads = fields.optional_count("kv_heads", kWidth);
    out.kv_heads = kv_heads.value_or(kind == 0 ? out.heads : 1);
    if (kind == 1 && !kv_heads) problems.add(fields.span(), "attention of kind gqa needs kv_heads");
    if (out.kv_heads > 0 && out.heads % out.kv_heads != 0) {
      problems.add(fields.span(),
                   fmt::format("heads ({}) must be a multiple of kv_heads ({})", out.heads, out.kv_heads));
    }
  }
  out.window = fields.optional_count("window", kWidth).value_or(0);
  out.qkv_bias = fields.flag("qkv_bias", false);
  out.o_bias = fields.flag("o_bias", false);
  out.qk_norm = fields.optional_word("qk_norm", {"none", "head_dim"}).value_or(0) == 1;
  out.sinks = fields.flag("sinks", false);
  fields.finish();
  return out;
}

MlpSpec load_mlp(const ConfigNode& node, Problems& problems) {
  Fields fields(node, "mlp", problems);
  MlpSpec out;
  out.d_ff = fields.count("d_ff", kWidth);
  out.gated = fields.flag("gated", true);
  out.bias = fields.flag("bias", false);
  fields.finish();
  return out;
}

MoeSpec load_moe(const ConfigNode& node, Problems& problems) {
  Fields fields(node, "moe", problems);
  MoeSpec out;
  out.experts = fields.count("experts", {2, 1e5});
  out.top_k = fields.count("top_k", {1, 1e5});
  out.d_ff = fields.count("d_ff", kWidth);
  out.shared_experts = fields.optional_count("shared_experts", {0, 1e4}).value_or(0);
  out.shared_d_ff = fields.optional_count("shared_d_ff", {0, 1e7}).value_or(out.shared_experts * out.d_ff);
  out.node_limit = fields.optional_count("node_limit", {0, 1e4}).value_or(0);
  out.router_bias = fields.flag("router_bias", false);
  out.router_correction_bias = fields.flag("router_correction_bias", false);
  out.expert_bias = fields.flag("expert_bias", false);
  out.shared_gate = fields.flag("shared_gate", false);
  if (out.top_k > out.experts) {
    problems.add(fields.span(),
                 fmt::format("top_k ({}) is more than the number of experts ({})", out.top_k, out.experts));
  }
  fields.finish();
  return out;
}

std::uint8_t kind_index(ModelSpec& model, const std::string& text, const SourceSpan& where, Problems& problems) {
  static const std::vector<std::string> kWords{"full/dense",  "full/moe",  "sliding/dense",
                                               "sliding/moe", "mla/dense", "mla/moe"};
  const auto found = std::find(kWords.begin(), kWords.end(), text);
  if (found == kWords.end()) {
    problems.add(where, fmt::format("unknown layer kind '{}', expected one of {}", text, join(kWords, ", ")),
                 did_you_mean(nearest(text, kWords)));
    return 0;
  }
  const auto position = found - kWords.begin();
  constexpr AttentionKind kAttention[] = {AttentionKind::kFull, AttentionKind::kSliding, AttentionKind::kMla};
  const LayerKind kind{kAttention[position / 2], position % 2 == 0 ? FfnKind::kDense : FfnKind::kMoe};
  if (kind.ffn == FfnKind::kMoe && !model.moe) problems.add(where, "a moe layer needs the model's moe: block");
  if (kind.attention == AttentionKind::kMla && !model.attention.mla) {
    problems.add(where, "an mla layer needs attention of kind mla");
  }
  if (kind.attention == AttentionKind::kSliding && model.attention.window == 0) {
    problems.add(where, "a sliding layer needs attention.window");
  }
  const auto known = std::find(model.kinds.begin(), model.kinds.end(), kind);
  if (known != model.kinds.end()) return static_cast<std::uint8_t>(known - model.kinds.begin());
  model.kinds.push_back(kind);
  return static_cast<std::uint8_t>(model.kinds.size() - 1);
}

void load_layers(const ConfigNode& node, ModelSpec& model, Problems& problems) {
  if (node.kind != ConfigNode::Kind::kSequence) {
    problems.add(node.span, "layers must be a list of {repeat, kinds}");
    return;
  }
  for (const ConfigNode& run : node.items) {
    Fields fields(run, "layers entry", problems);
    const std::int64_t repeat = fields.count("repeat", {1, 10000});
    const ConfigNode& kinds = fields.required_node("kinds");
    std::vector<std::uint8_t> indices;
    for (const ConfigNode& kind : kinds.items) indices.push_back(kind_index(model, kind.text, kind.span, problems));
    if (indices.empty()) problems.add(kinds.span, "kinds must list at least one layer kind, such as full/dense");
    for (std::int64_t i = 0; i < repeat; ++i) {
      model.layer_kind.insert(model.layer_kind.end(), indices.begin(), indices.end());
    }
    fields.finish();
  }
}

void load_norm(const ConfigNode& node, ModelSpec& model, Problems& problems) {
  Fields fields(node, "norm", problems);
  model.norm = fields.word("kind", {"rmsnorm", "layernorm"}) == 0 ? NormKind::kRms : NormKind::kLayer;
  model.norms_per_layer = fields.optional_count("per_layer", {0, 8}).value_or(2);
  model.norm_bias = fields.flag("bias", model.norm == NormKind::kLayer);
  fields.finish();
}

void load_official(const ConfigNode* node, ModelSpec& model, Problems& problems) {
  if (node == nullptr) return;
  Fields fields(*node, "parameters", problems);
  model.official.exact = fields.optional_count("official").value_or(0);
  model.official.stated = fields.optional_quantity("stated", UnitKind::kCount).value_or(0);
  model.official.active = fields.optional_quantity("active", UnitKind::kCount).value_or(0);
  model.official.active_convention = fields.optional_text("active_convention").value_or("");
  fields.text_list("source");
  fields.finish();
}

TrainingFacts load_training(const ConfigNode& node, Problems& problems) {
  Fields fields(node, "training", problems);
  TrainingFacts out;
  out.tokens = fields.quantity("tokens", UnitKind::kCount);
  out.seq = fields.count("seq", {1, 1e9});
  out.batch_tokens = fields.quantity("batch_tokens", UnitKind::kCount);
  out.precision = fields.text("precision");
  out.optimizer = fields.text("optimizer");
  out.source = join(fields.text_list("source"), ", ");
  if (const ConfigNode* assumed = fields.node("assumed")) {
    for (const ConfigNode::Entry& entry : assumed->entries) out.assumed[entry.key] = entry.value.text;
  }
  fields.finish();
  return out;
}

void load_mtp(const ConfigNode* node, ModelSpec& model, Problems& problems) {
  if (node == nullptr) return;
  Fields fields(*node, "mtp", problems);
  model.mtp_layers = fields.count("layers", {1, 16});
  const ConfigNode& kind = fields.required_node("kind");
  model.mtp_kind = kind_index(model, kind.text, kind.span, problems);
  fields.finish();
}

}  // namespace

ModelSpec load_model(const ConfigNode& document) {
  if (document.find("model_type") != nullptr || document.find("architectures") != nullptr) {
    throw UserError({{document.span, "this is a Hugging Face config.json, which scalecalc does not read yet",
                      "describe the model in a scalecalc-model/1 file: docs/howto/add-model.md"}});
  }
  Problems problems;
  Fields fields(document, "model", problems);
  ModelSpec model;
  fields.word("schema", {"scalecalc-model/1"});
  model.name = fields.text("name");
  model.title = fields.text("title");
  fields.text_list("aliases");
  fields.optional_text("vendor");
  fields.optional_text("released");
  fields.optional_text("note");
  model.source = join(fields.text_list("source"), ", ");
  fields.node("sources");
  model.d_model = fields.count("d_model", kWidth);
  model.vocab = fields.count("vocab", kWidth);
  model.max_seq = fields.count("max_seq", {1, 1e9});
  model.learned_positions = fields.optional_count("learned_positions", {0, 1e8}).value_or(0);
  model.tied_embeddings = fields.flag("tied_embeddings", false);
  model.embedding_norm = fields.flag("embedding_norm", false);
  load_norm(fields.required_node("norm"), model, problems);
  model.attention = load_attention(fields.required_node("attention"), problems);
  model.mlp = load_mlp(fields.required_node("mlp"), problems);
  if (const ConfigNode* moe = fields.node("moe")) model.moe = load_moe(*moe, problems);
  load_layers(fields.required_node("layers"), model, problems);
  load_mtp(fields.node("mtp"), model, problems);
  load_official(fields.node("parameters"), model, problems);
  model.training = load_training(fields.required_node("training"), problems);
  fields.finish();
  problems.throw_if_any();
  return model;
}

}  // namespace scalecalc
