// Decides which tensor-parallel degrees divide the layers of a model, for the search and the advice. Rules of the
// launchers: Megatron-LM validate_args (heads, KV heads, widths) and the groups of its Mamba and gated delta net
// layers.
#include "model/sharding.h"

#include <fmt/format.h>

#include <algorithm>

namespace scalecalc {
namespace {

class Divisions {
 public:
  explicit Divisions(std::int64_t tp) : tp_(tp) {}

  /// A count, called `what`, that must be divided.
  void whole(std::int64_t count, const std::string& what) {
    if (count % tp_ != 0) add(fmt::format("tp {} does not divide {}", tp_, what));
  }
  /// Groups that may also be repeated on several ranks each.
  void repeated(std::int64_t count, const std::string& what) {
    if (count % tp_ != 0 && tp_ % count != 0) {
      add(fmt::format("tp {} neither divides {} nor is a multiple of them", tp_, what));
    }
  }
  std::vector<std::string> take() { return std::move(found_); }

 private:
  void add(std::string sentence) {
    if (std::find(found_.begin(), found_.end(), sentence) == found_.end()) found_.push_back(std::move(sentence));
  }

  std::int64_t tp_;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> undivided_heads(const ModelSpec& model, std::int64_t tp) {
  Divisions out(tp);
  const auto heads = [&](std::int64_t count, const char* what) {
    out.whole(count, fmt::format(fmt::runtime(what), count));
  };
  for (const LayerKind& kind : model.kinds) {
    switch (kind.mixer) {
      case MixerKind::kFull:
      case MixerKind::kSliding:
      case MixerKind::kChunked:
      case MixerKind::kMla:
      case MixerKind::kCross:
      case MixerKind::kFullCross:
      case MixerKind::kSlidingCross:
      case MixerKind::kStrided:
      case MixerKind::kFullMamba2: {
        const AttentionShape shape = model.attention.shape(kind.mixer);
        heads(shape.heads, "the {} attention heads");
        if (model.attention.compressed) break;  // one head of keys and values, whole on each rank
        out.repeated(shape.kv_heads, fmt::format("the {} KV heads", shape.kv_heads));
        if (kind.mixer == MixerKind::kFullMamba2) heads(model.mamba2->heads, "the {} heads of the state-space layers");
        break;
      }
      case MixerKind::kCsa:
      case MixerKind::kHca:
        heads(model.attention.heads, "the {} attention heads");
        if (model.attention.compressed) heads(model.attention.compressed->o_groups, "the {} output groups");
        break;
      case MixerKind::kGdn:
        heads(model.gdn->key_heads, "the {} key heads of the linear layers");
        heads(model.gdn->value_heads, "the {} value heads of the linear layers");
        break;
      case MixerKind::kKda: heads(model.kda->heads, "the {} heads of the linear layers"); break;
      case MixerKind::kConv: heads(model.d_model, "the {} channels of the convolutions"); break;
      case MixerKind::kLightning: heads(model.lightning->heads, "the {} heads of the linear layers"); break;
      case MixerKind::kMamba1: heads(model.mamba1->d_inner, "the {} channels of the state-space layers"); break;
      case MixerKind::kMamba2:
        heads(model.mamba2->heads, "the {} heads of the state-space layers");
        out.repeated(model.mamba2->groups,
                     fmt::format("the {} groups of the state-space layers", model.mamba2->groups));
        break;
      case MixerKind::kRwkv: heads(model.rwkv->heads(), "the {} heads of the time mixing"); break;
      case MixerKind::kRglru: heads(model.rglru->blocks, "the {} blocks of the recurrent layers"); break;
      case MixerKind::kNone: break;
    }
  }
  return out.take();
}

std::vector<std::string> undivided_widths(const ModelSpec& model, std::int64_t tp) {
  Divisions out(tp);
  for (const LayerKind& kind : model.kinds) {
    if (kind.ffn == FfnKind::kDense) out.whole(model.d_ff_of(kind), fmt::format("d_ff {}", model.d_ff_of(kind)));
  }
  if (model.moe) {
    out.whole(model.moe->shared_d_ff, fmt::format("the shared experts' d_ff {}", model.moe->shared_d_ff));
  }
  out.whole(model.d_model, fmt::format("d_model {}", model.d_model));
  return out.take();
}

bool all_plain_attention(const ModelSpec& model) {
  return std::all_of(model.kinds.begin(), model.kinds.end(), [](const LayerKind& k) {
    return k.mixer == MixerKind::kFull || k.mixer == MixerKind::kSliding || k.mixer == MixerKind::kChunked;
  });
}

}  // namespace scalecalc
