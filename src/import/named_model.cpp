#include "import/named_model.h"

#include <filesystem>

#include "base/io.h"
#include "config/json_reader.h"

namespace scalecalc {
namespace {

namespace fs = std::filesystem;

/// NVIDIA ModelOpt's file beside a config.json, or nothing.
std::optional<ConfigNode> quantization_beside(const std::string& file) {
  const fs::path path(file);
  if (path.filename() != "config.json") return std::nullopt;
  const fs::path beside = path.parent_path() / "hf_quant_config.json";
  std::error_code ignored;
  if (!fs::exists(beside, ignored)) return std::nullopt;
  return read_json(read_text_file(beside.string()), beside.string(), kMostModuleNodes);
}

}  // namespace

ModelDocument load_model_document(const Catalog& catalog, const std::string& name_or_path, const std::string& assume) {
  ConfigNode document = catalog.load(CatalogKind::kModel, name_or_path);
  if (!is_hf_config(document)) {
    if (assume.empty()) return {std::move(document), std::nullopt};
    throw UserError("--assume says how to read a Hugging Face config.json, and the model is none",
                    "leave --assume out");
  }
  const std::optional<ConfigNode> beside = quantization_beside(document.span.file);
  ImportedModel imported = import_hf_config(document, beside ? &*beside : nullptr, assume);
  return {std::move(imported.document), std::move(imported.notes)};
}

}  // namespace scalecalc
