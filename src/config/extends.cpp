// Merges a file with the one that its `extends:` names, so that a variant lists only what differs.
#include "config/extends.h"

#include <fmt/format.h>

#include <algorithm>

namespace scalecalc {
namespace {

ConfigNode* field(ConfigNode& map, std::string_view key) {
  for (ConfigNode::Entry& entry : map.entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

bool has_names(const ConfigNode& list) {
  return list.kind == ConfigNode::Kind::kSequence && !list.items.empty() &&
         std::none_of(list.items.begin(), list.items.end(),
                      [](const ConfigNode& item) { return item_name(item).empty(); });
}

void merge(ConfigNode& base, const ConfigNode& own) {
  if (base.kind == ConfigNode::Kind::kMap && own.kind == ConfigNode::Kind::kMap) {
    for (const ConfigNode::Entry& entry : own.entries) {
      if (ConfigNode* there = field(base, entry.key)) {
        merge(*there, entry.value);
      } else {
        base.entries.push_back(entry);
      }
    }
    return;
  }
  if (has_names(base) && has_names(own)) {
    for (const ConfigNode& item : own.items) {
      const auto there = std::find_if(base.items.begin(), base.items.end(),
                                      [&](const ConfigNode& b) { return item_name(b) == item_name(item); });
      if (there == base.items.end()) {
        base.items.push_back(item);
      } else {
        merge(*there, item);
      }
    }
    return;
  }
  base = own;
}

}  // namespace

ConfigNode extended(ConfigNode base, const ConfigNode& own) {
  std::erase_if(base.entries, [](const ConfigNode::Entry& e) { return e.key == "name" || e.key == "aliases"; });
  const ConfigNode* name = own.find("name");
  if (ConfigNode* title = field(base, "title"); title != nullptr && name != nullptr && own.find("title") == nullptr) {
    title->text += fmt::format(" ({})", name->text);
  }
  base.span = own.span;
  merge(base, own);
  std::erase_if(base.entries, [](const ConfigNode::Entry& e) { return e.key == "extends"; });
  return base;
}

}  // namespace scalecalc
