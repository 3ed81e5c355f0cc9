// Software stacks: which frameworks share efficiency coefficients, and what they keep in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/catalog.h"
#include "config/node.h"
#include "spec/engine_rules.h"
#include "spec/stack_memory.h"
#include "spec/stack_runtime.h"

namespace scalecalc {

/// What a stack's published recipes switch on from a release on, for models with experts, where a run does not say.
struct RecipeDefaults {
  std::string since;            ///< "2026-06": of the release
  std::string precision;        ///< as recipes call it: "mxfp8"
  bool step_graph = false;      ///< the whole step is one captured graph
  bool expert_overlap = false;  ///< expert all-to-alls under another microbatch's compute
  std::string source;
};

/// What a step of reinforcement learning waits for beside generation and training, where a stack's framework for it is
/// known. Without a value weights and state move at the rate of the links they take.
struct RolloutRules {
  Coefficient host_copy{0, 0,
                        ""};  ///< bytes/s of a chip between its memory and the host's, where the framework does not pin
  Coefficient refit{0, 0, ""};        ///< bytes/s at which a whole model's weights get from the trainer into the engine
  Coefficient engine_step{0, 0, ""};  ///< seconds that the framework's way to run the engine adds to each of its steps
  bool swaps_state = false;  ///< colocated: the trainer's state always goes to the host while the engine generates
  bool engine_sleeps =
      false;  ///< colocated: the engine's weights go to the host and back while the trainer has the chips
  double reference_copies = 1;  ///< of a chip's weights over that way, for a pass of the frozen policy
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
  std::vector<EngineRelease> serving;  ///< the earliest first; empty: it does not serve
  RolloutRules rollouts;
};

/// UserError listing every problem of the document.
StackSpec load_stack(const ConfigNode& document);

/// The stack whose name, or a framework's, stands as a word in what a source is called; the longest if there are more,
/// and only if there is none the one whose publication does.
std::optional<std::string> stack_of_source(const std::vector<StackSpec>& stacks, std::string_view source);

/// The stack that serves under this name or alias, "vllm" or "vllm@0.11". UserError for one that is unknown or only
/// trains, and for an unknown release.
StackSpec serving_stack(const Catalog& catalog, const std::string& typed);

/// The stack that a framework belongs to, or that is called so; nothing if none is known.
std::optional<std::string> stack_of_framework(const Catalog& catalog, const std::string& framework);

/// A stack by its name or a framework's, read once and kept with the catalog. UserError for an unknown one.
std::shared_ptr<const StackSpec> stack_spec(const Catalog& catalog, const std::string& name);

/// How a stack runs a step, by its name or a framework's; the defaults for an empty name. UserError for an unknown one.
StackRuntime stack_runtime(const Catalog& catalog, const std::string& stack);

/// The memory rules of a stack, by its name or a framework's; the defaults for an empty name. UserError for an unknown
/// one.
StackMemory stack_memory(const Catalog& catalog, const std::string& stack);

}  // namespace scalecalc
