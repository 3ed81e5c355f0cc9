// Any bytes: the JSON reader gives a tree or a UserError; a tree that is a config.json is imported or refused, and what
// is imported is written as YAML that reads back and is a model with parameters.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/diagnostic.h"
#include "base/text.h"
#include "config/json_reader.h"
#include "config/yaml_reader.h"
#include "config/yaml_writer.h"
#include "import/hf_config.h"
#include "model/accounting.h"
#include "spec/load.h"

namespace {

using scalecalc::check;
using scalecalc::ConfigNode;

void check_node(const ConfigNode& node) {
  check(node.span.line >= 1 && node.span.column >= 1 && node.span.length >= 1, "a span starts at 1:1 or later");
  for (const ConfigNode& item : node.items) check_node(item);
  for (const ConfigNode::Entry& entry : node.entries) {
    check(node.find(entry.key) == &entry.value, "keys are unique");
    check_node(entry.value);
  }
}

void check_error(const scalecalc::UserError& error) {
  check(!error.diagnostics().empty() && error.diagnostics().size() <= 20, "an error has 1 to 20 diagnostics");
  for (const scalecalc::Diagnostic& diagnostic : error.diagnostics()) {
    check(scalecalc::invalid_utf8_at(render(diagnostic)) == std::string_view::npos, "a diagnostic is UTF-8");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const ConfigNode document = scalecalc::read_json(text, "config.json");
    check_node(document);
    if (!scalecalc::is_hf_config(document)) return 0;
    const scalecalc::ImportedModel model = scalecalc::import_hf_config(document);
    const ConfigNode again = scalecalc::read_yaml(scalecalc::write_yaml(model.document), "dumped.yaml");
    check(scalecalc::count_parameters(scalecalc::load_model(again)).total > 0, "a model has parameters");
  } catch (const scalecalc::UserError& error) {
    check_error(error);
  }
  return 0;
}
