// A Hugging Face config.json as a model document, with notes on what was read, filled in and left alone.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/node.h"
#include "import/hf_architecture.h"
#include "import/notes.h"

namespace scalecalc {

struct ImportedModel {
  ConfigNode document;  ///< schema scalecalc-model/1; its places are those of the config.json
  ImportNotes notes;
};

/// Whether a document is a config.json: it is none of ours and names a model_type or architectures, or has sizes by
/// Hugging Face's names.
bool is_hf_config(const ConfigNode& document);

/// `beside` is the document of hf_quant_config.json in the same directory, or null. `assume` forces the reading of a
/// family (empty: the file says which), of the linear layers' format (weights=int4), or both with a comma between, and
/// is then among the warnings. UserError with every problem: a family that is
/// not known or not read, sizes that are missing or do not fit each other.
ImportedModel import_hf_config(const ConfigNode& config, const ConfigNode* beside = nullptr,
                               const std::string& assume = "");

// The document of schema scalecalc-model/1 that an architecture makes. The loader reads it like any model file.

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
