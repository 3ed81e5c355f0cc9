// What lies beside a config.json of the weights themselves: the index of a checkpoint in several files
// (model.safetensors.index.json), or the header of one in a single file (model.safetensors). Names and sizes only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace scalecalc {

struct SafetensorsIndex {
  std::string file;                   ///< as it was found
  std::optional<double> total_bytes;  ///< of all tensors; absent if it does not say
  std::size_t tensors = 0;
  std::size_t towers = 0;             ///< of vision and audio, and of what joins them to the language model
  std::size_t modules = 0;            ///< of multi-token prediction
  std::size_t module_embeddings = 0;  ///< of them, copies of the embedding
  std::size_t module_heads = 0;       ///< of them, copies of the head
  bool head = false;                  ///< there is an output matrix
  std::string problem;                ///< why it could not be read; empty if it could
};

/// `layers` of the language model: those behind them are prediction modules. What cannot be read is a problem of the
/// result, at the line where it is.
SafetensorsIndex read_safetensors_index(std::string_view text, const std::string& file, std::int64_t layers);

/// The same of the header of a single file of `bytes` bytes, which holds nothing but the tensors' descriptions.
SafetensorsIndex read_safetensors_header(std::string_view header, const std::string& file, double tensor_bytes,
                                         std::int64_t layers);

/// Of the checkpoint in a directory; nothing if none lies there.
std::optional<SafetensorsIndex> safetensors_beside(const std::string& directory, std::int64_t layers);

}  // namespace scalecalc
