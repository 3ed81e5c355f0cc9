// Everywhere a MODEL is named: a catalog name, a model file, a Hugging Face config.json, or a directory with one.
#pragma once

#include <optional>
#include <string>

#include "config/catalog.h"
#include "import/hf_config.h"
#include "import/safetensors_index.h"

namespace scalecalc {

/// A model document as the loader reads it, before --set. `import` says how it came about if it is not one of ours.
struct ModelDocument {
  ConfigNode document;
  std::optional<ImportNotes> import;
  /// The checkpoint that lies beside an imported file, and the document as it was before --set.
  std::optional<SafetensorsIndex> index{};
  ConfigNode as_imported{};
};

/// `assume` names the family a config.json is read as (empty: what it says); with any other document it is a UserError.
/// A hf_quant_config.json in the directory of a file named config.json is read too, and what the checkpoint there says
/// of its size.
ModelDocument load_model_document(const Catalog& catalog, const std::string& name_or_path,
                                  const std::string& assume = "");

}  // namespace scalecalc
