// `scalecalc train` over several counts of chips: how the fastest plan scales with the machine while the job stays the
// same (strong scaling), where that stops being linear and what takes the time then, and time against cost.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/catalog.h"
#include "train/question.h"
#include "train/resolve.h"

namespace scalecalc {

/// A count scales linearly while it gives at least this share of the first count's throughput per chip.
constexpr double kLinearShare = 0.9;

struct CurveQuestion {
  TrainQuestion train;              ///< its `chips` are the largest of the counts
  std::vector<std::int64_t> chips;  ///< ascending, each once
  bool pareto = false;              ///< the front of time against cost too
};

/// What became of a count of chips.
enum class PointStatus : std::uint8_t { kPlanned, kNotBuilt, kOutOfMemory, kNoLayout, kInterrupted };
inline constexpr std::array<std::string_view, 5> kPointStatusNames{"planned", "not built", "out of memory", "no layout",
                                                                   "interrupted"};

/// One count of chips.
struct CurvePoint {
  std::int64_t chips = 0;
  PointStatus status = PointStatus::kPlanned;
  std::string reason;              ///< unless planned: a sentence
  std::optional<RankedPlan> plan;  ///< the best that `chips` allow: on all of them, or fewer where those are faster
  double speed_up = 0;             ///< tokens per second over those of the first count that has a plan
  double efficiency = 0;           ///< speed-up over the ratio of chips; chips left idle count
  SearchStats search;
};

/// Where the curve stops being linear: the largest count that is linear (kLinearShare), and what grew until the next
/// count that has a plan.
struct CurveEnd {
  std::size_t last = 0;             ///< position among the points
  std::optional<std::size_t> next;  ///< none: the whole range is linear
  /// The cause of a step's time (contract name, or "idle" for chips the plan does not use) whose share of the machine's
  /// time grew most from `last` to `next`. Empty if `next` has no plan; its reason says why.
  std::string cause;
  double share_before = 0, share_after = 0;
};

struct TrainCurve {
  TrainAnswer job;  ///< what all points have in common; without plans
  std::vector<CurvePoint> points;
  std::optional<CurveEnd> end;    ///< none: no plan, or a single point
  bool pareto = false;            ///< asked for
  std::vector<RankedPlan> front;  ///< fastest first
  std::size_t machine_sizes = 0;  ///< counts of chips, smaller machines included, that the front was taken from
};

bool any_plan(const TrainCurve& curve);

/// UserError for a wrong question; one is that no count is built. A count at which nothing fits is a point with a
/// reason.
TrainCurve train_curve(const CurveQuestion& question, const Catalog& catalog, const std::function<bool()>& stop = {});
/// The same of a job already resolved, without a machine.
TrainCurve train_curve(const CurveQuestion& question, ResolvedQuestion job, const std::function<bool()>& stop = {});

/// If chips `may_idle`, a plan of fewer chips that is faster replaces the plan of more; then speed-up and efficiency
/// are filled in.
void compare_points(std::vector<CurvePoint>& points, bool may_idle);
std::optional<CurveEnd> linear_end(const std::vector<CurvePoint>& points);

}  // namespace scalecalc
