// Reads families of state spaces and short convolutions, alone or together with attention.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "import/hf_read.h"

namespace scalecalc {
namespace {

/// A size, or "auto" for what follows from others.
Size size_or_auto(HfReading& r, HfNames names, std::int64_t otherwise, std::string why) {
  const ConfigNode* found = r.keys.find(names);
  if (found != nullptr && !found->is_null() && found->text != "auto") {
    return r.keys.whole(*found, *names.begin()).value_or(Size{otherwise, found->span});
  }
  r.keys.defaulted(*names.begin(), std::to_string(otherwise), std::move(why));
  return {otherwise, r.keys.span()};
}

void only_convolution_bias(HfReading& r, HfNames conv, HfNames others) {
  const bool conv_bias = r.keys.flag(conv, true);
  if (conv_bias && !r.keys.flag(others, false)) return;
  const ConfigNode* where = conv_bias ? r.keys.find(others) : r.keys.find(conv);
  r.keys.problems().add(where->span, "Mamba layers are read with a bias of the convolution and no other");
}

/// Mamba-2 by the names of Bamba, Granite 4 and Falcon-H1; the width is that of heads and their width.
void read_mamba2_block(HfReading& r, std::int64_t d_state, std::int64_t groups) {
  HfArchitecture& m = r.model;
  const Size expand = r.keys.size_or({"mamba_expand"}, 2, {1, 64});
  const Size given = r.keys.size_or_none({"mamba_d_ssm"});
  const std::int64_t inner = given.value > 0 ? given.value : expand.value * m.d_model.value;
  const Size heads = r.keys.size_or({"mamba_n_heads"}, 128);
  const Size width = size_or_auto(r, {"mamba_d_head"}, std::max<std::int64_t>(1, inner / heads.value),
                                  "width of the state space / mamba_n_heads");
  if (heads.value * width.value != inner) {
    r.keys.problems().add(heads.where, fmt::format("{} heads of {} are not the {} channels of the state space",
                                                   heads.value, width.value, inner));
  }
  m.mamba2 = HfMamba2{heads,
                      width,
                      r.keys.size_or({"mamba_n_groups"}, groups),
                      r.keys.size_or({"mamba_d_state"}, d_state),
                      r.keys.size_or({"mamba_d_conv"}, 4, {1, 1000}),
                      read_scan_chunk(r, 256)};
  only_convolution_bias(r, {"mamba_conv_bias"}, {"mamba_proj_bias"});
}

}  // namespace

Size read_scan_chunk(HfReading& r, std::int64_t otherwise) {
  const ConfigNode* format = r.keys.find({"mamba_ssm_cache_dtype"});
  if (format != nullptr && !format->is_null() && format->text != "float32" && format->text != "auto") {
    r.keys.warn(
        fmt::format("'mamba_ssm_cache_dtype' is {} and changes nothing here: recurrent states are counted in fp32",
                    in_quotes(format->text)));
  }
  return r.keys.size_or({"chunk_size", "mamba_chunk_size"}, otherwise);
}

void read_granitemoehybrid(HfReading& r) {
  HfArchitecture& m = r.model;
  read_shape(r, {.max_seq = 2048, .d_ff = DffRule::kOptional});
  read_attention_bias(r, false);
  const auto listed = read_layer_types(r, {"layer_types", "layers_block_type"}, "mamba2");
  if (!listed) r.keys.defaulted("layer_types", "mamba in every layer", kClassDefault);
  for (std::size_t i = 0; i < m.layers.size(); ++i) m.layers[i].mixer = listed ? (*listed)[i] : "mamba2";
  if (m.has_mixer("mamba2")) read_mamba2_block(r, 256, 1);
  const Size shared = r.keys.required({"shared_intermediate_size"}, "width of the MLP in every layer");
  const bool no_experts = r.keys.is_null({"num_local_experts"}) || !read_moe(r, {.experts = 8, .top_k = 2});
  if (no_experts) {
    m.d_ff = shared;
    return;
  }
  m.moe->shared_d_ff = shared;
  m.moe->shared_experts = {1, shared.where};
  set_moe_layers(r, [](std::int64_t) { return true; });
}

void read_bamba(HfReading& r) {
  HfArchitecture& m = r.model;
  read_shape(r, {.kv_heads = 8, .max_seq = 262144});
  read_attention_bias(r, false);
  m.mlp_bias = r.keys.flag({"mlp_bias"}, false);
  const std::vector<std::int64_t> attends = read_layer_numbers(r, {"attn_layer_indices"});
  if (attends.empty()) r.keys.defaulted("attn_layer_indices", "none: Mamba in every layer", kClassDefault);
  for (HfLayer& layer : m.layers) layer.mixer = "mamba2";
  for (const std::int64_t i : attends) m.layers[static_cast<std::size_t>(i)].mixer = "full";
  if (m.has_mixer("mamba2")) read_mamba2_block(r, 256, 1);
}

/// Attention and Mamba-2 read one input in every layer, and their outputs are added.
void read_falcon_h1(HfReading& r) {
  HfArchitecture& m = r.model;
  read_shape(r, {.kv_heads = 8, .max_seq = 8192});
  read_attention_bias(r, false);
  m.mlp_bias = r.keys.flag({"mlp_bias"}, false);
  for (HfLayer& layer : m.layers) layer.mixer = "full+mamba2";
  read_mamba2_block(r, 256, 1);
  m.mamba2->norm = r.keys.flag({"mamba_rms_norm"}, false);
  if (!r.keys.flag({"mamba_use_mlp"}, true)) {
    for (HfLayer& layer : m.layers) layer.ffn = "none", layer.norms = 1;
  }
  if (r.keys.flag({"projectors_bias"}, false)) {
    r.keys.problems().add(r.keys.find({"projectors_bias"})->span,
                          "biases of the projections (projectors_bias) are not read");
  }
}

void read_mamba(HfReading& r) {
  HfArchitecture& m = r.model;
  read_width(r, {.max_seq = 1048576});
  read_layer_count(r);
  m.norms_per_layer = 1;
  for (HfLayer& layer : m.layers) layer = {.mixer = "mamba1", .ffn = "none"};
  const std::int64_t expand = r.keys.size_or({"expand"}, 2, {1, 64}).value;
  const Size inner = r.keys.size_or({"intermediate_size"}, expand * m.d_model.value);
  m.mamba1 = HfMamba1{inner, r.keys.size_or({"state_size"}, 16), r.keys.size_or({"conv_kernel"}, 4, {1, 1000}),
                      size_or_auto(r, {"time_step_rank"}, (m.d_model.value + 15) / 16, "hidden_size / 16"), false};
  only_convolution_bias(r, {"use_conv_bias"}, {"use_bias"});
}

void read_pure_mamba2(HfReading& r) {
  HfArchitecture& m = r.model;
  read_width(r, {.max_seq = 1048576});
  read_layer_count(r);
  m.norms_per_layer = 1;
  for (HfLayer& layer : m.layers) layer = {.mixer = "mamba2", .ffn = "none"};
  m.mamba2 = HfMamba2{r.keys.size_or({"num_heads"}, 128),
                      r.keys.size_or({"head_dim"}, 64),
                      r.keys.size_or({"n_groups"}, 8),
                      r.keys.size_or({"state_size"}, 128),
                      r.keys.size_or({"conv_kernel"}, 4, {1, 1000}),
                      read_scan_chunk(r, 256)};
  const Size expand = r.keys.size_or({"expand"}, 2, {1, 64});
  r.keys.find({"intermediate_size"});
  if (m.mamba2->heads.value * m.mamba2->head_dim.value != expand.value * m.d_model.value) {
    r.keys.problems().add(m.mamba2->heads.where,
                          fmt::format("{} heads of {} are not {} times hidden_size ({})", m.mamba2->heads.value,
                                      m.mamba2->head_dim.value, expand.value, m.d_model.value));
  }
  m.mamba2->norm = r.keys.flag({"rms_norm"}, true);
  only_convolution_bias(r, {"use_conv_bias"}, {"use_bias"});
}

namespace {

/// Layers of LFM2: a gated convolution, or attention with norms of queries and keys.
void read_lfm2_layers(HfReading& r) {
  HfArchitecture& m = r.model;
  read_width(r, {.vocab = 65536, .max_seq = 128000});
  read_layer_count(r);
  read_heads(r, {.kv_heads = 8});
  m.qk_norm = "head_dim";
  m.conv_kernel = r.keys.size_or({"conv_L_cache"}, 3, {1, 1000});
  if (const auto listed = read_layer_types(r, {"layer_types"}, "conv")) {
    for (std::size_t i = 0; i < m.layers.size(); ++i) m.layers[i].mixer = (*listed)[i];
    r.keys.find({"full_attn_idxs"});
  } else {
    if (!r.keys.has({"full_attn_idxs"})) {
      r.keys.problems().add(r.keys.span(), "the file has no 'layer_types'", "also read: full_attn_idxs");
    }
    for (HfLayer& layer : m.layers) layer.mixer = "conv";
    const std::vector<std::int64_t> attends = read_layer_numbers(r, {"full_attn_idxs"});
    if (attends.empty()) r.keys.remark("no layer attends: 'full_attn_idxs' names none");
    for (const std::int64_t i : attends) {
      m.layers[static_cast<std::size_t>(i)].mixer = "full";
    }
  }
  if (r.keys.flag({"conv_bias"}, false)) {
    r.keys.problems().add(r.keys.find({"conv_bias"})->span, "biases of the convolutions are not read");
  }
}

/// Two thirds of the width the file says, times a factor, up to whole multiples, as the model's own code has it.
Size adjusted_width(HfReading& r) {
  Size width = r.keys.required({"block_ff_dim", "intermediate_size"}, "width of the MLP");
  r.keys.find({"intermediate_size"});
  const std::int64_t unit = r.keys.size_or({"block_multiple_of"}, 256).value;
  const ConfigNode* factor = r.keys.find({"block_ffn_dim_multiplier"});
  const bool adjusts = r.keys.flag({"block_auto_adjust_ff_dim"}, true);
  double times = 1;
  if (factor != nullptr && !factor->is_null()) {
    times = r.keys.decimal(*factor, "block_ffn_dim_multiplier", {1e-3, 1e3}).value_or(1);
  }
  if (!adjusts) return width;
  const std::int64_t two_thirds = 2 * width.value / 3;
  const auto scaled = static_cast<std::int64_t>(std::floor(times * static_cast<double>(two_thirds)));
  width.value = std::max<std::int64_t>(1, (scaled + unit - 1) / unit) * unit;
  r.keys.remark(fmt::format("block_auto_adjust_ff_dim makes the MLPs {} wide", width.value));
  return width;
}

}  // namespace

void read_lfm2(HfReading& r) {
  read_lfm2_layers(r);
  r.model.d_ff = adjusted_width(r);
}

void read_lfm2_moe(HfReading& r) {
  read_lfm2_layers(r);
  read_d_ff(r, DffRule::kRequired);
  if (!read_moe(r, {.experts = 32, .top_k = 4, .d_ff = 1792})) return;
  const std::int64_t dense = r.keys.size_or({"num_dense_layers"}, 2, {0, 1e4}).value;
  set_moe_layers(r, [&](std::int64_t i) { return i >= dense; });
  r.model.moe->router_correction_bias = r.keys.flag({"use_expert_bias"}, true);
}

namespace {

/// Layer numbers from 1 on: kda_layers and full_attn_layers, which name each layer once together.
void read_kimi_layers(HfReading& r) {
  HfArchitecture& m = r.model;
  std::vector<int> named(m.layers.size(), 0);
  const auto mark = [&](HfNames names, std::string_view mixer) {
    const ConfigNode* list = r.keys.list(names);
    if (list == nullptr) return;
    for (const ConfigNode& item : list->items) {
      const auto number = r.keys.whole(item, *names.begin(), {1, static_cast<double>(named.size())});
      if (!number) continue;
      m.layers[static_cast<std::size_t>(number->value - 1)].mixer = mixer;
      ++named[static_cast<std::size_t>(number->value - 1)];
    }
  };
  mark({"linear_attn_config.kda_layers"}, "kda");
  mark({"linear_attn_config.full_attn_layers"}, "mla");
  const auto wrong = std::find_if(named.begin(), named.end(), [](int times) { return times != 1; });
  if (wrong == named.end()) return;
  const ConfigNode* where = r.keys.find({"linear_attn_config"});
  r.keys.problems().add(where == nullptr ? r.keys.span() : where->span,
                        fmt::format("layer {} stands {} times in 'kda_layers' and 'full_attn_layers' together, which "
                                    "count from 1 and name each layer once",
                                    wrong - named.begin() + 1, *wrong));
}

}  // namespace

/// Kimi Linear (arXiv:2510.26692) and Kimi K3: delta attention with latent attention without rotation between.
void read_kimi_linear(HfReading& r) {
  HfArchitecture& m = r.model;
  read_mla_shape(r, {.max_seq = 1048576});
  m.output_gate = r.keys.flag({"mla_use_output_gate"}, false);
  read_kimi_layers(r);
  const bool full_rank = r.keys.flag({"linear_attn_config.use_full_rank_gate"}, false);
  m.kda = HfKda{r.keys.required({"linear_attn_config.num_heads"}, "heads of delta attention"),
                r.keys.required({"linear_attn_config.head_dim"}, "width of a head of delta attention"),
                r.keys.size_or({"linear_attn_config.short_conv_kernel_size"}, 4, {1, 1000}), full_rank};
  m.residual_block = r.keys.size_or_none({"attn_res_block_size"}, {1, 1e4});
  if (!read_moe(r, {})) return;
  read_shared_experts(r, 1);
  dense_prefix(r, 0);
  HfMoe& moe = *m.moe;
  moe.router_correction_bias = true;
  moe.latent = r.keys.size_or_none({"routed_expert_hidden_size"});
  if (moe.latent.value > 0) moe.latent_norm = r.keys.flag({"latent_moe_use_norm"}, false);
  const Size groups = r.keys.size_or({"num_expert_group", "n_group"}, 1, {0, 1e4});
  const Size picked = r.keys.size_or({"topk_group"}, 1, {0, 1e4});
  if (picked.value > 0 && picked.value < groups.value) moe.n_group = groups, moe.topk_group = picked;
  read_mtp(r);
}

}  // namespace scalecalc
