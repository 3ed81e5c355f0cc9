// A config.json that lost keys, or whose values were changed, is read or refused with a place: never a crash, never a
// model without parameters, and what is read loads.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/io.h"
#include "config/json_reader.h"
#include "config/yaml_reader.h"
#include "config/yaml_writer.h"
#include "import/hf_config.h"
#include "model/accounting.h"
#include "spec/load.h"

namespace scalecalc {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// Every file of tests/data/hf. nlohmann's parser does not take the Infinity that Python writes.
const std::vector<Json>& files() {
  static const std::vector<Json> kFiles = [] {
    std::vector<Json> out;
    for (const auto& entry : fs::directory_iterator(SCALECALC_SOURCE_DIR "/tests/data/hf")) {
      if (entry.path().extension() != ".json") continue;
      Json parsed = Json::parse(read_text_file(entry.path().string()), nullptr, false);
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

Json any_value() {
  const std::vector<Json> values{
      nullptr,        0,         1, 2, 3, 7, 1000, -1, 1.5, 1e300, true, false, "", "x", Json::array(), {0, 1},
      Json::object(), {{"a", 1}}};
  return values[*rc::gen::inRange<std::size_t>(0, values.size())];
}

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
      RC_ASSERT(d.where.file == "config.json");
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
