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

/// Communication of one of the layout's dimensions.
struct GapCommunication {
  std::string_view dimension;       ///< "tp", "data", "pp", "ep", "cp"; "unknown" for what is of none
  std::vector<std::string> groups;  ///< of the recording, and how each is known to be this dimension's
  double predicted_exposed_s = 0;
  std::optional<double> predicted_s;  ///< hidden or not; nothing where it is of none
  double measured_exposed_s = 0;
  std::optional<double> measured_s;  ///< hidden or not; nothing of a drawn step, which has what is exposed alone
};

/// Of the rank that computes longest, which the others wait for: so does the prediction count.
struct GapAnswer {
  std::string layout;
  std::string device;
  MeasuredVerdict verdict;
  double predicted_s = 0, low_s = 0, high_s = 0;
  std::optional<double> closed_form_s;  ///< of a drawn step, whose terms are predicted block by block
  std::vector<GapTerm> terms;           ///< they sum to both steps
  std::vector<GapCommunication> communication;
  double flops = 0;                   ///< of a chip and step, recomputation with them, as predicted
  std::optional<double> flops_known;  ///< recorded over predicted
};

GapAnswer explain_gap(const ProfileAnswer& recorded, const TrainAnswer& job, const RankedPlan& plan);

/// Which dimension of a layout a group of a recording is, and by what; "unknown" if it may be several or none.
struct GroupDimension {
  std::string_view dimension;
  std::string_view by;  ///< "name", "kind", "size"
};
GroupDimension dimension_of(const CommunicationGroup& group, const Layout& layout);

}  // namespace scalecalc
