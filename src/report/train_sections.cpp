// What stands below the ranking: the best plan taken apart, and what was searched.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "base/text.h"
#include "base/units.h"
#include "report/explained_text.h"
#include "report/train_report.h"

namespace scalecalc {
namespace {

struct Cause {
  std::string_view key;
  const char* words;
};

constexpr std::array kCauses{
    Cause{"compute", "compute"},
    Cause{"hbm", "memory-bound work"},
    Cause{"tp_exposed", "tensor-parallel communication"},
    Cause{"fsdp_exposed", "FSDP communication"},
    Cause{"dp_exposed", "gradient reduction"},
    Cause{"cp_exposed", "context-parallel communication"},
    Cause{"ep_exposed", "expert exchange"},
    Cause{"pp_exposed", "pipeline transfers"},
    Cause{"offload_exposed", "transfers to and from the host"},
    Cause{"bubble", "pipeline bubble"},
    Cause{"optimizer", "optimizer"},
    Cause{"overhead", "kernel and step overhead"},
};

/// "3, 4 x 14, 1".
std::string runs_of(const std::vector<std::int64_t>& counts) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < counts.size();) {
    const auto begin = counts.begin() + static_cast<std::ptrdiff_t>(i);
    const auto end = std::find_if(begin, counts.end(), [&](std::int64_t n) { return n != *begin; });
    const auto length = end - begin;
    out.push_back(length == 1 ? fmt::format("{}", *begin) : fmt::format("{} x {}", *begin, length));
    i += static_cast<std::size_t>(length);
  }
  return join(out, ", ");
}

Section layout_section(const TrainAnswer& answer, const RankedPlan& ranked) {
  const Plan& plan = ranked.plan;
  Section out{.title = "Plan 1"};
  out.lines.push_back({fmt::format("{}; {}", degrees_text(plan.layout), recipe_text(plan.layout))});
  const double tokens = plan.batch_seqs * static_cast<double>(answer.workload.seq);
  const double off = plan.batch_seqs / answer.workload.batch_seqs - 1;
  const std::string against = off == 0
                                  ? "as asked"
                                  : fmt::format("{:.3g}% {} than the {} sequences asked for", 100 * std::abs(off),
                                                off > 0 ? "more" : "fewer", compact_count(answer.workload.batch_seqs));
  out.lines.push_back({fmt::format("each step runs {} sequences of {}, {} tokens: {}", compact_count(plan.batch_seqs),
                                   group_thousands(answer.workload.seq), compact_count(tokens), against)});
  if (const std::int64_t idle = idle_chips(answer, plan); idle > 0) {
    out.lines.push_back(
        {fmt::format("{} of {} chips stay idle", group_thousands(idle), group_thousands(answer.question.chips)),
         Role::kWarning});
  }
  const std::vector<std::int64_t>& chunks = ranked.figures.chunk_layers;
  if (std::adjacent_find(chunks.begin(), chunks.end(), std::not_equal_to<>()) != chunks.end()) {
    out.lines.push_back({fmt::format("layers by {}, as the launcher must be told: {}",
                                     plan.layout.vpp == 1 ? "stage" : "chunk", runs_of(chunks))});
  }
  out.lines.push_back({"this layout alone: " + fix_text(plan.layout), Role::kDim});
  return out;
}

Section time_section(const RankedPlan& ranked) {
  const double step = ranked.plan.step_s;
  Section out{.title =
                  fmt::format("Where the step goes ({}, between {} and {})", format_quantity(step, UnitKind::kSeconds),
                              format_quantity(ranked.figures.step_low_s, UnitKind::kSeconds),
                              format_quantity(ranked.figures.step_high_s, UnitKind::kSeconds))};
  out.table.columns = {{.title = "cause", .key = "cause", .flexible = true},
                       {.title = "time", .key = "time_s", .format = Format::kSeconds},
                       {.title = "share", .key = "share", .format = Format::kFraction}};
  for (const auto& [cause, seconds] : ranked.figures.time_s) {
    if (seconds == 0) continue;
    const bool exposed = cause.ends_with("_exposed");
    out.table.rows.push_back({{cause_words(cause) + (exposed ? ", exposed" : ""), seconds, seconds / step}});
  }
  out.table.rows.push_back({{std::string("step"), step, 1.0}, Role::kHeading});
  return out;
}

Section conventions_section(const TrainAnswer& answer, const RankedPlan& ranked) {
  Section out{.title = "FLOP/s per chip as each framework would log it"};
  out.table.columns = {{.title = "convention", .key = "name"},
                       {.title = "TFLOP/s", .key = "tflops_per_chip", .format = Format::kNumber},
                       {.title = "MFU", .key = "mfu", .format = Format::kFraction},
                       {.title = "counts", .key = "counts", .flexible = true}};
  for (const FlopsConvention& c : ranked.figures.conventions) {
    out.table.rows.push_back({{c.name, c.tflops_per_chip, c.mfu, c.counts}});
  }
  const Precision& precision = answer.workload.precision;
  const auto& peak = answer.hw.matmul_peak[static_cast<std::size_t>(precision.compute)];
  if (peak) {
    out.lines.push_back({fmt::format("MFU is of the dense {} peak, {}", name_of(precision.compute),
                                     format_quantity(peak->value(), UnitKind::kFlopsPerSecond, 4))});
  }
  out.lines.push_back({fmt::format("hardware utilization, recomputation included: {}",
                                   format_quantity(ranked.figures.hfu, UnitKind::kFraction))});
  return out;
}

Section placement_section(const RankedPlan& ranked) {
  Section out{.title = fmt::format("Placement on {}", ranked.plan.slice.name())};
  out.table.columns = {{.title = "dimension", .key = "dimension"},
                       {.title = "where", .key = "where", .flexible = true}};
  for (const auto& [dimension, where] : ranked.figures.placement) out.table.rows.push_back({{dimension, where}});
  return out;
}

Section searched_section(const TrainAnswer& answer) {
  const SearchStats& s = answer.search;
  Section out{.title = "Searched"};
  const auto count = [](std::uint64_t n) { return compact_count(static_cast<double>(n)); };
  out.lines.push_back(
      {fmt::format("{} legal layouts: {} proven slower by their lower bound, {} costed; {} seen to fit "
                   "in memory",
                   count(s.candidates), count(s.pruned), count(s.evaluated), count(s.feasible))});
  // A line of its own, never broken, so that transcripts can mask it.
  out.lines.push_back({fmt::format("searched in {}", format_quantity(s.elapsed_s, UnitKind::kSeconds))});
  for (const std::string& line : answer.completeness) out.lines.push_back({line});
  return out;
}

/// What was cut, by constraint, the most frequent first.
std::vector<std::pair<std::uint64_t, Reject>> cuts(const SearchStats& stats) {
  std::vector<std::pair<std::uint64_t, Reject>> out;
  for (std::size_t i = 0; i < kRejectCount; ++i) {
    if (stats.rejected[i] > 0) out.emplace_back(stats.rejected[i], static_cast<Reject>(i));
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  return out;
}

/// The most frequent constraints in one line.
std::string excluded_text(const TrainAnswer& answer) {
  constexpr std::size_t kShown = 3;
  const auto all = cuts(answer.search);
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < std::min(kShown, all.size()); ++i) {
    parts.push_back(fmt::format("{} x {}", compact_count(static_cast<double>(all[i].first)), describe(all[i].second)));
  }
  std::string out =
      "excluded, counted where the search cut, so that one count may stand for many layouts: " + join(parts, "; ");
  if (all.size() > kShown) out += fmt::format("; {} more with --verbose", all.size() - kShown);
  return out;
}

Section excluded_section(const TrainAnswer& answer) {
  Section out{.title = "Excluded, by constraint"};
  out.table.columns = {{.title = "cuts", .key = "count", .format = Format::kCount},
                       {.title = "constraint", .key = "reason", .flexible = true},
                       {.title = "search.rejected", .key = "key", .importance = 1}};
  for (const auto& [count, reason] : cuts(answer.search)) {
    out.table.rows.push_back(
        {{static_cast<double>(count), std::string(describe(reason)), std::string(key_of(reason))}});
  }
  out.lines.push_back(
      {"counted where the search cut: a cut early in the search stands for many layouts, one late for a "
       "single one, so counts do not compare across constraints",
       Role::kDim});
  return out;
}

}  // namespace

std::string cause_words(const std::string& key) {
  const auto* const found = std::find_if(kCauses.begin(), kCauses.end(), [&](const Cause& c) { return c.key == key; });
  return found == kCauses.end() ? key : found->words;
}

Section memory_section(const TrainAnswer& answer, const RankedPlan& ranked, const std::string& title) {
  const double capacity = answer.hw.hbm_capacity.value();
  const double total = sum_of(ranked.figures.memory_bytes);
  Section out{.title = title};
  out.table.columns = {{.title = "part", .key = "part", .flexible = true},
                       {.title = "bytes", .key = "bytes", .format = Format::kBytes},
                       {.title = "of capacity", .key = "share", .format = Format::kFraction}};
  for (const auto& [part, bytes] : ranked.figures.memory_bytes) {
    if (bytes != 0) out.table.rows.push_back({{part, bytes, bytes / capacity}});
  }
  const bool fits = total <= capacity;
  out.table.rows.push_back({{std::string("total"), total, total / capacity}, fits ? Role::kHeading : Role::kBad});
  out.table.rows.push_back({{std::string("capacity"), capacity, 1.0}});
  const double left = fits ? capacity - total : total - capacity;
  out.table.rows.push_back({{std::string(fits ? "free" : "short"), left, left / capacity}});
  if (const double host = ranked.plan.memory.host.value(); host > 0) {
    out.lines.push_back(
        {fmt::format("offloaded to the host: {} of {} for each chip", format_quantity(host, UnitKind::kBytes),
                     format_quantity(answer.hw.host_memory().value(), UnitKind::kBytes))});
  }
  return out;
}

std::vector<Section> plan_sections(const TrainAnswer& answer) {
  if (answer.plans.empty()) return {};
  const RankedPlan& best = answer.plans.front();
  std::vector<Section> out{layout_section(answer, best), time_section(best),
                           memory_section(answer, best, "Memory of the fullest chip")};
  if (!best.figures.conventions.empty()) out.push_back(conventions_section(answer, best));
  if (!best.figures.placement.empty()) out.push_back(placement_section(best));
  for (Section& section : run_sections(answer, best)) out.push_back(std::move(section));
  return out;
}

std::vector<Section> search_sections(const TrainAnswer& answer, bool all_reasons) {
  std::vector<Section> out;
  if (!answer.assumptions.empty()) out.push_back(assumed_section(answer.assumptions));
  out.push_back(searched_section(answer));
  if (cuts(answer.search).empty()) return out;
  // Without a plan the reasons are the answer.
  if (all_reasons || answer.question.explain > 0 || answer.plans.empty()) {
    out.push_back(excluded_section(answer));
  } else {
    out.back().lines.push_back({excluded_text(answer)});
  }
  return out;
}

}  // namespace scalecalc
