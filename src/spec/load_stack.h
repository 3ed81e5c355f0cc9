// Software stacks: which frameworks share efficiency coefficients, and what they keep in memory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/catalog.h"
#include "config/node.h"
#include "spec/stack_memory.h"

namespace scalecalc {

/// stacks/<name>.yaml.
struct StackSpec {
  std::string name, title;
  std::vector<std::string> frameworks;    ///< that belong to it, by the names measurements give them
  std::vector<std::string> publications;  ///< repositories and pages whose runs are of it, if they name no framework
  StackMemory memory;                     ///< the defaults, under no name, where the file has none
};

/// UserError listing every problem of the document.
StackSpec load_stack(const ConfigNode& document);

/// The stack whose name, or a framework's, stands as a word in what a source is called; the longest if there are more,
/// and only if there is none the one whose publication does.
std::optional<std::string> stack_of_source(const std::vector<StackSpec>& stacks, std::string_view source);

/// The stack that a framework belongs to, or that is called so; nothing if none is known.
std::optional<std::string> stack_of_framework(const Catalog& catalog, const std::string& framework);

/// The memory rules of a stack, by its name or a framework's; the defaults for an empty name. UserError for an unknown
/// one.
StackMemory stack_memory(const Catalog& catalog, const std::string& stack);

}  // namespace scalecalc
