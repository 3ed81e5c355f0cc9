// Reads the architectures that rows of measurements state, in our keys and in those of Hugging Face.
#include <algorithm>
#include <cctype>
#include <set>

#include "base/text.h"
#include "config/fields.h"
#include "spec/model_ranges.h"
#include "validate/measurement.h"
#include "validate/measurement_document.h"

namespace scalecalc {
namespace {

bool is_note(std::string_view key) { return key.ends_with("_note"); }

/// A number, "alternate layers" or "5 local : 1 global": one layer of how many attends globally. 0: not understood.
std::int64_t window_every(const std::string& text) {
  const auto count = parse_quantity(text, UnitKind::kCount);
  const auto layers = [](double value) { return value <= kLayerCount.max ? static_cast<std::int64_t>(value) : 0; };
  if (const double* value = std::get_if<double>(&count)) return layers(*value);
  if (text.find("alternate") != std::string::npos) return 2;
  const std::size_t local = text.find(" local : 1 global");
  const auto many = parse_quantity(text.substr(0, local), UnitKind::kCount);
  const double* value = std::get_if<double>(&many);
  return local == std::string::npos || value == nullptr ? 0 : layers(*value + 1);
}

class ShapeReader {
 public:
  ShapeReader(const ConfigNode& node, Problems& problems) : node_(node), f_(node, "model_shape", problems) {}

  ModelShape run() {
    widths();
    experts();
    attention();
    for (const ConfigNode::Entry& entry : node_.entries) {
      const bool known = std::find(known_.begin(), known_.end(), entry.key) != known_.end();
      if (!known && !is_note(entry.key)) out_.unread.push_back(entry.key);
    }
    return std::move(out_);
  }

 private:
  std::int64_t required(const char* key, Range range = kWidthRange) {
    known_.emplace_back(key);
    return f_.count(key, range);
  }
  std::int64_t optional(const char* key, Range range, std::int64_t otherwise = 0) {
    known_.emplace_back(key);
    return f_.optional_count(key, range).value_or(otherwise);
  }
  bool flag(const char* key) {
    known_.emplace_back(key);
    return f_.flag(key, false);
  }

  void widths() {
    out_.layers = required("layers", kLayerCount);
    out_.d_model = required("d_model");
    out_.heads = required("heads");
    out_.kv_heads = optional("kv_heads", kOptionalWidth, out_.heads);
    out_.head_dim = required("head_dim");
    out_.ffn = required("ffn");
    out_.vocab = required("vocab");
    out_.gated_mlp = flag("gated_mlp");
    out_.tied_embeddings = flag("tied_embeddings");
    out_.parallel_block = flag("parallel_block");
    out_.expert_bias = flag("expert_bias");
    known_.emplace_back("pos");
    out_.learned_positions = f_.optional_text("pos").value_or("") == "learned";
  }

  void experts() {
    out_.experts = optional("experts", kOptionalExperts);
    out_.top_k = optional("top_k", kOptionalExperts);
    out_.expert_ffn = optional("expert_ffn", kOptionalWidth);
    out_.shared_experts = optional("shared_experts", kSharedExperts);
    out_.shared_expert_ffn = optional("shared_expert_ffn", kOptionalWidth, out_.expert_ffn);
    out_.dense_layers = optional("dense_layers", kOptionalLayerCount);
    out_.moe_every = std::max<std::int64_t>(1, optional("moe_every", kOptionalLayerCount, 1));
    if (out_.experts > 0 && (out_.top_k == 0 || out_.expert_ffn == 0)) {
      f_.problems().add(f_.span(), "experts need top_k and expert_ffn");
    }
  }

  void attention() {
    known_.insert(known_.end(), {"mla", "attn_window", "attn_window_every"});
    out_.window = f_.optional_count("attn_window", kWidthRange).value_or(0);
    out_.window_every = window_every(f_.optional_text("attn_window_every").value_or("0"));
    const ConfigNode* mla = f_.node("mla");
    if (mla == nullptr) return;
    Fields m(*mla, "mla", f_.problems());
    out_.mla = MlaShape{.q_lora = m.optional_count("q_lora", kOptionalWidth).value_or(0),
                        .kv_lora = m.count("kv_lora", kWidthRange),
                        .qk_nope = m.count("qk_nope", kWidthRange),
                        .qk_rope = m.count("qk_rope", kWidthRange),
                        .v_head = m.count("v_head", kWidthRange)};
    m.finish();
  }

  const ConfigNode& node_;
  Fields f_;
  std::vector<std::string_view> known_;
  ModelShape out_;
};

/// The same of Hugging Face's keys. Gated unless the row says otherwise, heads untied: what a serving row leaves out.
class HfShapeReader {
 public:
  HfShapeReader(const ConfigNode& node, Problems& problems) : node_(node), f_(node, "model_shape", problems) {}

  ModelShape run() {
    out_.layers = size("num_hidden_layers", kLayerCount);
    out_.d_model = size("hidden_size");
    out_.heads = size("num_attention_heads");
    out_.vocab = size("vocab_size");
    const std::string mlp = text("mlp");
    out_.gated_mlp = mlp.find("gelu") == std::string::npos;
    out_.parallel_block = mlp.find("parallel") != std::string::npos;
    attention();
    feed_forward();
    for (const char* ignored : {"n_params", "note", "full_attention_layers"}) known_.insert(ignored);
    for (const ConfigNode::Entry& entry : node_.entries) {
      if (!known_.contains(entry.key)) out_.unread.push_back(entry.key);
    }
    return std::move(out_);
  }

 private:
  std::int64_t size(const char* key, Range range = kWidthRange) {
    known_.insert(key);
    return f_.count(key, range);
  }
  std::int64_t maybe(const char* key, Range range = kOptionalWidth) {
    known_.insert(key);
    return f_.has(key) ? f_.optional_count(key, range).value_or(0) : 0;
  }
  std::string text(const char* key) {
    known_.insert(key);
    return f_.optional_text(key).value_or("");
  }

  void attention() {
    const std::int64_t latent = maybe("kv_lora_rank");
    const MlaShape mla{.q_lora = maybe("q_lora_rank"),
                       .kv_lora = latent,
                       .qk_nope = maybe("qk_nope_head_dim"),
                       .qk_rope = maybe("qk_rope_head_dim"),
                       .v_head = maybe("v_head_dim")};
    const std::int64_t kv_heads = maybe("num_key_value_heads");
    const std::int64_t head = maybe("head_dim");
    if (latent > 0) out_.mla = mla;
    out_.kv_heads = kv_heads > 0 ? kv_heads : out_.heads;
    out_.head_dim = latent > 0 ? mla.qk_nope : head > 0 ? head : out_.d_model / std::max<std::int64_t>(1, out_.heads);
    out_.window = maybe("sliding_window");
    const std::int64_t local = maybe("sliding_attention_layers", kOptionalLayerCount);
    if (out_.window > 0 && local > 0 && local < out_.layers) out_.window_every = out_.layers / (out_.layers - local);
  }

  void feed_forward() {
    const std::int64_t width = maybe("intermediate_size");
    const std::int64_t dense = maybe("intermediate_size_mlp");
    out_.ffn = dense > 0 ? dense : width;
    out_.experts = std::max({maybe("num_local_experts", kOptionalExperts), maybe("num_experts", kOptionalExperts),
                             maybe("n_routed_experts", kOptionalExperts)});
    out_.top_k = maybe("num_experts_per_tok", kOptionalExperts);
    const std::int64_t expert = maybe("moe_intermediate_size");
    const std::int64_t shared = maybe("shared_expert_intermediate_size");
    const std::int64_t many =
        std::max(maybe("n_shared_experts", kSharedExperts), maybe("shared_experts", kSharedExperts));
    out_.dense_layers = maybe("first_k_dense_replace", kOptionalLayerCount);
    out_.moe_every = std::max<std::int64_t>(1, maybe("interleave_moe_layer_step", kOptionalLayerCount));
    if (out_.experts == 0) return;
    out_.expert_ffn = expert > 0 ? expert : width;
    if (out_.ffn == 0) out_.ffn = out_.expert_ffn;
    out_.shared_experts = shared > 0 ? std::max<std::int64_t>(1, many) : many;
    out_.shared_expert_ffn = shared > 0 ? shared : out_.expert_ffn;
    if (out_.top_k == 0) f_.problems().add(f_.span(), "experts need num_experts_per_tok");
  }

  const ConfigNode& node_;
  Fields f_;
  std::set<std::string, std::less<>> known_;
  ModelShape out_;
};

}  // namespace

ModelShape read_shape(const ConfigNode& node, Problems& problems) { return ShapeReader(node, problems).run(); }

ModelShape read_hf_shape(const ConfigNode& node, Problems& problems) { return HfShapeReader(node, problems).run(); }

std::string Measurement::family() const {
  const auto end =
      std::find_if(model.begin(), model.end(), [](char c) { return std::isalpha(static_cast<unsigned char>(c)) == 0; });
  return {model.begin(), end};
}

bool is_held_out(const ConfigNode& document) {
  const ConfigNode* said = document.find("held_out");
  return said != nullptr && said->text == "true";
}

}  // namespace scalecalc
