// Real config.json files with what is in them changed: members left out, taken from other files, numbers at the edges,
// formats of quantised weights. Bytes choose the file and the changes, so that what is read is nearly right. What is
// imported is a model that reads back from its own file the same; anything else is refused in words.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/diagnostic.h"
#include "config/json_reader.h"
#include "config/yaml_reader.h"
#include "config/yaml_writer.h"
#include "fuzz/choices.h"
#include "fuzz/errors_fuzz.h"
#include "import/hf_config.h"
#include "model/accounting.h"
#include "spec/load.h"

namespace {

using Json = nlohmann::json;
using scalecalc::check;
using scalecalc::fuzz::Choices;

const std::vector<Json>& real_configs() {
  static const std::vector<Json> kAll = [] {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(SCALECALC_SOURCE_DIR "/tests/data/hf")) {
      if (entry.path().extension() == ".json") files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    std::vector<Json> out;
    for (const auto& file : files) {
      std::ifstream in(file);
      Json document = Json::parse(in, nullptr, false);
      if (!document.is_discarded()) out.push_back(std::move(document));  // some hold Infinity, which is no JSON
    }
    return out;
  }();
  return kAll;
}

const std::vector<Json>& edges() {
  static const std::vector<Json> kAll{
      0,
      1,
      2,
      -1,
      3,
      7,
      64,
      128,
      4096,
      131072,
      2147483647,
      1e9,
      1e18,
      1e300,
      0.5,
      1e-9,
      "",
      "float16",
      "bf16",
      "4",
      "gptq",
      "a\x1b[31mb",
      true,
      false,
      nullptr,
      Json::array(),
      Json::object(),
      Json{1, 2},
      Json{"full_attention"},
      Json{{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}},
      Json{{"quant_method", "awq"}, {"bits", 4}},
      Json{{"quant_method", "gptq"}, {"bits", 3}, {"group_size", -1}},
      Json{{"quant_method", "bitsandbytes"}, {"load_in_4bit", true}},
      Json{{"quant_method", "mxfp4"}},
      Json{{"quant_method", "compressed-tensors"},
           {"config_groups",
            {{"group_0", {{"targets", {"Linear"}}, {"weights", {{"num_bits", 4}, {"type", "float"}}}}}}}},
  };
  return kAll;
}

/// Some member of the document or of what is in it.
Json* some_member(Json& document, Choices& choose, std::string& key) {
  Json* here = &document;
  for (int depth = 0; depth < 4; ++depth) {
    if (!here->is_object() || here->empty()) return nullptr;
    auto member = here->begin();
    std::advance(member, static_cast<std::ptrdiff_t>(choose.below(here->size())));
    key = member.key();
    if (!member->is_object() || choose.below(2) == 0) return here;
    here = &*member;
  }
  return nullptr;
}

void change(Json& document, Choices& choose) {
  std::string key;
  Json* where = some_member(document, choose, key);
  if (where == nullptr) return;
  switch (choose.below(6)) {
    case 0: where->erase(key); break;
    case 1: (*where)[key] = edges()[choose.below(edges().size())]; break;
    case 2: document["quantization_config"] = edges()[choose.below(edges().size())]; break;
    case 3: {  // of another model
      const Json& other = real_configs()[choose.below(real_configs().size())];
      auto member = other.begin();
      std::advance(member, static_cast<std::ptrdiff_t>(choose.below(other.size())));
      document[member.key()] = *member;
      break;
    }
    case 4: (*where)[key] = static_cast<std::int64_t>(choose.below(1U << 16U)); break;
    default:  // near what divides
      if ((*where)[key].is_number_integer()) {
        (*where)[key] = (*where)[key].get<std::int64_t>() * static_cast<std::int64_t>(choose.below(5)) - 1;
      }
  }
}

void import_and_read_back(const std::string& text) {
  const scalecalc::ConfigNode document = scalecalc::read_json(text, "config.json");
  if (!scalecalc::is_hf_config(document)) return;
  const scalecalc::ImportedModel imported = scalecalc::import_hf_config(document);
  const double direct = scalecalc::count_parameters(scalecalc::load_model(imported.document)).total;
  check(std::isfinite(direct) && direct > 0, "a model has parameters");
  const scalecalc::ConfigNode again = scalecalc::read_yaml(scalecalc::write_yaml(imported.document), "dumped.yaml");
  const scalecalc::ModelSpec model = scalecalc::load_model(again);
  check(scalecalc::count_parameters(model).total == direct, "a model that is written down is the same");
  for (const std::string& note : imported.notes.warnings) {
    check(!note.empty(), "a warning says something");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Choices choose(data, size);
  Json document = real_configs()[choose.below(real_configs().size())];
  for (std::uint64_t changes = choose.below(8); changes > 0; --changes) change(document, choose);
  try {
    import_and_read_back(document.dump(-1, ' ', false, Json::error_handler_t::replace));
  } catch (const scalecalc::UserError& error) {
    scalecalc::fuzz::check_refusal(error);
  }
  return 0;
}
