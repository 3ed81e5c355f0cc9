// Shows the stages of a traced step and draws its timeline, for `scalecalc trace`.
#include "train/trace_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/scalar.h"
#include "base/units.h"
#include "report/brief_blocks.h"
#include "train/train_output.h"
#include "train/train_words.h"

namespace scalecalc {
namespace {

std::int64_t layer_slices(const StepTrace& trace) {
  std::int64_t parts = 0;
  for (const auto& chunk : trace.step.parts) parts += static_cast<std::int64_t>(chunk.size());
  return 2 * parts * trace.step.run.microbatches;
}

std::string counted(std::int64_t count, std::string_view what, std::string_view plural = "s") {
  return fmt::format("{} {}{}", group_thousands(count), what, count == 1 ? "" : plural);
}

/// "12 layers, embedding".
std::string holds_text(const StageFigures& stage) {
  return counted(stage.layers, "layer") + (stage.holds.embedding ? ", embedding" : "") +
         (stage.holds.head ? ", head" : "");
}

Record stage_record(const StageFigures& stage, double step_s) {
  Figure holds = figure("layers", "holds", Format::kInteger, cell_of(stage.layers));
  holds.shown = holds_text(stage);
  Figure flight = figure("peak_in_flight", "in flight", Format::kNumber, Cell(stage.peak_in_flight));
  return {{figure("stage", "stage", Format::kInteger, cell_of(stage.holds.first)), with_importance(std::move(holds), 3),
           figure("embedding", "", Format::kFlag, Cell(stage.holds.embedding ? 1.0 : 0.0)),
           figure("head", "", Format::kFlag, Cell(stage.holds.head ? 1.0 : 0.0)),
           with_importance(figure("forward_s", "forward", Format::kSeconds, Cell(stage.forward_s)), 1),
           with_importance(figure("backward_s", "backward", Format::kSeconds, Cell(stage.backward_s)), 1),
           figure("busy_share", "busy", Format::kFraction, Cell(stage.busy_s / step_s)),
           figure("end_share", "end", Format::kFraction, Cell(stage.end_s / step_s)),
           figure("idle_share", "idle", Format::kFraction, Cell(stage.idle_s / step_s)),
           figure("busy_s", "", Format::kSeconds, Cell(stage.busy_s)),
           figure("end_s", "", Format::kSeconds, Cell(stage.end_s)),
           figure("idle_s", "", Format::kSeconds, Cell(stage.idle_s)), std::move(flight),
           figure("activation_bytes", "activations", Format::kBytes, Cell(stage.activation_bytes))}};
}

const StageFigures& slowest(const std::vector<StageFigures>& stages) {
  return *std::max_element(stages.begin(), stages.end(), [](const StageFigures& a, const StageFigures& b) {
    return a.forward_s + a.backward_s < b.forward_s + b.backward_s;
  });
}

/// Why there is no plan, a sentence each.
Figure nothing_fits(const std::vector<Line>& lines) {
  std::vector<Cell> items;
  for (const Line& line : lines) items.emplace_back(line.text);
  return list_figure("nothing_fits", "", std::move(items));
}

Block step_block(const TracedPlan& traced) {
  const StepTrace& trace = *traced.trace;
  const Plan& plan = traced.plan->plan;
  const double difference = trace.simulated_s / plan.step_s - 1;
  Figure apart = figure("difference", "difference", Format::kFraction, Cell(difference));
  constexpr double kShown = 5e-5;
  apart.shown = std::fabs(difference) < kShown ? "none" : fmt::format("{:+.2f}%", 100 * difference);
  const StageFigures& slow = slowest(trace.stages);
  Figure stage = figure("slowest_stage", "slowest stage", Format::kInteger, cell_of(slow.holds.first));
  stage.shown = fmt::format("{} ({})", slow.holds.first, holds_text(slow));
  const bool sends = trace.step.run.send_s > 0;
  Record out{
      {figure("simulated_step_time_s", "step, simulated", Format::kSeconds, Cell(trace.simulated_s)),
       figure("step_time_s", "step, closed form (train)", Format::kSeconds, Cell(plan.step_s)), std::move(apart),
       figure("bound_by", "bound by", Format::kText, Cell(traced.plan->figures.bound_by)), std::move(stage),
       figure("schedule", "schedule", Format::kText, Cell(std::string(name_of(plan.layout.schedule)))),
       figure("stages_total", "", Format::kInteger, cell_of(plan.layout.pp)),
       figure("chunks_per_stage", plan.layout.vpp > 1 ? "chunks per stage" : "", Format::kInteger,
              cell_of(plan.layout.vpp)),
       figure("microbatches", "microbatches", Format::kInteger, cell_of(plan.layout.grad_accum)),
       figure("send_time_s", sends ? "one transfer between stages" : "", Format::kSeconds, Cell(trace.step.run.send_s)),
       figure("host_time_s", "host's share of a step", Format::kSeconds, Cell(trace.step.host_s)),
       figure("replicas", "", Format::kInteger, cell_of(plan.layout.data())), nothing_fits({})}};
  return {.key = "",
          .title = "Step",
          .is_list = false,
          .records = {std::move(out)},
          .section = "step",
          .brief_keys = {"simulated_step_time_s", "step_time_s", "difference", "bound_by", "slowest_stage",
                         "microbatches"}};
}

Block stages_block(const StepTrace& trace) {
  constexpr std::size_t kBriefRows = 8;
  Block out{.key = "stages", .title = "Stages", .brief_rows = kBriefRows};
  for (const StageFigures& stage : trace.stages) out.records.push_back(stage_record(stage, trace.simulated_s));
  return out;
}

Record query_of(const TracedPlan& traced) {
  const TrainAnswer& a = *traced.answer;
  return {{figure("model", "", Format::kText, a.model.name),
           maybe_figure("rank", "", Format::kInteger, detailed_rank(*traced.answer)),
           figure("fix", "", Format::kText, traced.plan == nullptr ? Cell{} : Cell(fix_text(traced.plan->plan.layout))),
           figure("layers_drawn", "", Format::kFlag, Cell(draws_layers(traced) ? 1.0 : 0.0))}};
}

void describe_plan(const TracedPlan& traced, Output& out) {
  const Layout& layout = traced.plan->plan.layout;
  say(out.summary, "{}: {}", detailed_name(*traced.answer), layout_words(layout));
  const std::string replicas =
      layout.data() > 1 ? fmt::format("one of {} data replicas; ", group_thousands(layout.data())) : "";
  say(out.summary, Role::kDim, "Drawn: {}{} of {}, {}", replicas, counted(layout.pp, "stage"),
      counted(layout.tp * layout.cp, "chip"), counted(layout.grad_accum, "microbatch", "es"));
}

void add_notes(const TracedPlan& traced, Output& out) {
  out.notes.emplace_back(
      "busy: forwards and backwards with the communication they expose; end: exposed gradient "
      "reduction, optimizer, exposed gather of weights, the host's share; idle: the rest");
  out.brief_notes = out.notes;
  if (traced.trace->step.run.send_s > 0) {
    out.notes.emplace_back(
        "transfers run beside the stages and the next stage waits for them; the closed form hides a "
        "fixed share of each instead (overlap.pp of the hardware)");
  }
  const Layout& layout = traced.plan->plan.layout;
  if ((layout.offload & kOffloadActivations) != 0) {
    out.notes.push_back(fmt::format("activations: what a stage keeps, here {} in the host's memory",
                                    layout.offload_layers > 0 ? "in part" : "mostly"));
  }
  if (!traced.events || traced.detail != TraceDetail::kAuto || draws_layers(traced)) return;
  out.assumptions.push_back(
      {fmt::format("single layers are not drawn: {} slices, above {}", group_thousands(layer_slices(*traced.trace)),
                   group_thousands(kMostLayerSlices)),
       "--detail layers", "size of the trace", true});
}

}  // namespace

bool draws_layers(const TracedPlan& traced) {
  if (traced.trace == nullptr) return false;
  if (traced.detail != TraceDetail::kAuto) return traced.detail == TraceDetail::kLayers;
  return layer_slices(*traced.trace) <= kMostLayerSlices;
}

Output trace_output(const TracedPlan& traced, bool complete) {
  const TrainAnswer& a = *traced.answer;
  Output out{.command = "trace",
             .title = fmt::format("A training step of {} on {} x {}", a.model.title, group_thousands(a.question.chips),
                                  a.hw.title),
             .query = query_of(traced),
             .assumptions = a.assumptions,
             .complete = complete};
  out.deciding = deciding_of_training();
  out.software = software_text(a.software, a.question);
  if (!complete) {
    out.assumptions.push_back(
        Assumption{"interrupted: the search is incomplete, better layouts may be missing", "", "", true}.as(
            "interrupted"));
  }
  if (traced.plan == nullptr) {
    out.summary = train_output(a, complete).summary;
    out.blocks.push_back({.key = "stages"});
    out.blocks.push_back({.key = "", .is_list = false, .records = {{{nothing_fits(out.summary)}}}});
  } else {
    describe_plan(traced, out);
    out.blocks.push_back(step_block(traced));
    out.blocks.push_back(stages_block(*traced.trace));
    out.plots = {timeline_plot(*traced.trace)};
    add_notes(traced, out);
    out.blocks.push_back(next_block({next_line({.flags = {fix_flag(traced.plan->plan.layout)}})}));
  }
  return out;
}

namespace {

enum class StageWork : std::size_t { kForward, kBackward, kEnd };

/// One stage's spans in the order of time. What is too short to be seen lengthens the one before.
class StageBar {
 public:
  StageBar(std::string label, double shortest) : bar_{std::move(label), {}}, shortest_(shortest) {}

  void add(double from, double to, StageWork work) {
    from = std::max(from, end_);  // a reduction beside the last backward shows where that has ended
    if (to <= from) return;
    const auto kind = static_cast<std::size_t>(work);
    PlotSpan* last = bar_.spans.empty() ? nullptr : &bar_.spans.back();
    const bool follows = last != nullptr && from - last->to < shortest_;
    if (follows && (last->kind == kind || to - from < shortest_)) {
      last->to = to;
    } else {
      bar_.spans.push_back({from, to, kind});
    }
    end_ = to;
  }

  PlotBar take() { return std::move(bar_); }

 private:
  PlotBar bar_;
  double shortest_, end_ = 0;
};

}  // namespace

Plot timeline_plot(const StepTrace& trace) {
  constexpr double kVisible = 1.0 / 1500;  // of the step
  std::vector<StageBar> stages;
  for (std::size_t s = 0; s < trace.stages.size(); ++s) {
    stages.emplace_back(fmt::format("stage {}", trace.stages[s].holds.first), kVisible * trace.simulated_s);
  }
  for (const PipelineBlock& block : trace.timeline.blocks) {
    if (block.kind == BlockKind::kSendActivation || block.kind == BlockKind::kSendGradient) continue;
    const StageWork work = !is_compute(block.kind)             ? StageWork::kEnd
                           : block.kind == BlockKind::kForward ? StageWork::kForward
                                                               : StageWork::kBackward;
    stages[static_cast<std::size_t>(block.stage)].add(block.start_s, block.end_s, work);
  }
  Plot out{.x = {.title = "time of the step", .format = Format::kSeconds},
           .bar_kinds = {"forward", "backward", "after the last backward: gradients, optimizer, weights, the host"}};
  for (StageBar& stage : stages) {
    stage.add(trace.timeline.end_s, trace.timeline.end_s + trace.step.host_s, StageWork::kEnd);
    out.bars.push_back(stage.take());
  }
  return out;
}

}  // namespace scalecalc
