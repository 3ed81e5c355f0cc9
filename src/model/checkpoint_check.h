// A checkpoint's own index against what is counted here.
#pragma once

#include <string>

#include "import/safetensors_index.h"
#include "spec/model_spec.h"

namespace scalecalc {

struct CheckpointCheck {
  std::string text;      ///< one sentence: they agree, or how far they are apart and what explains it
  bool warning = false;  ///< they differ, and nothing in the index explains it
};

CheckpointCheck check_checkpoint(const ModelSpec& model, const SafetensorsIndex& index);

}  // namespace scalecalc
