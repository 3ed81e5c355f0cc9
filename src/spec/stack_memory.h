// What a software stack keeps in memory, where stacks differ from one another: the `memory:` block of
// stacks/<name>.yaml. The defaults are those of mixed precision with fp32 gradients and Adam (ZeRO, arXiv:1910.02054
// section 3.1) and belong to no stack.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/fields.h"
#include "spec/hardware_spec.h"

namespace scalecalc {

inline constexpr double kFusedLogitBytes = 4;  ///< of a loss in one kernel: a 16-bit logit and its gradient

struct StackMemory {
  std::string stack;   ///< whose they are; empty: no particular one's
  std::string source;  ///< of all that follows
  /// The fp32 weights are what is sharded (FSDP, JAX): they are the master copy, and the optimizer keeps no other.
  bool sharded_master = false;
  /// Bytes a parameter of all gradients together, the buffer they are accumulated in among them, by precision; the
  /// precision's own where it is absent.
  std::map<std::string, double> gradient_bytes;
  /// Bytes a parameter of what gradients are copied into before data ranks sum them, as long as the run lasts, where
  /// ZeRO divides nothing, by precision; 0 where it is absent.
  std::map<std::string, double> gradient_buckets;
  /// Bytes a layer's parameter of narrower copies that matmuls read and that are cast once a step, beside the weights
  /// themselves, by precision; 0 where it is absent, and under ZeRO-3, which gathers weights for every pass.
  std::map<std::string, double> cached_weights;
  /// Bytes a parameter that are there only between the last backward and the update, not divided over data ranks, under
  /// a pipeline.
  double update_bytes = 0;
  /// Bytes a parameter of a rank's share of the optimizer that are there only while it updates: fp32 copies of the
  /// gradients, temporaries of an optimizer without a fused kernel. They count with its state.
  double shard_update_bytes = 0;
  double logit_bytes = 8;            ///< per logit at the peak of the loss: logits, softmax, gradient
  bool chunks_run_again = false;     ///< a chunked loss makes its logits again in the backward pass
  bool keeps_expert_outputs = true;  ///< what the experts return stays until the backward pass
  bool keeps_gathered = false;       ///< inputs that tensor ranks gather stay gathered (no second all-gather)
  bool quantized_inputs = false;     ///< inputs of matmuls of 8 bits and fewer are kept in these alone
  /// What a gated MLP's activation reads is kept in 8 bits (Megatron's activation_func_fp8_input_store): of runs that
  /// say so.
  bool fp8_activation_inputs = false;
  bool drops_out = false;  ///< unless a script says otherwise, as those of models with gated MLPs do
  bool regathers_in_pipeline =
      true;                ///< false: under a pipeline ZeRO-3 keeps weights gathered over the step, as ZeRO-1
  double gate_copies = 0;  ///< more tensors as wide as the MLP that an unfused gate keeps
  /// Queries, keys and values are views of one projection, which stays whole for one of them beside copies as large as
  /// queries and keys; where query heads share keys they are copied apart, and nothing of it stays.
  bool fused_projection = false;
  bool repeats_keys = false;  ///< keys and values are copied for every query head, and the copies stay instead of them
  /// Bytes an element that an RMS norm keeps of what it reads, beside nothing else of it, and of what it has
  /// normalized, where its weight trains: code that computes in fp32 without a kernel of its own keeps both so. 0: as
  /// activations, and nothing.
  double norm_input_bytes = 0, norm_result_bytes = 0;
  std::string norms_widened_since;  ///< "2023-10": before it norms computed in the format of activations; empty: always
  bool adapter_dropout = false;     ///< adapters read what dropout leaves of their input: a copy for each, and its mask
  bool pads_adapters = false;       ///< adapters of a part of a fused projection are written into zeros by an index,
                                    ///< which keeps them
  std::string packed_inputs_until;  ///< "2024-07": until then matmuls with weights in 4 bits kept what they read
  bool packed_inputs = false;       ///< they do: a run is of before then
  double layer_share = 1;           ///< of a layer's tensors that are there at a time while it runs again
  double gathered_layers = 2;       ///< whole layers of gathered weights at a time (ZeRO-3)
  double reduced_layers = 1;        ///< whole layers of gradients waiting for their reduction (ZeRO 2 and 3)
  /// Operations that selective remat runs again, by the names of the operation list; empty: all vector work and the
  /// up-projections of latents.
  std::vector<std::string> selective;
  std::vector<std::string> compiled_selective;  ///< the same of layers that torch.compile made; empty: the same
  Coefficient fragmentation{0, 0, ""};          ///< of activations, logits and buffers: what the allocator cannot use
  std::optional<Coefficient> reserve;           ///< runtime and communication, beside the allocator; absent: the chip's
  /// Of a prediction by these rules; nine of ten measured ones lie within. Where few or none of the stack's own runs
  /// were measured: of the rows of memory.yaml over all stacks, 112 of 118 lie within 15 %.
  double error = 0.15;
};

/// The share of a chip's memory that a prediction may take and still fit where it errs as `error` says: what `fits`
/// promises; above it a plan is tight.
inline double usable_share(const StackMemory& rules) { return 1 / (1 + rules.error); }

struct MemoryBand {
  double low = 0, high = 0;
};
/// Between which a measured run lies, but for one of ten.
inline MemoryBand memory_band(const StackMemory& rules, double predicted) {
  return {predicted / (1 + rules.error), predicted * (1 + rules.error)};
}

/// What depends on when a run was: `month` as "2026-06", empty for today's software.
void settle_memory(StackMemory& rules, std::string_view month);

/// Reads a `memory:` block; problems are collected.
StackMemory read_stack_memory(const ConfigNode& node, const std::string& stack, Problems& problems);

}  // namespace scalecalc
