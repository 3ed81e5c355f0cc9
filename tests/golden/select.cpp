#include "golden/select.h"

#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <string_view>

namespace scalecalc::golden {
namespace {

using Json = nlohmann::ordered_json;

/// One document, or an array of those that stand a line each; discarded if it is neither.
Json parse(const std::string& text) {
  Json whole = Json::parse(text, nullptr, false);
  if (!whole.is_discarded()) return whole;
  Json out = Json::array();
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    Json document = Json::parse(line, nullptr, false);
    if (document.is_discarded()) return document;
    out.push_back(std::move(document));
  }
  return out;
}

[[noreturn]] void leads_nowhere(const Json& from, const std::string& shown, const std::string& step) {
  std::string what = "| select: " + (shown.empty() ? "the document" : shown) + " has no " + step + "; it ";
  if (from.is_object()) {
    what += "has";
    for (const auto& item : from.items()) what += " " + item.key();
  } else if (from.is_array()) {
    what += "is an array of " + std::to_string(from.size());
  } else {
    what += "is " + from.dump();
  }
  throw std::runtime_error(what);
}

/// `shown` is the path so far with indices for [], `rest` what is left of it.
void follow(const Json& from, const std::string& shown, std::string_view rest, std::string& out) {
  if (rest.empty()) {
    out += shown + " = " + from.dump() + "\n";
    return;
  }
  if (rest.front() == '[') {
    const std::size_t close = rest.find(']');
    if (close == std::string_view::npos) throw std::runtime_error("| select: no ] in " + std::string(rest));
    const std::string index(rest.substr(1, close - 1));
    if (index.empty() && from.is_array()) {
      if (from.empty()) out += shown + "[] = none\n";
      for (std::size_t i = 0; i < from.size(); ++i) {
        follow(from[i], shown + "[" + std::to_string(i) + "]", rest.substr(close + 1), out);
      }
      return;
    }
    const bool number = !index.empty() && index.find_first_not_of("0123456789") == std::string::npos;
    if (!number || !from.is_array() || std::stoul(index) >= from.size()) leads_nowhere(from, shown, "[" + index + "]");
    follow(from[std::stoul(index)], shown + "[" + index + "]", rest.substr(close + 1), out);
    return;
  }
  if (rest.front() == '.') rest.remove_prefix(1);
  const std::string_view key = rest.substr(0, rest.find_first_of(".["));
  const auto found = from.is_object() ? from.find(std::string(key)) : from.end();
  if (found == from.end()) leads_nowhere(from, shown, "\"" + std::string(key) + "\"");
  follow(*found, shown + (shown.empty() ? "" : ".") + std::string(key), rest.substr(key.size()), out);
}

/// The first choice spelled out, and those after it.
void expand(const std::string& path, std::vector<std::string>& out) {
  const std::size_t open = path.find('{');
  if (open == std::string::npos) {
    out.push_back(path);
    return;
  }
  const std::size_t close = path.find('}', open);
  if (close == std::string::npos) throw std::runtime_error("| select: no } in " + path);
  std::istringstream choices(path.substr(open + 1, close - open - 1));
  for (std::string choice; std::getline(choices, choice, ',');) {
    expand(path.substr(0, open) + choice + path.substr(close + 1), out);
  }
}

}  // namespace

std::string select(const std::string& json, const std::vector<std::string>& paths) {
  const Json document = parse(json);
  if (document.is_discarded()) return json;
  std::string out;
  for (const std::string& path : paths) follow(document, "", path, out);
  return out;
}

std::vector<std::string> expand_paths(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream words(text);
  for (std::string word; words >> word;) expand(word, out);
  return out;
}

}  // namespace scalecalc::golden
