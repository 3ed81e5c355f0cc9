// Reads the towers of a config.json by the class that vision_config or audio_config names: CLIP, SigLIP, Pixtral,
// those of Qwen2-VL, Qwen2.5-VL and Qwen3-VL, and of Llama 3.2 Vision; the encoders of sound of Qwen's audio and omni
// models and of Voxtral. Shapes of huggingface/transformers, modeling_*.py of each.
#include "import/hf_towers.h"

#include <fmt/format.h>

#include <array>

#include "base/text.h"
#include "import/hf_config.h"

namespace scalecalc {
namespace {

/// One tower being read: its keys, and the width of the language model that it is projected to.
struct TowerReading {
  HfReading& model;
  HfKeys& keys;
  std::int64_t width = 0;
};

std::int64_t value(TowerReading& r, HfNames names, std::int64_t otherwise) {
  return r.keys.size_or(names, otherwise).value;
}

/// What the wrapper says beside the tower.
std::int64_t top_size(TowerReading& r, std::string_view key, std::int64_t otherwise, Range range) {
  HfKeys& keys = r.model.keys;
  const ConfigNode* found = keys.find_on_top({key});
  if (found != nullptr && !found->is_null()) {
    return keys.whole(*found, key, range).value_or(Size{otherwise, found->span, false}).value;
  }
  keys.defaulted(key, std::to_string(otherwise), kClassDefault);
  return otherwise;
}

bool top_flag(TowerReading& r, std::string_view key, bool otherwise) {
  HfKeys& keys = r.model.keys;
  const ConfigNode* found = keys.find_on_top({key});
  if (found == nullptr || found->is_null()) {
    keys.defaulted(key, otherwise ? "true" : "false", kClassDefault);
    return otherwise;
  }
  const bool word = found->kind == ConfigNode::Kind::kScalar && !found->quoted;
  if (word && (found->text == "true" || found->text == "false")) return found->text == "true";
  keys.problems().add(found->span, fmt::format("'{}' must be true or false", key));
  return otherwise;
}

/// Patches of a square image, so wide as the file says.
std::int64_t patches(TowerReading& r, std::int64_t patch, std::int64_t image) {
  const std::int64_t side = value(r, {"image_size"}, image) / std::max<std::int64_t>(patch, 1);
  return side * side;
}

HfTower read_sizes(TowerReading& r) {
  HfTower t;
  t.d_model = r.keys.required({"hidden_size"}, "width of the vision tower");
  t.layers = r.keys.required({"num_hidden_layers"}, "layers of the vision tower", {1, 1e4});
  t.heads = r.keys.required({"num_attention_heads", "attention_heads"}, "heads of the vision tower");
  t.d_ff = r.keys.required({"intermediate_size"}, "width of the vision tower's MLP");
  return t;
}

/// Layers of the tower that a wrapper reads: all, or those up to vision_feature_layer. All are stored.
HfTower read_clip(TowerReading& r) {
  HfTower t = read_sizes(r);
  const std::int64_t d = t.d_model.value;
  t.patch = r.keys.required({"patch_size"}, "side of a patch").value;
  t.stem.push_back({value(r, {"num_channels"}, 3) * t.patch * t.patch, d, false});
  const std::int64_t positions = patches(r, t.patch, 224) + 1;
  t.learned_positions = t.tokens = positions;
  t.other_weights = d + 4 * d;  // the class token, and norms before and behind the layers
  t.projector = {{d, r.width, true}, {r.width, r.width, true}};
  return t;
}

HfTower read_siglip(TowerReading& r) {
  HfTower t = read_sizes(r);
  const std::int64_t d = t.d_model.value;
  t.patch = r.keys.required({"patch_size"}, "side of a patch").value;
  t.stem.push_back({value(r, {"num_channels"}, 3) * t.patch * t.patch, d, true});
  t.learned_positions = t.tokens = patches(r, t.patch, 224);
  t.final_norm = true;
  t.projector = {{d, r.width, false}};
  t.other_weights = d;  // the projector's norm
  const std::int64_t image_tokens = top_size(r, "mm_tokens_per_image", 256, kSizeRange);
  t.merge = std::max<std::int64_t>(1, t.tokens / std::max<std::int64_t>(1, image_tokens));
  return t;
}

HfTower read_pixtral(TowerReading& r) {
  HfTower t = read_sizes(r);
  const std::int64_t d = t.d_model.value;
  t.gated = true;
  t.layernorm = t.qkv_bias = t.o_bias = t.mlp_bias = false;
  t.head_dim = r.keys.size_or({"head_dim"}, d / std::max<std::int64_t>(1, t.heads.value));
  t.patch = r.keys.required({"patch_size"}, "side of a patch").value;
  t.stem.push_back({value(r, {"num_channels"}, 3) * t.patch * t.patch, d, false});
  patches(r, t.patch, 1024);  // the largest image; each has as many positions as it has patches
  const ConfigNode* wrapper = r.keys.top().find("model_type");
  const bool merges = wrapper != nullptr && wrapper->text == "mistral3";  // LLaVA with this tower does not
  const std::int64_t side = top_size(r, "spatial_merge_size", merges ? 2 : 1, {1, 64});
  const bool biased = top_flag(r, "multimodal_projector_bias", !merges);
  t.merge = side * side;
  t.other_weights = d;  // of the norm before the layers
  if (side > 1) {       // Mistral 3 norms and merges neighbours first
    t.other_weights += d;
    t.projector.push_back({t.merge * d, d, false});
  }
  t.projector.push_back({d, r.width, biased});
  t.projector.push_back({r.width, r.width, biased});
  return t;
}

/// The stem and the merger of Qwen's towers, whose patches are two frames deep.
void qwen_ends(TowerReading& r, HfTower& t, std::int64_t patch, bool stem_bias) {
  const std::int64_t d = t.d_model.value;
  const std::int64_t merge = value(r, {"spatial_merge_size"}, 2);
  t.patch = value(r, {"patch_size"}, patch);
  const std::int64_t channels = value(r, {"in_channels", "in_chans"}, 3);
  t.stem.push_back({channels * value(r, {"temporal_patch_size"}, 2) * t.patch * t.patch, d, stem_bias});
  t.merge = merge * merge;
}

void qwen_merger(HfTower& t, std::int64_t out) {
  const std::int64_t wide = t.merge * t.d_model.value;
  t.projector.push_back({wide, wide, true});
  t.projector.push_back({wide, out, true});
}

HfTower read_qwen2_vl_tower(TowerReading& r) {
  HfTower t;
  t.d_model = r.keys.size_or({"embed_dim"}, 1280);
  t.layers = r.keys.size_or({"depth"}, 32, {1, 1e4});
  t.heads = r.keys.size_or({"num_heads"}, 16);
  t.d_ff = {value(r, {"mlp_ratio"}, 4) * t.d_model.value, t.d_model.where};
  qwen_ends(r, t, 14, false);
  t.other_weights = 2 * t.d_model.value;
  qwen_merger(t, value(r, {"hidden_size"}, r.width));
  return t;
}

HfTower read_qwen25_vl_tower(TowerReading& r) {
  HfTower t;
  t.d_model = r.keys.required({"hidden_size"}, "width of the vision tower");
  t.layers = r.keys.size_or({"depth"}, 32, {1, 1e4});
  t.heads = r.keys.size_or({"num_heads"}, 16);
  t.d_ff = r.keys.size_or({"intermediate_size"}, 3420);
  t.gated = true;
  t.layernorm = false;
  qwen_ends(r, t, 14, false);
  t.other_weights = t.d_model.value;
  const std::int64_t side = value(r, {"window_size"}, 112) / std::max<std::int64_t>(1, t.patch);
  t.window = {side * side, t.d_model.where};
  if (const ConfigNode* full = r.keys.list({"fullatt_block_indexes"})) {
    for (const ConfigNode& item : full->items) {
      const auto index = r.keys.whole(item, "fullatt_block_indexes", {0, static_cast<double>(t.layers.value - 1)});
      if (index) t.full_layers.push_back(index->value);
    }
  } else {
    t.full_layers = {7, 15, 23, 31};
    r.keys.defaulted("fullatt_block_indexes", "7, 15, 23, 31", kClassDefault);
  }
  qwen_merger(t, value(r, {"out_hidden_size"}, r.width));
  return t;
}

HfTower read_qwen3_vl_tower(TowerReading& r) {
  HfTower t;
  t.d_model = r.keys.size_or({"hidden_size"}, 1152);
  t.layers = r.keys.size_or({"depth"}, 27, {1, 1e4});
  t.heads = r.keys.size_or({"num_heads"}, 16);
  t.d_ff = r.keys.size_or({"intermediate_size"}, 4304);
  qwen_ends(r, t, 16, true);
  t.learned_positions = value(r, {"num_position_embeddings"}, 2304);
  t.other_weights = 2 * t.d_model.value;
  const std::int64_t out = value(r, {"out_hidden_size"}, 3584);
  qwen_merger(t, out);
  // States of some layers are merged too, normed at the merged width, and added to the first layers of the model.
  std::size_t deep = 3;
  if (const ConfigNode* layers = r.keys.list({"deepstack_visual_indexes"})) {
    deep = layers->items.size();
    if (deep == 0)
      r.model.keys.remark("deepstack_visual_indexes is empty: no state of a layer within the tower goes on");
  } else {
    r.keys.defaulted("deepstack_visual_indexes", "three layers", kClassDefault);
  }
  for (std::size_t i = 0; i < deep; ++i) {
    t.other_weights += 2 * t.merge * t.d_model.value;
    qwen_merger(t, out);
  }
  return t;
}

/// Local layers and gated global ones, tiles of an image with embeddings of their own, and a projection of the states
/// of several layers side by side, which cross attention reads.
HfTower read_mllama_tower(TowerReading& r) {
  HfTower t = read_sizes(r);
  const std::int64_t d = t.d_model.value;
  const std::int64_t global = value(r, {"num_global_layers"}, 8);
  const std::int64_t tiles = value(r, {"max_num_tiles"}, 4);
  const std::int64_t out = value(r, {"vision_output_dim"}, 7680);
  t.patch = value(r, {"patch_size"}, 14);
  t.qkv_bias = t.o_bias = false;
  t.stem.push_back({value(r, {"num_channels"}, 3) * t.patch * t.patch, d, false});
  const std::int64_t positions = patches(r, t.patch, 448) + 1;
  t.tokens = tiles * positions;
  t.layers.value += global;
  std::int64_t ratios = 8;
  if (const ConfigNode* list = r.keys.list({"supported_aspect_ratios"})) {
    ratios = static_cast<std::int64_t>(list->items.size());
    if (ratios == 0) r.keys.problems().add(list->span, "'supported_aspect_ratios' is empty");
  } else {
    r.keys.defaulted("supported_aspect_ratios", "eight of them", kClassDefault);
  }
  // The class token; norms before and behind; positions and gate; two gates a global layer; of each aspect ratio
  // embeddings of tiles, before and behind the layers with a gate each, and of positions.
  t.other_weights = d + 4 * d + positions * d + 1 + 2 * global + (ratios + 1) * tiles * d * (2 + positions) + 2;
  t.projector.push_back({out, r.width, true});
  return t;
}

/// Sizes of Whisper's encoder (arXiv:2212.04356), by its own names or by others.
HfTower read_audio_sizes(TowerReading& r) {
  HfTower t;
  t.name = "audio";
  t.d_model = r.keys.size_or({"d_model", "hidden_size"}, 1280);
  t.layers = r.keys.size_or({"encoder_layers", "num_hidden_layers"}, 32, {1, 1e4});
  t.heads = r.keys.size_or({"encoder_attention_heads", "num_attention_heads"}, 20);
  t.d_ff = r.keys.size_or({"encoder_ffn_dim", "intermediate_size"}, 5120);
  t.final_norm = true;
  t.tokens = value(r, {"max_source_positions"}, 1500);
  return t;
}

constexpr std::int64_t kTaps = 3;  // of its convolutions

/// Frames of sound through two convolutions, of which the second halves them; keys have no bias.
void whisper_stem(TowerReading& r, HfTower& t) {
  const std::int64_t d = t.d_model.value;
  t.key_bias = false;
  t.stem = {{kTaps * value(r, {"num_mel_bins"}, 128), d, true, 2}, {kTaps * d, d, true}};
}

/// Pairs of its positions go on.
HfTower read_qwen2_audio(TowerReading& r) {
  HfTower t = read_audio_sizes(r);
  whisper_stem(r, t);
  t.learned_positions = t.tokens;
  t.merge = 2;
  t.projector.push_back({t.d_model.value, r.width, true});
  return t;
}

/// The same without a table of positions, attending to chunks; two tokens of their own stand around what goes on.
HfTower read_qwen25_omni_audio(TowerReading& r) {
  HfTower t = read_audio_sizes(r);
  whisper_stem(r, t);
  const std::int64_t out = value(r, {"output_dim"}, 3584);
  t.window = r.keys.size_or({"n_window"}, 100);
  t.other_weights = 2 * out;
  t.merge = 2;
  t.projector.push_back({t.d_model.value, out, true});
  return t;
}

/// Three convolutions over frames and frequencies, each of which halves both; a projection of all frequencies; two more
/// behind the layers. Each position is one of eight frames.
HfTower read_qwen3_omni_audio(TowerReading& r) {
  HfTower t = read_audio_sizes(r);
  const std::int64_t d = t.d_model.value, wide = value(r, {"downsample_hidden_size"}, 480);
  const auto half = [](std::int64_t n) { return (n + 1) / 2; };
  const std::int64_t first = half(value(r, {"num_mel_bins"}, 128)), second = half(first), third = half(second);
  constexpr std::int64_t kArea = kTaps * kTaps;
  t.stem = {{kArea, wide, true, 4 * first},
            {kArea * wide, wide, true, 2 * second},
            {kArea * wide, wide, true, third},
            {wide * third, d, false}};
  t.projector = {{d, d, true}, {d, value(r, {"output_dim"}, 3584), true}};
  return t;
}

/// Whisper's encoder, of whose positions four go on as one token, side by side.
HfTower read_voxtral(TowerReading& r) {
  HfTower t = read_audio_sizes(r);
  whisper_stem(r, t);
  t.learned_positions = t.tokens;
  t.merge = std::max<std::int64_t>(1, t.d_ff.value / std::max<std::int64_t>(1, t.d_model.value));
  t.projector = {{t.d_ff.value, r.width, false}, {r.width, r.width, false}};
  return t;
}

struct TowerClass {
  std::string_view name;    ///< model_type of the vision_config or audio_config
  std::string_view family;  ///< whose files leave that out or call it as themselves
  HfTower (*read)(TowerReading&);
  bool hears = false;
};
constexpr std::array kTowerClasses{TowerClass{"clip_vision_model", "llava", read_clip},
                                   TowerClass{"siglip_vision_model", "gemma3", read_siglip},
                                   TowerClass{"pixtral", "mistral3", read_pixtral},
                                   TowerClass{"qwen2_vl", "qwen2_vl", read_qwen2_vl_tower},
                                   TowerClass{"qwen2_5_vl", "qwen2_5_vl", read_qwen25_vl_tower},
                                   TowerClass{"qwen3_vl", "qwen3_vl", read_qwen3_vl_tower},
                                   TowerClass{"qwen3_vl_moe", "qwen3_vl_moe", read_qwen3_vl_tower},
                                   TowerClass{"mllama_vision_model", "mllama", read_mllama_tower},
                                   TowerClass{"qwen2_5_omni_vision_encoder", "", read_qwen25_vl_tower},
                                   TowerClass{"qwen3_omni_moe_vision_encoder", "", read_qwen3_vl_tower},
                                   TowerClass{"qwen2_audio_encoder", "qwen2_audio", read_qwen2_audio, true},
                                   TowerClass{"qwen2_5_omni_audio_encoder", "", read_qwen25_omni_audio, true},
                                   TowerClass{"qwen3_omni_moe_audio_encoder", "", read_qwen3_omni_audio, true},
                                   TowerClass{"voxtral_encoder", "voxtral", read_voxtral, true}};

std::string text_of(const ConfigNode& map, std::string_view key) {
  const ConfigNode* found = map.find(key);
  return found == nullptr || found->kind != ConfigNode::Kind::kScalar ? "" : found->text;
}

const TowerClass* tower_class(const ConfigNode& top, const ConfigNode& vision, bool hears) {
  const std::string said = text_of(vision, "model_type"), family = text_of(top, "model_type");
  for (const TowerClass& known : kTowerClasses) {
    if (known.hears != hears) continue;
    if (said == known.name || (said.empty() && family == known.family && !family.empty())) return &known;
  }
  return nullptr;
}

/// Of the sizes that a class gives no default for.
std::string_view first_missing(const ConfigNode& vision, const TowerClass& known) {
  std::vector<std::string_view> needed{"hidden_size", "num_hidden_layers", "intermediate_size", "patch_size"};
  if (known.read == read_qwen2_vl_tower || known.read == read_qwen3_vl_tower) needed.clear();
  if (known.read == read_qwen25_vl_tower) needed = {"hidden_size"};
  if (known.read == read_mllama_tower) needed.pop_back();
  if (known.hears) needed = {known.read == read_voxtral ? "hidden_size" : "d_model"};
  for (const std::string_view key : needed) {
    const ConfigNode* found = vision.find(key);
    if (found == nullptr || found->is_null()) return key;
  }
  return {};
}

ConfigNode projections_node(const std::vector<HfProjection>& list, const SourceSpan& where) {
  ConfigNode out;
  out.kind = ConfigNode::Kind::kSequence;
  out.span = where;
  for (const HfProjection& p : list) {
    MapBuilder item(where);
    item.add("in", Size{p.in, where}).add("out", Size{p.out, where}).add_if("bias", p.bias);
    if (p.times > 1) item.add("times", Size{p.times, where});
    out.items.push_back(item.take());
  }
  return out;
}

ConfigNode tower_node(const HfTower& t, const SourceSpan& where) {
  const auto size = [&](std::int64_t value) { return Size{value, where}; };
  MapBuilder out(where);
  out.add("name", text_node(t.name, where)).add_if("counted", t.counted);
  if (!t.stem.empty()) out.add("stem", projections_node(t.stem, where));
  out.add_if("vocab", t.vocab)
      .add_if("other_weights", size(t.other_weights))
      .add_if("patch", size(t.patch))
      .add("merge", size(t.merge));
  out.add_if("tokens", size(t.tokens));
  if (!t.projector.empty()) out.add("projector", projections_node(t.projector, where));
  out.add("d_model", t.d_model).add_if("learned_positions", size(t.learned_positions));
  out.add_if("position_biases", size(t.position_biases));
  MapBuilder norm(where);
  norm.add("kind", t.layernorm ? "layernorm" : "rmsnorm").add("per_layer", size(t.norms));
  out.add("norm", norm.take()).add("final_norm", t.final_norm ? "true" : "false");
  MapBuilder attention(where);
  const std::int64_t heads = std::max<std::int64_t>(1, t.heads.value);
  const bool grouped = t.kv_heads.value > 0 && t.kv_heads.value != t.heads.value;
  attention.add("kind", text_node(grouped ? "gqa" : "mha", where)).add("heads", t.heads);
  if (grouped) attention.add("kv_heads", t.kv_heads);
  attention.add("head_dim",
                t.head_dim.value > 0 ? t.head_dim : size(std::max<std::int64_t>(1, t.d_model.value / heads)));
  attention.add("causal", "false").add_if("qkv_bias", t.qkv_bias).add_if("o_bias", t.o_bias).add_if("window", t.window);
  if (!t.key_bias) attention.add("key_bias", "false");
  out.add("attention", attention.take());
  MapBuilder mlp(where);
  mlp.add("d_ff", t.d_ff).add("gated", t.gated ? "true" : "false").add_if("bias", t.mlp_bias);
  if (t.gated && !t.activation.empty()) mlp.add("activation", t.activation);
  out.add("mlp", mlp.take());
  std::vector<HfLayer> layers(static_cast<std::size_t>(t.layers.value));
  if (t.window.value > 0) {
    for (HfLayer& layer : layers) layer.mixer = "sliding";
    for (const std::int64_t full : t.full_layers) {
      if (full < t.layers.value) layers[static_cast<std::size_t>(full)].mixer = "full";
    }
  }
  out.add("layers", layers_node(layers, where));
  return out.take();
}

}  // namespace

ConfigNode towers_node(const std::vector<HfTower>& towers, const SourceSpan& where) {
  ConfigNode out;
  out.kind = ConfigNode::Kind::kSequence;
  out.span = where;
  for (const HfTower& tower : towers) out.items.push_back(tower_node(tower, where));
  return out;
}

namespace {

/// The tower that `holder` describes under the last name of `path`, if it does.
void read_tower(HfReading& r, const ConfigNode& holder, const std::string& path) {
  const std::string_view key = std::string_view(path).substr(path.rfind('.') + 1);
  const ConfigNode* found = holder.find(key);
  if (found == nullptr || found->kind != ConfigNode::Kind::kMap) return;
  const bool hears = key == "audio_config";
  const TowerClass* known = tower_class(holder, *found, hears);
  if (known == nullptr) {
    return r.keys.remark(fmt::format("the language model alone is read: {} is not counted", path));
  }
  if (const std::string_view missing = first_missing(*found, *known); !missing.empty()) {
    return r.keys.remark(fmt::format("{} has no '{}': its tower is not counted", path, missing));
  }
  r.keys.find_on_top({path});
  ImportNotes notes;
  HfKeys keys(r.keys.top(), *found, path, r.keys.problems(), notes);
  TowerReading tower{r, keys, r.model.d_model.value};
  r.model.towers.push_back(known->read(tower));
  for (const ImportNotes::Default& d : notes.defaults) {
    r.keys.defaulted(fmt::format("{}.{}", path, d.key), d.value, d.why);
  }
  r.keys.remark(fmt::format("{} is a tower of class {}, counted apart, which {}", path, known->name,
                            hears ? "is held and given no sound" : "--images shows images"));
}

}  // namespace

namespace {

/// What LLaVA's own files say of a tower they do not describe, and of the projector behind it.
void remark_named_tower(HfReading& r) {
  if (!r.keys.has({"mm_vision_tower"})) return;
  r.keys.remark("the language model alone is read: the tower that mm_vision_tower names is not in the file");
  std::string projector;
  for (const std::string_view key : {"mm_projector_type", "mm_hidden_size"}) {
    if (!r.keys.has({key})) continue;
    projector += fmt::format("{}{} {}", projector.empty() ? "" : ", ", key, value_text(*r.keys.find({key})));
  }
  if (!projector.empty()) r.keys.remark(fmt::format("the projector behind it is not counted: {}", projector));
}

/// Of models that speak: what makes sound of the language model's states.
void remark_speech(HfReading& r) {
  for (const std::string_view key : {"talker_config", "token2wav_config", "code2wav_config"}) {
    const ConfigNode* found = r.keys.find_on_top({key});
    if (found == nullptr || found->kind != ConfigNode::Kind::kMap) continue;
    r.keys.remark(fmt::format("the language model alone is read: {} is not counted", key));
  }
}

}  // namespace

void read_towers(HfReading& r) {
  remark_named_tower(r);
  remark_speech(r);
  for (const char* key : {"vision_config", "audio_config"}) {
    read_tower(r, r.keys.top(), key);
    const ConfigNode* thinker = r.keys.top().find("thinker_config");
    if (thinker != nullptr) read_tower(r, *thinker, fmt::format("thinker_config.{}", key));
  }
  if (!r.model.has_mixer("cross")) return;
  if (r.model.towers.empty()) {
    r.keys.problems().add(r.keys.span(), "the file has no 'vision_config', to which its cross attention layers attend");
  } else {
    r.model.cross_tokens = {r.model.towers.front().tokens, r.keys.span()};
  }
}

}  // namespace scalecalc
