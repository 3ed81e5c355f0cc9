// Deals layers to pipeline stages and counts the microbatches that a schedule keeps in flight.
#include "cost/pipeline.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/accounting.h"

namespace scalecalc {
namespace {

/// Layers of the last chunk that make the slowest chunk least: it carries `head` layers' worth beside its own.
std::int64_t balanced_last(std::int64_t layers, std::int64_t chunks, double head) {
  std::int64_t best = 0;
  double slowest = std::numeric_limits<double>::infinity();
  for (std::int64_t last = layers / chunks; last >= 0; --last) {
    const std::int64_t others = (layers - last + chunks - 2) / (chunks - 1);
    const double time = std::max(static_cast<double>(others), static_cast<double>(last) + head);
    if (time >= slowest) continue;
    slowest = time;
    best = last;
  }
  return best;
}

/// The ends as chosen, the rest evenly between, odd ones to the earlier. Empty if a chunk between has none.
std::vector<std::int64_t> chosen_sizes(std::int64_t layers, std::int64_t chunks, const ChunkEnds& ends) {
  const std::int64_t rest = layers - ends.first - ends.last;
  const std::int64_t between = chunks - 2;
  if (chunks < 2 || rest < between || (between == 0 && rest != 0)) return {};
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(chunks));
  for (std::int64_t c = 0; c < between; ++c) {
    sizes[static_cast<std::size_t>(c + 1)] = rest / between + (c < rest % between ? 1 : 0);
  }
  sizes.front() = ends.first;
  sizes.back() = ends.last;
  return sizes;
}

/// The ends whose slowest chunk is least where all between are equal: the last carries `head` layers' worth beside its
/// own.
ChunkEnds equal_between(std::int64_t layers, std::int64_t chunks, double head) {
  ChunkEnds best;
  double slowest = std::numeric_limits<double>::infinity();
  const std::int64_t between = chunks - 2;
  for (std::int64_t each = (layers + chunks - 1) / chunks; each * between <= layers; ++each) {
    const std::int64_t ends = layers - each * between;
    const auto room = static_cast<std::int64_t>(std::floor(static_cast<double>(each) - head));
    const std::int64_t last = std::clamp(room, std::max<std::int64_t>(0, ends - each), std::min(each, ends));
    const double time = std::max(static_cast<double>(each), static_cast<double>(last) + head);
    if (time >= slowest) break;
    slowest = time;
    best = {ends - last, last};
  }
  return best;
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

/// What follows the last layer (head, MTP modules and their heads), in layers' worth of FLOPs. At 4,096 tokens: the
/// layouts that recipes write down do not change with the sequence.
double LayerDealer::head_layers() {
  if (head_layers_) return *head_layers_;
  constexpr double kTokens = 4096;
  const TrainingFlops all = training_flops(model_, kTokens);
  const TrainingFlops layers = training_flops(model_, kTokens, false);
  const double in_layers = layers.model_causal() - layers.ends;
  head_layers_ = (all.model_causal() - in_layers) / (in_layers / static_cast<double>(model_.layers()));
  return *head_layers_;
}

/// Layers per chunk. Odd ones go to the middle, since the first chunk carries the embedding.
std::vector<std::int64_t> LayerDealer::usual_sizes(std::int64_t chunks, StageSplit split) {
  const std::int64_t layers = model_.layers();
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(chunks), layers / chunks);
  const bool by_flags = split == StageSplit::kEven && model_.mtp_layers == 0;
  if (chunks == 1 || (by_flags && layers % chunks == 0)) return sizes;
  const bool ends_count = by_flags && (layers + 2) % chunks == 0;
  const std::int64_t last = ends_count ? layers / chunks : balanced_last(layers, chunks, head_layers());
  std::fill(sizes.begin(), sizes.end(), (layers - last) / (chunks - 1));
  sizes.back() = last;
  std::int64_t extra = (layers - last) % (chunks - 1);
  for (std::size_t c = 1; c + 1 < sizes.size() && extra > 0; ++c, --extra) ++sizes[c];
  if (extra > 0) ++sizes.front();
  return sizes;
}

std::vector<ChunkEnds> LayerDealer::ends_worth_choosing(std::int64_t pp) {
  const std::int64_t layers = model_.layers();
  std::vector<ChunkEnds> out;
  if (pp < 2 || pp > layers) return out;
  std::vector<std::vector<std::int64_t>> known{usual_sizes(pp, split_)};
  const auto offer = [&](const ChunkEnds& ends) {
    if (ends.first < 1 || ends.last < 0) return;
    std::vector<std::int64_t> sizes = chosen_sizes(layers, pp, ends);
    if (sizes.empty() || std::find(known.begin(), known.end(), sizes) != known.end()) return;
    known.push_back(std::move(sizes));
    out.push_back(ends);
  };
  const std::vector<std::int64_t> balanced = usual_sizes(pp, StageSplit::kBalanced);
  const ChunkEnds best =
      pp > 2 ? equal_between(layers, pp, head_layers()) : ChunkEnds{balanced.front(), balanced.back()};
  offer({balanced.front(), balanced.back()});
  offer(best);
  const std::int64_t others = pp > 2 ? (layers - best.first - best.last) / (pp - 2) : best.first - 1;
  if (best.last < others) offer({best.first - 1, best.last + 1});
  return out;
}

std::vector<ChunkShape> LayerDealer::deal(std::int64_t pp, std::int64_t vpp, const ChunkEnds& ends) {
  const std::int64_t chunks = pp * vpp;
  if (chunks > model_.layers() + 2 || pp > model_.layers()) return {};
  std::vector<ChunkShape> out;
  std::int64_t layer = 0;
  const std::vector<std::int64_t> sizes =
      ends.chosen() ? chosen_sizes(model_.layers(), chunks, ends) : usual_sizes(chunks, split_);
  if (sizes.empty()) return out;
  for (const std::int64_t size : sizes) {
    out.push_back({.first_layer = layer, .layers = size});
    layer += size;
  }
  out.front().embedding = true;
  out.back().head = true;
  return out;
}

std::vector<StageShape> LayerDealer::all_stages(const Layout& layout) {
  const std::vector<ChunkShape> chunks = deal(layout.pp, layout.vpp, layout.split);
  if (chunks.empty()) return {};
  std::vector<StageShape> stages(static_cast<std::size_t>(layout.pp));
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    const std::size_t s = c % stages.size();
    StageShape& stage = stages[s];
    stage.first = static_cast<std::int64_t>(s);
    stage.embedding |= chunks[c].embedding;
    stage.head |= chunks[c].head;
    for (std::int64_t i = 0; i < chunks[c].layers; ++i) {
      ++stage.layers[model_.layer_kind[static_cast<std::size_t>(chunks[c].first_layer + i)]];
    }
  }
  return layout.schedule == Schedule::kDualPipe ? folded(stages) : stages;
}

std::vector<StageShape> LayerDealer::partition(const Layout& layout) {
  std::vector<StageShape> distinct;
  for (const StageShape& stage : all_stages(layout)) {
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
