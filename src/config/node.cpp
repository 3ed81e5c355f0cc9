// Finds keys in the tree of a document and names the kinds of its nodes.
#include "config/node.h"

#include <algorithm>

namespace scalecalc {

const ConfigNode* ConfigNode::find(std::string_view key) const {
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.key == key; });
  return found == entries.end() ? nullptr : &found->value;
}

std::string_view item_name(const ConfigNode& item) {
  for (const char* key : {"tier", "name"}) {
    if (const ConfigNode* name = item.find(key)) return name->text;
  }
  return "";
}

std::string_view kind_name(ConfigNode::Kind kind) {
  switch (kind) {
    case ConfigNode::Kind::kScalar: return "a text";
    case ConfigNode::Kind::kSequence: return "a list";
    case ConfigNode::Kind::kMap: return "a map";
  }
  return "";
}

}  // namespace scalecalc
