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

/// The text between a bracket and its partner at the start of `rest`, which is what follows then.
std::string bracketed(std::string_view& rest, char close) {
  const std::size_t end = rest.find(close);
  if (end == std::string_view::npos) throw std::runtime_error("| select: no " + (close + (" in " + std::string(rest))));
  std::string out(rest.substr(1, end - 1));
  rest.remove_prefix(end + 1);
  return out;
}

/// The element of an array that [index] names, by its number or by a member it has.
const Json* element(const Json& from, const std::string& index) {
  const std::size_t equals = index.find('=');
  for (std::size_t i = 0; from.is_array() && i < from.size(); ++i) {
    if (equals == std::string::npos) {
      if (index == std::to_string(i)) return &from[i];
    } else if (from[i].is_object() && from[i].value(index.substr(0, equals), Json()) == index.substr(equals + 1)) {
      return &from[i];
    }
  }
  return nullptr;
}

/// `shown` is the path so far with numbers for [], `rest` what is left of it.
void follow(const Json& from, const std::string& shown, std::string_view rest, std::string& out) {
  if (rest.empty()) {
    out += shown + " = " + from.dump() + "\n";
    return;
  }
  if (rest.front() == '[') {
    const std::string index = bracketed(rest, ']');
    if (index.empty() && from.is_array()) {
      if (from.empty()) out += shown + "[] = none\n";
      for (std::size_t i = 0; i < from.size(); ++i) follow(from[i], shown + "[" + std::to_string(i) + "]", rest, out);
      return;
    }
    const Json* found = element(from, index);
    if (found == nullptr) leads_nowhere(from, shown, "[" + index + "]");
    follow(*found, shown + "[" + index + "]", rest, out);
    return;
  }
  if (rest.front() == '.') rest.remove_prefix(1);
  if (rest.starts_with('{')) {
    std::istringstream choices(bracketed(rest, '}'));
    for (std::string choice; std::getline(choices, choice, ',');) follow(from, shown, choice + std::string(rest), out);
    return;
  }
  const std::string key(rest.substr(0, rest.find_first_of(".[")));
  const auto found = from.is_object() ? from.find(key) : from.end();
  if (found == from.end()) leads_nowhere(from, shown, "\"" + key + "\"");
  follow(*found, shown + (shown.empty() ? "" : ".") + key, rest.substr(key.size()), out);
}

}  // namespace

std::string select(const std::string& json, const std::string& paths) {
  const Json document = parse(json);
  if (document.is_discarded()) return json;
  std::string out;
  std::istringstream words(paths);
  for (std::string path; words >> path;) follow(document, "", path, out);
  return out;
}

}  // namespace scalecalc::golden
