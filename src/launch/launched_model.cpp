// Finds the names under which launch files know the model and the chip of a question.
#include "launch/launched_model.h"

#include <algorithm>
#include <filesystem>

#include "config/json_reader.h"
#include "config/yaml_reader.h"
#include "import/hf_families.h"
#include "import/named_model.h"
#include "spec/kept.h"
#include "spec/load.h"

namespace scalecalc {
namespace {

/// As the file spells it, where a family has several spellings, of which each may name its modules in its own way.
std::string own_model_type(const ImportNotes& notes) {
  for (const auto& [key, value] : notes.read) {
    const HfFamily* family = key.ends_with("model_type") ? find_hf_family(value) : nullptr;
    if (family != nullptr && family->name == notes.family) return value;
  }
  return notes.family;
}

}  // namespace

LaunchedModel launched_model(const Catalog& catalog, const std::string& model, const std::vector<std::string>& sets) {
  if (std::any_of(sets.begin(), sets.end(), [](const std::string& set) { return set.starts_with("model."); })) {
    return {};
  }
  if (is_catalog_path(model)) {
    const std::filesystem::path path(model);
    if (path.filename() == "config.json") return {.catalog = {}, .repository = path.parent_path().string()};
    return {.catalog = {}, .repository = std::filesystem::exists(path / "config.json") ? model : ""};
  }
  LaunchedModel out{.catalog = catalog.name_of(CatalogKind::kModel, model).value_or(""), .repository = {}};
  const ConfigNode document = catalog.load(CatalogKind::kModel, model);
  const ConfigNode* aliases = document.find("aliases");
  if (aliases == nullptr) return out;
  for (const ConfigNode& alias : aliases->items) {
    if (out.repository.empty() && std::count(alias.text.begin(), alias.text.end(), '/') == 1) {
      out.repository = alias.text;
    }
  }
  return out;
}

std::string launched_draft(const Catalog& catalog, const std::string& draft) {
  if (draft == "mtp") return "";
  const LaunchedModel model = launched_model(catalog, draft, {});
  return model.repository.empty() ? draft : model.repository;
}

LaunchedModel facts_of_file(const Catalog& catalog, const std::string& model, const std::string& assume) {
  const ModelDocument read = load_model_document(catalog, model, assume);
  const ConfigNode* mlp = read.document.find("mlp");
  const ConfigNode* activation = mlp == nullptr ? nullptr : mlp->find("activation");
  const ConfigNode* family = read.document.find("model_type");
  const std::string imported = read.import ? own_model_type(*read.import) : "";
  return {.model_type = family != nullptr ? family->text : imported,
          .activation = activation == nullptr ? "" : activation->text};
}

std::optional<TpuNames> names_of_tpu(const Catalog& catalog, const std::string& hardware) {
  if (!is_catalog_path(hardware) && !catalog.name_of(CatalogKind::kHardware, hardware)) return std::nullopt;
  return tpu_names(*kept_document(catalog, CatalogKind::kHardware, hardware));
}

}  // namespace scalecalc
