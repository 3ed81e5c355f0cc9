// One config.json of each family and size under tests/data/hf, in the keys its family really uses: the counts are those
// of the published checkpoints, and those of the catalog where it has the model.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <ostream>
#include <set>

#include "base/io.h"
#include "config/json_reader.h"
#include "config/yaml_reader.h"
#include "config/yaml_writer.h"
#include "import/hf_families.h"
#include "import/named_model.h"
#include "model/accounting.h"
#include "model/kv_cache.h"
#include "spec/load.h"

namespace scalecalc {
namespace {

const std::string kPlace = SCALECALC_SOURCE_DIR "/tests/data/hf/";

struct Expected {
  std::string file;
  double total = 0;
  double active = 0;
  std::string catalog;
  double kv_full = -1, kv_windowed = 0, state = 0;  ///< -1: not given
  double towers = 0;
};

/// For failure messages; without it gtest prints bytes.
void PrintTo(const Expected& expected, std::ostream* out) { *out << expected.file; }

std::string text_of(const ConfigNode& map, const char* key) {
  const ConfigNode* found = map.find(key);
  return found == nullptr ? "" : found->text;
}

std::vector<Expected> expected_models() {
  std::vector<Expected> out;
  const std::string file = kPlace + "expected.yaml";
  const ConfigNode table = read_yaml(read_text_file(file), file);
  for (const ConfigNode& row : table.find("models")->items) {
    Expected expected{text_of(row, "file"), std::stod(text_of(row, "total")), 0, text_of(row, "catalog")};
    if (const std::string kept = text_of(row, "kv_full"); !kept.empty()) {
      expected.kv_full = std::stod(kept);
      expected.kv_windowed = std::stod(text_of(row, "kv_windowed"));
      expected.state = std::stod(text_of(row, "state"));
    }
    if (const std::string towers = text_of(row, "towers"); !towers.empty()) expected.towers = std::stod(towers);
    const std::string active = text_of(row, "active");
    expected.active = active.empty() ? expected.total : std::stod(active);
    out.push_back(expected);
  }
  return out;
}

void expect_same(const ConfigNode& a, const ConfigNode& b) {
  ASSERT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.text, b.text);
  EXPECT_EQ(a.is_null(), b.is_null());
  ASSERT_EQ(a.items.size(), b.items.size());
  for (std::size_t i = 0; i < a.items.size(); ++i) expect_same(a.items[i], b.items[i]);
  ASSERT_EQ(a.entries.size(), b.entries.size());
  for (std::size_t i = 0; i < a.entries.size(); ++i) {
    EXPECT_EQ(a.entries[i].key, b.entries[i].key);
    expect_same(a.entries[i].value, b.entries[i].value);
  }
}

class HfModel : public testing::TestWithParam<Expected> {};

TEST_P(HfModel, HasTheParametersOfItsCheckpoint) {
  const ModelDocument document = load_model_document(Catalog(), kPlace + GetParam().file + ".json");
  const ParameterCount count = count_parameters(load_model(document.document));
  EXPECT_EQ(static_cast<long long>(count.total), static_cast<long long>(GetParam().total));
  EXPECT_EQ(static_cast<long long>(count.active), static_cast<long long>(GetParam().active));
  EXPECT_EQ(static_cast<long long>(count.towers), static_cast<long long>(GetParam().towers));
  EXPECT_EQ(document.import->warnings, std::vector<std::string>{});
}

TEST_P(HfModel, KeepsWhatItsShapesSay) {
  if (GetParam().kv_full < 0) return;
  const KvCache cache =
      kv_cache(load_model(load_model_document(Catalog(), kPlace + GetParam().file + ".json").document));
  EXPECT_EQ(cache.unlimited_elements_per_token(), GetParam().kv_full);
  EXPECT_EQ(cache.elements_per_token() - cache.unlimited_elements_per_token(), GetParam().kv_windowed);
  double state = 0;
  for (const LayerCache& kind : cache.kinds) {
    state += static_cast<double>(kind.layers) * (kind.state_elements + kind.conv_elements + kind.fixed_elements);
  }
  EXPECT_EQ(state, GetParam().state);
}

TEST_P(HfModel, IsTheSameAfterAWayThroughYaml) {
  const ConfigNode document = load_model_document(Catalog(), kPlace + GetParam().file + ".json").document;
  const std::string yaml = write_yaml(document);
  const ConfigNode again = read_yaml(yaml, "dumped.yaml");
  expect_same(document, again);
  EXPECT_EQ(write_yaml(again), yaml);
  const ParameterCount count = count_parameters(load_model(again));
  EXPECT_EQ(static_cast<long long>(count.total), static_cast<long long>(GetParam().total));
}

class HfModelOfTheCatalog : public testing::TestWithParam<Expected> {};

TEST_P(HfModelOfTheCatalog, AgreesWithIt) {
  const ModelSpec file = load_model(load_model_document(Catalog(), kPlace + GetParam().file + ".json").document);
  const ModelSpec known = load_model(load_model_document(Catalog(), GetParam().catalog).document);
  const ParameterCount a = count_parameters(file);
  const ParameterCount b = count_parameters(known);
  for (const auto part : {&ParameterCount::total, &ParameterCount::active, &ParameterCount::embedding,
                          &ParameterCount::head, &ParameterCount::attention, &ParameterCount::mlp,
                          &ParameterCount::experts, &ParameterCount::router, &ParameterCount::norms}) {
    EXPECT_EQ(static_cast<long long>(a.*part), static_cast<long long>(b.*part));
  }
  constexpr double kContext = 8192;
  EXPECT_EQ(kv_cache(file).sequence_bytes(kContext, {}), kv_cache(known).sequence_bytes(kContext, {}));
  const TrainingFlops c = training_flops(file, kContext, false), d = training_flops(known, kContext, false);
  EXPECT_EQ(c.attention_causal, d.attention_causal);
  EXPECT_EQ(c.scan, d.scan);
  EXPECT_EQ(file.attention.window, known.attention.window);
  EXPECT_EQ(file.attention.chunk, known.attention.chunk);
  EXPECT_EQ(file.parallel_block, known.parallel_block);
  EXPECT_EQ(file.tied_embeddings, known.tied_embeddings);
  ASSERT_EQ(file.layers(), known.layers());
  for (std::size_t i = 0; i < file.layer_kind.size(); ++i) {
    EXPECT_EQ(file.kinds[file.layer_kind[i]].mixer, known.kinds[known.layer_kind[i]].mixer) << "layer " << i;
    EXPECT_EQ(file.kinds[file.layer_kind[i]].ffn, known.kinds[known.layer_kind[i]].ffn) << "layer " << i;
  }
}

/// A row that leaves its model of the catalog out is compared with nothing.
TEST(HfModels, NameTheModelOfTheCatalogThatIsTheirs) {
  const Catalog catalog;
  const std::vector<std::string> names = catalog.names(CatalogKind::kModel);
  for (const Expected& expected : expected_models()) {
    if (!expected.catalog.empty()) continue;
    EXPECT_EQ(std::count(names.begin(), names.end(), expected.file), 0) << expected.file;
  }
}

std::vector<Expected> models_of_the_catalog() {
  std::vector<Expected> out = expected_models();
  std::erase_if(out, [](const Expected& expected) { return expected.catalog.empty(); });
  return out;
}

std::string test_name(const testing::TestParamInfo<Expected>& tested) {
  std::string name = tested.param.file;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Files, HfModel, testing::ValuesIn(expected_models()), test_name);
INSTANTIATE_TEST_SUITE_P(Files, HfModelOfTheCatalog, testing::ValuesIn(models_of_the_catalog()), test_name);

TEST(HfModels, CoverEveryFamily) {
  std::vector<std::string> read;
  for (const Expected& expected : expected_models()) {
    const ModelDocument document = load_model_document(Catalog(), kPlace + expected.file + ".json");
    read.push_back(document.import->family);
  }
  for (const std::string& family : known_hf_families()) {
    EXPECT_NE(std::find(read.begin(), read.end(), family), read.end()) << family << " has no file in " << kPlace;
  }
}

/// The class under `architectures`, of the file or the language model in it; else the model_type.
std::string class_of(const std::string& file) {
  const ConfigNode config = read_json(read_text_file(file), file);
  for (const ConfigNode* map : {&config, config.find("text_config"), config.find("language_config")}) {
    const ConfigNode* list = map == nullptr ? nullptr : map->find("architectures");
    if (list != nullptr && !list->items.empty()) return list->items.front().text;
  }
  return text_of(config, "model_type");
}

TEST(HfModels, AreOfAtLeast75Architectures) {
  std::set<std::string> classes;
  for (const Expected& expected : expected_models()) classes.insert(class_of(kPlace + expected.file + ".json"));
  EXPECT_GE(classes.size(), 110U);
}

}  // namespace
}  // namespace scalecalc
