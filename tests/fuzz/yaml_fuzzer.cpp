// Any bytes: the reader gives a tree or a UserError whose diagnostics render, and nothing else.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/diagnostic.h"
#include "base/text.h"
#include "config/yaml_reader.h"

namespace {

using scalecalc::check;
using scalecalc::ConfigNode;

/// Every place lies in its own line.
void check_span(const scalecalc::SourceSpan& span) {
  check(span.line >= 1 && span.column >= 1 && span.length >= 1, "a span starts at 1:1 or later");
  if (span.line_text.empty()) return;
  const auto width = static_cast<int>(scalecalc::count_characters(span.line_text));
  check(span.column <= width + 1, "a span starts inside its line");
}

void check_node(const ConfigNode& node) {
  check_span(node.span);
  for (const ConfigNode& item : node.items) check_node(item);
  for (const ConfigNode::Entry& entry : node.entries) {
    check_span(entry.key_span);
    check(node.find(entry.key) == &entry.value, "keys are unique");
    check_node(entry.value);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    check_node(scalecalc::read_yaml(text, "fuzz.yaml"));
  } catch (const scalecalc::UserError& error) {
    check(!error.diagnostics().empty() && error.diagnostics().size() <= 20, "an error has 1 to 20 diagnostics");
    for (const scalecalc::Diagnostic& diagnostic : error.diagnostics()) {
      check(scalecalc::invalid_utf8_at(render(diagnostic)) == std::string_view::npos, "a diagnostic is UTF-8");
    }
  }
  return 0;
}
