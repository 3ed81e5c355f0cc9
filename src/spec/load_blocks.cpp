// Reads the blocks of a model file that describe attention, MLP, experts or a state space.
#include "spec/load_blocks.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace scalecalc {
namespace {

constexpr std::string_view kReuse = "/reuse";  // behind the kind of a layer that takes what an earlier one has
constexpr std::string_view kWhole = "/whole";  // behind that of a layer without the model's indexer
constexpr std::string_view kHashed = "/hash";  // behind that of a layer whose experts a table of tokens chooses

void load_mla(Fields& fields, AttentionSpec& attention) {
  MlaSpec mla;
  mla.q_lora_rank = fields.optional_count("q_lora_rank", kWidthRange).value_or(0);
  mla.kv_lora_rank = fields.count("kv_lora_rank", kWidthRange);
  mla.qk_nope_head_dim = fields.count("qk_nope_head_dim", kWidthRange);
  mla.qk_rope_head_dim = fields.count("qk_rope_head_dim", kWidthRange);
  mla.v_head_dim = fields.count("v_head_dim", kWidthRange);
  attention.kv_heads = attention.heads;
  attention.head_dim = mla.qk_nope_head_dim + mla.qk_rope_head_dim;
  attention.v_head_dim = mla.v_head_dim;
  attention.mla = mla;
}

void check_groups(const Fields& fields, std::int64_t heads, std::int64_t kv_heads, Problems& problems) {
  if (kv_heads == 0 || heads % kv_heads == 0) return;
  problems.add(fields.span(), fmt::format("heads ({}) must be a multiple of kv_heads ({})", heads, kv_heads));
}

void load_local(const ConfigNode& node, AttentionSpec& attention, Problems& problems) {
  Fields fields(node, "attention.local", problems);
  AttentionShape out;
  out.heads = fields.count("heads", kWidthRange);
  out.kv_heads = fields.count("kv_heads", kWidthRange);
  out.head_dim = fields.count("head_dim", kWidthRange);
  out.v_head_dim = fields.optional_count("v_head_dim", kWidthRange).value_or(out.head_dim);
  check_groups(fields, out.heads, out.kv_heads, problems);
  attention.local = out;
  attention.local_sinks = fields.flag("sinks", attention.sinks);
  fields.finish();
}

IndexerSpec load_indexer(const ConfigNode& node, Problems& problems) {
  Fields fields(node, "attention.indexer", problems);
  IndexerSpec out;
  out.heads = fields.count("heads", kWidthRange);
  out.head_dim = fields.count("head_dim", kWidthRange);
  out.top_k = fields.count("top_k", kWidthRange);
  out.weights = fields.flag("weights", true);
  fields.finish();
  return out;
}

StridedSpec load_strided(const ConfigNode& node, Problems& problems) {
  Fields fields(node, "attention.strided", problems);
  StridedSpec out;
  out.local = fields.count("local", kWidthRange);
  out.stride = fields.count("stride", {1, 1e6});
  fields.finish();
  return out;
}

DisentangledSpec load_disentangled(const ConfigNode& node, Problems& problems) {
  Fields fields(node, "attention.disentangled", problems);
  DisentangledSpec out;
  out.positions = fields.count("positions", kWidthRange);
  out.own_projections = fields.flag("own_projections", false);
  fields.finish();
  return out;
}

CompressedSpec load_compressed(const ConfigNode& node, const AttentionSpec& attention, Problems& problems) {
  Fields fields(node, "attention.compressed", problems);
  CompressedSpec out;
  out.q_lora_rank = fields.count("q_lora_rank", kWidthRange);
  out.o_lora_rank = fields.count("o_lora_rank", kWidthRange);
  out.o_groups = fields.count("o_groups", {1, 1e4});
  out.csa_ratio = fields.optional_count("csa_ratio", {1, 1e6}).value_or(4);
  out.hca_ratio = fields.optional_count("hca_ratio", {1, 1e6}).value_or(128);
  if (attention.heads % out.o_groups != 0) {
    problems.add(fields.span(),
                 fmt::format("o_groups ({}) does not divide the heads ({})", out.o_groups, attention.heads));
  }
  if (attention.kv_heads != 1) problems.add(fields.span(), "compressed attention has one head of keys and values");
  if (attention.window == 0) problems.add(fields.span(), "compressed attention needs attention.window");
  fields.finish();
  return out;
}

/// "full, sliding, chunked, ..." of a table of names.
template <std::size_t N>
std::string listed(const std::array<std::string_view, N>& names) {
  return join(std::vector<std::string>(names.begin(), names.end()), ", ");
}

template <std::size_t N>
std::optional<std::size_t> position(const std::array<std::string_view, N>& names, std::string_view word) {
  const auto found = std::find(names.begin(), names.end(), word);
  if (found == names.end()) return std::nullopt;
  return static_cast<std::size_t>(found - names.begin());
}

/// All kinds, for suggestions.
std::vector<std::string> all_kinds() {
  std::vector<std::string> out;
  for (const std::string_view mixer : kMixerNames) {
    for (const std::string_view ffn : kFfnNames) {
      if (mixer != "none" || ffn != "none") out.push_back(fmt::format("{}/{}", mixer, ffn));
    }
  }
  return out;
}

/// What a mixer needs that the model does not describe; empty if nothing.
std::string missing_block(MixerKind kind, const ModelSpec& model) {
  const AttentionSpec& a = model.attention;
  if (attends_by_heads(kind)) {
    if (a.mla) return fmt::format("a {} layer needs attention of kind mha, gqa or mqa", name_of(kind));
    if (a.heads == 0) return fmt::format("a {} layer needs the model's attention: block", name_of(kind));
  }
  if (attends_across(kind) && model.towers.empty()) return "a cross layer needs towers: to attend to";
  switch (kind) {
    case MixerKind::kSlidingCross:
    case MixerKind::kSliding: return a.window == 0 ? "a sliding layer needs attention.window" : "";
    case MixerKind::kChunked: return a.chunk == 0 ? "a chunked layer needs attention.chunk" : "";
    case MixerKind::kMla: return !a.mla ? "an mla layer needs attention of kind mla" : "";
    case MixerKind::kGdn: return !model.gdn ? "a gdn layer needs linear: of kind gdn" : "";
    case MixerKind::kKda: return !model.kda ? "a kda layer needs linear: of kind kda" : "";
    case MixerKind::kConv: return !model.conv ? "a conv layer needs linear: of kind conv" : "";
    case MixerKind::kFullMamba2: return !model.mamba2 ? "a full+mamba2 layer needs ssm: of kind mamba2" : "";
    case MixerKind::kLightning: return !model.lightning ? "a lightning layer needs linear: of kind lightning" : "";
    case MixerKind::kMamba1: return !model.mamba1 ? "a mamba1 layer needs ssm: of kind mamba1" : "";
    case MixerKind::kMamba2: return !model.mamba2 ? "a mamba2 layer needs ssm: of kind mamba2" : "";
    case MixerKind::kHca: return !a.compressed ? "an hca layer needs attention.compressed" : "";
    case MixerKind::kCsa:
      return !a.compressed || !a.indexer ? "a csa layer needs attention.compressed and attention.indexer" : "";
    case MixerKind::kFull: return a.compressed ? "layers of compressed attention are csa, hca or sliding" : "";
    case MixerKind::kStrided: return !a.strided ? "a strided layer needs attention.strided" : "";
    case MixerKind::kRwkv: return !model.rwkv ? "an rwkv layer needs linear: of kind rwkv" : "";
    case MixerKind::kRglru: return !model.rglru ? "an rglru layer needs linear: of kind rglru" : "";
    case MixerKind::kCross:
    case MixerKind::kFullCross:
    case MixerKind::kNone: break;
  }
  return "";
}

}  // namespace

AttentionSpec load_attention(const ConfigNode& node, Problems& problems) {
  Fields fields(node, "attention", problems);
  AttentionSpec out;
  const std::size_t kind = fields.word("kind", {"mha", "gqa", "mqa", "mla"});
  out.heads = fields.count("heads", kWidthRange);
  if (kind == 3) {
    load_mla(fields, out);
  } else {
    out.head_dim = fields.count("head_dim", kWidthRange);
    out.v_head_dim = fields.optional_count("v_head_dim", kWidthRange).value_or(out.head_dim);
    const auto kv_heads = fields.optional_count("kv_heads", kWidthRange);
    out.kv_heads = kv_heads.value_or(kind == 0 ? out.heads : 1);
    if (kind == 1 && !kv_heads) problems.add(fields.span(), "attention of kind gqa needs kv_heads");
    check_groups(fields, out.heads, out.kv_heads, problems);
    out.window = fields.optional_count("window", kWidthRange).value_or(0);
    out.chunk = fields.optional_count("chunk", kWidthRange).value_or(0);
    out.causal = fields.flag("causal", true);
    out.cross_tokens = fields.optional_count("cross_tokens", {0, 1e7}).value_or(0);
    out.cross_gates = fields.flag("cross_gates", false);
    out.qkv_bias = fields.flag("qkv_bias", false);
    out.key_bias = fields.flag("key_bias", true);
    out.reuse_stored = fields.flag("reuse_stored", false);
    out.shared_kv = fields.flag("shared_kv", false);
    out.qk_norm = static_cast<QkNorm>(
        fields.optional_word("qk_norm", {"none", "head_dim", "full", "head_dim_reused"}).value_or(0));
  }
  out.o_bias = fields.flag("o_bias", false);
  out.sinks = out.local_sinks = fields.flag("sinks", false);
  if (const ConfigNode* local = kind == 3 ? nullptr : fields.node("local")) load_local(*local, out, problems);
  out.output_gate = fields.flag("output_gate", false);
  out.head_gate = fields.flag("head_gate", false);
  if (const ConfigNode* indexer = fields.node("indexer")) out.indexer = load_indexer(*indexer, problems);
  if (const ConfigNode* compressed = kind == 3 ? nullptr : fields.node("compressed")) {
    out.compressed = load_compressed(*compressed, out, problems);
  }
  if (const ConfigNode* strided = kind == 3 ? nullptr : fields.node("strided")) {
    out.strided = load_strided(*strided, problems);
  }
  if (const ConfigNode* disentangled = kind == 3 ? nullptr : fields.node("disentangled")) {
    out.disentangled = load_disentangled(*disentangled, problems);
  }
  fields.finish();
  return out;
}

MlpSpec load_mlp(const ConfigNode& node, Problems& problems) {
  Fields fields(node, "mlp", problems);
  MlpSpec out;
  out.d_ff = fields.optional_count("d_ff", kWidthRange).value_or(0);
  out.gated = fields.flag("gated", true);
  out.bias = fields.flag("bias", false);
  out.activation_weights = fields.optional_count("activation_weights", {0, 100}).value_or(0);
  out.token_shift = fields.optional_count("token_shift", {0, 8}).value_or(0);
  out.receptance = fields.flag("receptance", false);
  // For launch files alone, which read it from the document: no figure depends on it.
  fields.optional_word("activation", {"silu", "gelu", "quick_gelu", "relu"});
  fields.finish();
  return out;
}

MoeSpec load_moe(const ConfigNode& node, Problems& problems) {
  Fields fields(node, "moe", problems);
  MoeSpec out;
  out.experts = fields.count("experts", {2, kOptionalExperts.max});
  out.top_k = fields.count("top_k", {1, kOptionalExperts.max});
  out.d_ff = fields.count("d_ff", kWidthRange);
  out.shared_experts = fields.optional_count("shared_experts", kSharedExperts).value_or(0);
  out.shared_d_ff = fields.optional_count("shared_d_ff", kOptionalWidth).value_or(out.shared_experts * out.d_ff);
  out.n_group = fields.optional_count("n_group", {1, 1000}).value_or(0);
  out.topk_group = fields.optional_count("topk_group", {1, 1000}).value_or(out.n_group);
  out.latent = fields.optional_count("latent", kWidthRange).value_or(0);
  out.zero_experts = fields.optional_count("zero_experts", {0, 1e5}).value_or(0);
  out.branch_norms = fields.optional_count("branch_norms", {0, 4}).value_or(0);
  out.latent_norm = fields.flag("latent_norm", false);
  out.router_scale = fields.flag("router_scale", false);
  if (out.latent_norm && out.latent == 0) problems.add(fields.span(), "latent_norm needs latent");
  out.router_bias = fields.flag("router_bias", false);
  out.router_correction_bias = fields.flag("router_correction_bias", false);
  out.expert_bias = fields.flag("expert_bias", false);
  out.shared_gate = fields.flag("shared_gate", false);
  if (out.top_k > out.experts) {
    problems.add(fields.span(),
                 fmt::format("top_k ({}) is more than the number of experts ({})", out.top_k, out.experts));
  }
  if (out.topk_group > out.n_group) {
    problems.add(fields.span(), fmt::format("topk_group ({}) is more than n_group ({})", out.topk_group, out.n_group));
  }
  if (out.n_group > 0 && out.experts % out.n_group != 0) {
    problems.add(fields.span(), fmt::format("n_group ({}) does not divide the experts ({})", out.n_group, out.experts));
  }
  fields.finish();
  return out;
}

namespace {

RwkvSpec load_rwkv(Fields& fields, Problems& problems) {
  RwkvSpec out;
  out.version = fields.count("version", {4, 7});
  out.width = fields.count("width", kWidthRange);
  if (out.version >= 5) out.head_dim = fields.count("head_dim", kWidthRange);
  if (out.version == 6) out.mix_rank = fields.count("mix_rank", kWidthRange);
  if (out.version >= 6) out.decay_rank = fields.count("decay_rank", kWidthRange);
  if (out.version == 7) {
    out.rate_rank = fields.count("rate_rank", kWidthRange);
    out.value_rank = fields.count("value_rank", kWidthRange);
    out.gate_rank = fields.count("gate_rank", kWidthRange);
  }
  if (out.head_dim > 0 && out.width % out.head_dim != 0) {
    problems.add(fields.span(), fmt::format("width ({}) must be a multiple of head_dim ({})", out.width, out.head_dim));
  }
  return out;
}

RglruSpec load_rglru(Fields& fields, Problems& problems) {
  RglruSpec out;
  out.width = fields.count("width", kWidthRange);
  out.blocks = fields.count("blocks", kWidthRange);
  out.conv_kernel = fields.count("conv_kernel", {1, 1000});
  if (out.width % out.blocks != 0) {
    problems.add(fields.span(), fmt::format("width ({}) must be a multiple of blocks ({})", out.width, out.blocks));
  }
  return out;
}

}  // namespace

void load_linear(const ConfigNode& node, ModelSpec& model, Problems& problems) {
  Fields fields(node, "linear", problems);
  const std::size_t kind = fields.word("kind", {"gdn", "lightning", "kda", "conv", "rwkv", "rglru"});
  if (kind == 0) {
    GdnSpec out;
    out.key_heads = fields.count("key_heads", kWidthRange);
    out.key_head_dim = fields.count("key_head_dim", kWidthRange);
    out.value_heads = fields.count("value_heads", kWidthRange);
    out.value_head_dim = fields.count("value_head_dim", kWidthRange);
    out.conv_kernel = fields.count("conv_kernel", {1, 1000});
    if (out.value_heads % out.key_heads != 0) {
      problems.add(fields.span(), fmt::format("value_heads ({}) must be a multiple of key_heads ({})", out.value_heads,
                                              out.key_heads));
    }
    model.gdn = out;
  } else if (kind == 2) {
    KdaSpec out;
    out.heads = fields.count("heads", kWidthRange);
    out.head_dim = fields.count("head_dim", kWidthRange);
    out.conv_kernel = fields.count("conv_kernel", {1, 1000});
    out.full_rank_gate = fields.flag("full_rank_gate", false);
    out.full_rank_decay = fields.flag("full_rank_decay", false);
    model.kda = out;
  } else if (kind == 3) {
    model.conv = ConvSpec{fields.count("kernel", {1, 1000})};
  } else if (kind == 4) {
    model.rwkv = load_rwkv(fields, problems);
  } else if (kind == 5) {
    model.rglru = load_rglru(fields, problems);
  } else {
    LightningSpec out;
    out.heads = fields.count("heads", kWidthRange);
    out.head_dim = fields.count("head_dim", kWidthRange);
    out.qk_norm = fields.flag("qk_norm", false);
    model.lightning = out;
  }
  fields.finish();
}

void load_ssm(const ConfigNode& node, ModelSpec& model, Problems& problems) {
  Fields fields(node, "ssm", problems);
  if (fields.word("kind", {"mamba1", "mamba2"}) == 0) {
    Mamba1Spec out;
    out.d_inner = fields.count("d_inner", kWidthRange);
    out.d_state = fields.count("d_state", kWidthRange);
    out.d_conv = fields.count("d_conv", {1, 1000});
    out.dt_rank = fields.count("dt_rank", kWidthRange);
    out.norms = fields.flag("norms", true);
    model.mamba1 = out;
  } else {
    Mamba2Spec out;
    out.heads = fields.count("heads", kWidthRange);
    out.head_dim = fields.count("head_dim", kWidthRange);
    out.groups = fields.count("groups", kWidthRange);
    out.d_state = fields.count("d_state", kWidthRange);
    out.d_conv = fields.count("d_conv", {1, 1000});
    out.chunk = fields.optional_count("chunk", kWidthRange).value_or(out.chunk);
    out.norm = fields.flag("norm", true);
    if (out.heads % out.groups != 0) {
      problems.add(fields.span(), fmt::format("heads ({}) must be a multiple of groups ({})", out.heads, out.groups));
    }
    model.mamba2 = out;
  }
  fields.finish();
}

std::string name_of(const LayerKind& kind) {
  return fmt::format("{}/{}{}", name_of(kind.mixer), name_of(kind.ffn),
                     kind.reuse    ? kReuse
                     : kind.whole  ? kWhole
                     : kind.hashed ? kHashed
                                   : "");
}

std::optional<LayerKind> read_layer_kind(const ConfigNode& node, const ModelSpec& model, Problems& problems) {
  const bool reuse = node.text.ends_with(kReuse);
  const bool whole = node.text.ends_with(kWhole);
  const bool hashed = node.text.ends_with(kHashed);
  static_assert(kReuse.size() == kWhole.size());
  const std::size_t suffix = reuse || whole ? kReuse.size() : hashed ? kHashed.size() : 0;
  const std::string text = node.text.substr(0, node.text.size() - suffix);
  const std::size_t slash = std::min(text.find('/'), text.size());
  const auto mixer = position(kMixerNames, std::string_view(text).substr(0, slash));
  const auto ffn = position(kFfnNames, std::string_view(text).substr(std::min(slash + 1, text.size())));
  if (!mixer || !ffn || text == "none/none") {
    problems.add(
        node.span,
        fmt::format("unknown layer kind {}, expected MIXER/FFN with a mixer of {} and an FFN of {}{}", in_quotes(text),
                    listed(kMixerNames), listed(kFfnNames), text == "none/none" ? ", not both none" : ""),
        did_you_mean(nearest(text, all_kinds())));
    return std::nullopt;
  }
  const LayerKind kind{.mixer = static_cast<MixerKind>(*mixer),
                       .ffn = static_cast<FfnKind>(*ffn),
                       .reuse = reuse,
                       .hashed = hashed,
                       .whole = whole};
  if (hashed && kind.ffn != FfnKind::kMoe) problems.add(node.span, "only a moe layer has a table that chooses experts");
  const bool sees_all = kind.mixer == MixerKind::kFull || kind.mixer == MixerKind::kMla;
  const bool mixes_values = kind.mixer == MixerKind::kRwkv && model.rwkv && model.rwkv->version == 7;
  if (reuse && !mixes_values && !(model.attention.indexer ? sees_all : kind.mixer <= MixerKind::kSliding)) {
    problems.add(node.span,
                 "only a full or mla layer of a model with attention.indexer reuses an indexer's choice, and "
                 "a full or sliding layer of one without it another's keys and values");
  }
  if (whole && !(model.attention.indexer && sees_all)) {
    problems.add(node.span, "only a full or mla layer of a model with attention.indexer goes without it");
  }
  if (kind.ffn == FfnKind::kMoe && !model.moe) problems.add(node.span, "a moe layer needs the model's moe: block");
  if (const std::string missing = missing_block(kind.mixer, model); !missing.empty()) {
    problems.add(node.span, missing);
  }
  return kind;
}

}  // namespace scalecalc
