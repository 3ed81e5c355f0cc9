// A recorded step beside the same step as predicted: term beside term, the largest difference first.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "profile/profile.h"
#include "train/measured.h"

namespace scalecalc {

/// What of the step the recording and the prediction both tell apart.
struct GapTerm {
  std::string term;
  std::vector<std::string> causes;  ///< of PlanFigures::time_s
  double predicted_s = 0;
  double measured_s = 0;
  std::string_view remedy;  ///< where more was measured
  double more_s() const { return measured_s - predicted_s; }
};

/// Of the rank that computes longest, which the others wait for: so does the prediction count.
struct GapAnswer {
  std::string layout;
  std::string device;
  MeasuredVerdict verdict;
  double predicted_s = 0, low_s = 0, high_s = 0;
  std::vector<GapTerm> terms;         ///< they sum to both steps
  double flops = 0;                   ///< of a chip and step, recomputation with them, as predicted
  std::optional<double> flops_known;  ///< recorded over predicted
};

GapAnswer explain_gap(const ProfileAnswer& recorded, const TrainAnswer& job, const RankedPlan& plan);

}  // namespace scalecalc
