// Writes the head, the assumptions and the explanations that all our JSON documents have.
#include "report/json_text.h"

#include <fmt/format.h>

#include <cmath>

#include "base/check.h"
#include "base/text.h"

namespace scalecalc {

double finite(double value) {
  check(std::isfinite(value), "a figure in JSON is finite");
  return value;
}

Json whole(double value) {
  constexpr double kExact = 9007199254740992.0;
  if (finite(value) == std::floor(value) && std::fabs(value) < kExact) return static_cast<std::int64_t>(value);
  return value;
}

Json document_head(std::string_view schema, std::string_view tool_version) {
  return {{"schema", schema}, {"tool", {{"name", "scalecalc"}, {"version", tool_version}}}};
}

Json assumptions_json(const std::vector<Assumption>& assumptions) {
  Json out = Json::array();
  for (const Assumption& a : assumptions) {
    const auto known = [](const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); };
    const double* number = std::get_if<double>(&a.value);
    const std::string* text = std::get_if<std::string>(&a.value);
    out.push_back({{"key", known(a.key)},
                   {"value", number != nullptr ? whole(*number)
                             : text != nullptr ? Json(*text)
                                               : Json(nullptr)},
                   {"flag", known(a.flag)},
                   {"source", a.source},
                   {"text", a.text},
                   {"warning", a.warning}});
    if (!a.of.empty()) out.back()["of"] = a.of;
  }
  return out;
}

Json explain_json(const std::vector<ExplainSection>& sections) {
  Json out = Json::array();
  for (const ExplainSection& section : sections) {
    Json steps = Json::array();
    for (const ExplainedStep& s : section.steps) {
      steps.push_back({{"name", s.name},
                       {"formula", s.formula},
                       {"numbers", s.numbers},
                       {"value", finite(s.value)},
                       {"unit", unit_name(s.unit)},
                       {"source", s.source}});
    }
    out.push_back({{"title", section.title}, {"steps", steps}, {"remarks", section.remarks}});
  }
  return out;
}

namespace {

/// DEL, the controls of C1 and two line ends, which JSON lets stand and some terminals and YAML obey.
std::string without_controls(std::string text) {
  constexpr std::string_view kFirst = "\x7f\xc2\xe2";
  for (std::size_t i = text.find_first_of(kFirst); i != std::string::npos; i = text.find_first_of(kFirst, i)) {
    std::string_view rest = std::string_view(text).substr(i);
    const std::size_t before = rest.size();
    const char32_t c = next_code_point(rest);
    if (c != 0x2028 && c != 0x2029 && !(c >= 0x7F && c < 0xA0)) {
      ++i;
      continue;
    }
    const std::string escaped = fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    text.replace(i, before - rest.size(), escaped);
    i += escaped.size();
  }
  return text;
}

}  // namespace

std::string json_text(const Json& json, int indent) {
  return without_controls(json.dump(indent, ' ', false, Json::error_handler_t::replace)) + "\n";
}

std::string error_json(int exit_code, std::span<const Diagnostic> diagnostics) {
  Json list = Json::array();
  for (const Diagnostic& d : diagnostics) {
    const auto place = [](int at) { return at > 0 ? Json(at) : Json(nullptr); };
    list.push_back({{"file", d.where.file.empty() ? Json(nullptr) : Json(d.where.file.str())},
                    {"line", place(d.where.line)},
                    {"column", place(d.where.column)},
                    {"message", d.message},
                    {"hint", d.hint.empty() ? Json(nullptr) : Json(d.hint)}});
  }
  return json_text({{"schema", "scalecalc/error/1"}, {"exit", exit_code}, {"diagnostics", list}}, 2);
}

}  // namespace scalecalc
