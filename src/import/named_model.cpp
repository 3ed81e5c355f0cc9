// Loads the document of a model from the catalog, a file, a config.json or a directory.
#include "import/named_model.h"

#include <filesystem>

#include "base/io.h"
#include "config/json_reader.h"
#include "import/gguf.h"
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
  return read_json(read_text_file(beside.string()), beside.string(), limits::kTableNodes);
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

/// A GGUF file says sizes, and of each tensor its type, from which come the formats of the parts.
ModelDocument gguf_document(const std::string& path, const std::string& assume) {
  GgufModel file = read_gguf(path);
  ImportedModel imported = import_hf_config(file.config, nullptr, assume);
  std::erase_if(imported.document.entries, [](const ConfigNode::Entry& e) { return e.key == "quantization"; });
  std::erase_if(imported.notes.defaults, [](const ImportNotes::Default& d) { return d.key == "dtype"; });
  const SourceSpan where = file.quantization.span;
  imported.document.entries.push_back({"quantization", where, std::move(file.quantization)});
  ModelDocument out{std::move(imported.document), std::move(imported.notes)};
  out.index = SafetensorsIndex{.file = path, .total_bytes = file.bytes, .tensors = file.tensors};
  out.as_imported = out.document;
  return out;
}

}  // namespace

ModelDocument load_model_document(const Catalog& catalog, const std::string& name_or_path, const std::string& assume) {
  if (is_gguf(name_or_path)) return gguf_document(name_or_path, assume);
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
