// The header of a GGUF file (ggml-org/ggml: docs/gguf.md) as what a config.json would say, and how its tensors are
// stored.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "config/node.h"

namespace scalecalc {

struct GgufModel {
  ConfigNode config;        ///< as of Hugging Face, with the file's name as the place of everything
  ConfigNode quantization;  ///< a block of a model file, by part and format
  std::size_t tensors = 0;
  double bytes = 0;  ///< of all of them
};

bool is_gguf(std::string_view path);

/// Reads the header alone. UserError if the file is no GGUF, or of an architecture that is not read.
GgufModel read_gguf(const std::string& path);

}  // namespace scalecalc
