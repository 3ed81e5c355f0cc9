#include "import/named_model.h"

#include <filesystem>

#include "base/io.h"
#include "config/json_reader.h"
#include "spec/load.h"

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

/// The checkpoint beside a config.json, if the model can be read.
void add_index(ModelDocument& model, const std::string& file) {
  const fs::path path(file);
  if (path.filename() != "config.json") return;
  std::int64_t layers = 0;
  try {
    layers = load_model(model.document).layers();
  } catch (const UserError&) {
    return;  // the model's own problem, which is told when it is loaded
  }
  model.index = safetensors_beside(path.parent_path().string(), layers);
  if (model.index) model.as_imported = model.document;
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
  ModelDocument out{std::move(imported.document), std::move(imported.notes)};
  add_index(out, document.span.file);
  return out;
}

}  // namespace scalecalc
