// `scalecalc bounds`: the scaling book's rules of thumb with one model's, one chip's and one job's numbers in them.
//
// A rule is a traced figure with the condition it stands for, and whether that condition holds here. Training rules are
// in bounds_training.cpp, serving rules in bounds_serving.cpp; what they read is BoundInputs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/explained.h"
#include "base/scalar.h"
#include "base/stop.h"
#include "network/slice.h"
#include "spec/hardware_spec.h"
#include "spec/model_spec.h"
#include "spec/stack_memory.h"

namespace scalecalc {

/// Headings of the answer, in the order they are shown.
enum class BoundGroup {
  kMachine,          ///< rates against each other
  kModel,            ///< parameters and FLOPs
  kData,             ///< data parallelism, plain and fully sharded
  kTensor,           ///< tensor parallelism
  kMixed,            ///< FSDP and tensor parallelism together
  kExpert,           ///< expert parallelism
  kPipeline,         ///< pipeline parallelism and the degrees together
  kMultiSlice,       ///< slices joined by the data-center network
  kMemory,           ///< what a chip has to hold in training
  kRun,              ///< FLOPs, time and money of the training run
  kDecode,           ///< generating tokens
  kPrefill,          ///< reading the prompt
  kServingMemory,    ///< weights and KV cache
  kServingSharding,  ///< how far a model can be spread when it serves
  kServingTricks,    ///< speculation, cached prompts, chunks of prefill
};
std::string_view title_of(BoundGroup group);

enum class BoundScope { kTraining, kServing, kBoth };

/// Degrees of one layout to be judged; what is absent is one, or follows from the chips.
struct BoundDegrees {
  std::optional<std::int64_t> dp, fsdp, tp, cp, pp, ep;
  std::optional<std::int64_t> microbatches;  ///< of one step, on each data rank
};

/// How many activations a layer keeps of each token for its backward pass (ch. 4, Gradient checkpointing).
struct CheckpointPolicy {
  enum class Kind { kAll, kMatmuls, kMlp, kBlock, kCount };
  Kind kind = Kind::kCount;
  double count = 4;  ///< kCount: tensors of width d_model
};
std::string text_of(const CheckpointPolicy& policy);

/// The job the training rules judge. Batch, sequence, tokens and optimizer default to how the model was trained.
struct BoundTraining {
  std::optional<double> batch_tokens;  ///< of one step, all slices together
  std::optional<double> batch_seqs;
  std::optional<std::int64_t> seq;
  std::optional<double> tokens;     ///< of the whole run
  std::optional<double> mfu;        ///< of the run planned, and of prefill
  std::optional<double> gpu_hours;  ///< chip-hours a finished run took
  std::optional<double> price;      ///< USD per chip and hour, serving too
  std::optional<std::string> optimizer;
  std::optional<CheckpointPolicy> checkpoints;
};

/// Speculative decoding: a small model drafts tokens, one step of the large one checks them all.
struct BoundSpeculation {
  std::int64_t drafted = 0;                ///< tokens drafted for each step of the large model
  double accept = 0;                       ///< chance that a drafted token is kept
  std::optional<double> cost;              ///< time of a draft step in steps of the large model
  std::optional<double> draft_parameters;  ///< the same from the draft's size
};

/// What the serving rules judge. The second half are figures given outright, in place of what the rules derive.
struct BoundServing {
  std::vector<double> batches;       ///< sequences decoded together; several draw a curve
  std::optional<double> context;     ///< tokens of each sequence in the KV cache
  std::optional<double> prompt;      ///< tokens
  std::optional<double> generate;    ///< tokens of an answer
  std::optional<double> cached;      ///< tokens of the prompt found in the prefix cache
  std::optional<double> prefix_hit;  ///< the same as a share of the prompt
  std::optional<DType> compute;      ///< of the matmuls; absent: the question's compute format
  std::optional<DType> kv;           ///< of the KV cache; absent: that of the activations
  std::optional<double> latency;     ///< s a step may take
  std::optional<BoundSpeculation> speculation;

  std::optional<double> weight_bytes;        ///< all weights
  std::optional<double> kv_bytes_per_token;  ///< all layers of one sequence
  std::optional<double> total_bytes;         ///< weights and KV cache of the whole batch
  std::optional<double> step_time;           ///< s of a decode step
  std::optional<double> prefill_time;        ///< s of one prompt
};

struct BoundsQuestion;

/// Formats that serving uses, defaults filled in: weights are as the checkpoint stores them, if its file says so, and
/// otherwise those of the matmuls, as activations are; the KV cache that of the activations.
struct ServingFormats {
  DType compute, weights, activations, kv;
  std::optional<WeightFormat> stored;  ///< in the place of `weights`: what the checkpoint's linear layers are in
};
ServingFormats serving_formats(const BoundsQuestion& question);

struct BoundsQuestion {
  /// Nothing: a dense model of which only the size is known, or, without `parameters` too, any: rules of the chip
  /// alone.
  std::optional<ModelSpec> model;
  std::vector<Assumption> read;             ///< how the model was read, if it was imported
  std::optional<double> parameters;         ///< in place of the count
  std::optional<double> active_parameters;  ///< the same, of those a token uses
  bool stated_parameters = false;           ///< the vendor's rounded figures in place of the count
  HardwareSpec hw;
  std::optional<HardwareSpec> versus;  ///< compare the machine's rates with this one's
  BoundScope scope = BoundScope::kBoth;

  std::optional<std::int64_t> chips;  ///< of all slices together
  std::optional<Shape> topology;      ///< of each slice
  std::optional<std::int64_t> pods;   ///< that many whole pods, each a slice
  std::int64_t slices = 1;
  std::optional<std::int64_t> data_axes;      ///< M_X: torus axes that carry data parallelism
  std::optional<std::int64_t> tensor_axes;    ///< M_Y: torus axes that carry tensor parallelism
  std::optional<std::int64_t> nodes_spanned;  ///< by one copy of the model; absent: as the degrees say
  BoundDegrees fix;

  DType compute = DType::kBf16;
  std::optional<DType> weights;      ///< as held and gathered; absent: the compute format
  std::optional<DType> gradients;    ///< as reduced; absent: the compute format
  std::optional<DType> activations;  ///< as kept and sent; absent: the compute format
  bool ideal = true;                 ///< data-sheet rates; otherwise times the hardware file's efficiencies
  std::string stack;                 ///< that would train the model, calibrated; empty: the chip's usual one
  StackMemory memory;                ///< its rules

  BoundTraining training;
  BoundServing serving;
};

/// One rule with its number.
struct Bound {
  BoundGroup group = BoundGroup::kMachine;
  std::string name;    ///< stable: "fsdp_limit"
  std::string symbol;  ///< the rule as the book writes it: "alpha / M_X"
  Traced value;        ///< in SI base units
  Dim dim;             ///< of the value
  std::string unit;    ///< in words: "tokens per chip", "s", "bytes"
  std::string condition;
  std::optional<bool> holds;  ///< nothing where the question does not decide it
  std::string source;
};

/// One pass through one layer under one way of sharding it, averaged over the chips (the book's takeaways table).
struct LayerPass {
  std::string name;  ///< "fsdp_forward"
  FlopsOf<Traced> flops;
  BytesOf<Traced> bytes;          ///< moved by one chip
  SecondsOf<Traced> math_time;    ///< flops at the chip's peak
  SecondsOf<Traced> data_time;    ///< weights and gradients on their way
  SecondsOf<Traced> tensor_time;  ///< activations on their way
  SecondsOf<Traced> comms_time;   ///< the longer of the two: they overlap
  SecondsOf<Traced> time;         ///< the longer of math and communication
  bool compute_bound = false;
  std::string note;
};

/// The question with its defaults filled in.
struct BoundsAsked {
  std::optional<double> parameters, active_parameters;
  std::optional<double> chips, batch_tokens, seq, tokens;
  std::int64_t slices = 1;
};

/// Rules that the question does not say enough for, and what they need.
struct LeftOut {
  std::string rules, needs;
};

// One point of the curve that `scalecalc bounds --batch 1..512` draws: decoding with one number of sequences. A figure
// whose inputs the question does not give is absent.

inline constexpr Dim kPerSecondDim{.second = -1};
using PerSecondTraced = Quantity<kPerSecondDim, Traced>;
using UsdTraced = Quantity<kUsdDim, Traced>;

struct ServingPoint {
  Traced batch;                                ///< sequences
  std::optional<BytesOf<Traced>> kv_bytes;     ///< of all sequences
  std::optional<BytesOf<Traced>> total_bytes;  ///< with the weights
  std::optional<bool> fits;

  std::optional<SecondsOf<Traced>> kv_time;       ///< reading the KV cache
  std::optional<SecondsOf<Traced>> load_time;     ///< reading the weights
  std::optional<SecondsOf<Traced>> compute_time;  ///< FLOPs of the matmuls
  std::optional<SecondsOf<Traced>> mlp_time;      ///< the longer of the two
  std::optional<bool> mlp_compute_bound;
  std::optional<SecondsOf<Traced>> bandwidth_step;  ///< the step if FLOPs took no time
  std::optional<PerSecondTraced> bandwidth_tokens_per_s;
  std::optional<SecondsOf<Traced>> step;
  std::string bound_by;  ///< "weights", "KV cache", "compute"; empty if the step was given or is unknown
  std::optional<PerSecondTraced> tokens_per_s;
  std::optional<PerSecondTraced> tokens_per_s_per_chip;

  std::optional<SecondsOf<Traced>> answer_time;  ///< all tokens of one answer
  std::optional<PerSecondTraced> requests_per_s;
  std::optional<PerSecondTraced> requests_per_s_per_chip;
  std::optional<Traced> finished_per_step;  ///< sequences
  std::optional<Traced> evicted_per_step;   ///< tokens leaving the KV cache
  std::optional<Traced> prefill_servers;    ///< for each server that generates
  std::optional<UsdTraced> usd_per_million_tokens;
};

struct BoundsAnswer {
  BoundsAsked asked;
  std::vector<Bound> bounds;  ///< by group
  std::vector<LayerPass> layers;
  std::vector<ServingPoint> points;  ///< decoding, one for each batch
  std::vector<LeftOut> left_out;
  std::vector<std::string> verdict;  ///< what follows, in the order the book advises
  std::vector<Assumption> assumptions;
};

/// UserError for a question that contradicts itself or needs a figure the hardware file does not give.
/// Asked to end, it has the serving points found until then.
BoundsAnswer bounds(const BoundsQuestion& question, const Stop& stop = {});

}  // namespace scalecalc
