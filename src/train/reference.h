// A layout from elsewhere held against ours: as typed, or a plan of a saved answer.
#pragma once

#include "train/layout_judge.h"

namespace scalecalc {

/// A reference read, before anything is searched.
struct KnownReference {
  std::string name;  ///< for people: "answer.json, plan 1", or the layout as typed
  LayoutFilter pins;
  std::optional<RecordedPlan> recorded;
};

/// UserError for a file that is no answer of `scalecalc train --json` or has no such plan.
KnownReference read_reference(const ReferenceLayout& reference);

/// The reference on this question: as it stands if that is legal, else with the data ranks and the microbatches of a
/// step changed so that it has this question's chips and batch.
ReferenceVerdict judge_reference(const RankingContext& context, KnownReference reference);

}  // namespace scalecalc
