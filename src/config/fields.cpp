// Reads maps of a document into typed values and reports every problem. Messages name the key and quote what was
// written; the caret shows the place.
#include "config/fields.h"

#include "config/field_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"

namespace scalecalc {
namespace {

/// Stands for a required node that is missing and has been reported.
const ConfigNode& missing_node() {
  static const ConfigNode kMissing;
  return kMissing;
}

/// A bound in the units people write; counts in full.
std::string bound(double value, UnitKind kind) {
  constexpr int kDigits = 6;
  if (kind == UnitKind::kCount) return group_thousands(std::llround(value));
  if (value == 0) return "0";
  return format_quantity(value, kind, kDigits);
}

std::string range_text(const Range& range, UnitKind kind) {
  constexpr double kNoLimit = 1e15;
  const bool positive = range.min > 0 && range.min <= kPositive.min;
  const bool limited = range.max < (kind == UnitKind::kCount ? kNoLimit : kPositive.max);
  if (!limited) return positive ? "above 0" : "at least " + bound(range.min, kind);
  if (positive) return "above 0 and at most " + bound(range.max, kind);
  return fmt::format("from {} to {}", bound(range.min, kind), bound(range.max, kind));
}

std::string words_text(std::span<const std::string_view> words) {
  std::vector<std::string> items;
  for (const std::string_view word : words) items.emplace_back(word);
  return join(items, ", ");
}

/// Of an entry of Fields::known_.
constexpr char kUnknown = 0;
constexpr char kKnown = 1;

}  // namespace

void Problems::add(const SourceSpan& where, std::string message, std::string hint) {
  // A place without a file belongs to a node that is missing and was reported when it was asked for.
  if (where.file.empty() && !found_.empty()) return;
  if (found_.size() < kMostProblems) found_.push_back({where, std::move(message), std::move(hint)});
}

namespace {
thread_local const FieldRecorder* recorder = nullptr;
}

FieldRecorder::FieldRecorder(Told told) : told_(std::move(told)), before_(recorder) { recorder = this; }
FieldRecorder::~FieldRecorder() { recorder = before_; }
const FieldRecorder* FieldRecorder::current() { return recorder; }

namespace {

/// To who listens: the map is not right without it.
void tell_required(const ConfigNode& map, std::string_view key) {
  if (recorder != nullptr) recorder->tell(map, key, FieldRecorder::kRequired);
}

}  // namespace

bool Problems::has_listeners() const { return recorder != nullptr || asked_ != nullptr; }

void Problems::note(const ConfigNode& map, std::string_view key, std::string_view form) {
  if (recorder != nullptr) recorder->tell(map, key, form);
  if (asked_ == nullptr) return;
  const auto same = [&](const AskedField& field) { return field.map == &map && field.key == key; };
  const auto found = std::find_if(asked_->begin(), asked_->end(), same);
  if (found == asked_->end()) {
    asked_->push_back({&map, std::string(key), std::string(form)});
  } else if (found->form.empty()) {
    found->form = form;
  }
}

void Problems::throw_if_any() const {
  if (found_.empty()) return;
  std::vector<Diagnostic> sorted = found_;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Diagnostic& a, const Diagnostic& b) { return a.where.line < b.where.line; });
  throw UserError(std::move(sorted));
}

Fields::Fields(const ConfigNode& node, std::string what, Problems& problems)
    : node_(node),
      what_(std::move(what)),
      problems_(problems),
      readable_(node.kind == ConfigNode::Kind::kMap),
      known_(node.entries.size(), kUnknown) {
  if (readable_ || &node == &missing_node()) return;
  problems_.add(node.span, fmt::format("{} must be a map of fields, not {}", what_,
                                       node.is_null() ? "empty" : kind_name(node.kind)));
}

const ConfigNode* Fields::present(std::string_view key) {
  asked_for_.append(key) += '\n';
  if (problems_.has_listeners()) problems_.note(node_, key);
  const auto found = std::find_if(node_.entries.begin(), node_.entries.end(),
                                  [&](const ConfigNode::Entry& entry) { return entry.key == key; });
  if (found == node_.entries.end()) return nullptr;
  known_[static_cast<std::size_t>(found - node_.entries.begin())] = kKnown;
  return found->value.is_null() ? nullptr : &found->value;
}

const ConfigNode* Fields::scalar(std::string_view key, std::string_view expected) {
  const ConfigNode* found = present(key);
  problems_.note(node_, key, expected);
  if (found == nullptr || found->kind == ConfigNode::Kind::kScalar) return found;
  problems_.add(found->span, fmt::format("'{}' must be {}, not {}", key, expected, kind_name(found->kind)));
  return nullptr;
}

const ConfigNode* Fields::scalar(std::string_view key, std::span<const std::string_view> words) {
  if (!problems_.has_listeners()) {
    const ConfigNode* found = present(key);
    if (found == nullptr || found->kind == ConfigNode::Kind::kScalar) return found;
  }
  return scalar(key, "one of " + words_text(words));
}

/// Each once, in the order asked for.
std::vector<std::string> Fields::known() const {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < asked_for_.size();) {
    const std::size_t end = asked_for_.find('\n', at);
    std::string key = asked_for_.substr(at, end - at);
    if (std::find(out.begin(), out.end(), key) == out.end()) out.push_back(std::move(key));
    at = end + 1;
  }
  return out;
}

void Fields::report_missing(std::string_view key, std::string_view expected) {
  if (!readable_) return;
  const ConfigNode* found = node_.find(key);
  if (found != nullptr && !found->is_null()) return;  // of a wrong kind, and reported
  const std::string hint = expected.empty() ? "" : fmt::format("'{}' is {}", key, expected);
  if (found != nullptr) {
    problems_.add(found->span, fmt::format("'{}' is empty", key), hint);
  } else {
    problems_.add(node_.span, fmt::format("{} has no '{}'", what_, key), hint);
  }
}

bool Fields::has(std::string_view key) { return present(key) != nullptr; }

const ConfigNode* Fields::node(std::string_view key) { return present(key); }

const ConfigNode& Fields::required_node(std::string_view key) {
  tell_required(node_, key);
  if (const ConfigNode* found = present(key)) return *found;
  report_missing(key, "");
  return missing_node();
}

std::string Fields::text(std::string_view key) {
  std::optional<std::string> found = optional_text(key);
  tell_required(node_, key);
  if (!found) report_missing(key, "a text");
  return found.value_or("");
}

std::optional<std::string> Fields::optional_text(std::string_view key) {
  const ConfigNode* found = scalar(key, "a text");
  if (found == nullptr) return std::nullopt;
  if (found->text.empty()) problems_.add(found->span, fmt::format("'{}' is an empty text", key));
  return found->text;
}

bool Fields::flag(std::string_view key, bool otherwise) {
  const ConfigNode* found = scalar(key, "true or false");
  if (found == nullptr) return otherwise;
  if (found->text == "true") return true;
  if (found->text != "false") {
    problems_.add(found->span, fmt::format("'{}' must be true or false, not {}", key, in_quotes(found->text)));
  }
  return false;
}

std::optional<double> Fields::read_number(const ConfigNode& value, std::string_view key, UnitKind kind,
                                          const Range& range) {
  const std::variant<double, UnitError> parsed = parse_quantity(value.text, kind);
  if (const UnitError* error = std::get_if<UnitError>(&parsed)) {
    problems_.add(value.span, fmt::format("'{}': {}", key, error->message), error->hint);
    return std::nullopt;
  }
  const double number = std::get<double>(parsed);
  if (number >= range.min && number <= range.max) return number;
  problems_.add(value.span, fmt::format("'{}' is {}; it must be {}", key, value.text, range_text(range, kind)));
  return std::nullopt;
}

std::optional<double> Fields::optional_quantity(std::string_view key, UnitKind kind, Range range) {
  const ConfigNode* found = scalar(key, accepted_forms(kind));
  if (found == nullptr) return std::nullopt;
  // A wrong value was given, so the field is not absent: reading goes on as if it were in range.
  return read_number(*found, key, kind, range).value_or(std::clamp(1.0, range.min, range.max));
}

double Fields::quantity(std::string_view key, UnitKind kind, Range range) {
  const std::optional<double> found = optional_quantity(key, kind, range);
  tell_required(node_, key);
  if (!found) report_missing(key, accepted_forms(kind));
  return found.value_or(std::clamp(1.0, range.min, range.max));
}

std::optional<std::int64_t> Fields::optional_count(std::string_view key, Range range) {
  const std::optional<double> found = optional_quantity(key, UnitKind::kCount, range);
  if (!found) return std::nullopt;
  return static_cast<std::int64_t>(*found);
}

std::int64_t Fields::count(std::string_view key, Range range) {
  return static_cast<std::int64_t>(quantity(key, UnitKind::kCount, range));
}

std::optional<std::size_t> Fields::optional_word(std::string_view key, std::initializer_list<std::string_view> words) {
  return optional_word(key, std::span(words.begin(), words.size()));
}

std::optional<std::size_t> Fields::optional_word(std::string_view key, std::span<const std::string_view> words) {
  const ConfigNode* found = scalar(key, words);
  if (found == nullptr) return std::nullopt;
  const auto match = std::find(words.begin(), words.end(), found->text);
  if (match != words.end()) return static_cast<std::size_t>(match - words.begin());
  const std::vector<std::string> candidates(words.begin(), words.end());
  problems_.add(found->span,
                fmt::format("'{}' is {}; it must be one of {}", key, in_quotes(found->text), words_text(words)),
                did_you_mean(nearest(found->text, candidates)));
  return 0;
}

void refuse_other_version(std::string_view schema, const SourceSpan& where, std::string_view known) {
  const std::string_view kind = known.substr(0, known.find_last_of('/') + 1);
  if (schema == known || !schema.starts_with(kind)) return;
  throw UserError({Diagnostic{where, fmt::format("this is {}, and this release reads {}", schema, known),
                              "use the release of scalecalc that wrote it, or write it again"}});
}

void Fields::schema(std::string_view known, bool required) {
  if (const ConfigNode* found = node_.find("schema")) refuse_other_version(found->text, found->span, known);
  if (required) {
    word("schema", {known});
  } else {
    optional_word("schema", {known});
  }
}

std::size_t Fields::word(std::string_view key, std::initializer_list<std::string_view> words) {
  const std::optional<std::size_t> found = optional_word(key, words);
  tell_required(node_, key);
  if (!found) report_missing(key, "one of " + words_text(std::span(words.begin(), words.size())));
  return found.value_or(0);
}

std::vector<std::string> Fields::text_list(std::string_view key) {
  const ConfigNode* found = present(key);
  problems_.note(node_, key, "a text or a list of them");
  if (found == nullptr) return {};
  if (found->kind == ConfigNode::Kind::kScalar) return {found->text};
  std::vector<std::string> out;
  if (found->kind == ConfigNode::Kind::kMap) {
    problems_.add(found->span, fmt::format("'{}' must be a list of texts, not a map", key));
  }
  for (const ConfigNode& item : found->items) {
    if (item.kind == ConfigNode::Kind::kScalar && !item.text.empty()) {
      out.push_back(item.text);
    } else {
      problems_.add(
          item.span,
          fmt::format("'{}' must be a list of texts; this item is {}", key,
                      item.text.empty() && item.kind == ConfigNode::Kind::kScalar ? "empty" : kind_name(item.kind)));
    }
  }
  return out;
}

std::vector<std::int64_t> Fields::count_list(std::string_view key) {
  const ConfigNode* found = present(key);
  problems_.note(node_, key, "a list of counts");
  if (found == nullptr) return {};
  std::vector<std::int64_t> out;
  if (found->kind != ConfigNode::Kind::kSequence) {
    problems_.add(found->span,
                  fmt::format("'{}' must be a list of counts such as [4, 4, 8], not {}", key, kind_name(found->kind)));
  }
  for (const ConfigNode& item : found->items) {
    if (item.kind != ConfigNode::Kind::kScalar) {
      problems_.add(item.span,
                    fmt::format("'{}' must be a list of counts; this item is {}", key, kind_name(item.kind)));
    } else if (const auto number = read_number(item, key, UnitKind::kCount, {0, 1e15})) {
      out.push_back(static_cast<std::int64_t>(*number));
    }
  }
  return out;
}

void Fields::finish() {
  for (std::size_t i = 0; i < node_.entries.size(); ++i) {
    if (known_[i] == kKnown) continue;
    const ConfigNode::Entry& entry = node_.entries[i];
    const std::vector<std::string> keys = known();
    std::string hint = did_you_mean(nearest(entry.key, keys));
    if (hint.empty()) hint = "known keys: " + join(keys, ", ");
    if (entry.key_span.file.str() == "<command line>") {
      hint += hint.ends_with('?') ? " " : "; ";
      hint += "scalecalc hw or model NAME --keys lists what --set takes";
    }
    problems_.add(entry.key_span, fmt::format("unknown key {} in {}", in_quotes(entry.key), what_), std::move(hint));
  }
}

}  // namespace scalecalc
