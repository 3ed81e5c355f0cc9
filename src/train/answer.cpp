// Answers `scalecalc train`: searches, recommends a plan and explains what it assumed.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/text.h"
#include "base/units.h"
#include "plan/dimensions.h"
#include "train/figures.h"
#include "train/fill.h"
#include "train/layout_judge.h"
#include "train/obstacles.h"
#include "train/question.h"
#include "train/recommend.h"
#include "train/reference.h"
#include "train/resolve.h"
#include "train/rules.h"
#include "train/run_terms.h"
#include "train/would_fit.h"

namespace scalecalc {
namespace {

std::string offload_rule(const TrainQuestion& q, const HardwareSpec& hw) {
  const LayoutDimension& offload = *find_dimension("offload");
  if (const auto pinned = offload.pin(q.fix)) {
    return fmt::format("offload to the host: {}, as pinned", offload.word(*pinned));
  }
  if (!hw.host_bandwidth() || hw.host_memory().value() <= 0) {
    return "left out: offload, because the host's memory or the link to it is not published";
  }
  return fmt::format(
      "offload is tried where a layout does not fit otherwise: optimizer state, activations, both, weights too; {} of "
      "host memory for each chip",
      bytes_text(hw.host_memory().value()));
}

/// What is searched, of what a stack offers where there is one.
std::string searched_dimensions(const StackRelease* launcher) {
  if (launcher != nullptr) {
    return fmt::format(
        "searched: what {} can run of data, FSDP and hybrid FSDP, ZeRO 0 to 3, tensor with and without sequence "
        "sharding, context, pipeline, layers of its first and last stage, expert and expert-tensor, microbatch, "
        "accumulation, remat (of all layers or of the first of each stage); --stack any searches every combination",
        launcher->name());
  }
  return "searched: data, FSDP and hybrid FSDP, ZeRO 0 to 3, tensor with and without sequence sharding, context "
         "(all-gather, ring, Ulysses), pipeline (1F1B, interleaved, zero-bubble, DualPipe), layers of its first and "
         "last stage, expert and expert-tensor, "
         "microbatch, accumulation, remat (none, selective, attention, mlp, full; of all layers or of the first of "
         "each stage)";
}

std::vector<std::string> completeness(const TrainQuestion& q, const ResolvedQuestion& resolved) {
  std::vector<std::string> out;
  std::vector<std::string> machines;
  for (const Slice& slice : resolved.slices) machines.push_back(slice.name());
  out.push_back("machines: " + join(machines, ", "));
  if (resolved.shapes_left_out > 0) {
    out.push_back(fmt::format("left out: {} longer shapes of the same count (--topology AxBxC asks for one)",
                              resolved.shapes_left_out));
  }
  out.push_back(searched_dimensions(resolved.launcher.get()));
  const bool any = resolved.launcher == nullptr;
  if (any && (!q.fix.schedule || *q.fix.schedule != Schedule::kGpipe)) {
    out.emplace_back("GPipe left out: never faster than 1F1B, and it keeps more (--schedule gpipe evaluates it)");
  }
  out.push_back(offload_rule(q, resolved.hw));
  if (!q.variants) {
    out.emplace_back("each line is the best variant of its parallel degrees; --variants ranks them all");
  }
  return out;
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
                                        const RankedPlan& ranked) {
  const PlanReading<Traced> reading = read_plan(Reader<Traced>{}, request, ranked.plan);
  const SecondsOf<Traced> step = named(reading.time.total(), "step time", "sum of its causes");
  const BytesOf<Traced> memory = named(reading.memory.total(), "memory on the fullest chip", "sum of its parts");
  ExplainSection time{.title = "Step time", .steps = explain(step.value())};
  ExplainSection bytes{.title = "Memory", .steps = explain(memory.value())};
  // A group of one communicates nothing; its zeros tell the reader nothing.
  for (ExplainSection* section : {&time, &bytes}) {
    std::erase_if(section->steps, [](const ExplainedStep& s) { return s.value == 0; });
  }
  std::vector<ExplainSection> out{std::move(time), std::move(bytes), rules_of_thumb(resolved)};
  if (resolved.workload.tokens) {
    for (ExplainSection& section : explain_run(run_input(resolved, ranked.plan, ranked.figures.mfu))) {
      out.push_back(std::move(section));
    }
  }
  return out;
}

/// What the stack may not run of the plans shown, by facts that no source was read for.
void warn_of_unread_facts(const PlanRequest& request, const std::vector<RankedPlan>& plans,
                          std::vector<Assumption>& assumptions) {
  if (!request.stack) return;
  for (const SupportFact& fact : request.stack->facts) {
    if (!fact.recall) continue;
    std::vector<std::string> met;
    for (std::size_t i = 0; i < plans.size(); ++i) {
      if (fact.refuses({plans[i].plan.layout, *request.model, request.workload, *request.hw})) {
        met.push_back(std::to_string(i + 1));
      }
    }
    if (met.empty()) continue;
    assumptions.push_back(
        Assumption{fmt::format("{} may not run plan{} {}: {}, as far as is known", request.stack->name(),
                               met.size() == 1 ? "" : "s", join_and(met), fact.says),
                   "--stack", fact.source, true}
            .as("unread_fact")
            .is(fact.name));
  }
}

/// What an interrupted search says of a layout is no verdict, and is left out.
void judge_layouts(const RankingContext& context, const std::optional<KnownReference>& reference, TrainAnswer& out) {
  const auto stopped = [&] { return context.stop && context.stop(); };
  for (const LayoutFilter& pins : context.question.why_not) {
    LayoutVerdict verdict = judge(context, pins, OtherPins::kKept);
    if (stopped()) return;
    out.why_not.push_back(std::move(verdict));
  }
  if (!reference) return;
  ReferenceVerdict verdict = judge_reference(context, *reference);
  if (!stopped()) out.from = std::move(verdict);
}

}  // namespace

const RankedPlan* detailed_plan(const TrainAnswer& answer) {
  const std::size_t rank = answer.question.plan;
  if (rank == 0) return answer.recommended ? &answer.recommended->plan : nullptr;
  return rank <= answer.plans.size() ? &answer.plans[rank - 1] : nullptr;
}

TrainAnswer answer(const TrainQuestion& question, const Catalog& catalog, const std::function<bool()>& stop) {
  return answer(question, resolve(question, catalog), stop);
}

TrainAnswer answer(const TrainQuestion& question, ResolvedQuestion resolved, const std::function<bool()>& stop) {
  std::optional<KnownReference> reference;
  if (question.from) reference = read_reference(*question.from);
  const PlanRequest request = request_of(question, resolved);
  PlanRequest searched = request;  // what else is asked, of other workloads and filters, has bounds of its own
  searched.bounds = resolved.bounds;
  searched.counts = question.asides;
  auto searching = std::make_unique<Planner>(searched, stop);
  const Goal first{.objective = request.objective, .top = request.top};
  PlanResult result = searching->best(first);
  if (result.plans.empty() && !searched.counts) {  // why there are none is read off the counts
    searched.counts = true;
    searching = std::make_unique<Planner>(searched, stop);
    result = searching->best(first);
  }
  Planner& planner = *searching;
  TrainAnswer out;
  for (Plan& p : result.plans) out.plans.push_back(ranked(resolved, request, std::move(p)));
  if (!out.plans.empty()) out.recommended = recommend(question, resolved, request, planner, out.plans);
  if (!out.plans.empty() && question.asides && !(stop && stop())) {
    out.cheaper = cheaper_on_fewer_chips(resolved, request, planner, out.plans.front().plan);
    if (request.objective == Objective::kTime) {
      out.batch_to_fill = batch_to_fill(request, out.plans.front().plan, stop);
    }
  }
  if (result.nearest_miss) out.nearest_miss = ranked(resolved, request, *result.nearest_miss);
  if (out.plans.empty() && !(stop && stop())) {
    out.would_fit = what_would_fit(question, request, stop);
  }
  if (out.plans.empty() && !out.nearest_miss) {
    out.obstacles = obstacles(request);
    if (out.obstacles.empty()) out.obstacles = stack_obstacles(result.stats);
  }
  judge_layouts({question, resolved, request, out.plans, stop}, reference, out);
  out.question = question;
  if (const RankedPlan* plan = detailed_plan(out); plan != nullptr && question.explain) {
    out.explanation = explanation(resolved, request, *plan);
  }
  if (const RankedPlan* plan = detailed_plan(out); plan != nullptr && resolved.workload.expert_load) {
    const std::string text =
        expert_load_text(*resolved.workload.expert_load, question.expert_load, plan->plan.layout.ep);
    resolved.assumptions.push_back({text, "--expert-load", "docs/model.md [EXPERT-LOAD]", false});
  }
  warn_of_unread_facts(request, out.plans, resolved.assumptions);
  out.slice = resolved.slices.front();
  out.search = result.stats;
  out.completeness = completeness(question, resolved);
  out.assumptions = std::move(resolved.assumptions);
  out.workload = resolved.workload;
  out.question.run = resolved.run;
  out.model = std::move(resolved.model);
  out.efficiency = resolved.efficiency;
  out.software = std::move(resolved.software);
  out.hw = std::move(resolved.hw);
  return out;
}

}  // namespace scalecalc
