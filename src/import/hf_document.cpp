#include "import/hf_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace scalecalc {
namespace {

/// Layers [begin, begin + period) again and again, `repeat` times.
struct Group {
  std::size_t begin = 0;
  std::size_t period = 1;
  std::size_t repeat = 1;
};

bool same_group(const HfLayer& a, const HfLayer& b) { return a.norms == b.norms; }

/// One group has one width for its dense layers and one number of norms.
bool fits_one_group(const std::vector<HfLayer>& layers, std::size_t begin, std::size_t period) {
  const HfLayer* dense = nullptr;
  for (std::size_t i = begin; i < begin + period; ++i) {
    if (!same_group(layers[i], layers[begin])) return false;
    if (layers[i].ffn != "dense") continue;
    if (dense != nullptr && dense->d_ff != layers[i].d_ff) return false;
    dense = &layers[i];
  }
  return true;
}

/// The cheapest way to write the layers down, where a group costs one and each of its kinds one more.
std::vector<Group> fewest_groups(const std::vector<HfLayer>& layers) {
  constexpr std::size_t kLongestPeriod = 16;
  const std::size_t n = layers.size();
  std::vector<std::size_t> cost(n + 1, n * 3);  // of the layers from i on
  std::vector<Group> first(n + 1);
  cost[n] = 0;
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t period = 1; period <= std::min(kLongestPeriod, n - i); ++period) {
      if (!fits_one_group(layers, i, period)) break;
      for (std::size_t end = i + period; end <= n; end += period) {
        if (cost[end] + period + 1 < cost[i]) {
          cost[i] = cost[end] + period + 1;
          first[i] = {i, period, (end - i) / period};
        }
        const auto at = [&](std::size_t k) { return layers.begin() + static_cast<std::ptrdiff_t>(k); };
        if (end + period > n || !std::equal(at(i), at(i + period), at(end))) break;
      }
    }
  }
  std::vector<Group> out;
  for (std::size_t i = 0; i < n; i += out.back().period * out.back().repeat) out.push_back(first[i]);
  return out;
}

std::string kind_text(const HfLayer& layer) { return fmt::format("{}/{}", layer.mixer, layer.ffn); }

ConfigNode norm_node(const HfArchitecture& m, const SourceSpan& where) {
  MapBuilder out(where);
  out.add("kind", m.layernorm ? "layernorm" : "rmsnorm").add("per_layer", Size{m.norms_per_layer, where});
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
    out.add("local", local.add("v_head_dim", m.local->v_head_dim).take());
  }
  out.add_if("window", m.window).add_if("chunk", m.chunk);
  out.add_if("qkv_bias", m.qkv_bias).add_if("o_bias", m.o_bias).add_if("sinks", m.sinks);
  out.add_if("output_gate", m.output_gate);
  if (m.qk_norm != "none") out.add("qk_norm", m.qk_norm);
  if (m.indexer) {
    MapBuilder indexer(where);
    indexer.add("heads", m.indexer->heads).add("head_dim", m.indexer->head_dim).add("top_k", m.indexer->top_k);
    out.add("indexer", indexer.take());
  }
  return out.take();
}

ConfigNode mlp_node(const HfArchitecture& m, const SourceSpan& where) {
  MapBuilder out(where);
  if (m.has_ffn("dense")) out.add_if("d_ff", m.d_ff);
  out.add("gated", m.gated ? "true" : "false").add_if("bias", m.mlp_bias);
  return out.take();
}

ConfigNode moe_node(const HfMoe& moe, const SourceSpan& where) {
  MapBuilder out(where);
  out.add("experts", moe.experts).add("top_k", moe.top_k).add("d_ff", moe.d_ff);
  out.add_if("shared_experts", moe.shared_experts).add_if("shared_d_ff", moe.shared_d_ff);
  out.add_if("node_limit", moe.node_limit).add_if("latent", moe.latent).add_if("router_bias", moe.router_bias);
  out.add_if("router_correction_bias", moe.router_correction_bias).add_if("expert_bias", moe.expert_bias);
  out.add_if("shared_gate", moe.shared_gate);
  return out.take();
}

void add_linear(const HfArchitecture& m, MapBuilder& document, const SourceSpan& where) {
  MapBuilder out(where);
  if (m.has_mixer("gdn") && m.gdn) {
    out.add("kind", text_node("gdn", m.gdn->key_heads.where)).add("key_heads", m.gdn->key_heads);
    out.add("key_head_dim", m.gdn->key_head_dim).add("value_heads", m.gdn->value_heads);
    out.add("value_head_dim", m.gdn->value_head_dim).add("conv_kernel", m.gdn->conv_kernel);
  } else if (m.has_mixer("lightning") && m.lightning) {
    out.add("kind", text_node("lightning", m.lightning->heads.where));
    out.add("heads", m.lightning->heads).add("head_dim", m.lightning->head_dim);
  }
  if (!out.empty()) document.add("linear", out.take());
}

void add_ssm(const HfArchitecture& m, MapBuilder& document, const SourceSpan& where) {
  MapBuilder out(where);
  if (m.has_mixer("mamba1") && m.mamba1) {
    out.add("kind", text_node("mamba1", m.mamba1->d_inner.where)).add("d_inner", m.mamba1->d_inner);
    out.add("d_state", m.mamba1->d_state).add("d_conv", m.mamba1->d_conv).add("dt_rank", m.mamba1->dt_rank);
  } else if (m.has_mixer("mamba2") && m.mamba2) {
    out.add("kind", text_node("mamba2", m.mamba2->heads.where)).add("heads", m.mamba2->heads);
    out.add("head_dim", m.mamba2->head_dim).add("groups", m.mamba2->groups);
    out.add("d_state", m.mamba2->d_state).add("d_conv", m.mamba2->d_conv);
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
  sources.add("hf-config", fmt::format("Hugging Face config.json: {}", where.file));
  ConfigNode label = text_node(name, where);
  label.quoted = true;  // whatever the directory is called, it is a text
  out.add("schema", text_node("scalecalc-model/1", where)).add("name", label).add("title", label);
  out.add("source", std::move(source)).add("sources", sources.take());
  out.add("d_model", m.d_model).add("vocab", m.vocab).add("max_seq", m.max_seq);
  out.add_if("learned_positions", m.learned_positions).add_if("embedding_dim", m.embedding_dim);
  out.add("tied_embeddings", text_node(m.tied_embeddings ? "true" : "false", where));
  out.add_if("embedding_norm", m.embedding_norm).add_if("head_bias", m.head_bias);
  if (!m.final_norm) out.add("final_norm", text_node("false", where));
  out.add_if("parallel_block", m.parallel_block).add("norm", norm_node(m, where));
  const bool attends = m.has_mixer("full") || m.has_mixer("sliding") || m.has_mixer("chunked") || m.has_mixer("mla");
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
