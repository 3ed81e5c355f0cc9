// The plan to run: not the fastest by a hair but the simplest that is about as fast and has room in memory.
#pragma once

#include <functional>
#include <optional>

#include "train/question.h"
#include "train/resolve.h"

namespace scalecalc {

/// What a mechanism that no measured run shows must bring before it is recommended: more than a prediction of it could
/// be wrong by. Nine of ten of all measured runs lie within 25 % of theirs (docs/accuracy.md), on either side.
inline constexpr double kUnmeasuredGain = 0.5;

/// Of the plans that leave the room the error of the memory rules asks for (usable_share), those whose time (or cost)
/// per token lies within `question.tie` of the best of them; among these the simplest (plan/mechanisms.h), then the
/// best. So no mechanism is recommended that brings less than the tie. Plans with mechanisms that no measured run shows
/// count only where those without are slower by more than kUnmeasuredGain, or none fits; then as few of them as that
/// allows. Where no plan leaves that room, all count. Ranked by memory or chips it is plan 1. `planner` is of
/// `request`, and `plans` its ranking, not empty.
Recommendation recommend(const TrainQuestion& question, const ResolvedQuestion& resolved, const PlanRequest& request,
                         Planner& planner, const std::vector<RankedPlan>& plans);

}  // namespace scalecalc
