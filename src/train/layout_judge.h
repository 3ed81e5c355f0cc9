// What becomes of one layout that a user has in mind: a rule excludes it, memory runs out, or others rank before it.
#pragma once

#include <functional>

#include "plan/request.h"
#include "train/question.h"
#include "train/resolve.h"

namespace scalecalc {

/// The question's own ranking, which a layout is held against. Referenced, not kept.
struct RankingContext {
  const TrainQuestion& question;
  const ResolvedQuestion& resolved;
  const PlanRequest& request;
  const std::vector<RankedPlan>& plans;
  const std::function<bool()>& stop;
};

/// Which pins apply beside the ones asked about.
enum class OtherPins : std::uint8_t {
  kKept,  ///< --fix and --max of the question
  kNone,  ///< the layout stands by itself
};

/// Searches the layouts with these pins and says what became of them.
LayoutVerdict judge(const RankingContext& context, const LayoutFilter& pins, OtherPins others);

}  // namespace scalecalc
