// Measurement files for tests.
#pragma once

#include <string>
#include <vector>

#include "config/yaml_reader.h"
#include "validate/measurement.h"
#include "validate/training_rows_options.h"

namespace scalecalc::test {

/// A row of eight H100 with a dense model; `more` is further lines, each "  key: value\n".
inline std::string row_text(const std::string& more = "", const std::string& id = "a") {
  return "- id: " + id +
         "\n"
         "  source: nobody\n"
         "  model: tiny-1b\n"
         "  model_shape: {layers: 8, d_model: 2048, heads: 16, kv_heads: 4, head_dim: 128, ffn: 8192,"
         " gated_mlp: true, vocab: 32000}\n"
         "  chip: h100-sxm\n"
         "  chips: 8\n"
         "  seq_len: 2048\n"
         "  global_batch_seqs: 32\n" +
         (more.find("precision:") == std::string::npos ? "  precision: bf16\n" : "") +
         (more.find("parallel:") == std::string::npos ? "  micro_batch: 1\n  recompute: none\n"
                                                        "  parallel: {dp: 4, tp: 2, pp: 1, sp: true, zero_stage: 1}\n"
                                                      : "") +
         (more.find("measured:") == std::string::npos ? "  measured: {step_time_s: 0.5}\n" : "") + more;
}

inline std::vector<Measurement> measurements(const std::string& text) {
  return cli::read_measurements(read_yaml(text, "runs.yaml"));
}

inline Measurement measurement(const std::string& more = "") { return measurements(row_text(more)).front(); }

}  // namespace scalecalc::test
