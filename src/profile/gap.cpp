// Compares a recorded step with its prediction term by term, for `profile` with a saved plan.
#include "profile/gap.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "plan/plan_costs.h"
#include "train/figures.h"
#include "train/step_trace.h"

namespace scalecalc {
namespace {

using enum DeviceWork;

constexpr std::string_view kExposedTerm = "exposed communication";

/// The whole numbers in "stage 3".
std::vector<std::int64_t> numbers_in(const std::string& text) {
  std::vector<std::int64_t> out;
  const std::size_t at = text.find_first_of("0123456789");
  if (at == std::string::npos) return out;
  std::int64_t value = 0;
  std::from_chars(text.data() + at, text.data() + text.size(), value);
  out.push_back(value);
  return out;
}

/// Which works of a recording and which causes of a prediction are one term.
struct TermRow {
  std::string_view term;
  std::array<std::string_view, 7> causes;
  std::array<DeviceWork, 4> works;
  std::size_t work_count;
  bool idle;
};
// A profiler does not say which elementwise kernel hides under what.
constexpr std::array kRecordedTerms{
    TermRow{"matmuls and attention", {"compute"}, {kMatmul, kAttention, kConvolution}, 3, false},
    TermRow{"memory-bound work", {"hbm"}, {kVector, kRouting, kPass}, 3, false},
    TermRow{kExposedTerm,
            {"tp_exposed", "fsdp_exposed", "dp_exposed", "cp_exposed", "ep_exposed", "pp_exposed"},
            {kExposed, kCollective, kSendReceive},
            3,
            false},
    TermRow{"optimizer", {"optimizer"}, {kOptimizer}, 1, false},
    TermRow{"copies", {"offload_exposed"}, {kCopy}, 1, false},
    TermRow{"idle: bubble, host, launches", {"bubble", "overhead"}, {kHost}, 1, true},
    TermRow{"unrecognised kernels", {}, {kUnknown}, 1, false},
};
struct Dimension {
  std::string_view name;
  std::string_view term;
  std::array<std::string_view, 2> causes;
};
constexpr std::array kDimensions{
    Dimension{"tp", "exposed: tensor ranks", {"tp_exposed"}},
    Dimension{"data", "exposed: data ranks", {"fsdp_exposed", "dp_exposed"}},
    Dimension{"pp", "exposed: pipeline stages", {"pp_exposed"}},
    Dimension{"ep", "exposed: expert ranks", {"ep_exposed"}},
    Dimension{"cp", "exposed: context ranks", {"cp_exposed"}},
};

double cause_of(const PlanFigures& figures, std::string_view cause) {
  for (const auto& [name, seconds] : figures.time_s) {
    if (name == cause) return seconds;
  }
  return 0;
}

GapTerm term_of(const TermRow& row, const ProfiledRank& rank, const PlanFigures& figures) {
  GapTerm out{.term = std::string(row.term)};
  double largest = -1;
  for (const std::string_view cause : row.causes) {
    if (cause.empty()) continue;
    const double seconds = cause_of(figures, cause);
    out.causes.emplace_back(cause);
    out.predicted_s += seconds;
    if (seconds > largest) out.remedy = remedy_of(cause);
    largest = std::max(largest, seconds);
  }
  for (std::size_t i = 0; i < row.work_count; ++i) {
    out.measured_s += rank.per_step(rank.parts.counted.at(static_cast<std::size_t>(row.works.at(i))));
  }
  if (row.idle) out.measured_s += rank.idle_s();
  return out;
}

/// The same plan's communication with nothing hidden: what it takes at all.
StepTime<double> nothing_hidden(const TrainAnswer& job, const Plan& plan) {
  Efficiency none = job.efficiency;
  for (Coefficient* overlap :
       {&none.overlap_tp_pipelined, &none.overlap_tp, &none.overlap_fsdp, &none.overlap_dp, &none.overlap_ep,
        &none.overlap_pp, &none.overlap_cp, &none.overlap_cp_gather, &none.overlap_ep_paired}) {
    overlap->value = 0;
  }
  const PlanRequest request{.model = &job.model, .hw = &job.hw, .efficiency = job.efficiency, .workload = job.workload};
  const Reader<double> reader{};
  const PlanCosts<double> costs(reader, request, none, plan);
  return step_time(reader, costs.input());
}

double whole_of(std::string_view cause, const StepTime<double>& time) {
  for (const auto& [name, seconds] : causes_of(time)) {
    if (name == cause) return seconds;
  }
  return 0;
}

std::string group_text(const CommunicationGroup& group, std::string_view by) {
  std::string out = group.kind;
  if (group.ranks > 0) out += fmt::format(" over {}", group.ranks);
  if (!group.name.empty()) out += fmt::format(" of {}", group.name);
  return by.empty() ? out : fmt::format("{} (by {})", out, by);
}

/// Each dimension that was measured or predicted to communicate, and what of the recording is of none.
std::vector<GapCommunication> communication(const ProfileAnswer& recorded, const ProfiledRank& rank,
                                            const TrainAnswer& job, const RankedPlan& plan) {
  const StepTime<double> whole = nothing_hidden(job, plan.plan);
  std::vector<GapCommunication> out;
  for (const Dimension& dimension : kDimensions) {
    GapCommunication one{.dimension = dimension.name, .predicted_s = 0, .measured_s = 0};
    for (const std::string_view cause : dimension.causes) {
      if (cause.empty()) continue;
      one.predicted_exposed_s += cause_of(plan.figures, cause);
      *one.predicted_s += whole_of(cause, whole);
    }
    // With nothing hidden, other work is not slowed either; what is exposed is never more than all of it.
    one.predicted_s = std::max(*one.predicted_s, one.predicted_exposed_s);
    out.push_back(std::move(one));
  }
  out.push_back({.dimension = "unknown", .measured_s = 0});
  for (std::size_t g = 0; g < rank.parts.groups.size(); ++g) {
    const CommunicationGroup& group = recorded.groups[g].group;
    const GroupDimension is = dimension_of(group, plan.plan.layout);
    GapCommunication& of =
        *std::find_if(out.begin(), out.end(), [&](const auto& each) { return each.dimension == is.dimension; });
    of.groups.push_back(group_text(group, is.by));
    of.measured_exposed_s += rank.per_step(rank.parts.groups[g].exposed);
    *of.measured_s += rank.per_step(rank.parts.groups[g].running);
  }
  std::erase_if(
      out, [](const GapCommunication& c) { return c.predicted_s.value_or(0) <= 0 && c.measured_s.value_or(0) <= 0; });
  return out;
}

/// The recording's terms; exposed communication by dimension where any of it is told apart.
std::vector<GapTerm> recorded_terms(const ProfiledRank& rank, const RankedPlan& plan,
                                    const std::vector<GapCommunication>& communication) {
  std::vector<GapTerm> out;
  for (const TermRow& row : kRecordedTerms) out.push_back(term_of(row, rank, plan.figures));
  const auto known = [](const GapCommunication& c) { return c.dimension != "unknown" && !c.groups.empty(); };
  if (std::none_of(communication.begin(), communication.end(), known)) return out;
  std::erase_if(out, [](const GapTerm& term) { return term.term == kExposedTerm; });
  for (const GapCommunication& c : communication) {
    const auto* const row =
        std::find_if(kDimensions.begin(), kDimensions.end(), [&](const Dimension& d) { return d.name == c.dimension; });
    GapTerm term{.term = row == kDimensions.end() ? "exposed: of no known dimension" : std::string(row->term),
                 .predicted_s = c.predicted_exposed_s,
                 .measured_s = c.measured_exposed_s};
    if (row != kDimensions.end()) {
      for (const std::string_view cause : row->causes) {
        if (cause.empty()) continue;
        term.causes.emplace_back(cause);
        if (term.remedy.empty()) term.remedy = remedy_of(cause);
      }
    }
    out.push_back(std::move(term));
  }
  return out;
}

/// A drawn step's, beside what the same plan's blocks come to: the closed form's bubble is of equal stages.
std::vector<GapTerm> drawn_terms(const ProfiledRank& rank, const TrainAnswer& job, const RankedPlan& plan,
                                 GapAnswer& gap) {
  const StepTrace trace = trace_step(job, plan.plan);
  const std::vector<std::int64_t> number = numbers_in(rank.device);
  const std::int64_t last = static_cast<std::int64_t>(trace.stages.size()) - 1;
  const std::int64_t stage = std::clamp<std::int64_t>(number.empty() ? 0 : number.front(), 0, last);
  const StageFigures& figures = trace.stages[static_cast<std::size_t>(stage)];
  const StageTail& tail = trace.step.run.tails[static_cast<std::size_t>(stage)];
  gap.closed_form_s = plan.plan.step_s;
  gap.predicted_s = trace.simulated_s;
  const auto work = [&](DeviceWork of) { return rank.per_step(rank.parts.counted.at(static_cast<std::size_t>(of))); };
  const auto exposed = [&](std::string_view name) {
    const auto at = rank.exposed.find(std::string(name) + ", exposed");
    return at == rank.exposed.end() ? 0 : rank.per_step(at->second);
  };
  struct Inside {
    std::string_view name, dimension;
    SecondsOf<double> PhaseTime<double>::*kind;
  };
  constexpr std::array<Inside, 4> kInside{{{"tp", "tp", &PhaseTime<double>::tp},
                                           {"fsdp", "data", &PhaseTime<double>::fsdp},
                                           {"cp", "cp", &PhaseTime<double>::cp},
                                           {"ep", "ep", &PhaseTime<double>::ep}}};
  std::vector<GapTerm> out;
  double inside = 0;
  const auto communicates = [&](std::string_view dimension, std::string_view group, const GapTerm& term) {
    const auto at = std::find_if(gap.communication.begin(), gap.communication.end(),
                                 [&](const auto& c) { return c.dimension == dimension; });
    GapCommunication& of =
        at != gap.communication.end() ? *at : gap.communication.emplace_back(GapCommunication{.dimension = dimension});
    of.groups.emplace_back(group);
    of.predicted_exposed_s += term.predicted_s;
    of.measured_exposed_s += term.measured_s;
  };
  for (const Inside& each : kInside) {
    const double predicted = exposed_in_passes(trace, stage, each.kind);
    inside += predicted;
    const std::string cause = std::string(each.name) + "_exposed";
    GapTerm term{.term = fmt::format("exposed inside passes: {}", each.name),
                 .causes = {cause},
                 .predicted_s = predicted,
                 .measured_s = exposed(each.name),
                 .remedy = remedy_of(cause)};
    if (term.predicted_s <= 0 && term.measured_s <= 0) continue;
    communicates(each.dimension, each.name, term);
    out.push_back(std::move(term));
  }
  out.push_back({.term = "passes: compute, memory, overhead",
                 .causes = {"compute", "hbm", "overhead", "offload_exposed"},
                 .predicted_s = figures.busy_s - inside + trace.step.host_s,
                 .measured_s = work(kPass) + work(kHost),
                 .remedy = remedy_of("compute")});
  GapTerm ends{.term = "gradients and weights",
               .causes = {"dp_exposed"},
               .predicted_s = tail.reduce_s + tail.gather_s,
               .measured_s = work(kCollective),
               .remedy = remedy_of("dp_exposed")};
  if (ends.predicted_s > 0 || ends.measured_s > 0) communicates("data", "gradients and weights", ends);
  out.push_back(std::move(ends));
  out.push_back({.term = "optimizer",
                 .causes = {"optimizer"},
                 .predicted_s = tail.update_s,
                 .measured_s = work(kOptimizer),
                 .remedy = remedy_of("optimizer")});
  out.push_back({.term = "bubble and transfers",
                 .causes = {"bubble", "pp_exposed"},
                 .predicted_s = figures.idle_s,
                 .measured_s = work(kSendReceive) + rank.idle_s(),
                 .remedy = remedy_of("bubble")});
  return out;
}

}  // namespace

GapAnswer explain_gap(const ProfileAnswer& recorded, const TrainAnswer& job, const RankedPlan& plan) {
  const ProfiledRank& rank =
      *std::max_element(recorded.ranks.begin(), recorded.ranks.end(),
                        [](const auto& a, const auto& b) { return a.compute_s() < b.compute_s(); });
  const MeasuredSpeed speed{.kind = MeasuredSpeed::Kind::kStep, .value = rank.step_s()};
  GapAnswer out{.device = rank.device,
                .verdict = judge_measured(job, plan, speed),
                .predicted_s = plan.plan.step_s,
                .low_s = plan.figures.step_low_s,
                .high_s = plan.figures.step_high_s};
  if (recorded.format == RecordingFormat::kOwnTrace) {
    out.terms = drawn_terms(rank, job, plan, out);
  } else {
    out.communication = communication(recorded, rank, job, plan);
    out.terms = recorded_terms(rank, plan, out.communication);
  }
  std::erase_if(out.terms, [](const GapTerm& term) { return term.predicted_s <= 0 && term.measured_s <= 0; });
  std::stable_sort(out.terms.begin(), out.terms.end(),
                   [](const GapTerm& a, const GapTerm& b) { return std::abs(a.more_s()) > std::abs(b.more_s()); });
  const double peak = job.hw.matmul_peak.at(static_cast<std::size_t>(job.workload.precision.compute))->value();
  out.flops = plan.figures.hfu * peak * plan.plan.step_s;
  if (recorded.flops) out.flops_known = *recorded.flops / out.flops;
  return out;
}

}  // namespace scalecalc
