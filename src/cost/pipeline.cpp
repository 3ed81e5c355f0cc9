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

}  // namespace

std::vector<StageShape> partition(const ModelSpec& model, std::int64_t pp, std::int64_t vpp) {
  const std::int64_t chunks = pp * vpp;
  if (chunks > model.layers() + 2 || pp > model.layers()) return {};
  std::vector<StageShape> stages(static_cast<std::size_t>(pp));
  std::size_t layer = 0;
  std::int64_t chunk = 0;
  for (const std::int64_t size : chunk_sizes(model.layers(), chunks)) {
    StageShape& stage = stages[static_cast<std::size_t>(chunk % pp)];
    for (std::int64_t i = 0; i < size; ++i) ++stage.layers[model.layer_kind[layer++]];
    ++chunk;
  }
  stages.front().embedding = true;
  stages.back().head = true;
  std::vector<StageShape> distinct;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    if (std::find(distinct.begin(), distinct.end(), stages[s]) != distinct.end()) continue;
    stages[s].first = static_cast<std::int64_t>(s);
    distinct.push_back(stages[s]);
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
