// What people read off a plan: MFU in each convention, tokens per second, what binds, days and dollars.
#pragma once

#include "train/resolve.h"

namespace scalecalc {

/// Contract names of the causes of a step's time, in their order.
std::vector<std::pair<std::string, double>> causes_of(const StepTime<double>& time);
PlanFigures figures(const ResolvedQuestion& question, const PlanRequest& request, const Plan& plan);
/// Of these the band, MFU, what binds, the causes and the fullest chip's memory: what thousands of measured runs are
/// compared in.
PlanFigures compared_figures(const ResolvedQuestion& question, const PlanRequest& request, const Plan& plan);
RankedPlan ranked(const ResolvedQuestion& question, const PlanRequest& request, Plan plan);

}  // namespace scalecalc
