// What the vector unit does in a second: the one owner of what counts as an operation of it.
//
// Vendors publish a rate at which every operation is a fused multiply-add and counts as two (hw.compute.vector, with
// vector_fma: true), or one operation of each lane and cycle. Two things are made of it:
//
//   the ceiling of a kind of work   multiply-adds reach the published rate, adds and all else half of one that counts
//                                   them as two (book ch. 12, quiz 1)
//   what kernels reach              efficiency.vector, a share of the published rate whatever the work is: what adds
//                                   lose against multiply-adds is in the coefficient. train, serve and rl are
//                                   calibrated with it as such; no kernel passes the ceiling of its kind
#pragma once

#include "spec/hardware_spec.h"

namespace scalecalc {

enum class VectorWork { kMultiplyAdds, kOthers };

/// Of the published rate, how much such work can have at most.
inline double vector_ceiling(const HardwareSpec& hw, VectorWork work) {
  return hw.vector_counts_fma && work == VectorWork::kOthers ? 0.5 : 1.0;
}
/// The published rate, which efficiency.vector is a share of; 0: the file gives none.
inline FlopsPerSecond published_vector_rate(const HardwareSpec& hw) {
  return hw.vector_peak.value_or(FlopsPerSecond(0));
}

}  // namespace scalecalc
