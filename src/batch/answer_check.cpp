// Reads the conditions of --fail-if and --expect and says which of them an answer or a row of results fails.
#include "batch/answer_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "base/units.h"
#include "batch/condition.h"
#include "batch/database.h"
#include "config/fields.h"
#include "config/json_reader.h"
#include "config/yaml_reader.h"

namespace scalecalc {
namespace {

/// Numbers that are not given a tolerance: what printing them costs.
constexpr double kSameNumber = 1e-9;

std::string sql_text(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "''" : std::string(1, c);
  return out + "'";
}

std::optional<double> number_of(const ConfigNode& node) {
  if (node.quoted) return std::nullopt;
  const auto parsed = parse_quantity(node.text, UnitKind::kNumber, true);
  const double* number = std::get_if<double>(&parsed);
  return number == nullptr ? std::nullopt : std::optional(*number);
}

/// A value as a row has it.
Json json_of(const ConfigNode& node) {
  if (node.kind == ConfigNode::Kind::kSequence) {
    Json out = Json::array();
    for (const ConfigNode& item : node.items) out.push_back(json_of(item));
    return out;
  }
  if (node.kind == ConfigNode::Kind::kMap) {
    Json out = Json::object();
    for (const ConfigNode::Entry& entry : node.entries) out[entry.key] = json_of(entry.value);
    return out;
  }
  if (node.quoted) return node.text;
  Json plain = Json::parse(node.text, nullptr, false);
  return plain.is_discarded() ? Json(node.text) : plain;
}

/// One name of the file.
class ExpectationReader {
 public:
  ExpectationReader(const ConfigNode::Entry& entry, Problems& problems)
      : entry_(entry), column_(sql_name(entry.key)), problems_(problems) {}

  AnswerCheck read() {
    const ConfigNode& value = entry_.value;
    if (value.kind == ConfigNode::Kind::kMap) {
      range(value);
    } else if (const auto number = number_of(value); number && value.kind == ConfigNode::Kind::kScalar) {
      near(*number, kSameNumber, entry_.key + " = " + value.text);
    } else {
      text(value);
    }
    const SourceSpan& at = entry_.key_span;
    return {fmt::format("{}:{}: {}", at.file.str(), at.line, said_), fails_, {entry_.key}, true};
  }

 private:
  void range(const ConfigNode& node) {
    Fields fields(node, fmt::format("what {} is", entry_.key), problems_);
    const auto least = fields.optional_quantity("least", UnitKind::kNumber, kAnyNumber);
    const auto most = fields.optional_quantity("most", UnitKind::kNumber, kAnyNumber);
    const auto value = fields.optional_quantity("value", UnitKind::kNumber, kAnyNumber);
    const auto tolerance = fields.optional_quantity("tolerance", UnitKind::kFraction, Range{0, 1});
    fields.finish();
    if ((least || most) == value.has_value() || (tolerance && !value)) {
      problems_.add(node.span, fmt::format("{} says neither a range nor a value", entry_.key),
                    "{least: 0.4}, {most: 0.5}, both, or {value: 0.45, tolerance: 2%}");
    }
    if (value) {
      return near(*value, tolerance.value_or(kSameNumber),
                  fmt::format("{} = {}{}", entry_.key, *value,
                              tolerance ? fmt::format(" within {:g} %", 100 * *tolerance) : ""));
    }
    fails_ = fmt::format("{0} IS NULL OR typeof({0}) = 'text'", column_);  // SQL has every text above every number
    said_ = entry_.key;
    if (least) fails_ += fmt::format(" OR {} < {}", column_, *least);
    if (least) said_ += fmt::format(" at least {}", *least);
    if (most) fails_ += fmt::format(" OR {} > {}", column_, *most);
    if (most) said_ += fmt::format("{} at most {}", least ? " and" : "", *most);
  }

  void near(double value, double tolerance, std::string said) {
    fails_ = fmt::format("{0} IS NULL OR typeof({0}) = 'text' OR abs({0} - {1}) > {2} * abs({1})", column_,
                         fmt::format("({})", value), tolerance);
    said_ = std::move(said);
  }

  void text(const ConfigNode& node) {
    if (node.is_null()) {
      fails_ = column_ + " IS NOT NULL";
      said_ = entry_.key + " is nothing";
      return;
    }
    const Json value = json_of(node);
    const std::string plain = value.is_string() ? value.get<std::string>() : value.dump();
    fails_ = fmt::format("{} IS NOT {}", column_,
                         value.is_boolean() ? std::string(value.get<bool>() ? "1" : "0") : sql_text(plain));
    said_ = entry_.key + " = " + plain;
  }

  static constexpr Range kAnyNumber{-1e300, 1e300};

  const ConfigNode::Entry& entry_;
  std::string column_;
  Problems& problems_;
  std::string said_;
  std::string fails_;
};

ConfigNode expectations_document(const std::string& text, const std::string& path) {
  return path.ends_with(".json") || looks_like_json(text) ? read_json(text, path) : read_yaml(text, path);
}

}  // namespace

Cell cell_of(const Json& value) {
  if (value.is_null()) return {};
  if (value.is_number()) return value.get<double>();
  if (value.is_boolean()) return value.get<bool>() ? 1.0 : 0.0;
  return value.is_string() ? value.get<std::string>() : value.dump();
}

bool is_known_name(const std::string& name, const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& known) {
    return known == name || (known.ends_with('*') && name.starts_with(known.substr(0, known.size() - 1)));
  });
}

AnswerCheck failing_if(const std::string& condition) { return {condition, condition, names_in(condition), false}; }

std::vector<AnswerCheck> read_expectations(const std::string& text, const std::string& path,
                                           const std::vector<std::string>& names) {
  const ConfigNode document = expectations_document(text, path);
  Problems problems;
  if (document.kind != ConfigNode::Kind::kMap) {
    problems.add(document.span, fmt::format("expectations are names with values, not {}", kind_name(document.kind)),
                 "for example mfu: {least: 0.4}; or what -o row wrote of one answer");
  }
  std::vector<std::string> plain;
  std::copy_if(names.begin(), names.end(), std::back_inserter(plain),
               [](const std::string& name) { return !name.ends_with('*'); });
  std::vector<AnswerCheck> out;
  for (const ConfigNode::Entry& entry : document.entries) {
    if (is_known_name(entry.key, names)) {
      out.push_back(ExpectationReader(entry, problems).read());
    } else {
      const std::string hint = did_you_mean(nearest(entry.key, plain));
      problems.add(entry.key_span, fmt::format("no answer has {}", in_quotes(entry.key)),
                   hint + (hint.empty() ? "" : " ") + "-o row shows the names");
    }
  }
  problems.throw_if_any();
  return out;
}

AnswerChecks::AnswerChecks(std::vector<AnswerCheck> checks, std::vector<std::string> columns)
    : checks_(std::move(checks)), columns_(std::move(columns)) {
  for (const AnswerCheck& check : checks_) {
    for (const std::string& name : check.names) {
      if (check.expected && std::find(columns_.begin(), columns_.end(), name) == columns_.end()) {
        columns_.push_back(name);
      }
    }
  }
  for (const AnswerCheck& check : checks_) conditions_.emplace_back(check.fails_if, columns_, SourceSpan{});
}

std::vector<std::size_t> AnswerChecks::failing(const Json& row) {
  std::vector<Cell> values;
  if (!checks_.empty()) values.reserve(columns_.size());
  for (std::size_t i = 0; i < columns_.size() && !checks_.empty(); ++i) {
    const auto found = row.find(columns_[i]);
    values.push_back(found == row.end() ? Cell{} : cell_of(*found));
  }
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < conditions_.size(); ++i) {
    if (conditions_[i].holds(values)) out.push_back(i);
  }
  return out;
}

std::string values_in(const AnswerCheck& check, const Json& row) {
  std::string out;
  for (const std::string& name : check.names) {
    const auto found = row.find(name);
    if (found == row.end() && !check.expected) continue;  // a word of SQL
    out += fmt::format("{}{} = {}", out.empty() ? "" : ", ", name, found == row.end() ? "nothing" : found->dump());
  }
  return out;
}

}  // namespace scalecalc
