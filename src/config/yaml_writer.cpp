// Writes a tree as YAML that reads back to the same tree, for `calibrate`, `hw`, `model` and `model design`.
#include "config/yaml_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/text.h"

namespace scalecalc {
namespace {

constexpr std::size_t kWidth = 118;

/// Texts that YAML readers take for something else than a text.
bool is_word_of_yaml(std::string_view text) {
  constexpr std::array<std::string_view, 10> kWords{"null", "true", "false", "yes", "no", "on", "off", "y", "n", "~"};
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return std::find(kWords.begin(), kWords.end(), lower) != kWords.end();
}

bool starts_like_number(std::string_view text) {
  const char first = text.front();
  return (first >= '0' && first <= '9') || first == '.' || first == '-' || first == '+';
}

bool is_plain_character(char c) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  return letter || std::string_view("_-./+ ()=%").find(c) != std::string_view::npos;
}

/// Whether a text may stand without quotes, inside brackets too.
bool is_plain(const ConfigNode& node) {
  const std::string& text = node.text;
  if (text.empty()) return !node.quoted;  // an empty value
  if (text.front() == ' ' || text.back() == ' ' || !std::all_of(text.begin(), text.end(), is_plain_character)) {
    return false;
  }
  if (text == "-" || text.starts_with("- ") || text.starts_with("---") || text.starts_with('%')) return false;
  if (text.front() == '=' || text.starts_with("...")) return false;
  return !node.quoted || !(is_word_of_yaml(text) || starts_like_number(text));
}

std::string in_double_quotes(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::string_view before = text;
    const char32_t c = next_code_point(text);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += before.front();
    } else if (c < 0x20 || (c >= 0x7F && c < 0xA0)) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    } else {
      out += before.substr(0, before.size() - text.size());
    }
  }
  return out + '"';
}

std::string scalar(const ConfigNode& node) {
  if (node.text.empty() && !node.quoted) return "null";
  return is_plain(node) ? node.text : in_double_quotes(node.text);
}

std::string key_text(const std::string& key) {
  ConfigNode node;
  node.text = key;
  node.quoted = true;
  return scalar(node);
}

std::string flow(const ConfigNode& node) {
  std::vector<std::string> parts;
  switch (node.kind) {
    case ConfigNode::Kind::kScalar: return scalar(node);
    case ConfigNode::Kind::kSequence:
      for (const ConfigNode& item : node.items) parts.push_back(flow(item));
      return "[" + join(parts, ", ") + "]";
    case ConfigNode::Kind::kMap:
      for (const ConfigNode::Entry& e : node.entries) parts.push_back(key_text(e.key) + ": " + flow(e.value));
      return "{" + join(parts, ", ") + "}";
  }
  return "";
}

bool holds_maps(const ConfigNode& node) {
  return std::any_of(node.items.begin(), node.items.end(),
                     [](const ConfigNode& item) { return item.kind == ConfigNode::Kind::kMap; });
}

void block(const ConfigNode& node, std::size_t indent, std::string& out);

/// What stands behind "key:" or "-".
void value(const ConfigNode& node, std::size_t indent, std::size_t column, std::string& out) {
  const bool in_brackets = node.kind == ConfigNode::Kind::kScalar || !holds_maps(node);
  const std::string line = flow(node);
  const bool empty = node.items.empty() && node.entries.empty();
  if (empty || (in_brackets && column + line.size() <= kWidth)) {
    out += " " + line + "\n";
  } else {
    out += "\n";
    block(node, indent + 2, out);
  }
}

void block(const ConfigNode& node, std::size_t indent, std::string& out) {
  const std::string margin(indent, ' ');
  for (const ConfigNode::Entry& entry : node.entries) {
    const std::string key = key_text(entry.key);
    out += margin + key + ":";
    value(entry.value, indent, indent + key.size() + 2, out);
  }
  for (const ConfigNode& item : node.items) {
    // A list item is one line however long: a block map behind "- " would need another indentation.
    out += margin + "- " + flow(item) + "\n";
  }
}

}  // namespace

std::string write_yaml(const ConfigNode& document) {
  check(document.kind == ConfigNode::Kind::kMap, "a document is a map");
  std::string out;
  block(document, 0, out);
  return out.empty() ? "{}\n" : out;
}

}  // namespace scalecalc
