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
  kSelective,  ///< matmul and attention outputs are kept; norms, activations and up-projections of latents run again
  kAttention,  ///< and the attention part (or the recurrence) with its projections runs again
  kMlp,        ///< or the MLP part, router and experts included, runs again
  kFull,       ///< only each layer's input is kept; the whole forward pass of the layer runs again
};
inline constexpr int kRematCount = 5;

/// How context ranks bring queries and keys together.
enum class CpComm : std::uint8_t {
  kAllGather,  ///< keys and values of the whole sequence are gathered before attention (Llama 3, arXiv:2407.21783)
  kRing,       ///< they pass round a ring while attention works on the piece at hand (arXiv:2310.01889)
  kUlysses,    ///< two all-to-alls turn sequence shards into head shards and back (arXiv:2309.14509)
};
inline constexpr int kCpCommCount = 3;

/// How many logits of a microbatch are there at a time, and in how many copies.
enum class LossKind : std::uint8_t {
  kWhole,    ///< all of them, as the stack's own loss keeps them
  kFused,    ///< all of them, in one kernel that turns them into their gradient
  kChunked,  ///< those of one chunk of the tokens: head and loss run chunk by chunk
};
inline constexpr int kLossCount = 3;
/// Chunks of a chunked loss: what torchtitan's ChunkedLossWrapper makes (components/loss.py, num_chunks).
inline constexpr int kLossChunks = 8;

/// What is kept in the host's memory; bits of Layout::offload.
inline constexpr std::uint8_t kOffloadOptimizer = 1;
inline constexpr std::uint8_t kOffloadWeights = 2;
inline constexpr std::uint8_t kOffloadActivations = 4;
inline constexpr std::uint8_t kOffloadAll = 7;

enum class Schedule : std::uint8_t { kNone, kGpipe, k1F1B, kInterleaved, kZeroBubble, kDualPipe };

std::string_view name_of(Remat remat);
std::string_view name_of(Schedule schedule);
std::string_view name_of(CpComm comm);
std::string_view name_of(LossKind loss);
/// "none", "optimizer", "optimizer+activations" ...
std::string_view offload_name(std::uint8_t offload);

/// Whether the schedule puts weight gradients off to fill its bubble.
constexpr bool splits_backward(Schedule schedule) {
  return schedule == Schedule::kZeroBubble || schedule == Schedule::kDualPipe;
}

/// Layers of the first and the last pipeline chunk where they are chosen; what is between is dealt evenly.
struct ChunkEnds {
  std::int64_t first = -1;  ///< -1: all chunks as the stack deals them
  std::int64_t last = -1;

  constexpr bool chosen() const { return first >= 0; }
  friend auto operator<=>(const ChunkEnds&, const ChunkEnds&) = default;
};

struct Layout {
  std::int64_t dp = 1;  ///< data-parallel replicas of the (sharded) model
  /// Ways the weights are sharded over data ranks (ZeRO-3); HSDP when dp and fsdp are both > 1. Under ZeRO-1 and 2,
  /// where pinned, the data ranks that share one copy of the optimizer's state; 1: all of them do.
  std::int64_t fsdp = 1;
  std::int64_t tp = 1;   ///< tensor
  std::int64_t cp = 1;   ///< context
  std::int64_t pp = 1;   ///< pipeline stages
  std::int64_t vpp = 1;  ///< model chunks per stage (interleaved schedule)
  std::int64_t ep = 1;   ///< expert; folded over the data and context (with etp = 1 also the tensor) ranks
  std::int64_t etp = 1;  ///< tensor ways inside one expert: tp or 1
  std::int64_t micro_batch_seqs = 1;
  std::int64_t grad_accum = 1;  ///< microbatches per step and data rank
  bool sp = false;              ///< sequence sharding of activations inside the tensor group
  std::uint8_t zero = 0;        ///< ZeRO stage: 1 optimizer, 2 + gradients, 3 + weights
  Remat remat = Remat::kNone;
  std::int64_t remat_layers = 0;  ///< layers of each kind that a stage treats so, the first ones; 0 = all
  Schedule schedule = Schedule::kNone;
  CpComm cp_comm = CpComm::kAllGather;
  std::uint8_t offload = 0;  ///< kOffload bits
  bool ep_overlap = false;   ///< expert all-to-alls of a microbatch run under another's compute
  /// Layers of each kind on a stage whose activations are offloaded, the first ones; 0 = all. Not beside remat_layers.
  std::int64_t offload_layers = 0;
  LossKind loss = LossKind::kWhole;
  ChunkEnds split{};  ///< of the layers over pipeline chunks

  std::int64_t data() const { return dp * fsdp; }
  /// Whether what ZeRO shards lies on the fsdp ranks, and is copied over the dp ranks.
  bool shards_in_groups() const { return zero == 3 || (zero > 0 && fsdp > 1); }
  std::int64_t chips() const { return data() * tp * cp * pp; }
  std::int64_t batch_seqs() const { return data() * micro_batch_seqs * grad_accum; }

  /// Total order: ties in the ranking go to the simpler layout (fewer pipeline stages, less tensor parallelism ...).
  friend std::strong_ordering operator<=>(const Layout& a, const Layout& b);
  friend bool operator==(const Layout& a, const Layout& b) = default;
};

/// Whether the layout runs expert all-to-alls under another microbatch's compute: by choice, or because DualPipe always
/// does.
inline bool pairs_experts(const Layout& l) { return l.ep > 1 && (l.ep_overlap || l.schedule == Schedule::kDualPipe); }

}  // namespace scalecalc
