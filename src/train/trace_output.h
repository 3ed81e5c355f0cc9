// The answer of `scalecalc trace`: a step's figures by stage as an Output, and the step itself as Chrome trace events.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "report/output.h"
#include "train/step_trace.h"

namespace scalecalc {

enum class TraceDetail { kAuto, kBlocks, kLayers };

/// Slices of single layers that kAuto still draws.
constexpr std::int64_t kMostLayerSlices = 50'000;

/// What of an answer is drawn. The plan and its trace are absent if nothing fits.
struct TracedPlan {
  const TrainAnswer* answer = nullptr;
  const RankedPlan* plan = nullptr;
  const StepTrace* trace = nullptr;
  TraceDetail detail = TraceDetail::kAuto;
  bool events = true;  ///< someone will see what is drawn
};

bool draws_layers(const TracedPlan& traced);

/// Without a plan it says what is short. `complete` is false when the search was interrupted.
Output trace_output(const TracedPlan& traced, bool complete);

/// The output's document with the members of Chrome's trace event format ("JSON object format") beside its own:
/// Perfetto and chrome://tracing read those and skip the rest. One event a line.
std::string trace_json(const TracedPlan& traced, const Output& output, std::string_view tool_version);

/// What each stage of a pipeline does with the step.
Plot timeline_plot(const StepTrace& trace);

}  // namespace scalecalc
