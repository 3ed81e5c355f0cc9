#include "spec/load_stack.h"

#include "config/fields.h"

namespace scalecalc {

StackSpec load_stack(const ConfigNode& document) {
  Problems problems;
  Fields fields(document, "software stack", problems);
  StackSpec out;
  fields.word("schema", {"scalecalc-stack/1"});
  out.name = fields.text("name");
  out.title = fields.text("title");
  out.frameworks = fields.text_list("aliases");
  fields.optional_text("note");
  if (const ConfigNode* memory = fields.node("memory")) out.memory = read_stack_memory(*memory, out.name, problems);
  fields.finish();
  problems.throw_if_any();
  return out;
}

std::optional<std::string> stack_of_framework(const Catalog& catalog, const std::string& framework) {
  // What a source calls its software is looked up as a name, never opened as a file.
  const bool path = framework.find_first_of("./") != std::string::npos || framework == "-";
  if (framework.empty() || path) return std::nullopt;
  ConfigNode document;
  try {
    document = catalog.load(CatalogKind::kStack, framework);
  } catch (const UserError&) {
    return std::nullopt;
  }
  return load_stack(document).name;
}

StackMemory stack_memory(const Catalog& catalog, const std::string& stack) {
  return stack.empty() ? StackMemory{} : load_stack(catalog.load(CatalogKind::kStack, stack)).memory;
}

}  // namespace scalecalc
