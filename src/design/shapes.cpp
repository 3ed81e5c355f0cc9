// Enumerates the shapes that `model design` may choose and writes the model file of each.
#include "design/shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/units.h"
#include "import/hf_config.h"

namespace scalecalc {
namespace {

constexpr std::int64_t kTile = 128;  // rows of a TPU's matrix unit; GPUs' tiles divide it or are twice as large
constexpr std::int64_t kLeastWidth = 512;
constexpr std::int64_t kMostWidth = 32768;

/// Steps of about an eighth of the width and more, so that heads and widths stay divisible.
std::int64_t width_step(std::int64_t width) { return width < 4096 ? 256 : width < 8192 ? 512 : 1024; }

/// MLP widths divide eight ways into tiles where that is a small step.
std::int64_t ff_step(std::int64_t width) { return width < 2048 ? kTile : width < 8192 ? 4 * kTile : 8 * kTile; }

std::int64_t rounded(double value, std::int64_t step) {
  return std::max(step, static_cast<std::int64_t>(std::llround(value / static_cast<double>(step))) * step);
}

std::vector<std::int64_t> layer_counts(std::int64_t width, const ShapeRange& aspect) {
  const auto d = static_cast<double>(width);
  const auto least = static_cast<std::int64_t>(std::ceil(d / aspect.high));
  const auto most = static_cast<std::int64_t>(std::floor(d / aspect.low));
  const std::int64_t step = most < 24 ? 2 : 4;
  std::vector<std::int64_t> out;
  for (std::int64_t layers = (least + step - 1) / step * step; layers <= most; layers += step) {
    if (layers > 0) out.push_back(layers);
  }
  return out;
}

std::vector<std::int64_t> ff_widths(std::int64_t width, const ShapeRanges& ranges,
                                    const std::optional<ExpertChoice>& experts) {
  const ShapeRange& ratio = experts ? ranges.expert_ratio : ranges.ff_ratio;
  std::vector<std::int64_t> out;
  for (const double share : {ratio.low, ratio.median, ratio.high}) {
    const double wide = share * static_cast<double>(width);
    const double each = experts ? wide / static_cast<double>(experts->top_k) : wide;
    const std::int64_t found = rounded(each, ff_step(static_cast<std::int64_t>(each)));
    if (std::find(out.begin(), out.end(), found) == out.end()) out.push_back(found);
  }
  return out;
}

/// The usual number, or the largest part of it that divides the heads.
std::int64_t kv_heads_of(std::int64_t heads, std::int64_t usual) { return std::gcd(heads, usual); }

std::int64_t power_of_two_in(std::int64_t value) { return value & -value; }

std::string whole(std::int64_t value) { return fmt::format("{}", value); }

ConfigNode list_of(std::vector<ConfigNode> items) {
  ConfigNode out;
  out.kind = ConfigNode::Kind::kSequence;
  out.items = std::move(items);
  return out;
}

ConfigNode attention_of(const DesignShape& s) {
  MapBuilder out{SourceSpan{}};
  out.add("kind", "gqa").add("heads", whole(s.heads)).add("kv_heads", whole(s.kv_heads));
  out.add("head_dim", whole(s.head_dim));
  return out.take();
}

ConfigNode layers_of(const DesignShape& s) {
  MapBuilder group{SourceSpan{}};
  group.add("repeat", whole(s.layers));
  group.add("kinds", list_of({text_node(s.experts ? "full/moe" : "full/dense", {})}));
  return list_of({group.take()});
}

ConfigNode training_of(const TrainingRecipe& r) {
  MapBuilder out{SourceSpan{}};
  out.add("tokens", fmt::format("{:.0f}", r.tokens)).add("seq", whole(r.seq));
  out.add("batch_tokens", fmt::format("{:.0f}", r.batch_tokens));
  out.add("precision", r.precision).add("optimizer", r.optimizer);
  out.add("source", list_of({text_node("design", {})}));
  return out.take();
}

ConfigNode norm_of() {
  MapBuilder out{SourceSpan{}};
  out.add("kind", "rmsnorm").add("per_layer", "2");
  return out.take();
}

}  // namespace

std::int64_t padded_vocab(std::int64_t vocab) {
  constexpr std::int64_t kStep = 8 * kTile;
  return (vocab + kStep - 1) / kStep * kStep;
}

std::vector<DesignShape> shapes(const ShapeRanges& ranges, std::int64_t vocab,
                                const std::optional<ExpertChoice>& experts) {
  std::vector<DesignShape> out;
  for (std::int64_t width = kLeastWidth; width <= kMostWidth; width += width_step(width)) {
    if (width % ranges.head_dim != 0) continue;
    const std::int64_t heads = width / ranges.head_dim;
    for (const std::int64_t layers : layer_counts(width, ranges.aspect)) {
      for (const std::int64_t d_ff : ff_widths(width, ranges, experts)) {
        out.push_back({.d_model = width,
                       .layers = layers,
                       .heads = heads,
                       .kv_heads = kv_heads_of(heads, ranges.kv_heads),
                       .head_dim = ranges.head_dim,
                       .d_ff = d_ff,
                       .vocab = vocab,
                       .experts = experts});
      }
    }
  }
  return out;
}

ModelDocument document_of(const DesignShape& s, const TrainingRecipe& recipe, const std::string& name) {
  MapBuilder out{SourceSpan{.file = "model design"}};
  out.add("schema", "scalecalc-model/1").add("name", name);
  out.add("title", fmt::format("{}: {} layers of {}", name, s.layers, s.d_model));
  out.add("d_model", whole(s.d_model)).add("vocab", whole(s.vocab)).add("max_seq", whole(recipe.seq));
  out.add("norm", norm_of()).add("attention", attention_of(s));
  MapBuilder mlp{SourceSpan{}};
  if (!s.experts) mlp.add("d_ff", whole(s.d_ff));
  mlp.add("gated", "true");
  out.add("mlp", mlp.take());
  if (s.experts) {
    MapBuilder moe{SourceSpan{}};
    moe.add("experts", whole(s.experts->experts)).add("top_k", whole(s.experts->top_k)).add("d_ff", whole(s.d_ff));
    out.add("moe", moe.take());
  }
  out.add("layers", layers_of(s)).add("training", training_of(recipe));
  out.add("source", list_of({text_node("design", {})}));
  MapBuilder sources{SourceSpan{}};
  sources.add("design", "chosen by scalecalc model design; no such model was trained");
  out.add("sources", sources.take());
  return {out.take(), std::nullopt};
}

std::int64_t tensor_ways(const DesignShape& s) {
  return std::min({power_of_two_in(s.heads), power_of_two_in(s.d_ff / kTile), power_of_two_in(s.vocab / kTile)});
}

std::int64_t pipeline_ways(const DesignShape& s) { return power_of_two_in(s.layers); }

}  // namespace scalecalc
