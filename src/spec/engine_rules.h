// What a serving engine does with memory and prompts by default: the `serving:` block of stacks/<name>.yaml, release by
// release, and its sizes by chip.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/fields.h"
#include "spec/hardware_spec.h"
#include "spec/model_spec.h"

namespace scalecalc {

/// How a serving engine decides what the cache may take of a chip's memory. u is the share below.
enum class CacheRule {
  kAll,          ///< all that weights, activations and the runtime leave
  kShareOfAll,   ///< u x total, less weights, activations and graphs (vLLM gpu_memory_utilization)
  kShareOfFree,  ///< u x what weights, activations and the runtime leave (TensorRT-LLM free_gpu_memory_fraction)
  kStaticShare,  ///< u x total holds weights and cache, the rest everything else (SGLang mem_fraction_static)
};

/// What the default of a static share depends on.
struct ShareQuestion {
  double capacity = 0;      ///< bytes of a chip
  double chunk_tokens = 0;  ///< of prompts in one step of a rank
  std::int64_t ranks = 1;   ///< chips of a pipeline stage
  std::int64_t stages = 1;  ///< of the pipeline
  std::int64_t attention_dp = 1;
  bool mla = false;
  bool own_heads = false, draft_model = false;  ///< that draft tokens
};

/// Bytes of a chip that a default static share leaves to everything but weights and cache (SGLang server_args.py).
struct StaticReserve {
  double fixed = 0;
  double token = 0, least_tokens = 0;        ///< of a prompt's chunk, at least of so many
  double graph_sequence = 0;                 ///< of the largest captured batch
  double rank = 0;                           ///< of a replica
  double shared_sequence = 0;                ///< of the largest captured batch and each attention-data rank
  double many_sequences = 0, many_more = 0;  ///< more of each where more than so many are captured
  double prompt_graphs = 0, prompt_graphs_mla = 0;
  double own_heads = 0, draft_model = 0;
  double least = 0, least_from = 0;  ///< on chips of so much memory

  double bytes(const ShareQuestion& asked, std::int64_t graph_sequences) const;
};

/// What a release spends on a layer beside its kernels, on chips of which no run under the engine was fitted.
struct LayerOverheads {
  std::optional<double> dense;  ///< s; of models without experts
  std::optional<double> mla;    ///< of latent attention, experts or not
  double error = 0;
  std::string source;
};

/// Defaults of a release on one chip.
/// Batches whose steps are captured: from a number of rows on, every so many.
struct GraphSizes {
  double from = 1, by = 1;
};

struct EngineRules {
  std::string name;
  std::string version, since;  ///< "0.11", "2025-10": of the release; empty: releases are not told apart
  CacheRule rule = CacheRule::kAll;
  double share = 1;                       ///< u
  std::vector<double> shares_by_ranks;    ///< u of 1, 2, 4 ... ranks, in the place of `share`
  std::optional<StaticReserve> reserve;   ///< leaves u, in the place of both
  double chunk_tokens = 8192;             ///< most tokens of prompts in one step
  bool divides_chunk = false;             ///< among attention-data ranks
  double graph_bytes = 0;                 ///< of captured graphs
  bool graphs_in_share = true;            ///< false: they lie in what the share leaves
  std::vector<GraphSizes> graph_sizes;    ///< captured batches, ascending; empty = not known
  std::int64_t graph_sequences = 0;       ///< largest captured batch; 0 = not known
  std::int64_t graph_sequences_wide = 0;  ///< the same of four ranks and more; 0 = as others
  bool reserves_whole = false;         ///< a sequence is admitted only if its whole answer has room; else as it grows
  bool counts_runtime = true;          ///< false: weights and cache may fill the chip (scaling book, chapter 7)
  std::int64_t most_sequences = 0;     ///< it runs at once; 0 = no limit
  double longest = 0;                  ///< tokens of a request, which its cache must hold to start; 0 = no limit
  double sampler_copies = 0;           ///< of the logits of most_sequences in fp32, at the peak that it holds room for
  double front_end_s = 0;              ///< from a client's request to the engine's queue: read, tokenized, handed over
  double front_end_per_client_s = 0;   ///< longer for each request in flight, itself counted: one loop sends all tokens
  std::int64_t stream_interval = 1;    ///< tokens of a chunk that clients get; the first token comes alone
  std::int64_t receive_interval = 1;   ///< decode steps between looks for new requests (SGLang)
  std::int64_t prompt_wait_steps = 0;  ///< decode steps that prompts wait for others to share theirs (TensorRT-LLM)
  double prompt_wait_share = 1;        ///< of a step's tokens that end this wait
  LayerOverheads layer_overhead;
  std::string source;

  /// In the place of the family's layer_overhead, unless that was typed.
  void put_overhead(const ModelSpec& model, Efficiency& efficiency) const;
  /// Largest captured batch of a stage of so many ranks: the release's, but no more than two times the sequences at
  /// once; 0 = not known.
  double largest_graph(std::int64_t ranks) const;
  /// Rows that a step computes for so many: the next captured batch; beyond the largest nothing is replayed.
  double captured_rows(double rows, std::int64_t ranks) const;
  /// u of a layout.
  double share_of(const ShareQuestion& asked) const;
  /// Fixes u, whatever the layout.
  void fix_share(double to);
  /// "vllm 0.11 (2025-10)".
  std::string title() const;
};

/// Defaults of chips of at least so much memory; the first that holds counts.
struct EngineSizes {
  double memory = 0;
  std::vector<std::string> of, except;  ///< chips; `of` empty: all
  std::optional<double> chunk_tokens;
  std::optional<std::int64_t> most_sequences, graph_sequences, graph_sequences_wide;
};

/// One release, with what it inherits from those before.
struct EngineRelease {
  EngineRules rules;  ///< but for the sizes
  std::vector<EngineSizes> sizes;

  EngineRules on(const HardwareSpec& hw) const;
};

/// A `serving:` block: releases, the earliest first, at least one.
std::vector<EngineRelease> read_engine(const ConfigNode& node, const std::string& name, Problems& problems);

/// The release asked for, the newest for an empty version: of 0.11.2 the newest of 0.11 that is known by then.
/// UserError naming those known.
const EngineRelease& engine_release(const std::vector<EngineRelease>& releases, std::string_view version);
/// That of a run: of the version in what its engine is called ("vllm 0.12.0"), else the newest of its date; before all
/// the earliest, and where neither is known the newest.
const EngineRelease& engine_release_of(const std::vector<EngineRelease>& releases, std::string_view called,
                                       std::string_view date);

/// "vllm@0.11" as name and version.
struct EngineAsked {
  std::string name, version;
};
EngineAsked engine_asked(std::string_view typed);

}  // namespace scalecalc
