// `scalecalc model design`: the largest model that fits a machine and is trained on it in time, and its shape.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/stop.h"
#include "design/shapes.h"
#include "model/accounting.h"
#include "spec/law_spec.h"
#include "train/question.h"

namespace scalecalc {

struct DesignQuestion {
  TrainQuestion machine;  ///< hardware, chips, price, efficiency, layout pins; what it says of the model is not used
  std::optional<double> deadline_s;
  std::optional<double> budget_usd;
  std::optional<double> tokens;        ///< else `tokens_per_parameter` times the active parameters
  double tokens_per_parameter = 20;    ///< Hoffmann et al. (arXiv:2203.15556), table 3 rounded
  std::optional<double> batch_tokens;  ///< absent: usual_batch of its parameters
  std::int64_t seq = 8192;
  std::int64_t vocab = 131072;
  std::string precision = "bf16";
  std::string optimizer = "adam";
  std::optional<ExpertChoice> experts;
  std::size_t top = 5;
  ScalingLaw law;  ///< for the loss
};

/// A shape with what it is to be trained on.
struct DesignedModel {
  std::string name;  ///< "design-70.1b"
  DesignShape shape;
  TrainingRecipe recipe;
  ParameterCount parameters;
  double matmul_flops = 0;  ///< of training, per token: 6 x the parameters a token is multiplied with
};

struct TrainedDesign {
  DesignedModel model;
  ConfigNode document;  ///< its file
  RankedPlan plan;      ///< that `train` on this file ranks first
  std::optional<double> loss;
};

enum class DesignVerdict { kMeets, kTooLong, kTooDear, kOutOfMemory, kNoLayout };
inline constexpr std::array<std::string_view, 5> kDesignVerdictNames{"meets", "too_long", "too_dear", "out_of_memory",
                                                                     "no_layout"};

/// A shape that is larger and does not do.
struct MissedDesign {
  DesignedModel model;
  DesignVerdict verdict = DesignVerdict::kTooLong;
  double over = 0;  ///< by what share of the limit it misses; 0 for no layout
};

struct DesignAnswer {
  HardwareSpec hw;
  ShapeRanges ranges;
  std::vector<TrainedDesign> models;  ///< largest first
  std::vector<MissedDesign> misses;   ///< of those the nearest to the largest model; smallest first
  std::size_t shapes = 0;             ///< of the grid
  std::size_t too_large = 0;          ///< of these, too long even at the rate of large matmuls
  std::size_t searched = 0;           ///< whose layouts were searched
  std::vector<Assumption> assumptions;
};

DesignedModel designed(const DesignQuestion& question, const DesignShape& shape);

/// What becomes of one shape by itself: its first plan against the limits.
struct JudgedDesign {
  DesignVerdict verdict = DesignVerdict::kNoLayout;
  double over = 0;
  std::optional<RankedPlan> plan;  ///< if one fits
};
JudgedDesign judge(const DesignQuestion& question, const DesignedModel& model, const Catalog& catalog);

/// UserError for a wrong question. That no shape does is an answer: models is empty, misses has the smallest shape.
/// Asked to end, it has the largest found until then.
DesignAnswer answer(const DesignQuestion& question, const Catalog& catalog, const Stop& stop = {});

}  // namespace scalecalc
