#include "profile/gap.h"

#include <algorithm>
#include <array>
#include <span>

namespace scalecalc {
namespace {

using enum DeviceWork;

/// Which works of a recording and which causes of a prediction are one term.
struct TermRow {
  std::string_view term;
  std::array<std::string_view, 7> causes;
  std::array<DeviceWork, 4> works;
  std::size_t work_count;
  bool idle;
};
// A profiler does not say whose collective a kernel is, nor which elementwise kernel hides under what.
constexpr std::array kRecordedTerms{
    TermRow{"matmuls and attention", {"compute"}, {kMatmul, kAttention, kConvolution}, 3, false},
    TermRow{"memory-bound work", {"hbm"}, {kVector, kRouting, kPass}, 3, false},
    TermRow{"exposed communication",
            {"tp_exposed", "fsdp_exposed", "dp_exposed", "cp_exposed", "ep_exposed", "pp_exposed"},
            {kExposed, kCollective, kSendReceive},
            3,
            false},
    TermRow{"optimizer", {"optimizer"}, {kOptimizer}, 1, false},
    TermRow{"copies", {"offload_exposed"}, {kCopy}, 1, false},
    TermRow{"idle: bubble, host, launches", {"bubble", "overhead"}, {kHost}, 1, true},
    TermRow{"unrecognised kernels", {}, {kUnknown}, 1, false},
};
// A drawn step has its passes whole, and between them the bubble with the transfers in it.
constexpr std::array kDrawnTerms{
    TermRow{"passes: compute, memory, overhead",
            {"compute", "hbm", "overhead", "offload_exposed"},
            {kPass, kHost},
            2,
            false},
    TermRow{"exposed inside passes", {"tp_exposed", "fsdp_exposed", "cp_exposed", "ep_exposed"}, {kExposed}, 1, false},
    TermRow{"gradients and weights", {"dp_exposed"}, {kCollective}, 1, false},
    TermRow{"optimizer", {"optimizer"}, {kOptimizer}, 1, false},
    TermRow{"bubble and transfers", {"bubble", "pp_exposed"}, {kSendReceive}, 1, true},
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
  const bool drawn = recorded.format == RecordingFormat::kOwnTrace;
  const std::span<const TermRow> rows = drawn ? std::span<const TermRow>(kDrawnTerms) : kRecordedTerms;
  for (const TermRow& row : rows) {
    GapTerm term = term_of(row, rank, plan.figures);
    if (term.predicted_s > 0 || term.measured_s > 0) out.terms.push_back(std::move(term));
  }
  std::stable_sort(out.terms.begin(), out.terms.end(),
                   [](const GapTerm& a, const GapTerm& b) { return std::abs(a.more_s()) > std::abs(b.more_s()); });
  const double peak = job.hw.matmul_peak.at(static_cast<std::size_t>(job.workload.precision.compute))->value();
  out.flops = plan.figures.hfu * peak * plan.plan.step_s;
  if (recorded.flops) out.flops_known = *recorded.flops / out.flops;
  return out;
}

}  // namespace scalecalc
