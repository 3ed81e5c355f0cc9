// How layers fall onto pipeline stages, and what a schedule keeps in flight.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "cost/layout.h"
#include "spec/model_spec.h"
#include "spec/stack_runtime.h"

namespace scalecalc {

/// Stages that hold the same: layers by kind, the embedding, the head. `first` is the smallest index of such a stage,
/// the one with the most microbatches in flight.
struct StageShape {
  std::array<std::int32_t, kMaxLayerKinds> layers{};
  bool embedding = false;
  bool head = false;
  std::int32_t parts = 1;  ///< stages of the model it stands for: 2 under DualPipe, each with half of the microbatches
  std::int64_t first = 0;
  std::int64_t count = 1;  ///< stages like it

  friend bool operator==(const StageShape& a, const StageShape& b) {
    return a.layers == b.layers && a.embedding == b.embedding && a.head == b.head;
  }
};

/// A run of layers that a stage works through in one go.
struct ChunkShape {
  std::int64_t first_layer = 0;  ///< index in the model
  std::int64_t layers = 0;
  bool embedding = false;
  bool head = false;
};

/// Whether the ends of these pipelines may be chosen: of one chunk a stage under schedules whose closed form holds for
/// uneven stages (docs/model.md, [BUBBLE]). Interleaved, chosen ends make it up to 16 % too short.
constexpr bool may_choose_ends(Schedule schedule, std::int64_t vpp) {
  return vpp == 1 && (schedule == Schedule::kGpipe || schedule == Schedule::k1F1B);
}

/// Deals the layers of one model as a stack does by its split, any number of times. Keeps a reference to the model. For
/// one thread: what follows the last layer is weighed once, by the first deal that depends on it.
class LayerDealer {
 public:
  explicit LayerDealer(const ModelSpec& model, StageSplit split = StageSplit::kEven) : model_(model), split_(split) {}

  /// The layers dealt to pp x vpp chunks in order; chunk c belongs to stage c mod pp. Empty if there are more chunks
  /// than layers and ends, or more stages than layers.
  ///   kEven: as launchers do by their flags, the same for each chunk, or with embedding and head counted as a layer
  ///   each; where neither divides, and for models with MTP modules, as kBalanced, which has to be written down there.
  ///   kBalanced: such that the slowest chunk is least, the last one carrying the FLOPs of head and MTP modules.
  /// With `ends` chosen the first and the last chunk hold so many and the others the rest, odd ones the earlier; empty
  /// too if that leaves one without.
  std::vector<ChunkShape> deal(std::int64_t pp, std::int64_t vpp, const ChunkEnds& ends = {});

  /// [ENDS] What may be worth choosing: the balanced deal, the best one whose chunks but the ends are equal, and that
  /// with a layer moved from the first to the last, which keeps fewer microbatches. None that deals as the stack does.
  std::vector<ChunkEnds> ends_worth_choosing(std::int64_t pp);

  /// What each of the pp stages holds of the layout's chunks; `first` is its own index. Under DualPipe stage s holds
  /// chunks s and pp - 1 - s.
  std::vector<StageShape> all_stages(const Layout& layout);

  /// The distinct ones of all_stages, each with how many there are.
  std::vector<StageShape> partition(const Layout& layout);

 private:
  std::vector<std::int64_t> usual_sizes(std::int64_t chunks, StageSplit split);
  double head_layers();

  const ModelSpec& model_;
  StageSplit split_;
  std::optional<double> head_layers_;
};

/// The same for who asks once.
inline std::vector<ChunkShape> deal(const ModelSpec& model, std::int64_t pp, std::int64_t vpp,
                                    StageSplit split = StageSplit::kEven, const ChunkEnds& ends = {}) {
  return LayerDealer(model, split).deal(pp, vpp, ends);
}
inline std::vector<ChunkEnds> ends_worth_choosing(const ModelSpec& model, std::int64_t pp, StageSplit split) {
  return LayerDealer(model, split).ends_worth_choosing(pp);
}
inline std::vector<StageShape> all_stages(const ModelSpec& model, const Layout& layout,
                                          StageSplit split = StageSplit::kEven) {
  return LayerDealer(model, split).all_stages(layout);
}
inline std::vector<StageShape> partition(const ModelSpec& model, const Layout& layout,
                                         StageSplit split = StageSplit::kEven) {
  return LayerDealer(model, split).partition(layout);
}

/// Microbatches (in units of a whole stage's layers) whose activations stage `index` keeps at its peak: all of them in
/// GPipe, pp - index in 1F1B and ZB-H1, ((vpp-1) pp + 2 (pp-index-1) + 1) / vpp when interleaved, pp + 1 under
/// DualPipe, never more than there are. Narayanan et al. 2021, arXiv:2104.04473 section 2.2, and Megatron-LM's
/// interleaved warm-up count; arXiv:2401.10241 section 2; arXiv:2412.19437 table 2.
double in_flight(Schedule schedule, std::int64_t pp, std::int64_t vpp, std::int64_t index, std::int64_t microbatches);

}  // namespace scalecalc
