// A config.json built in a test, and what the import makes of it.
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "config/json_reader.h"
#include "import/hf_config.h"
#include "model/accounting.h"
#include "spec/load.h"

namespace scalecalc::test {

using Json = nlohmann::ordered_json;

inline ImportedModel import(const Json& config, const std::string& assume = "") {
  return import_hf_config(read_json(config.dump(1), "config.json"), nullptr, assume);
}
inline ImportedModel import_beside(const Json& config, const Json& beside) {
  const ConfigNode quantization = read_json(beside.dump(1), "hf_quant_config.json");
  return import_hf_config(read_json(config.dump(1), "config.json"), &quantization);
}
inline ModelSpec spec(const Json& config, const std::string& assume = "") {
  return load_model(import(config, assume).document);
}

/// Every problem as "line: message | hint"; "" if the file reads.
inline std::string problems(const Json& config, const std::string& assume = "") {
  try {
    spec(config, assume);
    return "";
  } catch (const UserError& error) {
    std::string out;
    for (const Diagnostic& d : error.diagnostics()) {
      out += (d.where.line > 0 ? std::to_string(d.where.line) + ": " : "") + d.message +
             (d.hint.empty() ? "" : " | " + d.hint) + "\n";
    }
    return out;
  }
}

/// The mixer of each layer by its first letter: f(ull), s(liding), c(hunked), m(la), g(dn), l(ightning), n(one).
inline std::string mixers(const ModelSpec& model) {
  std::string out;
  for (const std::uint8_t kind : model.layer_kind) out += name_of(model.kinds[kind].mixer).front();
  return out;
}
/// The FFN of each layer: d(ense), m(oe), n(one).
inline std::string ffns(const ModelSpec& model) {
  std::string out;
  for (const std::uint8_t kind : model.layer_kind) out += name_of(model.kinds[kind].ffn).front();
  return out;
}

inline bool has_default(const ImportNotes& notes, const std::string& key, const std::string& value) {
  return std::any_of(notes.defaults.begin(), notes.defaults.end(),
                     [&](const ImportNotes::Default& d) { return d.key == key && d.value == value; });
}
inline bool contains(const std::vector<std::string>& texts, const std::string& part) {
  return std::any_of(texts.begin(), texts.end(),
                     [&](const std::string& text) { return text.find(part) != std::string::npos; });
}

/// A small model of a family: 8 layers, 64 wide, 4 heads, 4 kv heads in line 9.
inline Json small(const std::string& family) {
  return {{"model_type", family},           {"hidden_size", 64},       {"num_hidden_layers", 8},
          {"num_attention_heads", 4},       {"vocab_size", 1000},      {"intermediate_size", 256},
          {"max_position_embeddings", 512}, {"num_key_value_heads", 4}};
}

}  // namespace scalecalc::test
