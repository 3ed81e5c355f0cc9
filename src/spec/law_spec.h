// What a scaling law says: how loss falls with parameters and training tokens, or where the best of both lies.
#pragma once

#include <optional>
#include <string>

#include "config/node.h"

namespace scalecalc {

/// L(N, D) = irreducible + parameter_scale / N^parameter_exponent + token_scale / D^token_exponent, in nats per token.
struct LossLaw {
  double irreducible = 0;
  double parameter_scale = 0;
  double parameter_exponent = 0;
  double token_scale = 0;
  double token_exponent = 0;
};

/// The best parameters or tokens for C FLOPs of training: `value` at `flops`, growing with C^exponent. The other one
/// follows from C = 6 N D.
struct FrontierLaw {
  bool of_tokens = false;  ///< else of parameters
  double value = 0;
  double flops = 0;
  double exponent = 0;
};

struct ScalingLaw {
  std::string name;
  std::string title;
  std::string note;
  std::string source;
  std::optional<LossLaw> loss;          ///< this or `frontier`
  std::optional<FrontierLaw> frontier;  ///< says nothing of the loss
  bool counts_embeddings = true;        ///< whether N includes the embedding and the output matrix
  std::optional<double> largest_parameters, largest_tokens, largest_flops;  ///< of the runs it was fitted to
};

/// UserError listing every problem of the document.
ScalingLaw load_law(const ConfigNode& document);

}  // namespace scalecalc
