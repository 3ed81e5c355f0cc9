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
#include "train/question.h"

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
  auto operator<=>(const MlaShape&) const = default;
};

/// The architecture as a row states it.
struct ModelShape {
  std::int64_t layers = 0, d_model = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0, vocab = 0;
  bool gated_mlp = false, tied_embeddings = false, learned_positions = false, parallel_block = false;
  bool expert_bias = false;
  std::int64_t experts = 0, top_k = 0, expert_ffn = 0, shared_experts = 0, shared_expert_ffn = 0;
  std::int64_t dense_layers = 0;  ///< before the first layer with experts
  std::int64_t moe_every = 1;     ///< from there on every so many layers have experts
  std::int64_t window = 0;        ///< of the layers with local attention
  std::int64_t window_every = 0;  ///< one layer of so many attends globally; 0: not said
  std::optional<MlaShape> mla;
  std::vector<std::string> unread;  ///< keys this struct has no place for
  auto operator<=>(const ModelShape&) const = default;
};

/// Degrees as printed; what a source does not say is absent.
struct RowLayout {
  std::optional<std::int64_t> dp;    ///< all data ways, FSDP's among them
  std::optional<std::int64_t> fsdp;  ///< width of the group that shards the weights
  /// Data ranks that share one copy of the optimizer's state, under ZeRO-1 and 2; absent: all of them.
  std::optional<std::int64_t> zero_group;
  std::optional<std::int64_t> tp, cp, pp, vpp, ep, etp, zero, micro_batch;
  std::optional<bool> sp;
  std::string schedule;  ///< in the source's words
  std::string cp_comm;
};

/// What every measured row says, of training or of serving.
struct MeasuredFacts {
  SourceSpan where;
  std::string id, source, group, date, model;
  std::string reference;            ///< the document a source names: "owner/name:path", "arXiv:..."; may be empty
  std::string stack;                ///< of its framework or engine, by its name in configs/stacks; see name_stacks
  std::string doubt;                ///< why its figures may not be what they seem; empty if they are
  std::optional<ModelShape> shape;  ///< absent: the catalog's model of that name
  std::string chip;
  std::int64_t chips = 0;
};

struct Measurement : MeasuredFacts {
  std::string subset, workload, framework;
  std::string run_class;  ///< a RunClass by its name; see name_stacks
  std::int64_t mtp_layers = 0;
  std::int64_t chips_per_node = 0;  ///< 0: not said, as the two below
  std::int64_t scaleup_domain = 0;  ///< chips under one switch domain, or of one torus
  std::int64_t slices = 0;          ///< tori joined by another network
  std::int64_t seq = 0;
  double batch_seqs = 0;
  RowLayout layout;
  std::string precision, optimizer, recompute;
  TrainQuestion asked;  ///< what else the row says of the run, in the fields of the question; see row_question

  std::optional<double> step_s, tokens_per_s_per_chip, flops_per_s_per_chip, mfu, peak_flops_per_s;
  std::string flops_count;  ///< as written; empty if the source does not say
  std::optional<double> memory_bytes;
  MemoryCount memory_count = MemoryCount::kReserved;

  /// What it is grouped by: the leading letters of the model's name.
  std::string family() const;
};

// Published serving figures: what was served, on what, by which engine, and what was measured. docs/accuracy.md
// describes the files they are read from.

/// What was running when the figure was taken.
enum class ServePhase : std::uint8_t {
  kPrefill,     ///< prompts alone
  kDecode,      ///< steps of a fixed batch
  kThroughput,  ///< a job from start to end: one static batch, or a queue that is never empty
  kOnline,      ///< requests that come and go
};
inline constexpr std::array<std::string_view, 4> kServePhaseNames{"prefill", "decode", "throughput", "online"};

/// The one figure of a row that is predicted and scored.
enum class ServeFigure : std::uint8_t {
  kPrefillTime,  ///< seconds of one batch of prompts
  kStepTime,     ///< seconds between two tokens of a sequence
  kBatchTime,    ///< seconds of a static batch, prompts included
  kOutputRate,   ///< output tokens/s of the whole deployment
  kInputRate,    ///< prompt tokens/s of the whole deployment
};
inline constexpr std::array<std::string_view, 5> kServeFigureNames{"prefill", "tpot", "batch", "output_rate",
                                                                   "input_rate"};

/// Degrees as printed; what a source does not say is absent.
struct ServeDegrees {
  std::optional<std::int64_t> tp, pp, ep, dp, attention_dp;
  std::optional<std::int64_t> tp_x;  ///< ways d_model is divided too: weights in two dimensions
  bool gathered = false;             ///< weights are gathered instead
  bool ep_overlap = false;           ///< two halves of a step take turns under each other's exchange of experts
};

/// How the requests of a served row came, and what of the engine its source says beside the defaults. Without clients
/// or a rate nothing is known of it.
struct ServeLoadFacts {
  std::optional<std::int64_t> clients;   ///< each sends one request at a time, all start at once
  std::optional<std::int64_t> requests;  ///< of all of them; absent: ten each
  std::optional<double> rate;            ///< requests a second at random, in the place of clients
  double length_ratio = 1;               ///< the shortest length over the longest
  bool median = false;                   ///< of ttft_ms; a mean otherwise
  std::optional<std::int64_t> chunk_tokens, stream_interval, receive_interval, prompt_wait_steps;
  std::optional<double> prompt_wait_share;
};

struct ServeMeasurement : MeasuredFacts {
  std::string engine;
  bool complete = true;  ///< false: the source leaves out what a prediction needs
  ServeDegrees degrees;
  std::string weights_dtype, kv_dtype;
  ServePhase phase = ServePhase::kDecode;
  std::optional<double> input_len, output_len;
  std::optional<double> batch;            ///< sequences in flight over all replicas
  std::optional<double> tokens_per_chip;  ///< of prompts in one pass, where the source gives no batch
  bool saturated = false;                 ///< the engine took what its memory holds
  ServeLoadFacts load;

  ServeFigure figure = ServeFigure::kStepTime;
  double measured = 0;                ///< seconds, or tokens/s
  std::optional<double> first_token;  ///< seconds to the first token, beside the figure
  std::optional<double> throughput;   ///< output tokens/s of all clients, beside the figure

  /// The same where a source prints only times: by Little's law, clients over the time of a request.
  std::optional<double> client_throughput() const;

  /// What it is grouped by: "1-32", "33-256", "257-", "saturated".
  std::string batch_class() const;
};

// Published RL steps: a policy, its trainer and engine, and the seconds of a step. docs/accuracy.md describes them.

struct RlMeasurement : MeasuredFacts {
  bool complete = true;   ///< false: the source leaves out what a prediction needs
  std::string framework;  ///< that trains and generates, in the source's words; empty: not said
  std::string algorithm;
  std::int64_t depth = 0;  ///< steps that generation runs ahead: 0 on policy
  std::string train_precision, generate_precision;
  std::int64_t samples = 0;                ///< responses of a step
  std::optional<std::int64_t> rollouts;    ///< to each prompt
  std::int64_t train_batch = 0;            ///< responses of an optimizer step
  double mean_len = 0;                     ///< tokens, prompt and response
  std::int64_t max_len = 0;                ///< longest allowed
  std::optional<std::int64_t> prompt_len;  ///< tokens
  std::optional<RowLayout> trainer;        ///< absent: not said
  std::optional<std::int64_t> engine_tp, engine_pp;
  std::optional<double> engine_memory;           ///< share of a chip's memory that the engine takes
  std::optional<std::int64_t> engine_sequences;  ///< that a replica writes at once at most
  std::optional<std::int64_t> generator_chips;   ///< of runs ahead
  std::optional<std::int64_t> generated;         ///< responses of a step where not all are trained on
  std::optional<bool> recompute;                 ///< of whole layers, or none; absent: not said
  double step_s = 0;

  /// What it is grouped by: "on policy" or "ahead".
  std::string policy() const { return depth == 0 ? "on policy" : "ahead"; }
};

/// Whether the document's rows are of RL steps: its first one says how many responses a step has, or that it does not
/// know.
bool is_rl(const ConfigNode& document);

/// A list of rows, or a map with `rows` and the `sources` they share. UserError with every problem found.
std::vector<RlMeasurement> read_rl_measurements(const ConfigNode& document);

/// Whether the document says that no coefficient was fitted to its rows (`held_out: true`): it is read by name alone.
bool is_held_out(const ConfigNode& document);

/// Whether the document's rows are of serving: its first one names a phase.
bool is_serving(const ConfigNode& document);

/// A list of rows, or a map with `rows` and the `models` and `sources` they share. UserError with every problem found.
std::vector<ServeMeasurement> read_serve_measurements(const ConfigNode& document);

}  // namespace scalecalc
