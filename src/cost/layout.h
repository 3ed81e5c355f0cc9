// One parallel layout: how many ways each dimension divides the work. A plan is a layout with its placement, its time
// and its memory.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace scalecalc {

enum class Remat : std::uint8_t {
  kNone,       ///< every tensor the backward pass needs is kept
  kSelective,  ///< matmul and attention outputs are kept; norms and activation functions run again
  kFull,       ///< only each layer's input is kept; the whole forward pass of the layer runs again
};
inline constexpr int kRematCount = 3;

enum class Schedule : std::uint8_t { kNone, kGpipe, k1F1B, kInterleaved, kZeroBubble, kDualPipe };

std::string_view name_of(Remat remat);
std::string_view name_of(Schedule schedule);

struct Layout {
  std::int64_t dp = 1;    ///< data-parallel replicas of the (sharded) model
  std::int64_t fsdp = 1;  ///< ways the weights are sharded over data ranks (ZeRO-3); HSDP when dp and fsdp are both > 1
  std::int64_t tp = 1;    ///< tensor
  std::int64_t cp = 1;    ///< context
  std::int64_t pp = 1;    ///< pipeline stages
  std::int64_t vpp = 1;   ///< model chunks per stage (interleaved schedule)
  std::int64_t ep = 1;    ///< expert; folded over the data and context (with etp = 1 also the tensor) ranks
  std::int64_t etp = 1;   ///< tensor ways inside one expert: tp or 1
  std::int64_t micro_batch_seqs = 1;
  std::int64_t grad_accum = 1;  ///< microbatches per step and data rank
  bool sp = false;              ///< sequence sharding of activations inside the tensor group
  std::uint8_t zero = 0;        ///< ZeRO stage: 1 optimizer, 2 + gradients, 3 + weights
  Remat remat = Remat::kNone;
  Schedule schedule = Schedule::kNone;

  std::int64_t data() const { return dp * fsdp; }
  std::int64_t chips() const { return data() * tp * cp * pp; }
  std::int64_t batch_seqs() const { return data() * micro_batch_seqs * grad_accum; }

  /// Total order: ties in the ranking go to the simpler layout (fewer pipeline stages, less tensor parallelism ...).
  friend std::strong_ordering operator<=>(const Layout& a, const Layout& b);
  friend bool operator==(const Layout& a, const Layout& b) = default;
};

}  // namespace scalecalc
