// Published runs: what was trained, on what, in which layout, and what was measured. docs/accuracy.md describes the
// files they are read from.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/node.h"
#include "cost/workload.h"

namespace scalecalc {

/// FLOPs per token that a source divides by when it prints TFLOP/s or MFU.
enum class FlopsCount : std::uint8_t {
  k6N,         ///< 6 x active parameters without the input embedding
  k6NCausal,   ///< and the unmasked half of attention
  k6NFull,     ///< and attention over the whole sequence
  k6NAll,      ///< 6 x active parameters, the input embedding too
  k6NAllFull,  ///< and attention over the whole sequence
  kHardware,   ///< 4/3 of k6NFull: full remat's second forward pass counts (arXiv:2104.04473)
};
inline constexpr std::array<std::string_view, 6> kFlopsCountNames{"6N",    "6N+attn_causal",  "6N+attn_full",
                                                                  "6Nall", "6Nall+attn_full", "hw_full_recompute"};

/// What a memory figure counts. Allocated: live tensors. Reserved: the allocator's pool. Device: all the driver sees.
enum class MemoryCount : std::uint8_t { kAllocated, kReserved, kDevice };

struct MlaShape {
  std::int64_t q_lora = 0, kv_lora = 0, qk_nope = 0, qk_rope = 0, v_head = 0;
};

/// The architecture as a row states it.
struct ModelShape {
  std::int64_t layers = 0, d_model = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0, vocab = 0;
  bool gated_mlp = false, tied_embeddings = false, learned_positions = false, parallel_block = false;
  std::int64_t experts = 0, top_k = 0, expert_ffn = 0, shared_experts = 0, shared_expert_ffn = 0;
  std::int64_t dense_layers = 0;  ///< before the first layer with experts
  std::int64_t moe_every = 1;     ///< from there on every so many layers have experts
  std::int64_t window = 0;        ///< of the layers with local attention
  std::int64_t window_every = 0;  ///< one layer of so many attends globally; 0: not said
  std::optional<MlaShape> mla;
  std::vector<std::string> unread;  ///< keys this struct has no place for
};

/// Degrees as printed; what a source does not say is absent.
struct RowLayout {
  std::optional<std::int64_t> dp;    ///< all data ways, FSDP's among them
  std::optional<std::int64_t> fsdp;  ///< width of the group that shards the weights
  std::optional<std::int64_t> tp, cp, pp, vpp, ep, etp, zero, micro_batch;
  std::optional<bool> sp;
  std::string schedule;  ///< in the source's words
  std::string cp_comm;
};

/// What every measured row says, of training or of serving.
struct MeasuredFacts {
  SourceSpan where;
  std::string id, source, group, date, model;
  std::string stack;                ///< of its framework or engine, by its name in configs/stacks; see name_stacks
  std::string doubt;                ///< why its figures may not be what they seem; empty if they are
  std::optional<ModelShape> shape;  ///< absent: the catalog's model of that name
  std::string chip;
  std::int64_t chips = 0;
};

struct Measurement : MeasuredFacts {
  std::string subset, workload, framework;
  std::string reference;  ///< the document a source names: "owner/name:path", "arXiv:..."; may be empty
  std::int64_t mtp_layers = 0;
  std::int64_t chips_per_node = 0;       ///< 0: not said, as the two below
  std::int64_t scaleup_domain = 0;       ///< chips under one switch domain, or of one torus
  std::int64_t slices = 0;               ///< tori joined by another network
  std::optional<double> node_bandwidth;  ///< bytes/s that leave a node in one direction, where the row says it
  std::int64_t seq = 0;
  double batch_seqs = 0;
  RowLayout layout;
  std::string precision, optimizer, recompute;
  std::optional<FineTune> adapters;  ///< absent: the whole model trains, or the source does not say which
  std::optional<AttentionKernel> attention;
  std::optional<GraphCapture> graphs;
  bool balanced_experts = false;       ///< routing is forced to be even
  std::optional<bool> expert_overlap;  ///< expert all-to-alls under another microbatch's compute
  CommOverlap tp_overlap = CommOverlap::kStack, dp_overlap = CommOverlap::kStack;
  std::optional<double> expert_capacity;  ///< most a expert takes, in its mean load
  std::optional<bool> dropout;            ///< after attention and MLP; absent: as the stack does
  bool fused_loss = false;                ///< logits and their gradient are all that the loss holds, in 16 bits

  std::optional<double> step_s, tokens_per_s_per_chip, flops_per_s_per_chip, mfu, peak_flops_per_s;
  std::string flops_count;  ///< as written; empty if the source does not say
  std::optional<double> memory_bytes;
  MemoryCount memory_count = MemoryCount::kReserved;

  /// What it is grouped by: the leading letters of the model's name.
  std::string family() const;
};

/// A list of rows, or a map with `rows` and the `models` and `sources` they share. UserError with every problem found.
std::vector<Measurement> read_measurements(const ConfigNode& document);

}  // namespace scalecalc
