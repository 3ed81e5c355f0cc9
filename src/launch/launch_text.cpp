// Reads a launch file of any kind into settings with their places: TOML, YAML, JSON or a script.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "config/json_reader.h"
#include "config/source_text.h"
#include "config/yaml_reader.h"
#include "launch/document.h"
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

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (std::isspace(static_cast<unsigned char>(text.front())) != 0)) text.remove_prefix(1);
  while (!text.empty() && (std::isspace(static_cast<unsigned char>(text.back())) != 0)) text.remove_suffix(1);
  return text;
}

/// Sections and assignments of one line each, and lists that go on; TOML and the constants of a Python file.
class LineReader {
 public:
  LineReader(std::string_view text, const std::string& file, bool toml)
      : text_(text), source_(text, file), toml_(toml) {}

  std::vector<LaunchSetting> read() {
    while (at_ < text_.size()) {
      const std::size_t end = std::min(text_.find('\n', at_), text_.size());
      line(at_, end);
      at_ = std::max(at_, end) + 1;
    }
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(std::size_t at, std::string message) const {
    throw UserError({Diagnostic{source_.span(at), std::move(message),
                                "a value is a number, true, false, a text in quotes or a list"}});
  }

  void line(std::size_t begin, std::size_t end) {
    const std::string_view whole = text_.substr(begin, end - begin);
    const std::string_view text = trimmed(whole);
    if (text.empty() || text.front() == '#') return;
    if (toml_ && text.front() == '[') {
      const std::size_t close = text.find_last_of(']');
      if (close == std::string_view::npos) fail(begin, "this section has no closing bracket");
      section_ = std::string(trimmed(text.substr(1, close - 1)));
      std::erase(section_, '[');
      std::erase(section_, '"');
      return;
    }
    const std::size_t equals = whole.find('=');
    if (equals == std::string_view::npos) {
      if (toml_) fail(begin, "this line is no KEY = VALUE");
      return;
    }
    std::string key(trimmed(whole.substr(0, equals)));
    if (!toml_ && (whole.front() == ' ' || key.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_") != std::string::npos))
      return;
    std::erase(key, '"');
    const std::size_t key_at = begin + whole.find_first_not_of(" \t");
    LaunchSetting setting{.key = section_.empty() ? key : section_ + "." + key,
                          .values = {},
                          .where = source_.span(key_at, begin + equals),
                          .open = {}};
    at_ = begin + equals + 1;
    skip_blanks();
    if (!toml_ && !is_constant()) {
      return;
    }
    if (at_ < text_.size() && text_[at_] == '[') {
      list(setting);
    } else if (at_ < text_.size() && text_[at_] == '{') {
      setting.open = "a table in braces";
    } else {
      setting.values.push_back(value(end));
    }
    out_.push_back(std::move(setting));
    at_ = std::min(text_.find('\n', std::min(at_, text_.size())), text_.size());
    if (at_ < end) at_ = end;
  }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }

  /// A number, a text or a truth value, not an expression.
  bool is_constant() const {
    const std::string_view rest = text_.substr(std::min(at_, text_.size()));
    const bool literal =
        !rest.empty() && (std::isdigit(static_cast<unsigned char>(rest[0])) != 0 || rest[0] == '"' || rest[0] == '\'');
    return literal || rest.starts_with("True") || rest.starts_with("False");
  }

  std::string value(std::size_t end) {
    if (at_ >= text_.size() || text_[at_] == '\n') fail(std::min(at_, text_.size() - 1), "a value is missing");
    const char quote = text_[at_];
    if (quote == '"' || quote == '\'') return quoted(quote);
    const std::size_t begin = at_;
    while (at_ < end && text_[at_] != '#' && text_[at_] != ',' && text_[at_] != ']') ++at_;
    return std::string(trimmed(text_.substr(begin, at_ - begin)));
  }

  std::string quoted(char quote) {
    std::string out;
    const std::size_t begin = at_++;
    while (at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n') {
      if (quote == '"' && text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      out += text_[at_++];
    }
    if (at_ >= text_.size() || text_[at_] != quote) fail(begin, "this text has no closing quote");
    ++at_;
    return out;
  }

  void list(LaunchSetting& setting) {
    const std::size_t begin = at_++;
    while (at_ < text_.size() && text_[at_] != ']') {
      const char c = text_[at_];
      if (std::isspace(static_cast<unsigned char>(c)) != 0 || c == ',') {
        ++at_;
      } else if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == '[' || c == '{') {
        setting.open = "a list of lists";
        ++at_;
      } else {
        const std::size_t before = at_;
        setting.values.push_back(value(std::min(text_.find('\n', at_), text_.size())));
        if (at_ == before) ++at_;
      }
    }
    if (at_ >= text_.size()) fail(begin, "this list has no closing bracket");
    ++at_;
  }

  std::string_view text_;
  SourceText source_;
  bool toml_;
  std::size_t at_ = 0;
  std::string section_;
  std::vector<LaunchSetting> out_;
};

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

LaunchText read_toml(std::string_view text, const std::string& file) {
  return {LaunchFormat::kToml, LineReader(text, file, true).read()};
}

LaunchText read_launch_text(std::string_view text, const std::string& file) {
  if (looks_like_json(text)) return {LaunchFormat::kJson, document_settings(std::string(text), file, true)};
  if (starts_line(text, "kind: ")) {
    if (auto object = read_kubernetes(std::string(text), file)) return *std::move(object);
  }
  if (is_script_text(text, file)) return read_shell(text, file);
  if (is_recipe(text)) return read_recipe(text, file);
  if (file.ends_with(".py") || starts_line(text, "import ") || starts_line(text, "from ")) {
    return {LaunchFormat::kPython, LineReader(text, file, false).read()};
  }
  if (file.ends_with(".toml") || (starts_line(text, "[") && text.find(" = ") != std::string_view::npos)) {
    return read_toml(text, file);
  }
  return {LaunchFormat::kYaml, document_settings(std::string(text), file, false)};
}

}  // namespace scalecalc
