// One's own step held against its prediction: how fast it was in every way of saying so, whether that is within what
// the coefficients' errors allow, and which predicted terms must have grown.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/units.h"
#include "train/question.h"

namespace scalecalc {

/// How fast a run was, as its log says it.
struct MeasuredSpeed {
  enum class Kind : std::uint8_t { kStep, kTokens, kTokensPerChip, kMfu };
  Kind kind = Kind::kStep;
  double value = 0;        ///< seconds, tokens/s, share
  std::string convention;  ///< of an MFU: what it counts; empty: as this program
  std::string text;        ///< as typed
};

/// "41s", "14k tokens/s", "900 tokens/s/chip", "38%", "38%:megatron-2024".
std::variant<MeasuredSpeed, UnitError> parse_measured_speed(std::string_view text);

/// A term of the step that would have to differ from its prediction.
struct TermOffPrediction {
  std::string cause;  ///< as PlanFigures::time_s
  double predicted_s = 0;
  double low_s = 0, high_s = 0;  ///< with every coefficient at one end of its error
  double needed_s = 0;           ///< what it is if all others are as predicted
  bool within = false;           ///< which its own coefficients' errors allow
  std::string_view remedy;       ///< what shortens it
};

struct MeasuredVerdict {
  double step_s = 0;
  double tokens_per_s = 0, tokens_per_s_per_chip = 0, tflops_per_chip = 0;
  double mfu = 0, hfu = 0;
  double over = 0;  ///< of the predicted step, less 1
  bool in_band = false;
  std::vector<FlopsConvention> conventions;
  std::vector<TermOffPrediction> terms;  ///< the likeliest first
};

/// UserError for a convention that the plan has none of.
MeasuredVerdict judge_measured(const TrainAnswer& answer, const RankedPlan& plan, const MeasuredSpeed& speed);

/// What shortens a term of the step; empty for none.
std::string_view remedy_of(std::string_view cause);

/// UserError where the speed that was `said` is above the chips' peak: it is of another step than was meant.
void refuse_above_peak(const MeasuredVerdict& verdict, const std::string& said, const std::string& hint);

}  // namespace scalecalc
