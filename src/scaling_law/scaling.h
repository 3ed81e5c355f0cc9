// `scalecalc scaling-law`: which model to train on how many tokens for a budget, with the tokens it will serve counted
// in if asked, and how a given model stands to that.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/explained.h"
#include "scaling_law/allocation.h"

namespace scalecalc {

/// A model as trained, or as it is to be.
struct SizedModel {
  std::string name, title;
  double parameters = 0;  ///< as the law counts them; of experts those that a token visits
  std::string counted;    ///< "active, without embeddings"
  double tokens = 0;
  std::string tokens_source;
  bool moe = false;
};

/// What a FLOP of training costs.
struct ComputePrice {
  std::string hardware, precision;
  double usd_per_chip_hour = 0;
  std::string price_source;
  FlopsPerSecond peak;
  std::string peak_source;
  double mfu = 0;  ///< 6 N D over the peak
  std::string mfu_source;
};

struct ScalingQuestion {
  ScalingLaw law;
  std::vector<ScalingLaw> others;  ///< to set beside it
  // What is given, at most one of these; with none the model's own training is.
  std::optional<double> flops;
  std::optional<double> budget_usd;  ///< needs `price`
  std::optional<double> loss;
  std::optional<SizedModel> model;
  std::optional<ComputePrice> price;
  double inference_tokens = 0;   ///< served over the model's life
  bool lifetime_budget = false;  ///< the budget pays for serving too
  std::optional<double> serve_mfu;
  std::optional<double> serve_usd_per_million;  ///< of tokens of `model`, for others in proportion to their size
  std::string serve_price_source;
};

enum class AllocationKind { kComputeOptimal, kLifetimeOptimal, kModel };
inline constexpr std::array<std::string_view, 3> kAllocationNames{"compute_optimal", "lifetime_optimal", "model"};

struct UsdFigures {
  Quantity<kUsdDim, Traced> training, lifetime;
};

struct AllocationFigures {
  AllocationKind kind = AllocationKind::kComputeOptimal;
  Allocation<Traced> at;
  Traced tokens_per_parameter;
  std::optional<Traced> loss;
  FlopsOf<Traced> training;
  FlopsOf<Traced> serving;
  FlopsOf<Traced> lifetime;  ///< training FLOPs that cost what training and serving cost: 6 N (D + kappa)
  std::optional<UsdFigures> usd;
};

/// The same loss for less, against the compute-optimal choice.
struct LifetimeSaving {
  FlopsOf<Traced> flops;
  Traced share;
  std::optional<Quantity<kUsdDim, Traced>> usd;
};

/// How a model's training stands to the compute-optimal one.
struct ModelStanding {
  Traced over_trained;                   ///< its tokens per parameter over those of the optimum of its FLOPs
  std::optional<Traced> compute_ratio;   ///< its training FLOPs over the fewest that reach its loss
  std::optional<double> serving_tokens;  ///< for which it is the cheapest life of its loss; absent: none
};

struct SizePoint {
  double factor = 1;  ///< parameters over the best ones
  Allocation<double> at;
  std::optional<double> loss;                ///< for the same training FLOPs
  std::optional<double> wasted;              ///< share of its FLOPs that the optimum of its loss would not need
  std::optional<double> tokens_same_loss;    ///< absent: so small a model never gets there
  std::optional<double> lifetime_same_loss;  ///< FLOPs as AllocationFigures::lifetime
};

struct LawPoint {
  const ScalingLaw* law = nullptr;
  Allocation<double> at;
  std::optional<double> loss;
};

struct ScalingAnswer {
  FlopsOf<Traced> budget;  ///< training FLOPs of the compute-optimal choice
  std::vector<AllocationFigures> allocations;
  std::optional<LifetimeSaving> saving;
  std::optional<ModelStanding> standing;
  std::vector<SizePoint> sizes;
  std::vector<LawPoint> laws;  ///< for the same training FLOPs
  std::vector<Assumption> assumptions;
};

/// Keeps pointers into the question. UserError for a loss that cannot be reached, or a law that cannot say.
ScalingAnswer answer(const ScalingQuestion& question);

}  // namespace scalecalc
