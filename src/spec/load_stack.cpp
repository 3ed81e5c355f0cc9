#include "spec/load_stack.h"

#include <fmt/format.h>

#include "base/text.h"
#include "config/fields.h"

namespace scalecalc {
namespace {

EngineRules load_engine(const ConfigNode& node, const std::string& name, Problems& problems) {
  Fields fields(node, "serving", problems);
  EngineRules out;
  out.name = name;
  out.rule = static_cast<CacheRule>(fields.word("cache", {"all", "share_of_all", "share_of_free", "static_share"}));
  out.share = fields.optional_quantity("share", UnitKind::kFraction, {0.01, 1}).value_or(1);
  out.chunk_tokens = static_cast<double>(fields.count("chunk_tokens"));
  out.graph_bytes = fields.optional_quantity("graphs", UnitKind::kBytes, {0, 1e12}).value_or(0);
  out.reserves_whole = fields.flag("reserves_whole", false);
  out.most_sequences = fields.optional_count("most_sequences").value_or(0);
  out.source = fields.text("source");
  fields.optional_text("note");
  fields.finish();
  return out;
}

}  // namespace

StackSpec load_stack(const ConfigNode& document) {
  Problems problems;
  Fields fields(document, "software stack", problems);
  StackSpec out;
  fields.word("schema", {"scalecalc-stack/1"});
  out.name = fields.text("name");
  out.title = fields.text("title");
  out.frameworks = fields.text_list("aliases");
  fields.optional_text("note");
  if (const ConfigNode* serving = fields.node("serving")) out.serving = load_engine(*serving, out.name, problems);
  fields.finish();
  problems.throw_if_any();
  return out;
}

StackSpec serving_stack(const Catalog& catalog, const std::string& name) {
  std::vector<std::string> engines;
  for (const std::string& known : catalog.names(CatalogKind::kStack)) {
    if (load_stack(catalog.load(CatalogKind::kStack, known)).serving) engines.push_back(known);
  }
  StackSpec out = load_stack(catalog.load(CatalogKind::kStack, name));
  if (out.serving) return out;
  throw UserError(fmt::format("{} is no serving engine", in_quotes(out.name)),
                  fmt::format("engines: {}", join(engines, ", ")));
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

}  // namespace scalecalc
