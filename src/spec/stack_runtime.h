// How a software stack runs a step, where stacks differ from one another: the `runtime:` block of stacks/<name>.yaml.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "config/fields.h"

namespace scalecalc {

/// How layers are dealt to pipeline stages (cost/pipeline.h).
enum class StageSplit : std::uint8_t { kEven, kBalanced };
inline constexpr std::array<std::string_view, 2> kStageSplitNames{"even", "balanced"};

/// How tokens reach experts of other ranks: a copy for each expert (an all-to-all, arXiv:2006.16668), or one for each
/// node and, within it, for each rank that has any of the experts (DeepEP, HybridEP; arXiv:2412.19437 section 3.2.2).
enum class ExpertDispatch : std::uint8_t { kAllToAll, kDeepEp };
inline constexpr std::array<std::string_view, 2> kExpertDispatchNames{"all-to-all", "deepep"};
inline std::string_view name_of(ExpertDispatch how) { return kExpertDispatchNames.at(static_cast<std::size_t>(how)); }
inline std::string_view text_of(ExpertDispatch how) {
  return how == ExpertDispatch::kAllToAll
             ? "a copy of a token goes to each of its experts (all-to-all)"
             : "tokens go once to each node and rank that has any of their experts (DeepEP, HybridEP)";
}

/// Into how many collectives a stack cuts what it moves over data ranks at once; the default: none.
struct Pieces {
  bool by_tensor = false;        ///< every tensor goes alone, unless a bucket holds several
  bool by_rank = false;          ///< each rank sends the whole tensors it owns together
  double elements = 0;           ///< of a bucket; 0: no buckets
  double elements_per_rank = 0;  ///< a bucket has at least so many for each rank of the group
  std::string elements_since;    ///< "2022-01": before it there were no buckets; empty: always

  /// At least one, and at most `tensors`.
  double collectives(double parameters, double tensors, double ranks) const;
};

/// The defaults belong to no stack.
struct StackRuntime {
  std::string source;  ///< of all that follows
  StageSplit stages = StageSplit::kEven;
  std::string
      gradient_overlap_since;        ///< "2023-12": before it gradients were reduced after the backward; empty: always
  std::string gather_overlap_since;  ///< "2022-01": before it ZeRO-3 waited for every gather; empty: never
  std::string tensor_overlap_since;  ///< "2021-09": before it tensor ranks waited for every collective; empty: never
  std::string
      sharded_sends_since;  ///< "2021-04": before it each tensor rank sent a stage's whole output; empty: always
  std::vector<std::string>
      expert_gathers_wait_on;  ///< architectures whose loop over layers gathers experts' weights in their own layer
  std::vector<std::string> scatters_wait_on;  ///< architectures or chips on which ZeRO-3's gradients hide under nothing
  std::map<std::string, double> reduced_bytes;  ///< a gradient that data ranks sum, by precision; absent: fp32
  /// An element of a token on its way to experts, by precision; absent: the precision's own.
  std::map<std::string, double> dispatched_bytes;
  bool compiled = false;              ///< a step is one program: the host launches no kernel by itself
  std::string grouped_experts_since;  ///< "2026-06": before it, matmuls and casts of experts were kernels of one each
  std::vector<std::string> grouped_experts_on;  ///< architectures on which they are not any more; empty: all
  bool launches_each_expert = false;            ///< a run on others, or of before then
  std::string
      current_scaling_since;  ///< "2025-04": from when on 8-bit recipes scale by what a tensor holds; empty: never
  std::vector<std::string>
      one_copy_on;                 ///< architectures whose matmuls read an operand with one scale in either layout
  bool one_copy = false;           ///< a run is on one of them
  bool current_scaling = false;    ///< a run does
  bool expert_bias_apart = false;  ///< experts' outputs get their biases one expert after the other
  std::string deepep_since;  ///< "2025-12": from when on it can be asked for, or "never"; empty: it is all there is
  ExpertDispatch dispatch = ExpertDispatch::kDeepEp;
  bool hides_gradients = true, hides_gathers = true;  ///< under compute: gradients' sums, and ZeRO-3's gathers
  bool hides_tensor = true;                           ///< the same of what tensor ranks send
  bool shards_sends = true;                           ///< tensor ranks send a stage's output a part each
  bool expert_gathers_wait = false;                   ///< for the layer that they are of to begin
  bool hides_scatters = true;                         ///< ZeRO-3's gradients, beside its gathers
  Pieces gathers;                                     ///< a layer's weights under ZeRO-3
  Pieces reductions;                                  ///< gradients, of a layer under ZeRO-3, of a stage otherwise
  Pieces updates;                                     ///< updated weights of a stage
  bool reduces_whole = false;      ///< gradients are all-reduced though each rank needs a shard (ZeRO-1)
  bool quantized_gathers = false;  ///< tensor ranks gather what 8-bit matmuls read in 8 bits
  /// HBM bytes of kernels that other stacks fuse, [PASSES] of docs/model.md: of a parameter that a rank updates,
  /// gradient and new weight among them (0: of a fused kernel); of a parameter whose gradient goes into a bucket and
  /// back; of one whose gradient is added to that of the microbatches before; of a logit, in its formats and for what
  /// is logged.
  double update_traffic = 0, bucket_traffic = 0, accumulation_traffic = 0, logit_traffic = 0;
};

/// What depends on when a run was, on which architecture and which chip of it: `month` as "2026-06", empty for today's
/// software.
void settle_runtime(StackRuntime& runtime, std::string_view architecture, std::string_view month,
                    std::string_view chip = {});

/// Reads a `runtime:` block; problems are collected.
StackRuntime read_stack_runtime(const ConfigNode& node, Problems& problems);

}  // namespace scalecalc
