// What a row measured, and its layout costed.
#pragma once

#include "validate/row_question.h"

namespace scalecalc {

/// Seconds of a step as measured, from whatever the source prints. NotPredicted if it prints nothing of the kind, or in
/// a FLOPs convention that is not known.
double measured_step(const Measurement& row, const ResolvedQuestion& question);

/// Points into `question`.
PlanRequest request_of(const RowQuestion& question);

struct Evaluated {
  Plan plan;
  bool fits = true;                  ///< by our count of memory
  std::vector<std::string> assumed;  ///< thrift the source does not state, without which it would not fit
};

/// The row's layout, costed. A run that was measured fitted, whatever our count of its memory says: what the row leaves
/// open is chosen among what fits. Where nothing does, thrift that sources leave unsaid is assumed until something
/// does, or memory is not looked at. NotPredicted for a layout that no launcher would start.
Evaluated evaluate(RowQuestion& question);

}  // namespace scalecalc
