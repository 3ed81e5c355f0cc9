// Reads the file of a software stack, and finds the stack of a framework.
#include "spec/load_stack.h"
#include "spec/kept.h"

#include <fmt/format.h>

#include <cctype>

#include "base/text.h"
#include "config/fields.h"
#include "spec/months.h"

namespace scalecalc {
namespace {

std::vector<RecipeDefaults> load_recipes(const ConfigNode& list, Problems& problems) {
  std::vector<RecipeDefaults> out;
  for (const ConfigNode& node : list.items) {
    Fields fields(node, "recipe", problems);
    RecipeDefaults recipe;
    recipe.since = required_date(fields, "since");
    recipe.precision = fields.text("precision");
    recipe.step_graph = fields.word("graphs", {"none", "step"}) == 1;
    recipe.expert_overlap = fields.flag("expert_overlap", false);
    recipe.source = fields.text("source");
    fields.finish();
    out.push_back(std::move(recipe));
  }
  return out;
}

Coefficient known(Fields& of, const std::string& name, UnitKind kind, Problems& problems) {
  Coefficient out{0, 0, ""};
  const ConfigNode* const node = of.node(name);
  if (node == nullptr) return out;
  Fields fields(*node, "rollouts." + name, problems);
  out.value = fields.quantity("value", kind, {1e-6, 1e15});
  out.error = fields.optional_quantity("error", UnitKind::kFraction, {0, 1}).value_or(0);
  out.source = fields.text("source");
  fields.finish();
  return out;
}

RolloutRules load_rollouts(const ConfigNode& node, Problems& problems) {
  Fields fields(node, "rollouts", problems);
  RolloutRules out;
  out.source = fields.text("source");
  out.host_copy = known(fields, "host_copy", UnitKind::kBytesPerSecond, problems);
  out.refit = known(fields, "refit", UnitKind::kBytesPerSecond, problems);
  out.engine_step = known(fields, "engine_step", UnitKind::kSeconds, problems);
  out.swaps_state = fields.flag("swaps_state", out.swaps_state);
  out.engine_sleeps = fields.flag("engine_sleeps", out.engine_sleeps);
  out.reference_copies = fields.optional_quantity("reference_copies", UnitKind::kNumber, {1, 10}).value_or(1);
  fields.finish();
  return out;
}

}  // namespace

StackSpec load_stack(const ConfigNode& document) {
  Problems problems;
  Fields fields(document, "software stack", problems);
  StackSpec out;
  fields.schema("scalecalc-stack/1");
  out.name = fields.text("name");
  out.title = fields.text("title");
  out.frameworks = fields.text_list("aliases");
  out.publications = fields.text_list("published_in");
  fields.optional_text("note");
  fields.node("attention_kernels");  // spec/load_kernel reads it: it names files of the catalog
  fields.node("supports");           // plan/load_supports reads it: it speaks of layouts
  fields.node("launch");             // launch/load_frameworks reads it: it speaks of arguments
  if (const ConfigNode* recipes = fields.node("recipes")) out.recipes = load_recipes(*recipes, problems);
  if (const ConfigNode* runtime = fields.node("runtime")) out.runtime = read_stack_runtime(*runtime, problems);
  if (const ConfigNode* memory = fields.node("memory")) out.memory = read_stack_memory(*memory, out.name, problems);
  if (const ConfigNode* serving = fields.node("serving")) out.serving = read_engine(*serving, out.name, problems);
  if (const ConfigNode* rollouts = fields.node("rollouts")) out.rollouts = load_rollouts(*rollouts, problems);
  fields.finish();
  problems.throw_if_any();
  return out;
}

namespace {

/// Whether `word` stands in `text` with no letter, digit or '_' beside it; both in lower case.
bool stands_in(std::string_view text, std::string_view word) {
  const auto part_of_word = [&](std::size_t at) {
    return at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_');
  };
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    if (!(at > 0 && part_of_word(at - 1)) && !part_of_word(at + word.size())) return true;
  }
  return false;
}

}  // namespace

std::optional<std::string> stack_of_source(const std::vector<StackSpec>& stacks, std::string_view source) {
  const std::string text = lower_case(source);
  std::optional<std::string> found;
  std::size_t longest = 0;
  const auto look = [&](const StackSpec& stack, const std::string& name) {
    if (name.size() <= longest || !stands_in(text, lower_case(name))) return;
    longest = name.size();
    found = stack.name;
  };
  for (const StackSpec& stack : stacks) {
    look(stack, stack.name);
    for (const std::string& framework : stack.frameworks) look(stack, framework);
  }
  if (found) return found;
  for (const StackSpec& stack : stacks) {
    for (const std::string& publication : stack.publications) look(stack, publication);
  }
  return found;
}

StackSpec serving_stack(const Catalog& catalog, const std::string& typed) {
  const EngineAsked asked = engine_asked(typed);
  StackSpec out = *stack_spec(catalog, asked.name);
  if (!out.serving.empty()) {
    engine_release(out.serving, asked.version);
    return out;
  }
  std::vector<std::string> engines;
  for (const std::string& known : catalog.names(CatalogKind::kStack)) {
    if (!stack_spec(catalog, known)->serving.empty()) engines.push_back(known);
  }
  throw UserError(fmt::format("{} is no serving engine", in_quotes(out.name)),
                  fmt::format("engines: {}", join(engines, ", ")));
}

std::optional<std::string> stack_of_framework(const Catalog& catalog, const std::string& framework) {
  // What a source calls its software is looked up as a name, never opened as a file.
  const bool path = framework.find_first_of("./") != std::string::npos || framework == "-";
  if (framework.empty() || path) return std::nullopt;
  try {
    kept_document(catalog, CatalogKind::kStack, framework);
  } catch (const UserError&) {
    return std::nullopt;
  }
  return stack_spec(catalog, framework)->name;
}

std::shared_ptr<const StackSpec> stack_spec(const Catalog& catalog, const std::string& name) {
  return kept<StackSpec>(catalog, "stack " + name,
                         [&] { return load_stack(*kept_document(catalog, CatalogKind::kStack, name)); });
}

StackRuntime stack_runtime(const Catalog& catalog, const std::string& stack) {
  return stack.empty() ? StackRuntime{} : stack_spec(catalog, stack)->runtime;
}

StackMemory stack_memory(const Catalog& catalog, const std::string& stack) {
  return stack.empty() ? StackMemory{} : stack_spec(catalog, stack)->memory;
}

}  // namespace scalecalc
