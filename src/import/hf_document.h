// The document of schema scalecalc-model/1 that an architecture makes. The loader reads it like any model file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/node.h"
#include "import/hf_architecture.h"

namespace scalecalc {

/// Builds a map; every value stands where it was read from, and the map at its first one.
class MapBuilder {
 public:
  explicit MapBuilder(const SourceSpan& otherwise) { node_.kind = ConfigNode::Kind::kMap, node_.span = otherwise; }
  MapBuilder& add(std::string_view key, ConfigNode value);
  MapBuilder& add(std::string_view key, const Size& size);
  MapBuilder& add(std::string_view key, std::string_view text);
  MapBuilder& add_if(std::string_view key, const Size& size);  ///< unless 0
  MapBuilder& add_if(std::string_view key, bool flag);         ///< only true is written
  ConfigNode take() { return std::move(node_); }
  bool empty() const { return node_.entries.empty(); }

 private:
  ConfigNode node_;
};

ConfigNode text_node(std::string_view text, const SourceSpan& where);

/// The layers as few `{repeat, kinds}` groups.
ConfigNode layers_node(const std::vector<HfLayer>& layers, const SourceSpan& where);

/// `where` is the place of the whole file, for what no key says.
ConfigNode model_document(const HfArchitecture& model, const std::string& name, const SourceSpan& where);

}  // namespace scalecalc
