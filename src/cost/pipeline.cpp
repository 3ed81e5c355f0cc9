#include "cost/pipeline.h"

#include <algorithm>

namespace scalecalc {
namespace {

/// Layers per chunk: even, or with the odd ones in the middle (the last chunk gets an extra layer last of all).
std::vector<std::int64_t> chunk_sizes(std::int64_t layers, std::int64_t chunks) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(chunks), layers / chunks);
  std::int64_t extra = layers % chunks;
  for (std::size_t c = 1; c + 1 < sizes.size() && extra > 0; ++c, --extra) ++sizes[c];
  if (extra > 0) ++sizes.front();
  return sizes;
}

/// Each stage with its mirror image.
std::vector<StageShape> folded(const std::vector<StageShape>& stages) {
  std::vector<StageShape> out = stages;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const StageShape& mirror = stages[stages.size() - 1 - s];
    for (std::size_t k = 0; k < kMaxLayerKinds; ++k) out[s].layers[k] += mirror.layers[k];
    out[s].embedding = out[s].embedding || mirror.embedding;
    out[s].head = out[s].head || mirror.head;
    out[s].parts = 2;
  }
  return out;
}

}  // namespace

std::vector<ChunkShape> deal(const ModelSpec& model, std::int64_t pp, std::int64_t vpp) {
  const std::int64_t chunks = pp * vpp;
  if (chunks > model.layers() + 2 || pp > model.layers()) return {};
  std::vector<ChunkShape> out;
  std::int64_t layer = 0;
  for (const std::int64_t size : chunk_sizes(model.layers(), chunks)) {
    out.push_back({.first_layer = layer, .layers = size});
    layer += size;
  }
  out.front().embedding = true;
  out.back().head = true;
  return out;
}

std::vector<StageShape> all_stages(const ModelSpec& model, const Layout& layout) {
  const std::vector<ChunkShape> chunks = deal(model, layout.pp, layout.vpp);
  if (chunks.empty()) return {};
  std::vector<StageShape> stages(static_cast<std::size_t>(layout.pp));
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    const std::size_t s = c % stages.size();
    StageShape& stage = stages[s];
    stage.first = static_cast<std::int64_t>(s);
    stage.embedding |= chunks[c].embedding;
    stage.head |= chunks[c].head;
    for (std::int64_t i = 0; i < chunks[c].layers; ++i) {
      ++stage.layers[model.layer_kind[static_cast<std::size_t>(chunks[c].first_layer + i)]];
    }
  }
  return layout.schedule == Schedule::kDualPipe ? folded(stages) : stages;
}

std::vector<StageShape> partition(const ModelSpec& model, const Layout& layout) {
  std::vector<StageShape> distinct;
  for (const StageShape& stage : all_stages(model, layout)) {
    const auto same = std::find(distinct.begin(), distinct.end(), stage);
    if (same == distinct.end()) {
      distinct.push_back(stage);
    } else {
      ++same->count;
    }
  }
  return distinct;
}

double in_flight(Schedule schedule, std::int64_t pp, std::int64_t vpp, std::int64_t index, std::int64_t microbatches) {
  double wanted = 1;
  switch (schedule) {
    case Schedule::kNone: break;
    case Schedule::kGpipe: wanted = static_cast<double>(microbatches); break;
    case Schedule::k1F1B:
    case Schedule::kZeroBubble: wanted = static_cast<double>(pp - index); break;
    case Schedule::kDualPipe: wanted = static_cast<double>(pp + 1); break;
    case Schedule::kInterleaved:
      wanted = static_cast<double>((vpp - 1) * pp + 2 * (pp - index - 1) + 1) / static_cast<double>(vpp);
      break;
  }
  return std::min(wanted, static_cast<double>(microbatches));
}

}  // namespace scalecalc
