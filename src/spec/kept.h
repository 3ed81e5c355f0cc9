// What is made of a catalog's files once and kept for the questions that follow, where the catalog keeps anything.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/catalog.h"

namespace scalecalc {

/// What `load` makes; `key` names everything it is made from beside the catalog. The user's files that it was made from
/// are noted for every question that takes it.
template <class T, class Load>
std::shared_ptr<const T> kept(const Catalog& catalog, const std::string& key, Load load) {
  if (catalog.remembered() == nullptr) return std::make_shared<const T>(load());
  struct Made {
    std::optional<T> value;
    std::vector<ReplacedFile> from;
  };
  const std::shared_ptr<const Made> made = catalog.remembered()->get<Made>(key, [&] {
    Made out;
    out.from = catalog.replaced_by([&] { out.value.emplace(load()); });
    return out;
  });
  catalog.note_replaced(made->from);
  return {made, &*made->value};
}

/// A document that is read again and again, unchanged.
inline std::shared_ptr<const ConfigNode> kept_document(const Catalog& catalog, CatalogKind kind,
                                                       const std::string& name) {
  return kept<ConfigNode>(catalog, "document " + std::to_string(static_cast<int>(kind)) + " " + name,
                          [&] { return catalog.load(kind, name); });
}

}  // namespace scalecalc
