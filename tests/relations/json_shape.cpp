#include "relations/json_shape.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <regex>
#include <stdexcept>

namespace scalecalc::relations {
namespace {

using Json = nlohmann::json;

const Json& schema_file(const std::string& name) {
  static std::map<std::string, Json> known;
  const auto found = known.find(name);
  if (found != known.end()) return found->second;
  std::ifstream in(std::string(SCALECALC_SOURCE_DIR) + "/docs/schema/" + name);
  if (!in) throw std::runtime_error("there is no schema " + name);
  return known[name] = Json::parse(in);
}

class Shape {
 public:
  explicit Shape(std::string file) : file_(std::move(file)) {}

  std::string problem(const Json& schema, const Json& value, const std::string& place) const {
    if (schema.is_boolean()) return schema.get<bool>() ? "" : place + " may not be there";
    if (const auto ref = schema.find("$ref"); ref != schema.end())
      return of_reference(ref->get<std::string>(), value, place);
    if (std::string bad = simple(schema, value, place); !bad.empty()) return bad;
    if (std::string bad = alternatives(schema, value, place); !bad.empty()) return bad;
    return value.is_object() ? members(schema, value, place) : value.is_array() ? elements(schema, value, place) : "";
  }

 private:
  std::string of_reference(const std::string& reference, const Json& value, const std::string& place) const {
    const std::size_t sign = reference.find('#');
    const std::string file = sign == 0 ? file_ : reference.substr(0, sign);
    const Json& whole = schema_file(file);
    const Json::json_pointer path(sign == std::string::npos ? "" : reference.substr(sign + 1));
    return Shape(file).problem(whole.at(path), value, place);
  }

  static bool is_type(const std::string& type, const Json& value) {
    if (type == "integer")
      return value.is_number_integer() || (value.is_number() && value == std::floor(value.get<double>()));
    return (type == "number" && value.is_number()) || (type == "string" && value.is_string()) ||
           (type == "boolean" && value.is_boolean()) || (type == "null" && value.is_null()) ||
           (type == "object" && value.is_object()) || (type == "array" && value.is_array());
  }

  static std::string simple(const Json& schema, const Json& value, const std::string& place) {
    if (const auto type = schema.find("type"); type != schema.end()) {
      bool right = false;
      for (const Json& one : type->is_array() ? *type : Json::array({*type})) {
        right = right || is_type(one.get<std::string>(), value);
      }
      if (!right) return place + " is " + value.dump().substr(0, 60) + ", not " + type->dump();
    }
    const auto wrong = [&](const char* word, auto holds) {
      const auto limit = schema.find(word);
      return limit != schema.end() && value.is_number() && !holds(value.get<double>(), limit->get<double>());
    };
    if (wrong("minimum", std::greater_equal<>()) || wrong("maximum", std::less_equal<>()) ||
        wrong("exclusiveMinimum", std::greater<>()) || wrong("exclusiveMaximum", std::less<>())) {
      return place + " is out of range: " + value.dump();
    }
    if (const auto all = schema.find("enum");
        all != schema.end() && std::find(all->begin(), all->end(), value) == all->end()) {
      return place + " is none of the words: " + value.dump();
    }
    if (const auto one = schema.find("const"); one != schema.end() && *one != value)
      return place + " is " + value.dump();
    if (const auto pattern = schema.find("pattern");
        pattern != schema.end() && value.is_string() &&
        !std::regex_search(value.get<std::string>(), std::regex(pattern->get<std::string>()))) {
      return place + " is of another pattern: " + value.dump();
    }
    return "";
  }

  std::string alternatives(const Json& schema, const Json& value, const std::string& place) const {
    if (const auto one = schema.find("oneOf"); one != schema.end()) {
      int held = 0;
      std::string last;
      for (const Json& each : *one) {
        const std::string bad = problem(each, value, place);
        held += bad.empty() ? 1 : 0;
        if (!bad.empty()) last = bad;
      }
      if (held != 1) return place + " fits " + std::to_string(held) + " of the alternatives; " + last;
    }
    if (const auto all = schema.find("allOf"); all != schema.end()) {
      for (const Json& each : *all) {
        if (std::string bad = problem(each, value, place); !bad.empty()) return bad;
      }
    }
    if (const auto condition = schema.find("if"); condition != schema.end()) {
      const auto branch = schema.find(problem(*condition, value, place).empty() ? "then" : "else");
      if (branch != schema.end()) return problem(*branch, value, place);
    }
    return "";
  }

  std::string members(const Json& schema, const Json& value, const std::string& place) const {
    for (const Json& name : schema.value("required", Json::array())) {
      if (!value.contains(name.get<std::string>())) return place + " has no " + name.dump();
    }
    const Json none = Json::object();
    const Json& known = schema.contains("properties") ? schema["properties"] : none;
    const Json& patterns = schema.contains("patternProperties") ? schema["patternProperties"] : none;
    for (const auto& [name, member] : value.items()) {
      const std::string at = place + "." + name;
      if (const auto found = known.find(name); found != known.end()) {
        if (std::string bad = problem(*found, member, at); !bad.empty()) return bad;
        continue;
      }
      bool matched = false;
      for (const auto& [pattern, inner] : patterns.items()) {
        if (!std::regex_search(name, std::regex(pattern))) continue;
        matched = true;
        if (std::string bad = problem(inner, member, at); !bad.empty()) return bad;
      }
      const auto rest = schema.find("additionalProperties");
      if (matched || rest == schema.end()) continue;
      if (std::string bad = problem(*rest, member, at); !bad.empty()) return bad;
    }
    return "";
  }

  std::string elements(const Json& schema, const Json& value, const std::string& place) const {
    if (value.size() < schema.value("minItems", std::size_t{0})) return place + " has too few elements";
    const auto items = schema.find("items");
    if (items == schema.end()) return "";
    for (std::size_t i = 0; i < value.size(); ++i) {
      const std::string bad = problem(*items, value[i], place + "[" + std::to_string(i) + "]");
      if (!bad.empty()) return bad;
    }
    return "";
  }

  std::string file_;
};

}  // namespace

std::string misshapen(const Json& document) {
  const std::string schema = document.value("schema", "");
  const std::size_t from = schema.find('/');
  const std::size_t to = schema.rfind('/');
  if (from == std::string::npos || to <= from) return "the document names no schema: " + schema;
  const std::string file = schema.substr(from + 1, to - from - 1) + ".schema.json";
  return Shape(file).problem(schema_file(file), document, "");
}

}  // namespace scalecalc::relations
