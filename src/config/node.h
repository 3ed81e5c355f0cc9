// A YAML document as a tree that remembers where every key and value stands. Scalars stay text: units, numbers and
// names are read by us, because yaml-cpp reads 010 as 8 and yes as true.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/diagnostic.h"

namespace scalecalc {

struct ConfigNode {
  enum class Kind { kScalar, kSequence, kMap };
  struct Entry;

  Kind kind = Kind::kScalar;
  std::string text;     ///< scalar only
  bool quoted = false;  ///< scalar written in quotes
  SourceSpan span;      ///< of the value; a block map or list under a key, and an empty value, stand at their key
  std::vector<ConfigNode> items;  ///< sequence only
  std::vector<Entry> entries;     ///< map only, in file order; keys are unique

  /// The value under `key` of a map, or null.
  const ConfigNode* find(std::string_view key) const;
  bool is_null() const { return kind == Kind::kScalar && !quoted && (text.empty() || text == "null" || text == "~"); }
};

struct ConfigNode::Entry {
  std::string key;
  SourceSpan key_span;
  ConfigNode value;
};

/// What an item of a list calls itself, `tier:` or `name:`; empty if it does not.
std::string_view item_name(const ConfigNode& item);

/// "a text", "a list", "a map": for messages.
std::string_view kind_name(ConfigNode::Kind kind);

}  // namespace scalecalc
