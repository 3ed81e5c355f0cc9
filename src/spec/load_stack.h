// Software stacks: which frameworks share efficiency coefficients, and what they keep in memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/catalog.h"
#include "config/node.h"
#include "spec/stack_memory.h"
#include "spec/stack_runtime.h"

namespace scalecalc {

/// How a serving engine decides what the cache may take of a chip's memory. u is the share below.
enum class CacheRule {
  kAll,          ///< all that weights, activations and the runtime leave
  kShareOfAll,   ///< u x total, less weights, activations and graphs (vLLM gpu_memory_utilization)
  kShareOfFree,  ///< u x what weights, activations and the runtime leave (TensorRT-LLM free_gpu_memory_fraction)
  kStaticShare,  ///< u x total holds weights and cache, the rest everything else (SGLang mem_fraction_static)
};

/// What a serving engine does with memory and prompts by default.
struct EngineRules {
  std::string name;
  CacheRule rule = CacheRule::kAll;
  double share = 1;                 ///< u
  double chunk_tokens = 8192;       ///< most tokens of prompts in one step
  double graph_bytes = 0;           ///< of captured graphs
  bool reserves_whole = false;      ///< a sequence is admitted only if its whole answer has room; else as it grows
  bool counts_runtime = true;       ///< false: weights and cache may fill the chip (scaling book, chapter 7)
  std::int64_t most_sequences = 0;  ///< it runs at once; 0 = no limit
  std::string source;
};

/// What a stack's published recipes switch on from a release on, for models with experts, where a run does not say.
struct RecipeDefaults {
  std::string since;            ///< "2026-06": of the release
  std::string precision;        ///< as recipes call it: "mxfp8"
  bool step_graph = false;      ///< the whole step is one captured graph
  bool expert_overlap = false;  ///< expert all-to-alls under another microbatch's compute
  std::string source;
};

/// stacks/<name>.yaml.
struct StackSpec {
  std::string name, title;
  std::vector<std::string> frameworks;    ///< that belong to it, by the names measurements give them
  std::vector<std::string> publications;  ///< repositories and pages whose runs are of it, if they name no framework
  std::vector<RecipeDefaults> recipes;    ///< the earliest first
  StackRuntime runtime;
  StackMemory memory;                  ///< the defaults, under no name, where the file has none
  std::optional<EngineRules> serving;  ///< absent: it does not serve
};

/// UserError listing every problem of the document.
StackSpec load_stack(const ConfigNode& document);

/// The stack whose name, or a framework's, stands as a word in what a source is called; the longest if there are more,
/// and only if there is none the one whose publication does.
std::optional<std::string> stack_of_source(const std::vector<StackSpec>& stacks, std::string_view source);

/// The stack of this name or alias that serves. UserError for one that is unknown or only trains.
StackSpec serving_stack(const Catalog& catalog, const std::string& name);

/// The stack that a framework belongs to, or that is called so; nothing if none is known.
std::optional<std::string> stack_of_framework(const Catalog& catalog, const std::string& framework);

/// How a stack runs a step, by its name or a framework's; the defaults for an empty name. UserError for an unknown one.
StackRuntime stack_runtime(const Catalog& catalog, const std::string& stack);

/// The memory rules of a stack, by its name or a framework's; the defaults for an empty name. UserError for an unknown
/// one.
StackMemory stack_memory(const Catalog& catalog, const std::string& stack);

}  // namespace scalecalc
