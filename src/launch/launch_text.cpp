// Launch files of every kind as settings with their places: which reader a text is for, documents flattened to keys
// with dots, and the constants of a Python file.
#include <cctype>

#include "config/json_reader.h"
#include "config/source_text.h"
#include "config/yaml_reader.h"
#include "launch/document.h"
#include "launch/python_lines.h"
#include "launch/reading.h"

namespace scalecalc {
namespace {

void flatten(const ConfigNode& node, const std::string& path, const SourceSpan& where,
             std::vector<LaunchSetting>& out) {
  if (node.kind == ConfigNode::Kind::kMap) {
    for (const ConfigNode::Entry& entry : node.entries) {
      flatten(entry.value, path.empty() ? entry.key : path + "." + entry.key, entry.key_span, out);
    }
    return;
  }
  LaunchSetting setting{.key = path, .values = {}, .where = where, .open = {}};
  if (node.kind == ConfigNode::Kind::kScalar) {
    setting.values.push_back(node.is_null() ? "null" : node.text);
    if (const std::size_t at = node.text.find("${"); at != std::string::npos) setting.open = node.text.substr(at);
  } else {
    bool texts = true;
    for (const ConfigNode& item : node.items) {
      texts = texts && item.kind == ConfigNode::Kind::kScalar;
      setting.values.push_back(item.text);
    }
    if (!texts) setting.values.clear();
  }
  out.push_back(std::move(setting));
}

bool starts_line(std::string_view text, std::string_view with) {
  return text.starts_with(with) || text.find("\n" + std::string(with)) != std::string_view::npos;
}

/// A number, a text or a truth value, not an expression.
bool is_constant(std::string_view value) {
  const char first = value.empty() ? ' ' : value.front();
  return std::isdigit(static_cast<unsigned char>(first)) != 0 || first == '"' || first == '\'' ||
         value.starts_with("True") || value.starts_with("False");
}

/// What capital names outside of all functions are set to in a Python file.
std::vector<LaunchSetting> python_constants(std::string_view text, const std::string& file) {
  const SourceText source(text, file);
  const std::string code = python_code(text);
  std::vector<LaunchSetting> out;
  const std::vector<PythonFunction> functions = python_functions(code);
  for (const PythonLine& line : functions.back().lines) {
    const auto set = python_assignment(code, line);
    if (line.indent > 0 || !set || !set->plain) continue;
    if (set->target.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_") != std::string_view::npos) continue;
    std::string_view value = text.substr(set->value, line.end - set->value);
    if (!is_constant(value)) continue;
    if (value.front() == '"' || value.front() == '\'') {
      if (value.size() < 2 || value.back() != value.front()) {
        throw UserError({Diagnostic{source.span(set->value), "this text has no closing quote",
                                    "a value is a number, True, False or a text in quotes"}});
      }
      value = value.substr(1, value.size() - 2);
    }
    out.push_back({.key = std::string(set->target),
                   .values = {std::string(value)},
                   .where = source.span(line.begin, line.begin + set->target.size()),
                   .open = {}});
  }
  return out;
}

}  // namespace

bool is_script_text(std::string_view text, const std::string& file) {
  for (const std::string_view end : {".sh", ".slurm", ".sbatch", ".bash"}) {
    if (file.ends_with(end)) return true;
  }
  if (text.starts_with("#!")) return text.substr(0, text.find('\n')).find("sh") != std::string_view::npos;
  for (const std::string_view word : {"torchrun ", "srun ", "deepspeed ", "vllm serve", "python -m ", "python3 -m ",
                                      "accelerate launch", "export "}) {
    if (starts_line(text, word)) return true;
  }
  return false;
}

std::vector<LaunchSetting> node_settings(const ConfigNode& node) {
  std::vector<LaunchSetting> out;
  flatten(node, "", node.span, out);
  return out;
}

std::vector<LaunchSetting> document_settings(const std::string& text, const std::string& file, bool json) {
  return node_settings(json ? read_json(text, file) : read_yaml(text, file));
}

LaunchText read_launch_text(std::string_view text, const std::string& file) {
  if (looks_like_json(text)) return {LaunchFormat::kJson, document_settings(std::string(text), file, true)};
  if (starts_line(text, "kind: ")) {
    if (auto object = read_kubernetes(std::string(text), file)) return *std::move(object);
  }
  if (is_script_text(text, file)) return read_shell(text, file);
  if (is_recipe(text)) return read_recipe(text, file);
  if (file.ends_with(".py") || starts_line(text, "import ") || starts_line(text, "from ")) {
    return {LaunchFormat::kPython, python_constants(text, file)};
  }
  if (file.ends_with(".toml") || (starts_line(text, "[") && text.find(" = ") != std::string_view::npos)) {
    return read_toml(text, file);
  }
  return {LaunchFormat::kYaml, document_settings(std::string(text), file, false)};
}

}  // namespace scalecalc
