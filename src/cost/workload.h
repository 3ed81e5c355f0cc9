// One training job: what is trained on, in which formats, with which optimizer. Resolved from the model's file and the
// command line before any cost is computed.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/expert_load.h"
#include "model/fine_tune.h"
#include "model/lengths.h"
#include "spec/dtype.h"
#include "spec/kernel_spec.h"
#include "spec/model_spec.h"
#include "spec/stack_memory.h"
#include "spec/stack_runtime.h"

namespace scalecalc {

/// Where the scales of 8-bit operands come from: of a tensor from those before it, from itself, of each of its rows
/// from itself, or of each short block.
enum class Scaling : std::uint8_t { kDelayed, kCurrent, kRow, kBlock };
inline constexpr std::array<std::string_view, 4> kScalingNames{"delayed", "tensorwise", "rowwise", "blockwise"};
inline std::string_view name_of(Scaling scaling) { return kScalingNames.at(static_cast<std::size_t>(scaling)); }

/// Formats of a mixed-precision recipe. Bytes are per element.
struct Precision {
  std::string name;
  DType compute = DType::kBf16;      ///< layer matmuls
  DType high = DType::kBf16;         ///< attention, head, router: never below 16 bits
  double weight_bytes = 2;           ///< the copy the matmuls read and FSDP gathers
  double gradient_bytes = 4;         ///< accumulated in fp32 (Megatron-LM default)
  double reduced_bytes = 4;          ///< what data ranks send of a gradient
  double activation_bytes = 2;       ///< kept for the backward pass, and sent by TP, CP and PP
  double dispatch_bytes = 2;         ///< tokens on their way to the experts
  std::optional<Scaling> scaling{};  ///< of 8-bit operands; absent: as the software does
};

/// Optimizer state. Adam: m and v, and an fp32 master copy of narrower weights.
struct Optimizer {
  std::string name;
  double moments = 2;           ///< running averages per parameter
  double moment_bytes = 4;      ///< of each
  double master_bytes = 4;      ///< per parameter; 0 where the weights themselves are in fp32
  double state_bytes = 12;      ///< per parameter: moments and the master copy
  double update_bytes = 0;      ///< HBM traffic of one update, per parameter
  double update_flops = 0;      ///< vector FLOPs of one update, per parameter
  bool orthogonalizes = false;  ///< Muon: five Newton-Schulz iterations per matrix and step
};

/// How attention is computed. Unfused kernels, usual before FlashAttention (May 2022), write the scores of all pairs of
/// tokens to HBM, the masked half too, and keep them for the backward pass.
enum class AttentionKernel : std::uint8_t { kFlash, kUnfused };

/// What of a step is captured once and replayed by the device (CUDA graphs), so that its kernels need not be launched
/// one by one: nothing; the dense parts of each layer, while the host still runs the experts; the whole step.
enum class GraphCapture : std::uint8_t { kNone, kLayer, kStep };
inline constexpr std::array<std::string_view, 3> kGraphCaptureNames{"none", "layer", "step"};

/// Whether a kind of communication hides under compute: as much as runs of the stack show, not at all, or in pieces
/// under the matmul that feeds or needs it (userbuffers of Transformer Engine, asynchronous TP).
enum class CommOverlap : std::uint8_t { kStack, kNone, kPipelined };
inline constexpr std::array<std::string_view, 3> kCommOverlapNames{"stack", "none", "pipelined"};

inline constexpr std::array<std::string_view, 7> kPrecisionNames{"bf16", "fp16", "fp8", "nvfp4",
                                                                 "int8", "tf32", "fp32"};
inline constexpr std::array<std::string_view, 5> kOptimizerNames{"adam", "adam-bf16", "adam8bit", "sgd", "muon"};
/// Of these names; UserError with the nearest otherwise.
Precision precision_of(std::string_view name);
Optimizer optimizer_of(std::string_view name, const Precision& precision);
/// The recipe whose layers compute in that format, if there is one.
std::optional<Precision> precision_computing_in(DType compute);

/// Bytes of a frozen matrix's weight in memory, and whether it is unpacked before the matmul reads it.
double base_bytes(const FineTune& tune, const Precision& precision);
bool is_unpacked(const FineTune& tune, const Precision& precision);

struct Workload {
  std::int64_t seq = 0;
  std::optional<Lengths> documents;  ///< that fill a sequence, each attended to by itself; absent: one fills it
  double batch_seqs = 0;             ///< asked for; a plan may run a nearby count that divides (see Plan)
  std::optional<double> tokens;      ///< of the whole run; absent if nobody says how long it is
  Precision precision;
  Optimizer optimizer;
  std::optional<FineTune> fine_tune;  ///< adapters beside frozen weights; absent: the whole model trains
  AttentionKernel attention = AttentionKernel::kFlash;
  std::string kernel{kFusedWord};  ///< by its name, see KernelChoice
  GraphCapture graphs = GraphCapture::kNone;
  StackRuntime runtime;
  /// Whether a collective runs under compute: as the stack's coefficients say, never, or (tensor ranks) in pieces
  /// under the matmul beside it.
  CommOverlap tp_overlap = CommOverlap::kStack, dp_overlap = CommOverlap::kStack;
  std::optional<double> expert_capacity;  ///< experts take this x their mean load, filled up; absent: what is routed
  bool balanced_experts = false;          ///< routing is forced to be even, or tokens over the mean are dropped
  bool dropout = false;                   ///< after attention and MLP, whose masks the backward pass needs
  StackMemory memory;
  double batch_tolerance = 0.125;                 ///< how far the batch a plan runs may lie from batch_seqs
  std::shared_ptr<const ExpertLoad> expert_load;  ///< what expert ranks get, in the place of the chip's moe_imbalance

  /// Of 8-bit operands; those of 4 bits always have theirs by blocks.
  Scaling scaling() const {
    if (precision.compute == DType::kFp4) return Scaling::kBlock;
    return precision.scaling.value_or(runtime.current_scaling ? Scaling::kCurrent : Scaling::kDelayed);
  }

  /// Sums of gradients run under the backward: asked so, and the software can.
  bool hides_gradients() const { return dp_overlap != CommOverlap::kNone && runtime.hides_gradients; }
};

/// "gradients are accumulated in fp32 and reduced in 2 bytes".
std::string reduction_format(const Precision& precision);

/// Of a parameter's gradient in memory: as the stack says for the recipe, else the recipe's own.
double gradient_bytes(const Workload& workload);

/// Sends gradients, and tokens to experts, in the formats that the workload's stack sends them in for its precision, if
/// it says so.
void use_reduced_format(Workload& workload);

/// Weights train without an fp32 copy.
void train_in_16_bits(Workload& workload);

inline constexpr double kMasterBytes = 4;  ///< of a parameter of the fp32 copy of the weights

}  // namespace scalecalc
