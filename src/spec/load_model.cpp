// Reads a model file: its groups of layers, its embeddings, its vocabulary and its drafts.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "config/fields.h"
#include "spec/load.h"
#include "spec/load_blocks.h"
#include "spec/load_quantization.h"

namespace scalecalc {
namespace {

/// Completes a kind with its group's own width and norms and checks that the layer can be built.
LayerKind in_group(LayerKind kind, const std::optional<std::int64_t>& d_ff, const std::optional<std::int64_t>& norms,
                   const ModelSpec& model, const SourceSpan& where, Problems& problems) {
  if (kind.ffn == FfnKind::kDense && d_ff != model.mlp.d_ff) kind.d_ff = d_ff;
  if (norms != model.norms_per_layer) kind.norms = norms;
  if (kind.ffn == FfnKind::kDense && model.d_ff_of(kind) == 0) {
    problems.add(where, "a dense layer needs a width: mlp.d_ff, or d_ff beside its kinds");
  }
  const std::int64_t parts = (kind.mixer == MixerKind::kNone ? 0 : 1) + (kind.ffn == FfnKind::kNone ? 0 : 1);
  if (model.norms_of(kind) > 2 * parts) {
    problems.add(where, fmt::format("a {} layer has room for {} norms, before and after each part, not for {}",
                                    name_of(kind), 2 * parts, model.norms_of(kind)));
  }
  return kind;
}

/// Its index among the model's kinds; a new kind is added.
std::uint8_t kind_index(ModelSpec& model, const LayerKind& kind, const SourceSpan& where, Problems& problems) {
  const auto known = std::find(model.kinds.begin(), model.kinds.end(), kind);
  if (known != model.kinds.end()) return static_cast<std::uint8_t>(known - model.kinds.begin());
  if (model.kinds.size() == kMaxLayerKinds) {
    problems.add(where, fmt::format("more than {} different layers in one model", kMaxLayerKinds));
    return 0;
  }
  model.kinds.push_back(kind);
  return static_cast<std::uint8_t>(model.kinds.size() - 1);
}

void load_group(const ConfigNode& node, ModelSpec& model, Problems& problems) {
  Fields fields(node, "layers entry", problems);
  const std::int64_t repeat = fields.count("repeat", kLayerCount);
  const ConfigNode& kinds = fields.required_node("kinds");
  const auto d_ff = fields.optional_count("d_ff", kWidthRange);
  const auto norms = fields.optional_count("norms", {0, 4});
  std::vector<std::uint8_t> indices;
  bool dense = false;
  for (const ConfigNode& item : kinds.items) {
    const auto read = read_layer_kind(item, model, problems);
    if (!read) continue;
    const LayerKind kind = in_group(*read, d_ff, norms, model, item.span, problems);
    dense = dense || kind.ffn == FfnKind::kDense;
    indices.push_back(kind_index(model, kind, item.span, problems));
  }
  if (kinds.items.empty()) problems.add(kinds.span, "kinds must list at least one layer kind, such as full/dense");
  if (d_ff && !dense && !indices.empty()) {
    problems.add(fields.span(), "d_ff is the width of dense layers, and this entry has none",
                 "the width of an expert is moe.d_ff");
  }
  const std::size_t more = indices.size() * static_cast<std::size_t>(repeat);
  if (static_cast<double>(model.layer_kind.size() + more) > kLayerCount.max) {
    problems.add(fields.span(), fmt::format("more than {} layers in one model", kLayerCount.max));
    return fields.finish();
  }
  for (std::int64_t i = 0; i < repeat; ++i) {
    model.layer_kind.insert(model.layer_kind.end(), indices.begin(), indices.end());
  }
  fields.finish();
}

void load_layers(const ConfigNode& node, ModelSpec& model, Problems& problems) {
  if (node.kind != ConfigNode::Kind::kSequence) {
    problems.add(node.span, "layers must be a list of {repeat, kinds}");
    return;
  }
  for (const ConfigNode& group : node.items) load_group(group, model, problems);
}

void load_norm(const ConfigNode& node, ModelSpec& model, Problems& problems) {
  Fields fields(node, "norm", problems);
  model.norm = fields.word("kind", {"rmsnorm", "layernorm"}) == 0 ? NormKind::kRms : NormKind::kLayer;
  model.norms_per_layer = fields.optional_count("per_layer", {0, 4}).value_or(2);
  model.norm_weights = fields.flag("weights", true);
  model.norm_bias = fields.flag("bias", model.norm == NormKind::kLayer && model.norm_weights);
  if (model.norm_bias && !model.norm_weights) problems.add(node.span, "a norm without weights has no bias");
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

TrainingFacts load_training(const ConfigNode* node, Problems& problems) {
  TrainingFacts out;
  if (node == nullptr) return out;
  Fields fields(*node, "training", problems);
  out.tokens = fields.optional_quantity("tokens", UnitKind::kCount);
  out.seq = fields.optional_count("seq", {1, 1e9});
  out.batch_tokens = fields.optional_quantity("batch_tokens", UnitKind::kCount);
  out.precision = fields.optional_text("precision");
  out.optimizer = fields.optional_text("optimizer");
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
  model.mtp_layers = fields.count("layers", kMtpLayers);
  const ConfigNode& kind = fields.required_node("kind");
  const auto read = read_layer_kind(kind, model, problems);
  if (read)
    model.mtp_kind = kind_index(model, in_group(*read, {}, {}, model, kind.span, problems), kind.span, problems);
  fields.finish();
}

void load_draft(const ConfigNode* node, ModelSpec& model, Problems& problems) {
  if (node == nullptr) return;
  Fields fields(*node, "draft", problems);
  model.draft = DraftSpec{fields.count("target_d_model", kWidthRange), fields.count("target_layers", {1, 100})};
  if (model.layers() != 1 || !attends_by_heads(model.kinds.front().mixer)) {
    problems.add(fields.span(), "a draft is one layer of attention that reads its target's states");
  }
  fields.finish();
}

/// A layer may only attend to what an indexer before it picked, or to keys and values of a layer of its kind.
void check_reuse(const ConfigNode& layers, const ModelSpec& model, Problems& problems) {
  const bool chosen = model.attention.indexer.has_value();
  std::array<bool, kMixerNames.size()> owns{};
  for (const std::uint8_t index : model.layer_kind) {
    const LayerKind& kind = model.kinds[index];
    bool& known = owns[chosen ? 0 : static_cast<std::size_t>(kind.mixer)];
    if (kind.reuse && !known) {
      problems.add(layers.span, fmt::format("a layer reuses {}, and none stands before it",
                                            chosen ? "an indexer's choice" : "another's keys and values"));
      return;
    }
    const bool sees_all = kind.mixer == MixerKind::kFull || kind.mixer == MixerKind::kMla;
    known = known || (!kind.whole && (!chosen || sees_all));
  }
}

StreamsSpec load_streams(const ConfigNode& node, Problems& problems) {
  Fields fields(node, "streams", problems);
  StreamsSpec out;
  out.count = fields.count("count", {2, 64});
  out.kind = static_cast<StreamKind>(fields.word("kind", {"hyper", "altup"}));
  fields.finish();
  return out;
}

std::vector<ProjectorLayer> load_projections(const ConfigNode* node, Problems& problems) {
  std::vector<ProjectorLayer> out;
  if (node == nullptr) return out;
  for (const ConfigNode& item : node->items) {
    Fields layer(item, "projection of a tower", problems);
    out.push_back({layer.count("in", kWidthRange), layer.count("out", kWidthRange), layer.flag("bias", false),
                   layer.optional_count("times", {1, 1e6}).value_or(1)});
    layer.finish();
  }
  return out;
}

TowerSpec load_tower(const ConfigNode& node, Problems& problems) {
  Fields fields(node, "towers entry", problems);
  TowerSpec out;
  ModelSpec& network = out.network;
  out.name = network.name = network.title = fields.text("name");
  out.counted = fields.flag("counted", false);
  out.stem = load_projections(fields.node("stem"), problems);
  network.vocab = fields.optional_count("vocab", kWidthRange).value_or(0);
  out.other_weights = fields.optional_count("other_weights", {0, 1e12}).value_or(0);
  out.patch = fields.optional_count("patch", {0, 1e4}).value_or(0);
  out.merge = fields.optional_count("merge", {1, 1e4}).value_or(1);
  out.tokens = fields.optional_count("tokens", {0, 1e8}).value_or(0);
  out.projector = load_projections(fields.node("projector"), problems);
  network.d_model = fields.count("d_model", kWidthRange);
  network.learned_positions = fields.optional_count("learned_positions", {0, 1e8}).value_or(0);
  network.position_biases = fields.optional_count("position_biases", {0, 1e9}).value_or(0);
  load_norm(fields.required_node("norm"), network, problems);
  network.final_norm = fields.flag("final_norm", true);
  network.attention = load_attention(fields.required_node("attention"), problems);
  network.mlp = load_mlp(fields.required_node("mlp"), problems);
  load_layers(fields.required_node("layers"), network, problems);
  fields.finish();
  return out;
}

void load_towers(const ConfigNode* node, ModelSpec& model, Problems& problems) {
  if (node == nullptr) return;
  if (node->kind != ConfigNode::Kind::kSequence) {
    problems.add(node->span, "towers must be a list");
    return;
  }
  for (const ConfigNode& item : node->items) model.towers.push_back(load_tower(item, problems));
}

/// A model without heads or without an MLP has a linear: or ssm: block instead.
void load_blocks(Fields& fields, ModelSpec& model, Problems& problems) {
  const ConfigNode* linear = fields.node("linear");
  const ConfigNode* ssm = fields.node("ssm");
  const auto block = [&](std::string_view key) {
    return linear == nullptr && ssm == nullptr ? &fields.required_node(key) : fields.node(key);
  };
  if (const ConfigNode* attention = block("attention")) model.attention = load_attention(*attention, problems);
  if (const ConfigNode* mlp = block("mlp")) model.mlp = load_mlp(*mlp, problems);
  if (const ConfigNode* moe = fields.node("moe")) model.moe = load_moe(*moe, problems);
  if (linear != nullptr) load_linear(*linear, model, problems);
  if (ssm != nullptr) load_ssm(*ssm, model, problems);
}

}  // namespace

void at_length(ModelSpec& model, double seq) {
  bool across = false;
  for (const LayerKind& kind : model.kinds) across = across || attends_across(kind.mixer);
  for (TowerSpec& tower : model.towers) {
    if (!tower.counted && !across) continue;
    tower.positions = tower.tokens > 0 ? static_cast<double>(tower.tokens) : seq;
    tower.per_token = tower.positions / seq;
  }
}

ModelSpec load_model(const ConfigNode& document, std::vector<AskedField>* asked) {
  Problems problems(asked);
  Fields fields(document, "model", problems);
  ModelSpec model;
  fields.schema("scalecalc-model/1");
  model.name = fields.text("name");
  model.title = fields.text("title");
  fields.text_list("aliases");
  model.vendor = fields.optional_text("vendor").value_or("");
  model.released = fields.optional_text("released").value_or("");
  fields.optional_text("model_type");  // for launch files alone, which ask the document
  fields.optional_text("note");
  model.source = join(fields.text_list("source"), ", ");
  fields.node("sources");
  model.d_model = fields.count("d_model", kWidthRange);
  model.vocab = fields.count("vocab", kWidthRange);
  model.max_seq = fields.count("max_seq", {1, 1e9});
  model.learned_positions = fields.optional_count("learned_positions", {0, 1e8}).value_or(0);
  model.input_tokens = fields.optional_count("input_tokens", {0, 1e7}).value_or(0);
  model.embedding_dim = fields.optional_count("embedding_dim", kWidthRange).value_or(0);
  model.embedding_bias = fields.flag("embedding_bias", false);
  if (model.embedding_bias && model.embedding_dim == 0)
    problems.add(fields.span(), "embedding_bias needs embedding_dim");
  model.tied_embeddings = fields.flag("tied_embeddings", false);
  model.embedding_norm = fields.flag("embedding_norm", false);
  load_norm(fields.required_node("norm"), model, problems);
  model.head_bias = fields.flag("head_bias", false);
  model.head_outputs = fields.optional_count("head_outputs", {0, kWidthRange.max});
  model.final_norm = fields.flag("final_norm", true);
  model.relative_positions = fields.flag("relative_positions", false);
  model.parallel_block = fields.flag("parallel_block", false);
  model.layer_scale = fields.flag("layer_scale", false);
  model.residual_block = fields.optional_count("residual_block", {1, 10000}).value_or(0);
  if (const ConfigNode* node = fields.node("per_layer_embedding")) {
    Fields table(*node, "per_layer_embedding", problems);
    model.per_layer_embedding = PerLayerEmbedding{table.count("width", kWidthRange), table.count("vocab", kWidthRange)};
    table.finish();
  }
  if (const ConfigNode* node = fields.node("ngram_embedding")) {
    Fields tables(*node, "ngram_embedding", problems);
    model.ngram_embedding = NgramEmbedding{tables.count("tables", {1, 1000}), tables.count("rows", {1, 1e12}),
                                           tables.count("width", kWidthRange)};
    tables.finish();
  }
  if (const ConfigNode* node = fields.node("streams")) model.streams = load_streams(*node, problems);
  model.laurel_rank = fields.optional_count("laurel_rank", kWidthRange).value_or(0);
  model.position_biases = fields.optional_count("position_biases", {0, 1e9}).value_or(0);
  model.head_dense =
      static_cast<HeadDense>(fields.optional_word("head_dense", {"none", "pooler", "transform", "dense"}).value_or(0));
  load_towers(fields.node("towers"), model, problems);
  load_blocks(fields, model, problems);
  const ConfigNode& layers = fields.required_node("layers");
  load_layers(layers, model, problems);
  check_reuse(layers, model, problems);
  load_draft(fields.node("draft"), model, problems);
  load_mtp(fields.node("mtp"), model, problems);
  if (const ConfigNode* quantization = fields.node("quantization")) {
    model.quantization = load_quantization(*quantization, problems);
  }
  load_official(fields.node("parameters"), model, problems);
  model.training = load_training(fields.node("training"), problems);
  fields.finish();
  problems.throw_if_any();
  at_length(model, static_cast<double>(model.max_seq));
  return model;
}

}  // namespace scalecalc
