// Shows the recommended plan in detail, its whole run, and what the search left out.
#include "train/train_sections_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/text.h"
#include "base/units.h"
#include "plan/stack_supports.h"
#include "report/brief_blocks.h"
#include "train/train_plan_output.h"
#include "train/train_words.h"

namespace scalecalc {
namespace {

Figure rigid_text(std::string_view key, std::string_view label, std::string_view text) {
  Figure out = text_figure(key, label, text);
  out.rigid = true;
  return out;
}

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

/// "tensor 181 runs, 7.2 %; ring none here, 24 of the family, 9.1 %": what was measured of the mechanisms used.
void add_evidence(const TrainAnswer& answer, const RankedPlan& ranked, std::vector<Line>& out) {
  std::vector<std::string> measured, unmeasured;
  for (const MechanismEvidence& e : ranked.figures.evidence) {
    if (e.family.runs == 0) {
      unmeasured.push_back(e.mechanism);
    } else if (!e.measured) {
      unmeasured.push_back(
          fmt::format("{} so far ({} runs, of {} ways at most)", e.mechanism, e.family.runs, e.family.most_ways));
    } else if (e.here.runs > 0) {
      measured.push_back(fmt::format("{} {} ({:.0f} % off)", e.mechanism, e.here.runs, 100 * e.here.error));
    } else {
      measured.push_back(
          fmt::format("{} 0, on like chips {} ({:.0f} % off)", e.mechanism, e.family.runs, 100 * e.family.error));
    }
  }
  if (!measured.empty()) {
    say(out, "measured runs on {} behind it: {}", answer.hw.name, join(measured, ", "));
  }
  if (unmeasured.empty()) return;
  say(out, Role::kWarning, "unmeasured on this kind of chip: {}; the band is {:.0f} % wider on either side",
      join_and(unmeasured), 100 * kUnmeasuredBand);
}

Block in_section(std::string_view section, Block block) {
  block.section = section;
  return block;
}

Block layout_block(const TrainAnswer& answer, const RankedPlan& ranked) {
  const Plan& plan = ranked.plan;
  std::vector<Line> out{{layout_words(plan.layout)}};
  const double off = plan.batch_seqs / answer.workload.batch_seqs - 1;
  const std::string against = off == 0
                                  ? "as asked"
                                  : fmt::format("{:.3g}% {} than the {} sequences asked for", 100 * std::abs(off),
                                                off > 0 ? "more" : "fewer", compact_count(answer.workload.batch_seqs));
  say(out, "each step runs {} sequences of {}, {} tokens: {}", compact_count(plan.batch_seqs),
      group_thousands(answer.workload.seq), compact_count(step_tokens(answer, plan)), against);
  if (const std::int64_t idle = answer.question.chips - plan.layout.chips(); idle > 0) {
    say(out, Role::kWarning, "{} of {} chips stay idle", group_thousands(idle), group_thousands(answer.question.chips));
  }
  const std::vector<std::int64_t>& chunks = ranked.figures.chunk_layers;
  if (std::adjacent_find(chunks.begin(), chunks.end(), std::not_equal_to<>()) != chunks.end()) {
    say(out, "layers by {}, as the launcher must be told: {}", plan.layout.vpp == 1 ? "stage" : "chunk",
        runs_of(chunks));
  }
  add_evidence(answer, ranked, out);
  out.push_back(next_line({.flags = {fix_flag(plan.layout)}}));
  return in_section("detail", lines_block("In detail: " + detailed_name(answer), std::move(out)));
}

Block time_block(const RankedPlan& ranked) {
  const double step = ranked.plan.step_s;
  const PartsTable table{"cause", "time", "share", Format::kSeconds, step};
  Block out =
      lines_block(fmt::format("Where the step goes ({}, between {} and {})", seconds_text(step),
                              seconds_text(ranked.figures.step_low_s), seconds_text(ranked.figures.step_high_s)),
                  {});
  for (const auto& [cause, seconds] : ranked.figures.time_s) {
    const bool exposed = cause.ends_with("_exposed");
    if (seconds != 0)
      out.records.push_back(parts_record(table, cause_words(cause) + (exposed ? ", exposed" : ""), seconds));
  }
  out.records.push_back(parts_record(table, "step", step, Role::kHeading));
  return out;
}

Block conventions_block(const TrainAnswer& answer, const RankedPlan& ranked) {
  Block out = lines_block("FLOP/s per chip as each framework would log it", {});
  for (const FlopsConvention& c : ranked.figures.conventions) {
    out.records.push_back(
        {{rigid_text("name", "convention", c.name),
          number_figure("tflops_per_chip", "TFLOP/s", Format::kNumber, c.tflops_per_chip),
          number_figure("mfu", "MFU", Format::kFraction, c.mfu), text_figure("counts", "counts", c.counts)}});
  }
  const Precision& precision = answer.workload.precision;
  if (const auto& peak = answer.hw.matmul_peak[static_cast<std::size_t>(precision.compute)]) {
    say(out.lines, "MFU is of the dense {} peak, {}", name_of(precision.compute),
        format_quantity(peak->value(), UnitKind::kFlopsPerSecond, 4));
  }
  say(out.lines, "hardware utilization, recomputation included: {}", fraction_text(ranked.figures.hfu));
  return out;
}

double part_of(const StageMemory& stage, std::string_view part) {
  const auto found =
      std::find_if(stage.bytes.begin(), stage.bytes.end(), [&](const auto& p) { return p.first == part; });
  return found == stage.bytes.end() ? 0 : found->second;
}

/// The parts that some stage has, with the importance of their column: on a narrow terminal those stay longest that
/// differ most from stage to stage.
std::vector<std::pair<std::string, int>> parts_shown(const std::vector<StageMemory>& stages) {
  std::vector<std::pair<std::string, int>> out;
  std::vector<double> spreads;
  for (const StageMemory& stage : stages) {
    for (const auto& entry : stage.bytes) {
      const std::string& part = entry.first;
      if (std::any_of(out.begin(), out.end(), [&](const auto& known) { return known.first == part; })) continue;
      const auto less = [&](const StageMemory& x, const StageMemory& y) { return part_of(x, part) < part_of(y, part); };
      const auto [least, most] = std::minmax_element(stages.begin(), stages.end(), less);
      if (part_of(*most, part) == 0) continue;
      out.emplace_back(part, 1);
      spreads.push_back(part_of(*most, part) - part_of(*least, part));
    }
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    for (const double other : spreads) out[i].second += other > spreads[i] ? 1 : 0;
  }
  return out;
}

Block brief_time(const RankedPlan& ranked) {
  std::vector<std::pair<std::string, double>> parts;
  for (const auto& [cause, seconds] : ranked.figures.time_s) parts.emplace_back(cause_words(cause), seconds);
  return brief_time_block("Where the step goes", parts, ranked.plan.step_s);
}

/// The parts of the fullest chip's memory, and what a run may need.
Block brief_memory(const TrainAnswer& answer, const RankedPlan& ranked) {
  const MemoryBand& band = ranked.figures.memory_band;
  return brief_memory_block(
      fmt::format("Memory: {} of {} on the fullest chip; a run may need {} to {}{}",
                  bytes_text(sum_of(ranked.figures.memory_bytes)), bytes_text(answer.hw.hbm_capacity.value()),
                  bytes_text(band.low), bytes_text(band.high), is_tight(ranked) ? ": tight, may not fit" : ""),
      ranked.figures.memory_bytes);
}

/// What a brief answer says last: how far predictions were off, what to ask next, the flags of this plan.
Block brief_end(const TrainAnswer& answer, const RankedPlan& ranked) {
  std::vector<Line> out;
  std::vector<Line> doubts;
  add_evidence(answer, ranked, doubts);
  for (const Line& line : doubts) {
    if (line.role == Role::kWarning) out.push_back(line);
  }
  if (!answer.question.ideal) out.push_back({accuracy_text(answer.efficiency)});
  const bool by_rate = answer.question.objective == Objective::kTime || answer.question.objective == Objective::kCost;
  say(out, "more: --verbose, --plan N, --top N{}; this layout alone:", by_rate ? ", scalecalc sensitivity" : "");
  out.push_back(next_line({.flags = {fix_flag(ranked.plan.layout)}}));
  return brief_end_block(std::move(out));
}

/// Stages that follow each other and hold the same are one line: "3-6".
Block stage_memory_block(const RankedPlan& ranked, const std::string& plan) {
  const std::vector<StageMemory>& stages = ranked.figures.memory_by_stage;
  Block out = lines_block(fmt::format("Memory of a chip by pipeline stage ({})", plan), {});
  for (std::size_t begin = 0; begin < stages.size();) {
    const StageMemory& stage = stages[begin];
    std::size_t end = begin + 1;
    while (end < stages.size() && stages[end].bytes == stage.bytes && stages[end].layers == stage.layers) ++end;
    const std::string name = end == begin + 1 ? fmt::format("{}", begin) : fmt::format("{}-{}", begin, end - 1);
    Record line{{rigid_text("stage", "stage", name), count_figure("layers", stage.layers, "layers")}};
    for (const auto& [part, importance] : parts_shown(stages)) {
      line.figures.push_back(
          with_importance(number_figure(part, part, Format::kBytes, part_of(stage, part)), importance));
    }
    line.figures.push_back(number_figure("total", "total", Format::kBytes, sum_of(stage.bytes)));
    out.records.push_back(std::move(line));
    begin = end;
  }
  return out;
}

Block placement_block(const RankedPlan& ranked) {
  Block out = lines_block(fmt::format("Placement on {}", ranked.plan.slice.name()), {});
  for (const PlacedGroup& group : ranked.figures.placement) {
    out.records.push_back(
        {{rigid_text("dimension", "dimension", group.dimension), text_figure("where", "where", group.where)}});
  }
  return out;
}

std::string_view part_words(std::string_view part) {
  if (part == "ideal") return "the steps";
  if (part == "straggler") return "waiting for slow chips";
  if (part == "data") return "waiting for data";
  if (part == "checkpoint") return "waiting for checkpoints";
  if (part == "rework") return "work done again after failures";
  if (part == "restart") return "restarts";
  return "short of hosts";
}

std::string totals(const TrainAnswer& answer, const RunFigures& run) {
  std::string text = fmt::format("{} tokens in {} steps: {}, {} chip-hours", compact_count(run.tokens),
                                 compact_count(run.steps), seconds_text(run.time_s), compact_count(run.chip_hours));
  if (run.cost_usd) text += ", " + compact_usd(*run.cost_usd);
  if (const auto price = understood(answer.question, answer.workload, answer.hw, answer.model).price;
      run.cost_usd && price) {
    text += fmt::format(" at {} a chip", format_quantity(*price, UnitKind::kUsdPerHour));
  }
  if (run.energy_j) text += ", " + energy_text(*run.energy_j);
  return text;
}

/// The optimum, or how far the interval taken lies from it.
std::string interval_words(const RunEconomics& e) {
  const auto off = e.interval_s / e.optimal_interval_s;
  constexpr double kSame = 1e-6;
  if (off > 1 - kSame && off < 1 + kSame) return "the best interval";
  return fmt::format("best: {}", seconds_text(e.optimal_interval_s));
}

void add_failures(const RunEconomics& e, std::vector<Line>& out) {
  say(out, "{} interruptions, one every {}; a restart takes {}", compact_count(e.interruptions), seconds_text(e.mtbf_s),
      seconds_text(e.restart_s));
  const std::string behind =
      e.checkpoint_behind_s > 0 ? fmt::format(", and it is safe {} later", seconds_text(e.checkpoint_behind_s)) : "";
  say(out, "a checkpoint of {} every {} ({}): the job waits {}{}; {} to storage in the mean",
      bytes_text(e.checkpoint_bytes), seconds_text(e.interval_s), interval_words(e),
      seconds_text(e.checkpoint_blocked_s), behind, rate_text(e.storage_bytes_per_s));
}

std::string spares_text(const SpareFigures& s) {
  const std::string other =
      s.other_time_s ? fmt::format("{} the run would take {}",
                                   s.elastic ? "waiting for repairs" : "going on with fewer data ranks (--elastic)",
                                   seconds_text(*s.other_time_s))
                     : "with fewer data ranks (--elastic) it would not go on";
  return fmt::format("{} spare {} ({} chips), repairs of {}: a failure finds none with a chance of {}; {}",
                     group_thousands(s.hosts), s.hosts == 1 ? "host" : "hosts", compact_count(s.chips),
                     seconds_text(s.repair_s), fraction_text(s.chance_none_left), other);
}

Line data_line(const RunEconomics& e) {
  std::string text = fmt::format("{} of tokens to load", rate_text(e.data_bytes_per_s));
  if (!e.storage_rate) return {std::move(text)};
  text += fmt::format(", of {} that storage gives", rate_text(*e.storage_rate));
  if (e.data_bytes_per_s <= *e.storage_rate) return {std::move(text)};
  return {text + ": it cannot feed the run (--storage-bandwidth, --token-bytes)", Role::kWarning};
}

Block economics_block(const RankedPlan& ranked) {
  const RunFigures& run = *ranked.figures.run;
  const RunEconomics& e = *run.economics;
  const PartsTable table{"cause", "time", "share", Format::kSeconds, run.time_s};
  Block out = lines_block("Where the time of the run goes", {});
  for (const auto& [part, time] : e.time_s) {
    if (time > 0) out.records.push_back(parts_record(table, part_words(part), time));
  }
  out.records.push_back(parts_record(table, "run", run.time_s, Role::kHeading));
  say(out.lines, "goodput {}, effective MFU {} (of {})", fraction_text(e.goodput), fraction_text(e.effective_mfu),
      fraction_text(ranked.figures.mfu));
  if (e.mtbf_s > 0) add_failures(e, out.lines);
  if (e.spares) out.lines.push_back({spares_text(*e.spares)});
  out.lines.push_back(data_line(e));
  return out;
}

std::string power_text(const RunPower& p) {
  const auto watts = [](double value) { return format_quantity(value, UnitKind::kWatts); };
  std::string text = fmt::format("power {}: {} a chip", watts(p.facility_w), watts(p.chip_w));
  if (p.host_w > 0) text += fmt::format(" and {} of its host", watts(p.host_w));
  if (p.pue != 1) text += fmt::format(", x {:g} for the facility", p.pue);
  text += fmt::format("; {} J per token", format_quantity(p.energy_per_token_j, UnitKind::kNumber));
  if (p.carbon_kg) {
    constexpr double kKgPerTonne = 1000;
    text += fmt::format("; {} t CO2 at {}", format_quantity(*p.carbon_kg / kKgPerTonne, UnitKind::kNumber),
                        format_quantity(*p.carbon_g_per_kwh, UnitKind::kGramsPerKwh));
  }
  return text;
}

Block searched_block(const TrainAnswer& answer) {
  const SearchStats& s = answer.search;
  const auto count = [](std::uint64_t n) { return compact_count(static_cast<double>(n)); };
  std::vector<Line> out{
      {fmt::format("{} legal layouts: {} proven slower by their lower bound, {} costed; {} seen to fit in memory",
                   count(s.candidates), count(s.pruned), count(s.evaluated), count(s.feasible))}};
  for (const std::string& line : answer.completeness) out.push_back({line});
  return in_section("searched", lines_block("Searched", std::move(out)));
}

/// Layouts that one constraint cut.
struct Cut {
  double count = 0;
  std::string reason;
  std::string key;
};

/// By constraint, the most frequent first.
std::vector<Cut> cuts_of_rules(const SearchStats& stats) {
  std::vector<Cut> out;
  for (std::size_t i = 0; i < kRejectCount; ++i) {
    const auto reason = static_cast<Reject>(i);
    if (stats.rejected[i] == 0) continue;
    out.push_back({static_cast<double>(stats.rejected[i]), std::string(describe(reason)), std::string(key_of(reason))});
  }
  std::stable_sort(out.begin(), out.end(), [](const Cut& a, const Cut& b) { return a.count > b.count; });
  return out;
}

/// What the stack cannot run.
std::vector<Cut> cuts_of_stack(const SearchStats& stats) {
  std::vector<Cut> out;
  for (const StackCut& cut : stack_cuts(stats)) {
    out.push_back({static_cast<double>(cut.layouts), cut.fact->says, "stack: " + cut.fact->name});
  }
  return out;
}

/// The most frequent in one line.
Line cuts_line(const std::string& lead, const std::vector<Cut>& cuts) {
  constexpr std::size_t kShown = 3;
  std::vector<std::string> parts;
  for (const Cut& cut : cuts) {
    if (parts.size() < kShown) parts.push_back(fmt::format("{} x {}", compact_count(cut.count), cut.reason));
  }
  if (cuts.size() > kShown) parts.push_back(fmt::format("{} more with --verbose", cuts.size() - kShown));
  return {lead + ": " + join(parts, "; ")};
}

Block excluded_block(const std::vector<Cut>& by_rules, const std::vector<Cut>& by_stack, const SearchStats& stats) {
  Block out = lines_block("Excluded, by constraint",
                          {{"counted where the search cut: a cut early in the search stands for many layouts, one "
                            "late for a single one, so counts do not compare across constraints",
                            Role::kDim}});
  const auto add = [&](const Cut& cut, const std::string& whose) {
    out.records.push_back({{number_figure("count", "cuts", Format::kCount, cut.count),
                            text_figure("reason", "constraint", whose + cut.reason),
                            with_importance(rigid_text("key", "search.rejected", cut.key), 1)}});
  };
  for (const Cut& cut : by_rules) add(cut, "");
  for (const Cut& cut : by_stack) add(cut, stats.launcher->name() + ": ");
  return out;
}

}  // namespace

Block memory_block(const TrainAnswer& answer, const RankedPlan& ranked, std::string_view title) {
  const double capacity = answer.hw.hbm_capacity.value();
  const double total = sum_of(ranked.figures.memory_bytes);
  const bool fits = total <= capacity;
  const PartsTable table{"part", "bytes", "of capacity", Format::kBytes, capacity};
  Block out = lines_block(title, {});
  for (const auto& [part, bytes] : ranked.figures.memory_bytes) {
    if (bytes != 0) out.records.push_back(parts_record(table, part, bytes));
  }
  out.records.push_back(parts_record(table, "total", total, fits ? Role::kHeading : Role::kBad));
  out.records.push_back(parts_record(table, "capacity", capacity));
  out.records.push_back(parts_record(table, fits ? "free" : "short", std::abs(capacity - total)));
  if (const MemoryBand& band = ranked.figures.memory_band; fits && band.high > 0) {
    out.lines.push_back({fmt::format("a run may need from {} to {}{}", bytes_text(band.low), bytes_text(band.high),
                                     is_tight(ranked) ? ": tight, may not fit" : ""),
                         is_tight(ranked) ? Role::kWarning : Role::kPlain});
  }
  if (const double host = ranked.plan.memory.host.value(); host > 0) {
    say(out.lines, "offloaded to the host: {} of {} for each chip", bytes_text(host),
        bytes_text(answer.hw.host_memory().value()));
  }
  return out;
}

std::vector<Block> run_blocks(const TrainAnswer& answer, const RankedPlan& ranked) {
  const PlanFigures& f = ranked.figures;
  const Line rates{fmt::format("{} tokens/s, {} tokens/s per chip", compact_count(f.tokens_per_s),
                               compact_count(f.tokens_per_s_per_chip))};
  if (!f.run) return {in_section("run", lines_block("Tokens per second", {rates}))};
  std::vector<Block> out{in_section("run", lines_block("The whole run", {{totals(answer, *f.run)}, rates}))};
  if (f.run->power) out.back().lines.push_back({power_text(*f.run->power)});
  if (f.run->economics) out.push_back(in_section("goodput", economics_block(ranked)));
  return out;
}

std::vector<Block> plan_blocks(const TrainAnswer& answer) {
  const RankedPlan* plan = detailed_plan(answer);
  if (plan == nullptr) return {};
  std::vector<Block> out{layout_block(answer, *plan), in_section("time", time_block(*plan)),
                         in_section("memory", memory_block(answer, *plan, "Memory of the fullest chip"))};
  if (answer.question.explain && plan->figures.memory_by_stage.size() > 1) {
    out.push_back(in_section("stages", stage_memory_block(*plan, detailed_name(answer))));
  }
  if (!plan->figures.conventions.empty()) out.push_back(in_section("flops", conventions_block(answer, *plan)));
  if (!plan->figures.placement.empty()) out.push_back(in_section("placement", placement_block(*plan)));
  for (Block& block : run_blocks(answer, *plan)) out.push_back(std::move(block));
  for (Block& block : out) block.shown = Shown::kFull;
  if (answer.why_not.empty() && !answer.from) {
    out.push_back(brief_time(*plan));
    out.push_back(brief_memory(answer, *plan));
  }
  out.push_back(brief_end(answer, *plan));
  return out;
}

std::vector<Block> search_blocks(const TrainAnswer& answer, bool all_reasons) {
  std::vector<Block> out{searched_block(answer)};
  const std::vector<Cut> by_rules = cuts_of_rules(answer.search);
  const std::vector<Cut> by_stack = cuts_of_stack(answer.search);
  // Without a plan the reasons are the answer, the most frequent of them the brief one.
  const bool apart = all_reasons || answer.question.explain || answer.plans.empty();
  if (apart && !by_rules.empty()) {
    out.push_back(excluded_block(by_rules, by_stack, answer.search));
  } else if (!by_rules.empty()) {
    out.back().lines.push_back(
        cuts_line("excluded, counted where the search cut, so that one count may stand for many layouts", by_rules));
    if (!by_stack.empty()) {
      out.back().lines.push_back(
          cuts_line(fmt::format("of these by {} (--stack any lifts it)", answer.search.launcher->name()), by_stack));
    }
  }
  for (Block& block : out) block.last = true;
  out.front().shown = Shown::kFull;
  constexpr std::size_t kBriefRows = 5;
  if (out.size() > 1) {
    out.back().brief_rows = kBriefRows;
    if (!answer.plans.empty()) out.back().shown = Shown::kFull;
  }
  return out;
}

}  // namespace scalecalc
