// Rows of serving for tests.
#pragma once

#include <string>
#include <vector>

#include "config/yaml_reader.h"
#include "validate/measurement.h"

namespace scalecalc::test {

/// A row of an 8B model on H100; `rest` overrides nothing and adds what the phase needs.
inline std::string served_text(const std::string& rest, const std::string& id = "a", const std::string& chips = "1",
                               const std::string& parallel = "{tp: 1}", const std::string& weights = "bf16") {
  return "- {id: " + id + ", source: nobody, engine: vllm 0.12, model: llama3-8b, chip: h100-sxm, chips: " + chips +
         ", parallel: " + parallel + ", weights_dtype: " + weights +
         ", kv_dtype: bf16, input_len: 1024, output_len: 512,\n   " + rest + "}\n";
}

inline std::vector<ServeMeasurement> served(const std::string& text) {
  return read_serve_measurements(read_yaml(text, "served.yaml"));
}

}  // namespace scalecalc::test
