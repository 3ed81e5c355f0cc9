// Bounds of runs of families (plan/enumerate.h), which machines of other sizes share.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "plan/memory_floor.h"
#include "plan/places.h"

namespace scalecalc {

/// What a run's largest microbatch says of all that are smaller.
struct RunBound {
  MeshChannels<double> channels;  ///< that it holds for
  double sequence_s = 0;          ///< least time of a sequence through the whole model, on one tensor and context group
  ActivationFloor activations;
};

/// By inner degrees and channels; for any threads. Its users ask for one model, workload and chip.
class RunBounds {
 public:
  std::optional<RunBound> find(const InnerDegrees& inner, const MeshChannels<double>& channels) const {
    const std::lock_guard lock(mutex_);
    const auto at = known_.find(inner);
    if (at == known_.end()) return std::nullopt;
    for (const RunBound& bound : at->second) {
      if (dominates(bound.channels, channels, false) && dominates(channels, bound.channels, false)) return bound;
    }
    return std::nullopt;
  }
  void add(const InnerDegrees& inner, const RunBound& bound) {
    const std::lock_guard lock(mutex_);
    known_[inner].push_back(bound);
  }

 private:
  mutable std::mutex mutex_;
  std::map<InnerDegrees, std::vector<RunBound>> known_;
};

}  // namespace scalecalc
