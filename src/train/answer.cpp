#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "train/figures.h"
#include "train/fill.h"
#include "train/obstacles.h"
#include "train/question.h"
#include "train/resolve.h"
#include "train/rules.h"

namespace scalecalc {
namespace {

std::vector<std::string> completeness(const TrainQuestion& q, const ResolvedQuestion& resolved) {
  std::vector<std::string> out;
  std::vector<std::string> machines;
  for (const Slice& slice : resolved.slices) machines.push_back(slice.name());
  out.push_back("machines: " + join(machines, ", "));
  if (resolved.shapes_left_out > 0) {
    out.push_back(fmt::format("left out: {} longer shapes of the same count (--topology AxBxC asks for one)",
                              resolved.shapes_left_out));
  }
  out.push_back(
      "searched: data, FSDP and hybrid FSDP, ZeRO 0 to 3, tensor with and without sequence sharding, context, pipeline "
      "(1F1B, interleaved), expert and expert-tensor, microbatch, accumulation, remat none, selective and full");
  if (!q.fix.schedule || *q.fix.schedule != Schedule::kGpipe) {
    out.emplace_back("GPipe left out: never faster than 1F1B, and it keeps more (--schedule gpipe evaluates it)");
  }
  out.emplace_back("left out: zero-bubble and DualPipe schedules, offload to the host, remat of some layers only");
  if (!q.variants) {
    out.emplace_back("each line is the best variant of its parallel degrees; --variants ranks them all");
  }
  return out;
}

/// The smallest larger machine on which something fits, trying doublings.
std::optional<std::string> more_chips(const TrainQuestion& q, const PlanRequest& request) {
  if (q.fix.dp || q.fix.fsdp || q.topology) return std::nullopt;
  PlanRequest larger = request;
  larger.top = 1;
  std::int64_t chips = request.slices.front().chips;
  for (int doubling = 0; doubling < 12; ++doubling) {
    chips *= 2;
    larger.slices = slices_of(*request.hw, chips, q.slices);
    if (larger.slices.empty()) {
      const std::int64_t next = nearest_above(*request.hw, chips, q.slices);
      if (next == 0) return std::nullopt;
      chips = next;
      larger.slices = slices_of(*request.hw, chips, q.slices);
    }
    if (!plan(larger).plans.empty()) return fmt::format("--chips {}", chips);
  }
  return std::nullopt;
}

std::optional<std::string> what_would_fit(const TrainQuestion& q, const PlanRequest& request) {
  std::vector<std::string> ways;
  if (const auto chips = more_chips(q, request)) ways.push_back(*chips);
  for (const char* name : {"adam-bf16", "adam8bit"}) {
    const Optimizer lighter = optimizer_of(name);
    if (lighter.state_bytes >= request.workload.optimizer.state_bytes) continue;
    PlanRequest with = request;
    with.workload.optimizer = lighter;
    with.top = 1;
    if (plan(with).plans.empty()) continue;
    ways.push_back(fmt::format("--optimizer {}", name));
    break;
  }
  if (ways.empty()) return std::nullopt;
  return join(ways, " or ");
}

/// Ranked by time, a plan on fewer chips that is cheaper per token would not show; the asker should know of it.
std::optional<RankedPlan> cheaper_on_fewer_chips(const ResolvedQuestion& resolved, const PlanRequest& request,
                                                 Planner& planner, const Plan& fastest) {
  if (request.objective != Objective::kTime) return std::nullopt;
  const std::int64_t chips = fastest.slice.chips;
  const bool smaller = std::any_of(request.slices.begin(), request.slices.end(),
                                   [&](const Slice& slice) { return slice.chips < chips; });
  if (!smaller) return std::nullopt;
  const double tokens = fastest.batch_seqs * static_cast<double>(request.workload.seq);
  PlanResult result = planner.best({.objective = Objective::kCost,
                                    .top = 1,
                                    .below = 0.99 * static_cast<double>(chips) * fastest.step_s / tokens,
                                    .fewer_chips = chips});
  if (result.plans.empty()) return std::nullopt;
  return ranked(resolved, request, std::move(result.plans.front()));
}

std::vector<ExplainSection> explanation(const ResolvedQuestion& resolved, const PlanRequest& request,
                                        const Plan& plan) {
  const PlanReading<Traced> reading = read_plan(Reader<Traced>{}, request, plan);
  const SecondsOf<Traced> step = named(reading.time.total(), "step time", "sum of its causes");
  const BytesOf<Traced> memory = named(reading.memory.total(), "memory on the fullest chip", "sum of its parts");
  ExplainSection time{.title = "Step time", .steps = explain(step.value())};
  ExplainSection bytes{.title = "Memory", .steps = explain(memory.value())};
  // A group of one communicates nothing; its zeros tell the reader nothing.
  for (ExplainSection* section : {&time, &bytes}) {
    std::erase_if(section->steps, [](const ExplainedStep& s) { return s.value == 0; });
  }
  return {std::move(time), std::move(bytes), rules_of_thumb(resolved)};
}

}  // namespace

TrainAnswer answer(const TrainQuestion& question, const Catalog& catalog, const std::function<bool()>& stop) {
  ResolvedQuestion resolved = resolve(question, catalog);
  const PlanRequest request = request_of(question, resolved);
  Planner planner(request, stop);
  PlanResult result = planner.best({.objective = request.objective, .top = request.top});
  TrainAnswer out;
  for (Plan& p : result.plans) out.plans.push_back(ranked(resolved, request, std::move(p)));
  if (!out.plans.empty() && !(stop && stop())) {
    out.cheaper = cheaper_on_fewer_chips(resolved, request, planner, out.plans.front().plan);
    if (request.objective == Objective::kTime) {
      out.batch_to_fill = batch_to_fill(request, out.plans.front().plan, stop);
    }
  }
  if (result.nearest_miss) out.nearest_miss = ranked(resolved, request, *result.nearest_miss);
  if (out.plans.empty() && !(stop && stop())) out.would_fit = what_would_fit(question, request);
  if (out.plans.empty() && !out.nearest_miss) out.obstacles = obstacles(request);
  if (question.explain > 0 && question.explain <= out.plans.size()) {
    out.explanation = explanation(resolved, request, out.plans[question.explain - 1].plan);
  }
  out.slice = resolved.slices.front();
  out.search = result.stats;
  out.completeness = completeness(question, resolved);
  out.assumptions = std::move(resolved.assumptions);
  out.workload = resolved.workload;
  out.question = question;
  out.model = std::move(resolved.model);
  out.hw = std::move(resolved.hw);
  return out;
}

}  // namespace scalecalc
