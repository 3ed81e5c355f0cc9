// quantization_config of a config.json, or hf_quant_config.json beside it, as the `quantization:` block of a model
// document: AWQ, GPTQ, bitsandbytes, compressed-tensors, fp8, mxfp4 and NVIDIA ModelOpt.
#pragma once

#include <optional>

#include "import/hf_document.h"

namespace scalecalc {

/// `beside` is the document of hf_quant_config.json, or null; it wins. Empty if the file says neither a quantization
/// nor a dtype, or says one that is not known, with a warning.
std::optional<ConfigNode> hf_quantization(HfKeys& keys, const HfArchitecture& model, const ConfigNode* beside);

}  // namespace scalecalc
