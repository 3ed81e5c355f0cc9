// Reports the keys of a config.json that no reader has read and that may change the model.
#include "import/hf_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "import/hf_towers.h"

namespace scalecalc {
namespace {

using HfStructure = std::array<std::string_view, 6>;

/// Keys of things that change a model's weights, those of one quantity in one group. A file that has one which its
/// family's reader did not ask for is not what it says it is.
constexpr std::array kStructure{
    HfStructure{"num_local_experts", "num_experts", "n_routed_experts", "num_routed_experts", "moe_num_experts"},
    HfStructure{"n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts"},
    HfStructure{"shared_expert_intermediate_size", "moe_shared_expert_intermediate_size", "share_expert_dim"},
    HfStructure{"kv_lora_rank"},
    HfStructure{"index_n_heads", "sparse_num_index_heads"},
    HfStructure{"indexer_types"},
    HfStructure{"sparse_attention_config"},
    HfStructure{"linear_num_key_heads"},
    HfStructure{"linear_attn_config"},
    HfStructure{"ssm_state_size", "mamba_d_state", "state_size"},
    HfStructure{"mamba_num_heads", "mamba_n_heads"},
    HfStructure{"hybrid_override_pattern", "layers_block_type"},
    HfStructure{"hybrid_layer_pattern"},
    HfStructure{"block_configs"},
    HfStructure{"attn_type_list"},
    HfStructure{"compress_ratios", "compress_rates"},
    HfStructure{"hidden_size_per_layer_input"},
    HfStructure{"num_kv_shared_layers"},
    HfStructure{"use_cla", "cla_share_factor"},
    HfStructure{"global_head_dim", "num_global_key_value_heads"},
    HfStructure{"attention_k_eq_v"},
    HfStructure{"swa_head_dim", "swa_num_attention_heads", "swa_num_key_value_heads", "attention_other_setting"},
    HfStructure{"num_attention_heads_per_layer", "per_layer_config"},
    HfStructure{"moe_latent_size", "routed_expert_hidden_size"},
    HfStructure{"attn_layer_period", "attn_layer_indices", "full_attn_idxs"},
    HfStructure{"word_embed_proj_dim", "embedding_size"},
    HfStructure{"sliding_window", "sliding_window_size"},
    HfStructure{"attention_chunk_size"},
    HfStructure{"num_nextn_predict_layers", "num_mtp_layers", "mtp_num_hidden_layers", "num_mtp_modules"},
    HfStructure{"draft_vocab_size"},
    HfStructure{"dflash_config"},
    HfStructure{"eagle_config"},
    HfStructure{"fc_norm"},
    HfStructure{"markov_rank"},
    HfStructure{"cross_attention_layers", "cross_attention_hidden_size", "add_cross_attention"},
    HfStructure{"is_encoder_decoder", "encoder_layers", "num_decoder_layers"},
    HfStructure{"num_loops", "num_recurrent_layers", "total_ut_steps"},
    HfStructure{"altup_num_inputs", "laurel_rank"},
    HfStructure{"enable_moe_block", "use_double_wide_mlp"},
    HfStructure{"hc_mult", "attn_res_block_size"},
    HfStructure{"o_lora_rank", "o_groups"},
    HfStructure{"num_hash_layers", "zero_expert_num"},
    HfStructure{"use_head_wise_attn_gate", "use_full_rank_gate", "mla_use_output_gate"},
    HfStructure{"add_swa_attention_sink_bias", "add_full_attention_sink_bias"},
    HfStructure{"type_vocab_size"},
    HfStructure{"mamba_d_ssm"},
    HfStructure{"conv_L_cache"},
    HfStructure{"moe_layer_num_skipped"},
    HfStructure{"per_layer_embedding_size", "vocab_size_per_layer_input"},
    HfStructure{"ngram_vocab_size_ratio", "oe_vocab_size_ratio"},
    HfStructure{"emb_neighbor_num"},
    HfStructure{"emb_split_num"},
    HfStructure{"lru_width"},
    HfStructure{"conv_kernel_size"},
    HfStructure{"ff_intermediate_size"},
};

/// The same of models with experts: which layers have them, and which of them a token may visit.
constexpr std::array<std::string_view, 8> kExpertStructure{"decoder_sparse_step",
                                                           "first_k_dense_replace",
                                                           "interleave_moe_layer_step",
                                                           "mlp_only_layers",
                                                           "moe_layer_freq",
                                                           "moe_layer_start_index",
                                                           "n_group",
                                                           "num_dense_layers"};

/// Keys by which files say whether they have something that every model here has or has not.
struct Switch {
  std::string_view key;
  std::string_view what;
  bool (*has)(const HfArchitecture& m);
};
constexpr auto kQkvBias = [](const HfArchitecture& m) { return m.qkv_bias; };
constexpr auto kAnyBias = [](const HfArchitecture& m) { return m.qkv_bias || m.o_bias; };
constexpr auto kQkNorm = [](const HfArchitecture& m) { return m.qk_norm != "none"; };
constexpr auto kParallel = [](const HfArchitecture& m) { return m.parallel_block; };
constexpr std::array kSwitches{
    Switch{"qkv_bias", "a bias of queries, keys and values", kQkvBias},
    Switch{"use_qkv_bias", "a bias of queries, keys and values", kQkvBias},
    Switch{"add_qkv_bias", "a bias of queries, keys and values", kQkvBias},
    Switch{"attention_bias", "a bias of attention", kAnyBias},
    Switch{"use_bias", "a bias", kAnyBias},
    Switch{"attention_out_bias", "a bias of attention's output", [](const HfArchitecture& m) { return m.o_bias; }},
    Switch{"mlp_bias", "a bias of the MLP", [](const HfArchitecture& m) { return m.mlp_bias; }},
    Switch{"lm_head_bias", "a bias of the head", [](const HfArchitecture& m) { return m.head_bias; }},
    Switch{"use_qk_norm", "norms of queries and keys", kQkNorm},
    Switch{"qk_layernorm", "norms of queries and keys", kQkNorm},
    Switch{"qk_norm", "norms of queries and keys", kQkNorm},
    Switch{"attn_output_gate", "a gate of attention's output", [](const HfArchitecture& m) { return m.output_gate; }},
    Switch{"parallel_attn", "attention and MLP side by side", kParallel},
    Switch{"use_parallel_residual", "attention and MLP side by side", kParallel},
};

/// Keys that change no shape: numerics, rotary settings, tokens, training, generation, how a library runs the model.
constexpr std::array<std::string_view, 190> kHarmless{"_attn_implementation",
                                                      "_attn_implementation_autoset",
                                                      "_from_model_config",
                                                      "_name_or_path",
                                                      "activation",
                                                      "activation_function",
                                                      "add_bos_token",
                                                      "alibi",
                                                      "aligner_config",
                                                      "attention_multiplier",
                                                      "attention_value_scale",
                                                      "attn_implementation",
                                                      "attn_logit_softcapping",
                                                      "audio_config",
                                                      "auto_map",
                                                      "aux_loss_alpha",
                                                      "begin_suppress_tokens",
                                                      "bf16",
                                                      "bias_dropout_fusion",
                                                      "block_size",
                                                      "bos_token_id",
                                                      "cache_implementation",
                                                      "chunk_size_feed_forward",
                                                      "clip_qkv",
                                                      "dim_model_base",
                                                      "diversity_penalty",
                                                      "do_sample",
                                                      "dtype",
                                                      "early_stopping",
                                                      "emb_dim",
                                                      "embedding_multiplier",
                                                      "encoder_no_repeat_ngram_size",
                                                      "ep_dispatch",
                                                      "ep_size",
                                                      "expand",
                                                      "exponential_decay_length_penalty",
                                                      "feed_forward_proj",
                                                      "final_logit_softcapping",
                                                      "finetuning_task",
                                                      "for_llm_compressor",
                                                      "fp16",
                                                      "fp32",
                                                      "full_attention_interval",
                                                      "gen_aligner_config",
                                                      "gen_head_config",
                                                      "gen_vision_config",
                                                      "gradient_checkpointing",
                                                      "head_dim",
                                                      "head_type",
                                                      "hidden_act",
                                                      "hidden_activation",
                                                      "id2label",
                                                      "ignore_index",
                                                      "index_share_for_mtp_iteration",
                                                      "index_skip_topk_offset",
                                                      "index_topk_pattern",
                                                      "indexer_rope_interleave",
                                                      "initial_context_length",
                                                      "input_jitter_noise",
                                                      "intermediate_size",
                                                      "is_causal",
                                                      "is_decoder",
                                                      "is_llama_config",
                                                      "label2id",
                                                      "language_model_only",
                                                      "length_penalty",
                                                      "lm_head_multiplier",
                                                      "logit_scale",
                                                      "logits_scaling",
                                                      "mamba_hidden_act",
                                                      "mamba_ssm_cache_dtype",
                                                      "mamba_ssm_dtype",
                                                      "max_length",
                                                      "max_tokenizer_truncation",
                                                      "max_window_layers",
                                                      "media_placeholder_token_id",
                                                      "min_length",
                                                      "mlp_hidden_act",
                                                      "mm_tokens_per_image",
                                                      "model_max_length",
                                                      "moe_router_dtype",
                                                      "moe_shared_expert_overlap",
                                                      "mscale",
                                                      "mtp_hybrid_override_pattern",
                                                      "mtp_layers_block_type",
                                                      "mtp_transformer_layers",
                                                      "mtp_use_dedicated_embeddings",
                                                      "n_ctx",
                                                      "neftune_noise_alpha",
                                                      "no_repeat_ngram_size",
                                                      "no_rope_layer_interval",
                                                      "no_rope_layers",
                                                      "nope_layer_interval",
                                                      "norm_before_residual",
                                                      "norm_eps",
                                                      "norm_output",
                                                      "norm_topk_prob",
                                                      "num_beam_groups",
                                                      "num_beams",
                                                      "num_experts_per_tok",
                                                      "num_key_value_heads",
                                                      "num_labels",
                                                      "num_logits_to_keep",
                                                      "num_return_sequences",
                                                      "num_target_layers",
                                                      "onnx_safe",
                                                      "original_max_position_embeddings",
                                                      "output_attentions",
                                                      "output_gate_type",
                                                      "output_hidden_states",
                                                      "output_router_logits",
                                                      "output_scores",
                                                      "parallel_attn_mlp_res",
                                                      "partial_rotary_factor",
                                                      "prefix",
                                                      "pretraining_tp",
                                                      "problem_type",
                                                      "projector_config",
                                                      "pruned_heads",
                                                      "qk_head_dim",
                                                      "qk_rope_head_dim",
                                                      "quantization",
                                                      "quantization_config",
                                                      "query_pre_attn_scalar",
                                                      "remove_invalid_values",
                                                      "reorder_and_upcast_attn",
                                                      "repetition_penalty",
                                                      "rescale_prenorm_residual",
                                                      "residual_in_fp32",
                                                      "residual_multiplier",
                                                      "return_dict",
                                                      "return_dict_in_generate",
                                                      "rope",
                                                      "rotary",
                                                      "rotary_base",
                                                      "rotary_dim",
                                                      "rotary_emb_base",
                                                      "rotary_pct",
                                                      "routed_scaling_factor",
                                                      "router_aux_loss_coef",
                                                      "router_jitter_noise",
                                                      "router_z_loss_coef",
                                                      "scale_attn_by_inverse_layer_idx",
                                                      "scale_attn_weights",
                                                      "scale_depth",
                                                      "scale_emb",
                                                      "scoring_func",
                                                      "seq_aux",
                                                      "seq_length",
                                                      "sliding_window_pattern",
                                                      "summary_activation",
                                                      "summary_first_dropout",
                                                      "summary_proj_to_labels",
                                                      "summary_type",
                                                      "summary_use_proj",
                                                      "suppress_tokens",
                                                      "swiglu_alpha",
                                                      "swiglu_limit",
                                                      "target_hidden_size",
                                                      "target_model_type",
                                                      "task_specific_params",
                                                      "temperature",
                                                      "tf_legacy_loss",
                                                      "tie_encoder_decoder",
                                                      "time_step_floor",
                                                      "time_step_limit",
                                                      "time_step_max",
                                                      "time_step_min",
                                                      "time_step_rank",
                                                      "tokenizer_class",
                                                      "top_k",
                                                      "top_p",
                                                      "torch_dtype",
                                                      "torchscript",
                                                      "transformers_version",
                                                      "typical_p",
                                                      "unsloth_fixed",
                                                      "unsloth_version",
                                                      "use_bfloat16",
                                                      "use_cache",
                                                      "use_dynamic_ntk",
                                                      "use_flash_attn",
                                                      "use_grouped_topk",
                                                      "use_logn_attn",
                                                      "use_mamba_kernels",
                                                      "use_mrope",
                                                      "use_mtp",
                                                      "use_scaled_rope",
                                                      "use_sliding_window",
                                                      "z_loss_weight"};
/// More of them, of families that came later.
constexpr std::array<std::string_view, 100> kMoreHarmless{"activation_situ_beta",
                                                          "audio_soft_tokens_per_image",
                                                          "capacity_factor",
                                                          "output_past",
                                                          "scalable_attention",
                                                          "apply_spec_augment",
                                                          "classifier_activation",
                                                          "classifier_pooling",
                                                          "classifier_proj_size",
                                                          "compress_rope_parameters",
                                                          "decoder_layerdrop",
                                                          "deterministic_flash_attn",
                                                          "encoder_layerdrop",
                                                          "expert_dtype",
                                                          "gradient_checkpointing_kwargs",
                                                          "hc_sinkhorn_iters",
                                                          "median_filter_width",
                                                          "norm_topk",
                                                          "reference_compile",
                                                          "repad_logits_with_grad",
                                                          "rope_interleave",
                                                          "scale_embedding",
                                                          "sparse_pred_ignore_index",
                                                          "sparse_prediction",
                                                          "use_weighted_layer_sum",
                                                          "conv_bias",

                                                          "activation_situ_linear_beta",
                                                          "apply_query_key_layer_scaling",
                                                          "apply_residual_connection_post_layernorm",
                                                          "attention_in_multiplier",
                                                          "attention_method",
                                                          "attention_out_multiplier",
                                                          "attention_softmax_in_fp32",
                                                          "attention_types",
                                                          "block_dim",
                                                          "block_mlp_init_scale",
                                                          "block_out_init_scale",
                                                          "block_use_swiglu",
                                                          "block_use_xavier_init",
                                                          "candidate_resolutions",
                                                          "conv_dim",
                                                          "conv_dim_out",
                                                          "conv_use_xavier_init",
                                                          "embd_layer",
                                                          "embedding_fraction",
                                                          "fp32_residual_connection",
                                                          "fused_add_norm",
                                                          "global_view_pos",
                                                          "image_aspect_ratio",
                                                          "image_grid_pinpoints",
                                                          "image_seq_length",
                                                          "img_processor",
                                                          "inference_runner",
                                                          "key_multiplier",
                                                          "lm_head",
                                                          "mamba_norm_before_gate",
                                                          "mla_scale_kv_lora",
                                                          "mla_scale_q_lora",
                                                          "mla_use_nope",
                                                          "mlp_expansion_factor",
                                                          "mlp_multipliers",
                                                          "moe_drop_tokens",
                                                          "moe_renormalize",
                                                          "moe_router_activation_func",
                                                          "moe_router_scaling_factor",
                                                          "multimodal_projector_bias",
                                                          "n_layer",
                                                          "norm_before_gate",
                                                          "norm_head",
                                                          "norm_softmax",
                                                          "norm_type",
                                                          "normalization_function",
                                                          "num_heads",
                                                          "original_rope",
                                                          "position_embedding_type",
                                                          "projector_hidden_act",
                                                          "rm_head",
                                                          "rms_norm",
                                                          "router_bias",
                                                          "scale_attention_softmax_in_fp32",
                                                          "spatial_merge_size",
                                                          "speech_lora",
                                                          "ssm_in_multiplier",
                                                          "ssm_multipliers",
                                                          "ssm_out_multiplier",
                                                          "swiglu_limits",
                                                          "swiglu_limits_shared",
                                                          "init_device",
                                                          "tile_tag",
                                                          "topk_method",
                                                          "vocab_size",
                                                          "use_bidirectional_attention",
                                                          "use_gemma_norm",
                                                          "use_mambapy",
                                                          "use_pos_enc",
                                                          "use_rope",
                                                          "validate_runner_input",
                                                          "verbose",
                                                          "vision_lora",
                                                          "zero_expert_type"};
constexpr std::array<std::string_view, 63> kStillMoreHarmless{"add_bias_logits",
                                                              "add_final_layer_norm",
                                                              "attn_mode",
                                                              "blocksparse_homo_head_pattern",
                                                              "blocksparse_triton_kernel_block_size",
                                                              "dense_seq_output",
                                                              "embeddings_scale_by_sqrt_dim",
                                                              "enable_audio_output",
                                                              "expert_swiglu_limit_list",
                                                              "extra_pos_embeddings",
                                                              "force_bos_token_to_be_generated",
                                                              "fuse_cross_entropy",
                                                              "fuse_linear_cross_entropy",
                                                              "fuse_norm",
                                                              "fused_bias_fc",
                                                              "fused_dropout_add_ln",
                                                              "gegelu_limit",
                                                              "gegelu_pad_to_256",
                                                              "generator_size",
                                                              "group_norm_size",
                                                              "head_size_divisor",
                                                              "kda_lower_bound",
                                                              "kda_safe_gate",
                                                              "linear_rope",
                                                              "linear_silu",
                                                              "load_balance_coeff",
                                                              "logits_soft_cap",
                                                              "max_trained_positions",
                                                              "model_version",
                                                              "moe_apply_router_weight_on_input",
                                                              "moe_routed_scaling_factor",
                                                              "moe_router_logit_softcapping",
                                                              "moe_router_score_func",
                                                              "moe_router_use_sigmoid",
                                                              "mup_attn_multiplier",
                                                              "mup_embedding_multiplier",
                                                              "mup_enabled",
                                                              "mup_use_scaling",
                                                              "mup_width_multiplier",
                                                              "mtp_loss_scaling_factor",
                                                              "normalize_before",
                                                              "normalize_embedding",
                                                              "pad_sequence_to_multiple_of_64",
                                                              "pad_vocab_size_multiple",
                                                              "padding_idx",
                                                              "parallel_block_tied_norm",
                                                              "pooler_hidden_act",
                                                              "rescale_every",
                                                              "rotary_emb_interleaved",
                                                              "rotary_emb_scale_base",
                                                              "rotary_scaling_factor",
                                                              "route_norm",
                                                              "route_scale",
                                                              "router_dtype",
                                                              "score_func",
                                                              "score_function",
                                                              "share_expert_swiglu_limit_list",
                                                              "static_position_embeddings",
                                                              "tie_weights_",
                                                              "use_grouped_mm",
                                                              "use_l2warp",
                                                              "use_linear_silu",
                                                              "use_xentropy"};
/// The same by how they begin or end.
constexpr std::array<std::string_view, 7> kHarmlessStarts{"mask_",   "rope_",     "swa_rope_", "initializer_",
                                                          "forced_", "bad_words", "vision_"};
constexpr std::array<std::string_view, 16> kHarmlessEnds{"_token_id",  "_token_ids",    "_token_index", "dropout",
                                                         "_pdrop",     "_dropout_prob", "_eps",         "_epsilon",
                                                         "_init",      "_std",          "_placeholder", "_vision_chunk",
                                                         "_loss_coef", "_token",        "_theta",       "dropout_rate"};

bool harmless(std::string_view key) {
  const auto starts = [&](std::string_view text) { return key.starts_with(text); };
  const auto ends = [&](std::string_view text) { return key.ends_with(text); };
  return std::find(kHarmless.begin(), kHarmless.end(), key) != kHarmless.end() ||
         std::find(kMoreHarmless.begin(), kMoreHarmless.end(), key) != kMoreHarmless.end() ||
         std::find(kStillMoreHarmless.begin(), kStillMoreHarmless.end(), key) != kStillMoreHarmless.end() ||
         std::any_of(kHarmlessStarts.begin(), kHarmlessStarts.end(), starts) ||
         std::any_of(kHarmlessEnds.begin(), kHarmlessEnds.end(), ends);
}

/// What was read of a group, or null.
const ConfigNode* read_of(const HfKeys& keys, const HfStructure& group) {
  for (const std::string_view key : group) {
    const ConfigNode* value = key.empty() ? nullptr : keys.text().find(key);
    if (value != nullptr && keys.was_read(*value)) return value;
  }
  return nullptr;
}

/// 0, 1, false and an empty list are how files say that they have none.
bool says_none(const ConfigNode& value) {
  if (value.kind != ConfigNode::Kind::kScalar) return value.items.empty() && value.entries.empty();
  return value.is_null() || value.text == "0" || value.text == "1" || value.text == "false";
}

/// A window that is switched off, as the Qwens' files have it.
bool window_is_off(const HfKeys& keys, std::string_view key) {
  const ConfigNode* in_use = keys.text().find("use_sliding_window");
  return key == "sliding_window" && in_use != nullptr && in_use->text == "false";
}

/// Wrappers say again what their language model says.
bool repeats(const HfKeys& keys, std::string_view key) {
  const ConfigNode* inside = keys.nested() ? keys.text().find(key) : nullptr;
  const ConfigNode* outside = keys.top().find(key);
  return inside != nullptr && outside != nullptr && inside->kind == ConfigNode::Kind::kScalar &&
         keys.was_read(*inside) && inside->text == outside->text;
}

void report_structure(HfReading& r) {
  for (const HfStructure& group : kStructure) {
    const ConfigNode* known = read_of(r.keys, group);
    for (const std::string_view key : group) {
      const ConfigNode* value = key.empty() ? nullptr : r.keys.text().find(key);
      if (value == nullptr || r.keys.was_read(*value) || window_is_off(r.keys, key)) continue;
      if (known != nullptr ? value->is_null() || value->text == known->text : says_none(*value)) continue;
      const std::string message =
          known != nullptr
              ? fmt::format("'{}' is {}, and another key says {}", key, value_text(*value), value_text(*known))
              : fmt::format("'{}' is set, and models of family '{}' have no such thing", key, r.family.name);
      r.keys.problems().add(value->span, message, known != nullptr ? "" : "is 'model_type' right?");
    }
  }
}

void report_expert_structure(HfReading& r) {
  if (!r.model.moe) return;
  for (const std::string_view key : kExpertStructure) {
    const ConfigNode* value = r.keys.text().find(key);
    if (value == nullptr || r.keys.was_read(*value) || says_none(*value)) continue;
    r.keys.problems().add(value->span, fmt::format("'{}' is {}, and the experts of family '{}' are read without it",
                                                   key, value_text(*value), r.family.name));
  }
}

void report_switches(HfReading& r) {
  for (const Switch& s : kSwitches) {
    const ConfigNode* value = r.keys.text().find(s.key);
    if (value == nullptr || value->is_null() || r.keys.was_read(*value)) continue;
    const bool has = s.has(r.model);
    if (value->text == (has ? "true" : "false")) continue;
    // Libraries leave a false alone where the class has the thing anyway.
    if (has && value->text == "false") {
      r.keys.warn(fmt::format("'{}' is false, and models of family '{}' always have {}", s.key, r.family.name, s.what));
    } else {
      r.keys.problems().add(value->span, fmt::format("'{}' is {}, and models of family '{}' are read without {}", s.key,
                                                     value_text(*value), r.family.name, s.what));
    }
  }
}

void report_layer_types(HfReading& r) {
  const ConfigNode* types = r.keys.text().find("layer_types");
  if (types == nullptr || r.keys.was_read(*types)) return;
  for (const ConfigNode& item : types->items) {
    if (item.text == "full_attention" || item.text == "attention") continue;
    r.keys.problems().add(
        item.span, fmt::format("layer type {} is not known of family '{}'", in_quotes(item.text), r.family.name));
    return;
  }
}

bool is_checked(std::string_view key) {
  const auto in_group = [&](const HfStructure& group) {
    return std::find(group.begin(), group.end(), key) != group.end();
  };
  return key == "layer_types" || key == "topk_group" ||
         std::find(kExpertStructure.begin(), kExpertStructure.end(), key) != kExpertStructure.end() ||
         std::any_of(kStructure.begin(), kStructure.end(), in_group) ||
         std::any_of(kSwitches.begin(), kSwitches.end(), [&](const Switch& s) { return s.key == key; });
}

}  // namespace

void report_unread_keys(HfReading& r) {
  report_structure(r);
  report_expert_structure(r);
  report_switches(r);
  report_layer_types(r);
  std::vector<std::string> unknown;
  for (const std::string& key : r.keys.unread()) {
    const ConfigNode* value = r.keys.text().find(key) != nullptr ? r.keys.text().find(key) : r.keys.top().find(key);
    if (value != nullptr && value->is_null()) continue;
    if (!is_checked(key) && !harmless(key) && !of_named_tower(r.keys, key) && !repeats(r.keys, key))
      unknown.push_back(key);
  }
  if (unknown.empty()) return;
  r.keys.warn(fmt::format("keys of no known meaning, from which nothing is read: {}", join(unknown, ", ")));
}

}  // namespace scalecalc
