// Reading the fields of one map: required and optional, with units, ranges and enumerations. Every problem of a
// document is collected, so that the user mends a file once.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/units.h"
#include "config/node.h"

namespace scalecalc {

/// A field that was asked for while a document was read, and what it may be; empty: a block or a list of them.
struct AskedField {
  const ConfigNode* map = nullptr;
  std::string key;
  std::string form;
};

/// Problems found so far in one document, in the order found; at most 20 are kept.
class Problems {
 public:
  Problems() = default;
  /// Keeps every field that is asked for too, each once.
  explicit Problems(std::vector<AskedField>* asked) : asked_(asked) {}
  void note(const ConfigNode& map, std::string_view key, std::string_view form = "");
  /// Whether note() has anyone to tell: forms are put into words for that alone.
  bool has_listeners() const;
  /// A place without a file (a missing node, reported before) adds nothing to other problems.
  void add(const SourceSpan& where, std::string message, std::string hint = "");
  bool empty() const { return found_.empty(); }
  /// UserError with all of them, sorted by line, if there are any.
  void throw_if_any() const;

 private:
  std::vector<Diagnostic> found_;
  std::vector<AskedField>* asked_ = nullptr;
};

/// Inclusive range of a number in base units; the message prints it in the user's units.
struct Range {
  double min;
  double max;
};
inline constexpr Range kPositive{1e-30, 1e30};

/// UserError where `schema` names another version of the document than `known`: "scalecalc/train/2".
void refuse_other_version(std::string_view schema, const SourceSpan& where, std::string_view known);

/// The fields of one map. Getters mark their key as known; finish() reports the unknown ones with the nearest valid
/// name. A getter whose value is missing or wrong reports it and returns a harmless default, so reading goes on.
class Fields {
 public:
  /// `what` names the map for messages: "hardware", "network tier". A node that is not a map is reported.
  Fields(const ConfigNode& node, std::string what, Problems& problems);

  bool has(std::string_view key);                         ///< present and not null; marks the key as known
  const ConfigNode* node(std::string_view key);           ///< optional child; marks the key as known
  const ConfigNode& required_node(std::string_view key);  ///< reports if missing; then an empty scalar

  std::string text(std::string_view key);
  std::optional<std::string> optional_text(std::string_view key);
  bool flag(std::string_view key, bool otherwise);  ///< true / false only
  std::int64_t count(std::string_view key, Range range = {1, 1e15});
  std::optional<std::int64_t> optional_count(std::string_view key, Range range = {1, 1e15});
  double quantity(std::string_view key, UnitKind kind, Range range = kPositive);
  std::optional<double> optional_quantity(std::string_view key, UnitKind kind, Range range = kPositive);
  /// "scalecalc-model/1", of which another version is a UserError of its own: nothing else in it need be as it was.
  void schema(std::string_view known, bool required = true);
  /// One of `words`, by position; reports the accepted words and the nearest.
  std::size_t word(std::string_view key, std::initializer_list<std::string_view> words);
  std::optional<std::size_t> optional_word(std::string_view key, std::initializer_list<std::string_view> words);
  std::optional<std::size_t> optional_word(std::string_view key, std::span<const std::string_view> words);
  std::vector<std::string> text_list(std::string_view key);    ///< a list, or one text; empty if absent
  std::vector<std::int64_t> count_list(std::string_view key);  ///< empty if absent

  Problems& problems() { return problems_; }
  const SourceSpan& span() const { return node_.span; }
  const std::string& what() const { return what_; }
  /// Reports every key nobody asked for.
  void finish();

 private:
  const ConfigNode* present(std::string_view key);
  const ConfigNode* scalar(std::string_view key, std::string_view expected);
  const ConfigNode* scalar(std::string_view key, std::span<const std::string_view> words);
  std::vector<std::string> known() const;
  void report_missing(std::string_view key, std::string_view expected);
  std::optional<double> read_number(const ConfigNode& value, std::string_view key, UnitKind kind, const Range& range);

  const ConfigNode& node_;
  std::string what_;
  Problems& problems_;
  bool readable_;          ///< a map; otherwise the problem was reported once and getters keep quiet
  std::string asked_for_;  ///< keys, each behind its line end, as often as they were asked for
  std::string known_;      ///< of each entry whether its key was asked for
};

}  // namespace scalecalc
