// What people tune of a serving engine, by what each engine calls it: the one table of these names. A value that was
// typed under the name of one engine carries that engine's name, so that another's is refused by name.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spec/engine_rules.h"

namespace scalecalc {

enum class EngineFact : std::uint8_t {
  kShare,      ///< of the memory, by the engine's own rule
  kSequences,  ///< most at once on a rank
  kTokens,     ///< most of prompts in one step
  kLength,     ///< longest prompt and answer together
  kStream,     ///< tokens of a chunk that clients get
  kReceive,    ///< decode steps between looks for new requests
};

struct EngineFlag {
  EngineFact fact;
  std::string_view engine;
  std::string_view names;  ///< between blanks; the first is shown
  std::string_view ours;   ///< the row of our table

  std::string_view name() const { return names.substr(0, names.find(' ')); }
};
inline constexpr std::string_view kShareFlag = "--gpu-memory-utilization";
inline constexpr std::string_view kSequencesFlag = "--max-num-seqs";
inline constexpr std::string_view kTokensFlag = "--chunk";
inline constexpr std::string_view kLengthFlag = "--max-model-len";
inline constexpr std::string_view kStreamFlag = "--stream-interval";
inline constexpr std::string_view kReceiveFlag = "--receive-interval";
// vLLM's: vllm/engine/arg_utils.py; SGLang's: python/sglang/srt/server_args.py; TensorRT-LLM's: trtllm-serve and
// trtllm-bench.
inline constexpr std::array kEngineFlags{
    EngineFlag{EngineFact::kShare, "vllm", "--gpu-memory-utilization --gpu_memory_utilization", kShareFlag},
    EngineFlag{EngineFact::kShare, "sglang", "--mem-fraction-static --mem_fraction_static", kShareFlag},
    EngineFlag{EngineFact::kShare, "trtllm",
               "--kv_cache_free_gpu_mem_fraction --kv-cache-free-gpu-mem-fraction --kv_cache_free_gpu_memory_fraction "
               "--kv-cache-free-gpu-memory-fraction --free_gpu_memory_fraction",
               kShareFlag},
    EngineFlag{EngineFact::kSequences, "vllm", "--max-num-seqs --max_num_seqs", kSequencesFlag},
    EngineFlag{EngineFact::kSequences, "sglang", "--max-running-requests --max_running_requests", kSequencesFlag},
    EngineFlag{EngineFact::kSequences, "trtllm", "--max_batch_size --max-batch-size", kSequencesFlag},
    EngineFlag{EngineFact::kTokens, "vllm", "--max-num-batched-tokens --max_num_batched_tokens", kTokensFlag},
    EngineFlag{EngineFact::kTokens, "sglang", "--chunked-prefill-size --chunked_prefill_size", kTokensFlag},
    EngineFlag{EngineFact::kTokens, "trtllm", "--max_num_tokens --max-num-tokens", kTokensFlag},
    EngineFlag{EngineFact::kLength, "vllm", "--max-model-len --max_model_len", kLengthFlag},
    EngineFlag{EngineFact::kLength, "sglang", "--context-length --context_length", kLengthFlag},
    EngineFlag{EngineFact::kLength, "trtllm", "--max_seq_len", kLengthFlag},
    EngineFlag{EngineFact::kStream, "vllm", "--stream-interval", kStreamFlag},
    EngineFlag{EngineFact::kStream, "sglang", "--stream-interval", kStreamFlag},
    EngineFlag{EngineFact::kStream, "trtllm", "--stream-interval", kStreamFlag},
    EngineFlag{EngineFact::kReceive, "sglang", "--scheduler-recv-interval --scheduler_recv_interval", kReceiveFlag},
};

/// The first flag that one of these names is; null for another.
const EngineFlag* engine_flag(std::string_view name);
/// What an engine calls a fact; null if it is not known to have a flag for it.
const EngineFlag* engine_flag(EngineFact fact, std::string_view engine);

/// Of the first engine that has the fact.
const EngineFlag* engine_flag(EngineFact fact);

/// A fact as typed.
struct EngineSetting {
  EngineFact fact = EngineFact::kShare;
  std::string engine;  ///< whose name for it was typed; empty: any's
  double value = 0;
};

/// The settings in the place of the release's defaults. UserError naming every flag that is another engine's.
void apply_settings(const std::vector<EngineSetting>& settings, EngineRules& rules);

}  // namespace scalecalc
