// How many chips a training run needs: the fewest that finish in time, and the fastest that a budget pays for. Exact
// over every count of chips that is built (docs/model.md, [COUNTS]).
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "base/units.h"
#include "plan/run_bounds.h"
#include "train/question.h"
#include "train/resolve.h"

namespace scalecalc {

/// A plan on exactly the chips of its machine, with what it was searched on.
struct SizedPlan {
  ResolvedQuestion machine;
  RankedPlan plan;
};

/// What a run may take. Without a price there is no limit of dollars.
struct RunLimits {
  std::optional<double> time_s;
  std::optional<double> usd;
  double usd_per_chip_hour = 0;
  std::int64_t most_chips = 0;

  /// Longest that a run on so many chips may take; absent: any time.
  std::optional<double> longest(double chips) const {
    std::optional<double> out = time_s;
    if (usd && usd_per_chip_hour > 0) {
      const double paid_s = *usd / (usd_per_chip_hour * chips) * kSecondsPerHour;
      out = out ? std::min(*out, paid_s) : paid_s;
    }
    return out;
  }
};

struct SizeAnswer {
  std::optional<SizedPlan> found;
  std::size_t counts = 0;  ///< searched; those that peak rates rule out are not
  bool complete = true;    ///< false: interrupted
};

class ChipSearch {
 public:
  /// Keeps references. `job` is resolved without a machine and knows its tokens.
  ChipSearch(const TrainQuestion& question, const ResolvedQuestion& job, const std::function<bool()>& stop);

  /// The smallest count with a plan inside the limits. Threads take a count each, in order, until one has a plan.
  SizeAnswer fewest(const RunLimits& limits) const;

  /// The plan inside the limits that finishes first; of equally fast ones that on most chips.
  SizeAnswer fastest(const RunLimits& limits) const;

 private:
  /// No run on so many chips is shorter: the matmuls' FLOPs at the rate large ones reach.
  double least_time_s(double chips) const { return flops_ / (rate_ * chips); }
  /// Smallest count >= `chips` that is built, 0 if it is above `most`.
  std::int64_t built_from(std::int64_t chips, std::int64_t most) const;
  /// Largest count <= `chips` that is built, 0 if none is.
  std::int64_t built_below(std::int64_t chips) const;
  /// The fastest plan on exactly these chips whose run takes no longer.
  std::optional<SizedPlan> plan_within(std::int64_t chips, const std::optional<double>& longest_s,
                                       std::size_t threads) const;
  bool stopped() const { return stop_ && stop_(); }

  const TrainQuestion& question_;
  const ResolvedQuestion& job_;
  const std::function<bool()>& stop_;
  double flops_ = 0;  ///< of the run's matmuls
  double rate_ = 0;   ///< of one chip
  std::shared_ptr<RunBounds> bounds_ = std::make_shared<RunBounds>();
};

}  // namespace scalecalc
