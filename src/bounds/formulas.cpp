// Computes the scaling book's rules of thumb for training, for `bounds` and for `train --explain`.
#include "bounds/formulas.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/text.h"

namespace scalecalc::rules {
namespace {

using FeedForward = std::pair<FfnKind, std::int64_t>;

FeedForward feed_forward(const ModelSpec& model, std::uint8_t layer_kind) {
  const LayerKind& kind = model.kinds[layer_kind];
  return {kind.ffn, kind.ffn == FfnKind::kDense ? model.d_ff_of(kind) : 0};
}

/// What most layers have.
FeedForward usual(const ModelSpec& model) {
  std::map<FeedForward, std::size_t> counts;
  for (const std::uint8_t kind : model.layer_kind) ++counts[feed_forward(model, kind)];
  return std::max_element(counts.begin(), counts.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

std::string left_out(const ModelSpec& model, const FeedForward& described) {
  std::vector<std::string> parts;
  const auto others = std::count_if(model.layer_kind.begin(), model.layer_kind.end(),
                                    [&](std::uint8_t k) { return feed_forward(model, k) != described; });
  if (others > 0)
    parts.push_back(fmt::format("{} of {} layers, which have another feed-forward", others, model.layers()));
  if (described.first == FfnKind::kMoe && model.moe->shared_experts > 0) parts.emplace_back("shared experts");
  if (described.first == FfnKind::kMoe && model.moe->latent > 0) {
    parts.emplace_back(fmt::format("that experts work in a width of {}", model.moe->latent));
  }
  return join_and(parts);
}

}  // namespace

std::optional<LayerShape> layer_shape(const ModelSpec& model) {
  const Reader<Traced> reader;
  const auto count = [&](std::int64_t value, const char* name) {
    return reader.input(static_cast<double>(value), name, model.source);
  };
  const FeedForward described = usual(model);
  if (described.first == FfnKind::kNone) return std::nullopt;
  LayerShape out{.layers = count(model.layers(), "L"), .d_model = count(model.d_model, "D"), .gated = model.mlp.gated};
  out.left_out = left_out(model, described);
  if (described.first == FfnKind::kMoe) {
    out.experts = count(model.moe->experts, "E");
    out.top_k = count(model.moe->top_k, "k");
    out.expert_d_ff = count(model.moe->d_ff, "F");
    out.width = named(*out.top_k * *out.expert_d_ff, "k F", "experts of one token");
    out.total_width = named(*out.experts * *out.expert_d_ff, "E F", "all experts");
    out.sparsity = named(*out.experts / *out.top_k, "E / k", "book ch. 12: weights over weights used");
    return out;
  }
  out.width = count(described.second, "F");
  out.total_width = out.width;
  return out;
}

}  // namespace scalecalc::rules
