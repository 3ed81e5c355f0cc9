// A config.json that lost keys, or whose values were changed, is read or refused with a place: never a crash, never a
// model without parameters, and what is read loads.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/io.h"
#include "config/json_reader.h"
#include "config/yaml_reader.h"
#include "config/yaml_writer.h"
#include "import/hf_config.h"
#include "model/accounting.h"
#include "model/kv_cache.h"
#include "spec/load.h"

namespace scalecalc {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// Every file of tests/data/hf. nlohmann's parser does not take the Infinity that Python writes.
const std::vector<Json>& files() {
  static const std::vector<Json> kFiles = [] {
    std::vector<Json> out;
    std::vector<fs::path> paths;
    for (const auto& entry : fs::directory_iterator(SCALECALC_SOURCE_DIR "/tests/data/hf"))
      paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());  // directories list in any order
    for (const fs::path& path : paths) {
      if (path.extension() != ".json") continue;
      Json parsed = Json::parse(read_text_file(path.string()), nullptr, false);
      if (!parsed.is_discarded()) out.push_back(std::move(parsed));
    }
    return out;
  }();
  return kFiles;
}

/// The map that holds the sizes.
Json& sizes_of(Json& config) { return config.contains("text_config") ? config["text_config"] : config; }

std::string any_key(const Json& map) {
  const auto at = static_cast<std::ptrdiff_t>(*rc::gen::inRange<std::size_t>(0, map.size()));
  return std::next(map.begin(), at).key();
}

const std::vector<Json>& odd_values() {
  static const std::vector<Json> kValues{
      nullptr,        0,         1, 2, 3, 7, 1000, -1, 1.5, 1e300, true, false, "", "x", Json::array(), {0, 1},
      Json::object(), {{"a", 1}}};
  return kValues;
}

Json any_value() { return odd_values()[*rc::gen::inRange<std::size_t>(0, odd_values().size())]; }

void check(const Json& config) {
  RC_LOG() << config.dump(1) << '\n';
  try {
    const ImportedModel model = import_hf_config(read_json(config.dump(1), "config.json"));
    const ParameterCount count = count_parameters(load_model(model.document));
    RC_ASSERT(count.total > 0);
    RC_ASSERT(count.active > 0);
    const std::string yaml = write_yaml(model.document);
    RC_ASSERT(count_parameters(load_model(read_yaml(yaml, "dumped.yaml"))).total == count.total);
  } catch (const UserError& error) {
    for (const Diagnostic& d : error.diagnostics()) {
      RC_LOG() << render(d);
      RC_ASSERT(d.where.file.str() == "config.json");
      RC_ASSERT(d.where.line >= 1);
      // The loader's words would mean that the import let something pass.
      RC_ASSERT(d.message.find("layers entry") == std::string::npos);
      RC_ASSERT(d.message.find("unknown key") == std::string::npos);
    }
  }
}

RC_GTEST_PROP(Import, SurvivesMissingKeys, ()) {
  Json config = files()[*rc::gen::inRange<std::size_t>(0, files().size())];
  Json& sizes = sizes_of(config);
  const int gone = *rc::gen::inRange(1, 5);
  for (int i = 0; i < gone && !sizes.empty(); ++i) sizes.erase(any_key(sizes));
  check(config);
}

/// The document without what a file may leave unsaid, and everything the import states.
std::pair<std::string, std::string> read_and_said(const Json& config) {
  ImportedModel model = import_hf_config(read_json(config.dump(1), "config.json"));
  std::erase_if(model.document.entries, [](const ConfigNode::Entry& e) { return e.key == "quantization"; });
  std::string said;
  for (const ImportStatement& statement : import_statements(model.notes)) said += statement.text + "\n";
  return {write_yaml(model.document), said};
}

RC_GTEST_PROP(Import, NothingChangesUnsaid, ()) {
  Json config = files()[*rc::gen::inRange<std::size_t>(0, files().size())];
  const auto [before, said_before] = read_and_said(config);
  Json& sizes = sizes_of(config);
  const std::string key = any_key(sizes);
  sizes.erase(key);
  try {
    const auto [after, said_after] = read_and_said(config);
    if (after == before) return;
    RC_LOG() << "without " << key << ":\n" << before << "\nbecomes\n" << after << said_after;
    RC_ASSERT(said_after != said_before);
  } catch (const UserError&) {
    return;  // refused, with a reason that the other properties look at
  }
}

/// What the property asks of an answer: the figures that anything is computed from.
struct Counts {
  double total = 0, active = 0, cache = 0, kept = 0, towers = 0;
  friend bool operator==(const Counts&, const Counts&) = default;
};

Counts counts_of(const ImportedModel& model) {
  const ModelSpec spec = load_model(model.document);
  const ParameterCount count = count_parameters(spec);
  const KvCache cache = kv_cache(spec);
  return {count.total, count.active, cache.elements_per_token(), cache.sequence_bytes(100'000, {}), count.towers};
}

std::string said_of(const ImportedModel& model) {
  std::string out;
  for (const ImportStatement& statement : import_statements(model.notes)) out += statement.text + "\n";
  return out;
}

/// Values that no key of a config.json has by intention. Another number or flag is another model.
const std::vector<Json>& broken_values() {
  static const std::vector<Json> kValues{nullptr, -1, 1.5, 1e300, "", "x", Json::array(), Json::object(), {{"a", 1}}};
  return kValues;
}

/// A map of the file, or one in it, such as that of a tower.
Json& any_map(Json& map, std::mt19937_64& random) {
  std::vector<Json*> inner;
  for (Json& value : map) {
    if (value.is_object() && !value.empty()) inner.push_back(&value);
  }
  return inner.empty() || random() % 3 != 0 ? map : any_map(*inner[random() % inner.size()], random);
}

/// One accident: a key lost or misspelt, a number as a text, a value of another kind.
std::string damage(Json& map, std::mt19937_64& random) {
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const std::string key = std::next(map.begin(), static_cast<std::ptrdiff_t>(below(map.size()))).key();
  switch (below(4)) {
    case 0: map.erase(key); break;
    case 1: {
      const Json value = map[key];
      map.erase(key);
      const std::size_t at = below(key.size());
      map[key.substr(0, at) + key.substr(at + 1)] = value;
      break;
    }
    case 2: map[key] = map[key].is_string() ? Json::array({7}) : Json(map[key].dump()); break;
    default: map[key] = broken_values()[below(broken_values().size())]; break;
  }
  return key;
}

/// An accident in a file is an error with a place, or the same figures, or figures with an assumption that was not
/// there before. SCALECALC_MUTATIONS=100000 asks for more cases.
TEST(Import, AnAccidentIsNeverSilent) {
  const char* asked = std::getenv("SCALECALC_MUTATIONS");
  const int cases = asked == nullptr ? 400 : std::atoi(asked);
  std::vector<std::pair<Counts, std::string>> whole;
  for (const Json& file : files()) {
    const ImportedModel model = import_hf_config(read_json(file.dump(1), "config.json"));
    whole.emplace_back(counts_of(model), said_of(model));
  }
  std::mt19937_64 random(7);
  for (int i = 0; i < cases; ++i) {
    const auto at = static_cast<std::size_t>(random() % files().size());
    Json config = files()[at];
    const std::string key = damage(any_map(random() % 4 == 0 ? config : sizes_of(config), random), random);
    SCOPED_TRACE(key + " in " + config.dump(1));
    try {
      const ImportedModel model = import_hf_config(read_json(config.dump(1), "config.json"));
      const bool same = counts_of(model) == whole[at].first;
      ASSERT_TRUE(same || said_of(model) != whole[at].second) << "figures changed and nothing was said";
    } catch (const UserError& error) {
      for (const Diagnostic& d : error.diagnostics()) {
        ASSERT_GE(d.where.line, 1) << d.message;
        ASSERT_GE(d.where.column, 1) << d.message;
      }
    }
  }
}

RC_GTEST_PROP(Import, SurvivesOddValues, ()) {
  Json config = files()[*rc::gen::inRange<std::size_t>(0, files().size())];
  Json& sizes = sizes_of(config);
  sizes[any_key(sizes)] = any_value();
  check(config);
}

RC_GTEST_PROP(Import, SurvivesTheKeysOfOtherFamilies, ()) {
  Json config = files()[*rc::gen::inRange<std::size_t>(0, files().size())];
  Json other = files()[*rc::gen::inRange<std::size_t>(0, files().size())];
  Json& sizes = sizes_of(config);
  const Json& more = sizes_of(other);
  for (int i = 0; i < 3; ++i) {
    const std::string key = any_key(more);
    sizes[key] = more[key];
  }
  check(config);
}

RC_GTEST_PROP(Import, SurvivesOddQuantizations, ()) {
  Json config = files()[*rc::gen::inRange<std::size_t>(0, files().size())];
  const std::vector<Json> methods{"fp8", "awq", "gptq", "bitsandbytes", "compressed-tensors", "modelopt", "mxfp4", 7};
  const std::vector<Json> algorithms{"FP8", "NVFP4", "MIXED_PRECISION", nullptr, Json::array()};
  Json block{{"quant_method", methods[*rc::gen::inRange<std::size_t>(0, methods.size())]},
             {"config_groups", {{"group_0", {{"weights", {{"num_bits", any_value()}, {"type", "int"}}}}}}}};
  for (const char* key : {"bits", "group_size", "weight_block_size", "load_in_4bit", "ignore", "quantized_layers",
                          "kv_cache_scheme", "modules_to_not_convert"}) {
    if (*rc::gen::arbitrary<bool>()) block[key] = any_value();
  }
  if (*rc::gen::arbitrary<bool>())
    block["quant_algo"] = algorithms[*rc::gen::inRange<std::size_t>(0, algorithms.size())];
  config["quantization_config"] = block;
  check(config);
}

}  // namespace
}  // namespace scalecalc
