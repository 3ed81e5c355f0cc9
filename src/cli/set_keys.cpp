// Lists every key that --set can change in a file, for `hw --keys` and `model --keys`.
#include "cli/set_keys.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/diagnostic.h"
#include "base/text.h"
#include "config/catalog.h"

namespace scalecalc::cli {
namespace {

struct Key {
  std::string path;
  std::string value;  ///< empty: not given
  std::string form;   ///< empty: a block or a list of blocks
  bool block = false;
};

std::string value_of(const ConfigNode& node) {
  if (node.kind == ConfigNode::Kind::kScalar) return node.text;
  std::vector<std::string> items;
  for (const ConfigNode& item : node.items) {
    if (item.kind != ConfigNode::Kind::kScalar) return "";
    items.push_back(item.text);
  }
  return join(items, ", ");
}

std::vector<Key> keys_of(const ConfigNode& document, const DocumentReader& read) {
  std::vector<AskedField> asked;
  try {
    read(document, asked);
  } catch (const UserError&) {
    // Blocks that were added empty lack what they must have; which fields they may have is known by then.
  }
  const auto paths = override_paths(document);
  std::vector<Key> out;
  for (const AskedField& field : asked) {
    const auto map = paths.find(field.map);
    if (map == paths.end()) continue;  // of another file, such as the family's coefficients
    const ConfigNode* node = field.map->find(field.key);
    const bool scalar = node == nullptr || node->kind == ConfigNode::Kind::kScalar;
    out.push_back({map->second.empty() ? field.key : fmt::format("{}.{}", map->second, field.key),
                   node == nullptr ? "" : value_of(*node), field.form, field.form.empty() && scalar});
  }
  return out;
}

void add_empty_block(ConfigNode& document, const std::string& path) {
  ConfigNode empty;
  empty.kind = ConfigNode::Kind::kMap;
  document.entries.push_back({path, document.span, std::move(empty)});
}

}  // namespace

Output set_keys_output(std::string_view scope, ConfigNode document, const DocumentReader& read) {
  std::vector<AskedField> checked;
  read(document, checked);  // a wrong file or --set is reported as everywhere
  const std::string name = document.find("name") == nullptr ? "" : document.find("name")->text;
  for (const Key& key : keys_of(document, read)) {
    const bool absent = document.find(key.path) == nullptr && key.path.find('.') == std::string::npos;
    if (key.block && absent) add_empty_block(document, key.path);
  }
  Block block{.key = "keys"};
  for (const Key& key : keys_of(document, read)) {
    if (key.form.empty() && (key.value.empty() || !key.block)) continue;  // its fields are what can be set
    block.records.push_back({{text_figure("key", "key", fmt::format("{}.{}", scope, key.path)),
                              figure("value", "here", Format::kText, key.value.empty() ? Cell{} : Cell(key.value)),
                              text_figure("form", "may be", key.form)}});
  }
  Output out{.command = "keys", .title = fmt::format("What --set can change of {}", name)};
  out.query.figures.push_back(datum("name", name));
  out.notes.push_back(fmt::format("--set {} replaces one for the question it stands in.",
                                  scope == "hw" ? "hw.hbm.bandwidth=5TB/s" : "model.vocab=32000"));
  out.blocks.push_back(std::move(block));
  return out;
}

}  // namespace scalecalc::cli
