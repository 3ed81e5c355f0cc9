// Parameters and FLOPs of a model, summed over its operation lists, in the conventions people compare by.
#pragma once

#include "base/quantity.h"
#include "model/fine_tune.h"
#include "model/lengths.h"
#include "spec/model_spec.h"

namespace scalecalc {

struct ParameterCount {
  double total = 0;      ///< distinct weights, tied matrices once, without MTP modules
  double embedding = 0;  ///< input embedding, learned positions and embedding norm
  double head = 0;       ///< output matrix; 0 if tied
  double attention = 0;  ///< mixers of every kind
  double mlp = 0;        ///< dense and shared-expert MLPs, projections of latent experts
  double experts = 0;    ///< routed experts
  double router = 0;
  double norms = 0;
  double mtp = 0;     ///< MTP modules, not in total
  double towers = 0;  ///< of images and sound, not in total
  double active = 0;  ///< total minus the routed experts a token does not visit and tables of per-layer embeddings
};

ParameterCount count_parameters(const ModelSpec& model);

/// Weights of the adapters, those of every routed expert among them.
double adapter_parameters(const ModelSpec& model, const FineTune& tune);

/// Training FLOPs per token (forward + backward = 3 x forward; no recompute), by convention. A trained MTP module
/// counts. `documents`: [PACKED], of attention_causal alone. A frozen matrix has no gradient, so it counts 2 x forward:
/// 4 x its parameters.
struct TrainingFlops {
  double six_n = 0;             ///< 6 x parameters multiplied per token: active, without the input embedding
  double attention_full = 0;    ///< score and value matmuls over the whole sequence (windows ignored)
  double attention_causal = 0;  ///< over the tokens a causal, windowed kernel visits on average
  double scan = 0;              ///< state updates and reads of recurrences, which no matmul with weights counts
  double router = 0;            ///< of six_n: the routers
  double ends = 0;              ///< of six_n: embedding projection and heads, which remat never repeats
  double model_causal() const { return six_n + attention_causal + scan; }
  double model_full() const { return six_n + attention_full + scan; }
};

TrainingFlops training_flops(const ModelSpec& model, double seq, bool with_mtp = true,
                             const std::optional<FineTune>& tune = {}, const std::optional<Lengths>& documents = {});

}  // namespace scalecalc
