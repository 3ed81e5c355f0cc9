// What the readers of the families share. Values go into the model as they are read; problems go to the keys.
#pragma once

#include <functional>
#include <optional>

#include "import/hf_families.h"

namespace scalecalc {

enum class DffRule {
  kRequired,
  kFourTimes,  ///< absent or null means 4 x hidden_size
  kOptional,   ///< models whose layers are all experts
};

/// Defaults of the sizes every model has. 0: the key is required; kv_heads 0: as many as heads; head_dim 0:
/// hidden_size / heads. The latter two are also what null means, whatever the default.
struct ShapeDefaults {
  std::int64_t d_model = 0;
  std::int64_t layers = 0;
  std::int64_t width = 0;  ///< of the MLP
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t vocab = 0;
  std::int64_t max_seq = 0;
  DffRule d_ff = DffRule::kRequired;
};

/// d_model, vocab, context, tying, heads, d_ff, and as many full/dense layers as the file says.
void read_shape(HfReading& r, const ShapeDefaults& defaults);
/// The parts of it that models without plain heads need.
void read_width(HfReading& r, const ShapeDefaults& defaults);
void read_heads(HfReading& r, const ShapeDefaults& defaults);
/// num_hidden_layers full/dense layers.
void read_layer_count(HfReading& r, std::int64_t otherwise = 0);
void read_d_ff(HfReading& r, DffRule rule, std::int64_t otherwise = 0);

/// attention_bias for queries, keys, values and output.
void read_attention_bias(HfReading& r, bool otherwise);
/// The chunk of a Mamba-2 scan; a format of its states that is not counted is warned of.
Size read_scan_chunk(HfReading& r, std::int64_t otherwise);
void layernorm(HfReading& r, std::int64_t per_layer, bool bias);
/// Plain attention, MLP and norms with biases everywhere, as in GPT-2.
void all_biases(HfReading& r);

/// sliding_window: absent means `otherwise` (0: none), null means none.
Size read_window(HfReading& r, std::int64_t otherwise);
/// Layers slide where the file's layer_types say so, else where `slides` does. Without a window none may.
void set_sliding(HfReading& r, const Size& window, const std::function<bool(std::int64_t)>& slides);
/// Qwen 2 and 3: a window only if use_sliding_window says so, and then from layer max_window_layers on.
void set_qwen_window(HfReading& r);
/// The file's layer_types (or another list of them), brought to mixers; `linear` is what linear_attention means here,
/// empty if the family has none. Empty if the file does not list them; a list of another length is reported.
std::optional<std::vector<std::string_view>> read_layer_types(HfReading& r, HfNames names, std::string_view linear);

struct MoeDefaults {
  std::int64_t experts = 0;  ///< 0: required
  std::int64_t top_k = 0;    ///< 0: required
  std::int64_t d_ff = 0;     ///< 0: the expert width is intermediate_size where no key gives it
};

/// Experts, top_k and expert width. False if the file has no more than one expert, which is a dense model.
bool read_moe(HfReading& r, const MoeDefaults& defaults);
/// n_shared_experts experts of the routed ones' width.
void read_shared_experts(HfReading& r, std::int64_t otherwise);
/// One shared expert of a width of its own, under `names`; 0 or null means none.
void read_shared_width(HfReading& r, HfNames names, std::int64_t otherwise);
/// FFN of each layer: the file's mlp_layer_types if it has them, else experts where `is_moe` says so.
void set_moe_layers(HfReading& r, const std::function<bool(std::int64_t)>& is_moe);
/// Qwen: experts where (i + 1) divides by decoder_sparse_step, except in mlp_only_layers.
void set_qwen_moe_layers(HfReading& r);
/// DeepSeek and GLM: a dense prefix, then experts by moe_layer_freq.
void dense_prefix(HfReading& r, std::int64_t otherwise);
/// A token's experts lie in topk_group of n_group groups (arXiv:2412.19437 s. 2.1.2).
void read_groups(HfReading& r, std::int64_t groups, std::int64_t picked);

struct MlaDefaults {
  std::int64_t max_seq = 4096;
  std::int64_t q_lora_rank = 1536, kv_lora_rank = 512, qk_nope_head_dim = 128, qk_rope_head_dim = 64, v_head_dim = 128;
};
/// Sizes of a model with latent attention (arXiv:2405.04434 s. 2.1); head_dim and kv heads mean nothing there.
void read_mla_shape(HfReading& r, const MlaDefaults& d);

/// A number, or a list that says the same number of every layer.
Size same_for_all(HfReading& r, HfNames names, std::string_view what, Range range = kSizeRange);
/// Biases, norms of queries and keys, and, by use_cla (arXiv:2411.02265), keys and values that layers share.
void read_hunyuan_attention(HfReading& r);
/// A list of layer numbers, each below the number of layers.
std::vector<std::int64_t> read_layer_numbers(HfReading& r, HfNames names);
/// The last num_kv_shared_layers take keys and values of the last layer of their kind before them.
void share_keys(HfReading& r, std::int64_t otherwise);
/// Multi-token prediction: modules like the last layer.
void read_mtp(HfReading& r);

}  // namespace scalecalc
