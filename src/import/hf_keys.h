// The keys of a Hugging Face config.json: one quantity under several names, at one of two levels, absent or null. Every
// key that is looked at is written down, so that the rest can be listed as ignored.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "config/fields.h"
#include "config/node.h"
#include "import/notes.h"

namespace scalecalc {

/// A whole number with the place it was read from, so that a problem found later still points into the file.
struct Size {
  std::int64_t value = 0;
  SourceSpan where;
  bool known = true;  ///< false: missing or wrong and reported, so that what does not fit it is no news
};

/// Names of one quantity, in the order they are tried; a dot leads into a nested map.
using HfNames = std::initializer_list<std::string_view>;

inline constexpr const char* kClassDefault = "default of the class";
inline constexpr Range kSizeRange{1, 1e7};  // no published dimension comes near ten million

class HfKeys {
 public:
  /// `text` is the map with the sizes, `top` itself or one of its children, whose name is `prefix` then.
  HfKeys(const ConfigNode& top, const ConfigNode& text, std::string prefix, Problems& problems, ImportNotes& notes);

  /// The value of the first name that is there, null or not; marks it as read.
  const ConfigNode* find(HfNames names);
  /// The same, at the top level first.
  const ConfigNode* find_on_top(HfNames names);

  bool has(HfNames names);        ///< there and not null
  bool is_null(HfNames names);    ///< there and null
  bool says_none(HfNames names);  ///< the same where null means that there is none, which is remarked on
  std::optional<Size> size(HfNames names, Range range = kSizeRange);  ///< empty if absent or null
  /// Reports a quantity that is absent or null; `what` says what it is.
  Size required(HfNames names, std::string_view what, Range range = kSizeRange);
  Size size_or(HfNames names, std::int64_t otherwise, Range range = kSizeRange);
  /// 0 if absent, as the class has it, or null.
  Size size_or_none(HfNames names, Range range = kSizeRange);
  bool flag(HfNames names, bool otherwise);
  std::string text_or(HfNames names, std::string otherwise);
  /// The list under a name, or null; anything else is reported.
  const ConfigNode* list(HfNames names);

  /// A default that is not read as such but computed from other keys.
  void defaulted(std::string_view key, std::string value, std::string why);
  void remark(std::string text);
  void warn(std::string text);
  Problems& problems() { return problems_; }
  const SourceSpan& span() const { return text_.span; }
  const ConfigNode& text() const { return text_; }
  const ConfigNode& top() const { return top_; }
  bool nested() const { return &text_ != &top_; }  ///< the language model is a part of the file
  /// Whether a value, or something in it, was asked for.
  bool was_read(const ConfigNode& value) const { return read_.contains(&value) || any_read(value); }
  /// Reads a scalar as a whole number in `range`; reports what is wrong.
  std::optional<Size> whole(const ConfigNode& value, std::string_view key, Range range = kSizeRange);
  /// The same for a number that may have a fraction.
  std::optional<double> decimal(const ConfigNode& value, std::string_view key, Range range);

  /// Names of the keys that nobody asked for, of the file and of the language model in it.
  std::vector<std::string> unread() const;
  /// Fills the notes' list of keys that nobody asked for.
  void list_ignored();

 private:
  const ConfigNode* find_in(const ConfigNode& map, HfNames names);
  void mark(const ConfigNode& value, std::string_view key);
  /// The name of a quantity that the language model's map uses.
  std::string_view said(HfNames names) const;
  void list_ignored(const ConfigNode& map, const std::string& prefix);
  bool any_read(const ConfigNode& map) const;

  const ConfigNode& top_;
  const ConfigNode& text_;
  std::string prefix_;
  Problems& problems_;
  ImportNotes& notes_;
  std::unordered_set<const ConfigNode*> read_;
};

/// "4096", "true", "24 items": for notes.
std::string value_text(const ConfigNode& value);

}  // namespace scalecalc
