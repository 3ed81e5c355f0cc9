// What is made of a catalog's files once and kept for the questions that follow, where the catalog keeps anything.
#pragma once

#include <memory>
#include <string>

#include "config/catalog.h"

namespace scalecalc {

/// What `load` makes; `key` names everything it is made from beside the catalog.
template <class T, class Load>
std::shared_ptr<const T> kept(const Catalog& catalog, const std::string& key, Load load) {
  return catalog.remembered() == nullptr ? std::make_shared<const T>(load()) : catalog.remembered()->get<T>(key, load);
}

/// A document that is read again and again, unchanged.
inline std::shared_ptr<const ConfigNode> kept_document(const Catalog& catalog, CatalogKind kind,
                                                       const std::string& name) {
  return kept<ConfigNode>(catalog, "document " + std::to_string(static_cast<int>(kind)) + " " + name,
                          [&] { return catalog.load(kind, name); });
}

}  // namespace scalecalc
