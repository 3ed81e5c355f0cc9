// quantization_config of a config.json, or hf_quant_config.json beside it, as the `quantization:` block of a model
// document: AWQ, GPTQ, auto-round, HQQ, EXL2, bitsandbytes, compressed-tensors, fp8, mxfp4, MLX, torchao, AMD Quark and
// NVIDIA ModelOpt.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "import/hf_architecture.h"
#include "import/hf_config.h"
#include "spec/quantization_spec.h"

namespace scalecalc {

/// How weights are stored: a format, and the bits each takes with its scales.
struct HfScheme {
  WeightFormat format = WeightFormat::kBf16;
  double bits = bits_of(WeightFormat::kBf16);
  double bits_per_input = 0;                              ///< of each row that a matrix multiplies
  std::optional<std::array<std::int64_t, 2>> block = {};  ///< rows and columns that share a scale
};

/// The weight matrices of a model by the names checkpoints give them, so that "model.layers.3.self_attn*" can be
/// weighed. Only what a quantizer may touch: no norms, biases or convolutions.
struct HfWeight {
  WeightPart part = WeightPart::kMlp;
  std::string_view name;  ///< "q_proj", "kv_b_proj", "down_proj"
  double parameters = 0;
  HfScheme scheme;
  double inputs = 0;  ///< rows of all its matrices

  double stored_bits() const { return parameters * scheme.bits + inputs * scheme.bits_per_input; }
};

class HfWeights {
 public:
  HfWeights(const HfArchitecture& model, const HfScheme& plain);

  /// What a module name or pattern of a quantizer stands for. Patterns are read by the names in them, as globs and
  /// regular expressions alike: "re:.*self_attn.*" is attention in every layer.
  enum class Meaning {
    kWeights,  ///< weights of the model, now of that format
    kNothing,  ///< norms, biases, towers: nothing that is counted here
    kModules,  ///< all matrices of a prediction module behind the layers
    kUnknown,
  };
  Meaning set(std::string_view pattern, const HfScheme& scheme);
  void set_part(WeightPart part, const HfScheme& scheme);
  /// Of the layers' matrices those of that name.
  void set_named(std::string_view name, const HfScheme& scheme);

  double parameters() const;
  double parameters(WeightPart part) const;
  double parameters(WeightPart part, WeightFormat format) const;
  double stored_bits() const;
  double stored_bits(WeightPart part) const;
  double stored_bits(WeightPart part, WeightFormat format) const;

 private:
  template <class Visit>
  void visit(const Visit& visit) const;

  bool experts_beside_ = false;                ///< the MLP, not in it
  std::vector<HfWeight> outer_;                ///< embedding and head
  std::vector<std::vector<HfWeight>> layers_;  ///< by layer
};

/// `beside` is the document of hf_quant_config.json, or null; it wins. `assumed` (--assume weights=) wins over both.
/// Empty if nothing says a quantization nor a dtype. A method that is not known is a problem.
std::optional<ConfigNode> hf_quantization(HfKeys& keys, const HfArchitecture& model, const ConfigNode* beside,
                                          std::optional<WeightFormat> assumed);

}  // namespace scalecalc
