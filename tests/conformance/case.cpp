#include "conformance/case.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/io.h"
#include "config/fields.h"
#include "config/yaml_reader.h"

namespace scalecalc::conformance {
namespace {

double number_of(const std::string& text, const SourceSpan& where, Problems& problems) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != 0) problems.add(where, "'" + text + "' is not a number");
  return value;
}

Expectation load_expectation(const ConfigNode& node, const std::string& run, Problems& problems) {
  Fields fields(node, "expect entry", problems);
  Expectation out;
  out.at = fields.text("at");
  out.value = number_of(fields.text("value"), fields.span(), problems);
  if (const auto tolerance = fields.optional_text("tolerance")) {
    out.tolerance = number_of(*tolerance, fields.span(), problems);
  }
  if (const auto book = fields.optional_text("book")) out.book = number_of(*book, fields.span(), problems);
  out.run = fields.optional_text("run").value_or(run);
  fields.finish();
  if (out.run.empty()) problems.add(fields.span(), "neither the case nor this figure has a command line");
  return out;
}

Case load_case(const ConfigNode& node, Problems& problems) {
  Fields fields(node, "case", problems);
  Case out;
  out.id = fields.text("id");
  out.chapter = static_cast<int>(fields.count("chapter", {1, 12}));
  out.where = fields.text("where");
  fields.word("kind", {"worked", "quiz", "claim", "table", "derived"});
  out.disagreement = fields.optional_text("disagreement").value_or("");
  fields.optional_text("note");
  fields.optional_text("errata");
  out.exit = static_cast<int>(fields.optional_count("exit", {0, 255}).value_or(0));
  const std::string run = fields.optional_text("run").value_or("");
  for (const ConfigNode& item : fields.required_node("expect").items) {
    out.expect.push_back(load_expectation(item, run, problems));
  }
  fields.finish();
  if (out.expect.empty()) problems.add(fields.span(), "a case expects something");
  return out;
}

}  // namespace

std::vector<Case> load_cases(const std::string& directory) {
  std::vector<Case> out;
  Problems problems;
  std::set<std::string> known;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() != ".yaml") continue;
    const ConfigNode document = read_yaml(read_text_file(entry.path().string()), entry.path().filename().string());
    Fields fields(document, "conformance file", problems);
    for (const ConfigNode& node : fields.required_node("cases").items) {
      out.push_back(load_case(node, problems));
      if (!known.insert(out.back().id).second) problems.add(node.span, "the id " + out.back().id + " is there twice");
    }
    fields.finish();
  }
  problems.throw_if_any();
  std::sort(out.begin(), out.end(),
            [](const Case& a, const Case& b) { return a.chapter != b.chapter ? a.chapter < b.chapter : a.id < b.id; });
  return out;
}

}  // namespace scalecalc::conformance
