// Builds the model of a measured row from its name or from the shape in the row.
#include "validate/row_model.h"

#include <fmt/format.h>

#include <compare>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/text.h"
#include "import/hf_config.h"
#include "spec/kept.h"
#include "spec/load.h"

namespace scalecalc {
namespace {

class ShapeDocument {
 public:
  ShapeDocument(const Measurement& row, const ModelShape& shape) : row_(row), s_(shape), where_(row.where) {}

  ConfigNode run() {
    MapBuilder out(where_);
    ConfigNode label = text_node(row_.model, where_);
    label.quoted = true;
    ConfigNode source = text_node(row_.source, where_);
    source.quoted = true;
    out.add("schema", "scalecalc-model/1").add("name", label).add("title", label).add("source", std::move(source));
    out.add("d_model", size(s_.d_model)).add("vocab", size(s_.vocab)).add("max_seq", size(row_.seq));
    if (s_.learned_positions) out.add("learned_positions", size(row_.seq));
    out.add("tied_embeddings", s_.tied_embeddings ? "true" : "false").add_if("parallel_block", s_.parallel_block);
    out.add("norm", norm()).add("attention", attention()).add("mlp", mlp());
    if (s_.experts > 0) out.add("moe", moe());
    const std::vector<HfLayer> all = layers();
    out.add("layers", layers_node(all, where_));
    if (row_.mtp_layers > 0) {
      MapBuilder mtp(where_);
      mtp.add("layers", size(row_.mtp_layers));
      out.add("mtp", mtp.add("kind", fmt::format("{}/{}", all.back().mixer, all.back().ffn)).take());
    }
    return out.take();
  }

 private:
  Size size(std::int64_t value) const { return {value, where_}; }

  /// Learned positions came with LayerNorm, gated MLPs with RMSNorm; no row says which, and little depends on it.
  ConfigNode norm() const {
    MapBuilder out(where_);
    return out.add("kind", s_.gated_mlp ? "rmsnorm" : "layernorm").add("per_layer", size(2)).take();
  }

  ConfigNode attention() const {
    MapBuilder out(where_);
    if (s_.mla) {
      out.add("kind", "mla").add("heads", size(s_.heads)).add_if("q_lora_rank", size(s_.mla->q_lora));
      out.add("kv_lora_rank", size(s_.mla->kv_lora)).add("qk_nope_head_dim", size(s_.mla->qk_nope));
      out.add("qk_rope_head_dim", size(s_.mla->qk_rope)).add("v_head_dim", size(s_.mla->v_head));
      return out.take();
    }
    out.add("kind", s_.kv_heads == s_.heads ? "mha" : s_.kv_heads == 1 ? "mqa" : "gqa");
    out.add("heads", size(s_.heads)).add("kv_heads", size(s_.kv_heads)).add("head_dim", size(s_.head_dim));
    return out.add_if("window", size(s_.window)).take();
  }

  ConfigNode mlp() const {
    MapBuilder out(where_);
    return out.add("d_ff", size(s_.ffn)).add("gated", s_.gated_mlp ? "true" : "false").take();
  }

  ConfigNode moe() const {
    MapBuilder out(where_);
    out.add("experts", size(s_.experts)).add("top_k", size(s_.top_k)).add("d_ff", size(s_.expert_ffn));
    out.add_if("shared_experts", size(s_.shared_experts)).add_if("expert_bias", s_.expert_bias);
    return out.add_if("shared_d_ff", size(s_.shared_experts * s_.shared_expert_ffn)).take();
  }

  std::vector<HfLayer> layers() const {
    std::vector<HfLayer> out;
    for (std::int64_t i = 0; i < s_.layers; ++i) {
      HfLayer layer;
      const bool local = s_.window > 0 && (i + 1) % s_.window_every != 0;
      layer.mixer = s_.mla ? "mla" : local ? "sliding" : "full";
      const std::int64_t after = i - s_.dense_layers;
      if (s_.experts > 0 && after >= 0 && (after + 1) % s_.moe_every == 0) layer.ffn = "moe";
      out.push_back(layer);
    }
    return out;
  }

  const Measurement& row_;
  const ModelShape& s_;
  SourceSpan where_;
};

/// Models made of shapes, once of all rows that state the same.
class ShapedModels {
 public:
  ModelSpec of(const Measurement& row) {
    const Key key{*row.shape, row.model, row.source, row.seq, row.mtp_layers};
    const std::lock_guard lock(mutex_);
    const auto found = made_.find(key);
    if (found != made_.end()) return found->second;
    return made_.emplace(key, load_model(model_document(row))).first->second;
  }

 private:
  /// All that ShapeDocument reads.
  struct Key {
    ModelShape shape;
    std::string model, source;
    std::int64_t seq = 0, mtp_layers = 0;
    auto operator<=>(const Key&) const = default;
  };
  std::mutex mutex_;
  std::map<Key, ModelSpec> made_;
};

std::vector<std::string> unread(const ModelShape& shape) {
  std::vector<std::string> out = shape.unread;
  if (shape.window > 0 && shape.window_every == 0) out.emplace_back("attn_window_every");
  return out;
}

}  // namespace

std::string with_nearest(const UserError& error) {
  const Diagnostic& first = error.diagnostics().front();
  // What follows the question is of a command line.
  const bool suggested = first.hint.starts_with("did you mean");
  return suggested ? fmt::format("{}; {}", first.message, first.hint.substr(0, first.hint.find('?') + 1))
                   : first.message;
}

ConfigNode model_document(const Measurement& row) { return ShapeDocument(row, *row.shape).run(); }

ModelSpec model_of(const Measurement& row, const Catalog& catalog) {
  const std::vector<std::string> missing = row.shape ? unread(*row.shape) : std::vector<std::string>{};
  try {
    if (row.shape && missing.empty()) {
      const auto models = kept<std::shared_ptr<ShapedModels>>(catalog, "models of rows",
                                                              [] { return std::make_shared<ShapedModels>(); });
      return (*models)->of(row);
    }
    ModelSpec model = *kept<ModelSpec>(catalog, "model of a row\n" + row.model,
                                       [&] { return load_model(catalog.load(CatalogKind::kModel, row.model)); });
    if (row.mtp_layers == 0) model.mtp_layers = 0;  // a row says when it trains them
    return model;
  } catch (const UserError& error) {
    if (!missing.empty()) {
      throw NotPredicted("the architecture is not modelled",
                         fmt::format("model_shape says {}, and the catalog has no {}", join_and(missing), row.model));
    }
    throw NotPredicted("the model is not known", with_nearest(error));
  }
}

}  // namespace scalecalc
