// The JSON Schemas by which editors check and complete files (docs/schema/files), made of what the readers of the
// catalog's files ask for. SCALECALC_UPDATE_SCHEMAS=1 writes them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "batch/study.h"
#include "cli/ask_command.h"
#include "config/catalog.h"
#include "config/field_recorder.h"
#include "config/yaml_reader.h"
#include "import/named_model.h"
#include "launch/framework.h"
#include "plan/stack_supports.h"
#include "spec/load.h"
#include "spec/load_stack.h"
#include "validate/measurement.h"
#include "validate/training_rows_options.h"

namespace scalecalc {
namespace {

using SchemaJson = nlohmann::ordered_json;
namespace fs = std::filesystem;

/// What was seen at one place of all files of a kind.
struct Place {
  std::set<std::string> forms;
  std::set<ConfigNode::Kind> kinds;
  std::map<std::string, Place> fields;  ///< of maps whose fields somebody asked for
  std::unique_ptr<Place> any;           ///< of maps whose keys are names
  std::unique_ptr<Place> item;
  bool asked = false;
  std::size_t maps = 0;                         ///< that were asked for fields
  std::map<std::string, std::size_t> required;  ///< in how many of them a field was
};

Place& made(std::unique_ptr<Place>& place) {
  if (!place) place = std::make_unique<Place>();
  return *place;
}

/// The fields asked for, by the map they are of.
using Asked = std::map<const ConfigNode*, std::map<std::string, std::set<std::string>>>;

void merge(const ConfigNode& node, const Asked& asked, Place& place) {
  place.kinds.insert(node.kind);
  if (node.kind == ConfigNode::Kind::kSequence) {
    for (const ConfigNode& item : node.items) merge(item, asked, made(place.item));
  }
  if (node.kind != ConfigNode::Kind::kMap) return;
  const auto found = asked.find(&node);
  if (found != asked.end()) {
    place.asked = true;
    ++place.maps;
    for (const auto& [key, forms] : found->second) {
      for (const std::string& form : forms) {
        if (form == FieldRecorder::kRequired) {
          ++place.required[key];
        } else {
          place.fields[key].forms.insert(form);
        }
      }
    }
  }
  for (const ConfigNode::Entry& entry : node.entries) {
    const bool known = found != asked.end() && found->second.contains(entry.key);
    if (entry.value.is_null()) continue;
    merge(entry.value, asked, known ? place.fields[entry.key] : made(place.any));
  }
}

/// YAML reads 8192, 3.5 and true as no texts; our readers take any scalar for a text.
SchemaJson scalar_of(const std::string& form) {
  constexpr std::string_view kOneOf = "one of ";
  if (form == "true or false") return {{"type", "boolean"}};
  if (form.starts_with(kOneOf)) {
    SchemaJson words = SchemaJson::array();
    std::string_view rest = std::string_view(form).substr(kOneOf.size());
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(", "), rest.size());
      words.push_back(std::string(rest.substr(0, end)));
      rest.remove_prefix(std::min(end + 2, rest.size()));
    }
    return {{"enum", std::move(words)}};
  }
  if (form == "a text") return {{"type", {"string", "number", "boolean"}}};
  const SchemaJson text = {{"type", {"string", "number", "boolean"}}};
  if (form == "a text or a list of them") return {{"anyOf", {text, {{"type", "array"}, {"items", text}}}}};
  const SchemaJson number = {
      {"anyOf", {{{"type", "number"}}, {{"type", "string"}, {"pattern", "[0-9]|^unpublished$"}}}}};
  if (form == "a list of counts") return {{"type", "array"}, {"items", number}};
  SchemaJson out = number;
  out["description"] = form;
  return out;
}

SchemaJson schema_of(const Place& place, bool root);

bool g_extended = false;  // whether files of the kind that is written may extend others

SchemaJson map_of(const Place& place, bool root) {
  SchemaJson out = {{"type", "object"}};
  if (!place.asked) {
    if (place.any) out["additionalProperties"] = schema_of(*place.any, false);
    return out;
  }
  SchemaJson properties = SchemaJson::object();
  for (const auto& [key, field] : place.fields) properties[key] = schema_of(field, false);
  if (root)
    properties["extends"] = {{"type", "string"},
                             {"description", "a name, or a file: what it lacks is taken from there"}};
  out["properties"] = std::move(properties);
  out["additionalProperties"] = place.any ? schema_of(*place.any, false) : SchemaJson(false);
  // A file that extends another has what it lacks from there, in its inner maps too.
  SchemaJson required = SchemaJson::array();
  for (const auto& [key, times] : place.required) {
    if (times == place.maps) required.push_back(key);
  }
  if (root && !required.empty()) {
    const SchemaJson other = {{"required", {"extends"}}}, whole = {{"required", required}};
    out["anyOf"] = {other, whole};
  } else if (!g_extended && !required.empty()) {
    out["required"] = std::move(required);
  }
  return out;
}

SchemaJson schema_of(const Place& place, bool root) {
  std::vector<SchemaJson> ways;
  for (const std::string& form : place.forms) {
    if (!form.empty()) ways.push_back(scalar_of(form));
  }
  const bool formless = ways.empty();
  if (place.asked || place.kinds.contains(ConfigNode::Kind::kMap)) ways.push_back(map_of(place, root));
  if (formless || place.item) {
    // Read by itself: what no file has shown may still be legal, as long as maps and lists are told apart.
    if (place.kinds.contains(ConfigNode::Kind::kSequence)) {
      ways.push_back({{"type", "array"}, {"items", place.item ? schema_of(*place.item, false) : SchemaJson::object()}});
    }
    if (place.kinds.contains(ConfigNode::Kind::kScalar)) ways.push_back({{"type", {"string", "number", "boolean"}}});
  }
  if (ways.empty()) return SchemaJson::object();
  if (ways.size() == 1) return ways.front();
  // One way that holds another's is enough to say.
  SchemaJson any = SchemaJson::array();
  for (const SchemaJson& way : ways) {
    if (std::find(any.begin(), any.end(), way) == any.end()) any.push_back(way);
  }
  return any.size() == 1 ? any.front() : SchemaJson{{"anyOf", any}};
}

std::string text_of_file(const fs::path& path) {
  std::ifstream in(path);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

ConfigNode read_file(const fs::path& path) {
  constexpr std::size_t kManyNodes = 10'000'000;  // all measurements
  return read_yaml(text_of_file(path), path.string(), kManyNodes);
}

template <class Read>
void record(const ConfigNode& document, Place& place, Read read) {
  Asked asked;
  {
    const FieldRecorder recorder([&](const ConfigNode& map, std::string_view key, std::string_view form) {
      asked[&map][std::string(key)].insert(std::string(form));
    });
    read(document);
  }
  merge(document, asked, place);
}

std::vector<fs::path> files_in(const std::string& directory) {
  std::vector<fs::path> out;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(SCALECALC_SOURCE_DIR) / "configs" / directory)) {
    if (entry.path().extension() == ".yaml") out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

void expect_schema(const std::string& name, const std::string& title, const Place& place, bool extends) {
  SchemaJson out = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                    {"title", title},
                    {"description",
                     "For editors. Made of what scalecalc reads (tests/unit/spec/file_schemas_test.cpp); the "
                     "program checks ranges and what belongs together."}};
  g_extended = extends;
  out.update(schema_of(place, extends));
  const fs::path path = fs::path(SCALECALC_SOURCE_DIR) / "docs" / "schema" / "files" / (name + ".schema.json");
  const std::string text = out.dump(1) + "\n";
  if (std::getenv("SCALECALC_UPDATE_SCHEMAS") != nullptr) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  EXPECT_TRUE(text == text_of_file(path)) << path << " is not what the readers ask for: run this test with "
                                          << "SCALECALC_UPDATE_SCHEMAS=1 and read the difference";
}

/// The catalog has no model of some kinds; what is made of configuration files of each family is a model file too.
std::vector<ConfigNode> model_documents() {
  std::vector<ConfigNode> out;
  for (const fs::path& path : files_in("models")) out.push_back(read_file(path));
  const Catalog catalog;
  std::vector<fs::path> imported;
  for (const auto& entry : fs::directory_iterator(fs::path(SCALECALC_SOURCE_DIR) / "tests" / "data" / "hf")) {
    if (entry.path().extension() == ".json") imported.push_back(entry.path());
  }
  std::sort(imported.begin(), imported.end());
  for (const fs::path& path : imported) out.push_back(load_model_document(catalog, path.string()).document);
  return out;
}

TEST(FileSchemas, OfModels) {
  Place place;
  std::set<MixerKind> mixers;
  for (const ConfigNode& document : model_documents()) {
    record(document, place, [&](const ConfigNode& d) {
      for (const LayerKind& kind : load_model(d).kinds) mixers.insert(kind.mixer);
    });
  }
  for (std::size_t i = 0; i < kMixerNames.size(); ++i) {
    EXPECT_TRUE(mixers.contains(static_cast<MixerKind>(i))) << "no document shows what " << kMixerNames[i] << " has";
  }
  expect_schema("model", "A model file of scalecalc", place, true);
}

/// The chip with the coefficients of its family's file, which has them all, as its own and as those of a stack.
ConfigNode with_all_coefficients(ConfigNode chip, const ConfigNode& family) {
  ConfigNode own{.kind = ConfigNode::Kind::kMap};
  for (const ConfigNode::Entry& entry : family.entries) {
    const bool is_block = entry.key == "stacks" || entry.key == "architectures" || entry.key == "sources";
    if (entry.value.kind == ConfigNode::Kind::kMap && !is_block) own.entries.push_back(entry);
  }
  ConfigNode stacks{.kind = ConfigNode::Kind::kMap};
  stacks.entries.push_back({"megatron", {}, own});
  own.entries.push_back({"stacks", {}, stacks});
  for (ConfigNode::Entry& entry : chip.entries) {
    if (entry.key == "efficiency") entry.value = own;
  }
  return chip;
}

TEST(FileSchemas, OfHardware) {
  Place place;
  const Catalog catalog;
  for (const fs::path& path : files_in("hardware")) {
    record(read_file(path), place, [&](const ConfigNode& d) { load_hardware(d, catalog, Unpublished::kAllowed); });
  }
  const ConfigNode chip = catalog.load(CatalogKind::kHardware, "h100-sxm");
  for (const fs::path& path : files_in("efficiency")) {
    record(with_all_coefficients(chip, read_file(path)), place,
           [&](const ConfigNode& d) { load_hardware(d, catalog); });
  }
  expect_schema("hardware", "A hardware file of scalecalc", place, true);
}

TEST(FileSchemas, OfStacks) {
  Place place;
  const Catalog catalog;
  std::map<fs::path, std::shared_ptr<const ConfigNode>> all;  // launch: blocks name lists of other files
  for (const fs::path& path : files_in("stacks")) all[path] = std::make_shared<const ConfigNode>(read_file(path));
  for (const auto& [path, document] : all) {
    record(*document, place, [&](const ConfigNode& d) {
      load_stack(d);
      load_supports(catalog, path.stem().string(), d);
      std::vector<std::shared_ptr<const ConfigNode>> documents{{std::shared_ptr<const ConfigNode>(), &d}};
      for (const auto& [other, known] : all) {
        if (other != path) documents.push_back(known);
      }
      load_frameworks(std::move(documents));
    });
  }
  expect_schema("stack", "A software stack of scalecalc", place, false);
}

TEST(FileSchemas, OfMeasurements) {
  Place train, serve, rl;
  constexpr std::size_t kSample = 60;  // rows of a file: they say the same over and over
  for (const fs::path& path : files_in("measurements")) {
    ConfigNode document = read_file(path);
    for (ConfigNode::Entry& entry : document.entries) {
      if (entry.key != "rows" || entry.value.items.size() <= kSample) continue;
      std::vector<ConfigNode> kept;
      for (std::size_t i = 0; i < kSample; ++i) {
        kept.push_back(entry.value.items[i * entry.value.items.size() / kSample]);
      }
      entry.value.items = std::move(kept);
    }
    const std::string name = path.stem().string();
    if (name == "rl") {
      record(document, rl, [](const ConfigNode& d) { read_rl_measurements(d); });
    } else if (name == "serve") {
      record(document, serve, [](const ConfigNode& d) { read_serve_measurements(d); });
    } else {
      record(document, train, [](const ConfigNode& d) { cli::read_measurements(d); });
    }
  }
  expect_schema("train-measurements", "Measured training runs of scalecalc", train, false);
  expect_schema("serve-measurements", "Measured serving figures of scalecalc", serve, false);
  expect_schema("rl-measurements", "Measured steps of reinforcement learning of scalecalc", rl, false);
}

/// A study's own fields; its axes and flags are names of the command's.
TEST(FileSchemas, OfStudies) {
  Place place;
  for (const fs::path& path : files_in("studies")) {
    const ConfigNode document = read_file(path);
    Asked asked;
    const FieldRecorder recorder([&](const ConfigNode& map, std::string_view key, std::string_view form) {
      const bool own = map.find("axes") != nullptr && map.find("command") != nullptr;  // of a copy of the document
      if (own) asked[&document][std::string(key)].insert(std::string(form));
    });
    read_study(path.string(), cli::command_forms(), {});
    merge(document, asked, place);
  }
  for (const char* free : {"axes", "flags"}) {
    place.fields.at(free) = Place{};
    place.fields.at(free).kinds = {ConfigNode::Kind::kMap};
  }
  expect_schema("study", "A study of scalecalc batch", place, false);
}

}  // namespace
}  // namespace scalecalc
