// Describes the figures of a training plan once, for JSON, CSV and tables.
#include "train/train_plan_output.h"

#include <algorithm>
#include <array>

#include "base/units.h"
#include "model/accounting.h"
#include "plan/dimensions.h"
#include "plan/mechanisms.h"
#include "plan/stack_supports.h"
#include "report/placement_figures.h"
#include "train/resolve.h"
#include "train/train_words.h"

namespace scalecalc {
namespace {

using Figures = std::vector<Figure>;

constexpr std::array<std::string_view, 7> kMemoryParts{"weights", "gradients", "optimizer", "activations",
                                                       "logits",  "buffers",   "reserve"};

Figure in_json(Figure f) { return read_by(Readers::kJson, std::move(f)); }

Figure counts_figure(std::string_view key, const auto& counts) {
  std::vector<Cell> items;
  items.reserve(counts.size());
  for (const std::int64_t count : counts) items.push_back(cell_of(count));
  Figure out = list_figure(key, "", std::move(items));
  out.format = Format::kInteger;
  return out;
}

Figure dimension_figure(const LayoutDimension& d, std::int64_t value) {
  switch (d.kind) {
    case DimensionKind::kCount: return count_figure(d.json_key, value);
    case DimensionKind::kSwitch: return flag_figure(d.json_key, value != 0);
    case DimensionKind::kWord: return text_figure(d.json_key, "", d.word(value));
  }
  return {};
}

Figure object(std::string_view key, std::optional<Record> members) {
  return in_json(object_figure(key, std::move(members)));
}

/// The keys of the contract in their order, absent ones as 0, then any others.
template <class Keys>
Record parts(Format format, const Keys& keys, const std::vector<std::pair<std::string, double>>& values) {
  Record out;
  for (const std::string_view key : keys) {
    const auto part = std::find_if(values.begin(), values.end(), [&](const auto& v) { return v.first == key; });
    out.figures.push_back(number_figure(key, "", format, part == values.end() ? 0 : part->second));
  }
  for (const auto& [key, value] : values) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      out.figures.push_back(number_figure(key, "", format, value));
    }
  }
  return out;
}

/// Layout, placement, machine and batch. CSV has the layout behind the machine, by its dimensions alone.
void add_machine(const TrainAnswer& job, const RankedPlan& ranked, std::int64_t asked, Figures& out) {
  const Plan& plan = ranked.plan;
  Record layout, placement;
  Figures columns{read_by(Readers::kCsv, datum("slice", plan.slice.name()))};
  for (const LayoutDimension& d : layout_dimensions()) {
    layout.figures.push_back(dimension_figure(d, d.value(plan.layout)));
    columns.push_back(read_by(Readers::kCsv, layout.figures.back()));
  }
  for (const PlacedGroup& group : ranked.figures.placement) {
    placement.figures.push_back(text_figure(group.dimension, "", group.where));
  }
  out.push_back(object("layout", std::move(layout)));
  out.push_back(in_json(text_figure("fix", "", pins_text(pins_of(plan.layout)))));
  out.push_back(object("placement", std::move(placement)));
  out.push_back(placement_axes(ranked.figures.placement));
  out.push_back(in_json(counts_figure("chunk_layers", ranked.figures.chunk_layers)));
  out.push_back(count_figure("chips", plan.layout.chips(), "chips"));
  out.insert(out.end(), columns.begin(), columns.end());
  out.push_back(read_by(Readers::kPeople, text_figure("layout", "layout", degrees_text(plan.layout))));
  // Its commas would be columns to whoever splits CSV at them.
  out.push_back(in_json(text_figure("recipe", "", recipe_text(plan.layout))));
  out.push_back(read_by(Readers::kPeople, text_figure("recipe", "recipe", recipe_text(plan.layout))));
  out.push_back(in_json(count_figure("idle_chips", asked - plan.layout.chips())));
  out.push_back(in_json(count_figure("slices", plan.slice.slices)));
  out.push_back(in_json(counts_figure("shape", plan.slice.shape)));
  out.push_back(count_figure("batch_seqs", plan.batch_seqs));
  out.push_back(number_figure("batch_tokens", "batch", Format::kCount, step_tokens(job, plan)));
}

void add_step(const RankedPlan& ranked, Figures& out) {
  const PlanFigures& f = ranked.figures;
  out.push_back(number_figure("step_time_s", "step", Format::kSeconds, ranked.plan.step_s));
  out.push_back(number_figure("step_time_low_s", "low", Format::kSeconds, f.step_low_s));
  out.push_back(number_figure("step_time_high_s", "high", Format::kSeconds, f.step_high_s));
  out.push_back(number_figure("mfu", "MFU", Format::kFraction, f.mfu));
}

Figure bound_figure(const RankedPlan& ranked) {
  Figure out = text_figure("bound_by", "bound by", ranked.figures.bound_by);
  out.rigid = true;
  return out;
}

Figure time_figure(const RankedPlan& ranked) {
  std::vector<std::string_view> causes;
  for (const StepCause& cause : step_causes()) causes.push_back(cause.key);
  Record out = parts(Format::kSeconds, causes, ranked.figures.time_s);
  for (Figure& f : out.figures) f.column = "time_s_" + f.key;
  return object("time_s", std::move(out));
}

Figure memory_figure(const TrainAnswer& job, const RankedPlan& ranked) {
  const double total = sum_of(ranked.figures.memory_bytes);
  const double capacity = job.hw.hbm_capacity.value();
  Record out = parts(Format::kBytes, kMemoryParts, ranked.figures.memory_bytes);
  out.figures.push_back(in_column("memory_bytes", number_figure("total", "mem/chip", Format::kBytes, total)));
  out.figures.push_back(in_column("capacity_bytes", datum("capacity", capacity)));
  return object("memory_bytes", std::move(out));
}

Figure verdict_figure(const RankedPlan& ranked) {
  return word_of("memory_verdict", kMemoryVerdictNames, ranked.figures.memory_verdict);
}

/// One record for each stage of the pipeline.
Figure stages_figure(const RankedPlan& ranked) {
  std::vector<Record> out;
  for (const StageMemory& stage : ranked.figures.memory_by_stage) {
    Record record{{count_figure("stage", out.size()), count_figure("layers", stage.layers)}};
    for (Figure& part : parts(Format::kBytes, kMemoryParts, stage.bytes).figures) {
      record.figures.push_back(std::move(part));
    }
    record.figures.push_back(datum("total", sum_of(stage.bytes)));
    out.push_back(std::move(record));
  }
  return in_json(records_figure("memory_by_stage", "", "", std::move(out)));
}

Figure host_figure(const RankedPlan& ranked) {
  return in_json(datum("host_memory_bytes", ranked.plan.memory.host.value()));
}

/// Measured runs behind what the layout uses, on this chip under this stack and on its family.
Figure evidence_figure(const RankedPlan& ranked) {
  std::vector<Record> out;
  for (const MechanismEvidence& e : ranked.figures.evidence) {
    const auto error = [](const MeasuredRuns& m) { return m.runs > 0 ? Cell(m.error) : Cell{}; };
    out.push_back({{datum("mechanism", e.mechanism), count_figure("runs", e.here.runs), datum("error", error(e.here)),
                    count_figure("family_runs", e.family.runs), datum("family_error", error(e.family)),
                    count_figure("family_most_ways", e.family.most_ways), flag_figure("measured", e.measured)}});
  }
  return in_json(records_figure("evidence", "", "", std::move(out)));
}

Figure conventions_figure(const RankedPlan& ranked) {
  std::vector<Record> out;
  for (const FlopsConvention& c : ranked.figures.conventions) {
    out.push_back({{datum("name", c.name), datum("counts", c.counts), datum("tflops_per_chip", c.tflops_per_chip),
                    datum("mfu", c.mfu)}});
  }
  return in_json(records_figure("mfu_conventions", "", "", std::move(out)));
}

Record checkpoint_record(const RunEconomics& e) {
  return {{datum("bytes", e.checkpoint_bytes), datum("blocked_s", e.checkpoint_blocked_s),
           datum("behind_s", e.checkpoint_behind_s), datum("load_s", e.load_s), datum("count", e.checkpoints),
           in_column("run_checkpoint_interval_s", datum("interval_s", e.interval_s)),
           datum("optimal_interval_s", e.optimal_interval_s), datum("young_interval_s", e.young_interval_s),
           datum("daly_interval_s", e.daly_interval_s), datum("storage_bytes_per_s", e.storage_bytes_per_s)}};
}

Record spares_record(const SpareFigures& s) {
  return {{count_figure("hosts", s.hosts), datum("chips", s.chips), datum("repair_s", s.repair_s),
           datum("chance_none_left", s.chance_none_left), datum("policy", s.elastic ? "elastic" : "wait"),
           datum("other_policy_time_s", cell_of(s.other_time_s))}};
}

Record economics_record(const RunEconomics& e) {
  Record time;
  for (const auto& [part, seconds] : e.time_s)
    time.figures.push_back(number_figure(part, "", Format::kSeconds, seconds));
  const bool failures = e.mtbf_s > 0;
  const auto counted = [&](std::string_view key, double value) {
    return figure(key, "", Format::kNumber, failures ? Cell(value) : Cell{});
  };
  return {{in_column("run_ideal_time_s", datum("ideal_time_s", e.ideal_time_s)), object("time_s", std::move(time)),
           in_column("run_goodput", datum("goodput", e.goodput)),
           in_column("run_effective_mfu", datum("effective_mfu", e.effective_mfu)),
           datum("straggler_share", e.straggler_share), datum("data_bytes_per_s", e.data_bytes_per_s),
           datum("storage_bandwidth", cell_of(e.storage_rate)), counted("mtbf_s", e.mtbf_s),
           in_column("run_interruptions", counted("interruptions", e.interruptions)), counted("restart_s", e.restart_s),
           object("checkpoint", failures ? std::optional(checkpoint_record(e)) : std::nullopt),
           object("spares", e.spares ? std::optional(spares_record(*e.spares)) : std::nullopt)}};
}

Record power_record(const RunPower& p) {
  return {{word_of("basis", kPowerBasisNames, p.basis), datum("chip_w", p.chip_w), datum("idle_chip_w", p.idle_chip_w),
           datum("host_w_per_chip", p.host_w), datum("pue", p.pue),
           in_column("run_power_w", datum("facility_w", p.facility_w)),
           in_column("run_energy_j_per_token", datum("energy_j_per_token", p.energy_per_token_j)),
           datum("carbon_g_per_kwh", cell_of(p.carbon_g_per_kwh)), datum("carbon_kg", cell_of(p.carbon_kg))}};
}

/// All null if the length of the run is not known.
Figure run_figure(const std::optional<RunFigures>& run) {
  const auto known = [&](std::string_view key, std::string_view label, Format format, double RunFigures::*value) {
    return in_column("run_" + std::string(key), figure(key, label, format, run ? Cell((*run).*value) : Cell{}));
  };
  const auto priced = [&](std::string_view key, std::string_view label, Format format,
                          std::optional<double> RunFigures::*value) {
    return in_column("run_" + std::string(key),
                     maybe_figure(key, label, format, run ? (*run).*value : std::optional<double>()));
  };
  Record out{{known("tokens", "", Format::kCount, &RunFigures::tokens),
              known("steps", "", Format::kCount, &RunFigures::steps),
              known("time_s", "run", Format::kSeconds, &RunFigures::time_s),
              known("chip_hours", "", Format::kNumber, &RunFigures::chip_hours),
              priced("cost_usd", "cost", Format::kUsd, &RunFigures::cost_usd),
              priced("energy_j", "", Format::kNumber, &RunFigures::energy_j)}};
  for (Figure& f : run_conditions(run, "")) out.figures.push_back(std::move(f));
  return object("run", std::move(out));
}

/// Null if the whole model trains.
std::optional<Record> fine_tune_record(const TrainAnswer& a) {
  const std::optional<FineTune>& tune = a.workload.fine_tune;
  if (!tune) return std::nullopt;
  std::vector<std::string> targets;
  for (std::size_t i = 0; i < kLoraTargetNames.size(); ++i) {
    if ((tune->targets >> i & 1) != 0) targets.emplace_back(kLoraTargetNames.at(i));
  }
  return Record{{datum("method", is_unpacked(*tune, a.workload.precision) ? "qlora" : "lora"),
                 count_figure("rank", tune->rank), texts_figure("targets", targets),
                 flag_figure("experts", tune->experts),
                 tune->base ? word_of("base", kBaseFormatNames, *tune->base) : datum("base", Cell{}),
                 datum("base_bits", 8 * base_bytes(*tune, a.workload.precision)),
                 count_figure("trainable_parameters", adapter_parameters(a.model, *tune)),
                 count_figure("frozen_parameters", count_parameters(a.model).total)}};
}

}  // namespace

std::vector<Figure> run_conditions(const std::optional<RunFigures>& run, const std::string& around) {
  return {object(around + "economics",
                 run && run->economics ? std::optional(economics_record(*run->economics)) : std::nullopt),
          object(around + "power", run && run->power ? std::optional(power_record(*run->power)) : std::nullopt)};
}

double step_tokens(const TrainAnswer& job, const Plan& plan) {
  return plan.batch_seqs * static_cast<double>(job.workload.seq);
}

bool is_tight(const RankedPlan& ranked) { return ranked.figures.memory_verdict == MemoryVerdict::kTight; }

bool adjusts_batch(const TrainAnswer& job, const Plan& plan) { return plan.batch_seqs != job.workload.batch_seqs; }

Record plan_record(const TrainAnswer& job, const RankedPlan& ranked, std::size_t rank, std::int64_t asked) {
  const PlanFigures& f = ranked.figures;
  const double fraction = sum_of(f.memory_bytes) / job.hw.hbm_capacity.value();
  Record out{{figure("rank", "#", Format::kInteger, rank == 0 ? Cell{} : cell_of(static_cast<std::int64_t>(rank)))}};
  add_machine(job, ranked, asked, out.figures);
  add_step(ranked, out.figures);
  const std::vector<std::string_view> used = mechanisms_of(ranked.plan.layout);
  const std::initializer_list<Figure> rest{
      in_json(texts_figure("mechanisms", {used.begin(), used.end()})),
      in_json(count_figure("complexity", complexity(ranked.plan.layout))),
      evidence_figure(ranked),
      datum("hfu", f.hfu),
      number_figure("tokens_per_s", "tokens/s", Format::kCount, f.tokens_per_s),
      number_figure("tokens_per_s_per_chip", "per chip", Format::kCount, f.tokens_per_s_per_chip),
      datum("tflops_per_chip", f.tflops_per_chip),
      bound_figure(ranked),
      time_figure(ranked),
      memory_figure(job, ranked),
      number_figure("memory_fraction", "of " + bytes_text(job.hw.hbm_capacity.value()), Format::kFraction, fraction),
      host_figure(ranked),
      datum("memory_low_bytes", f.memory_band.low),
      datum("memory_high_bytes", f.memory_band.high),
      verdict_figure(ranked),
      stages_figure(ranked),
      conventions_figure(ranked),
      run_figure(f.run)};
  out.figures.insert(out.figures.end(), rest);
  return out;
}

Record recommended_record(const TrainAnswer& a) {
  const Recommendation& r = *a.recommended;
  return {{r.rank ? count_figure("rank", *r.rank) : datum("rank", Cell{}), datum("behind", r.behind),
           datum("tie", a.question.tie), datum("usable_memory_bytes", r.usable * a.hw.hbm_capacity.value()),
           flag_figure("has_room", r.has_room), flag_figure("measured_only", r.measured_only),
           flag_figure("only_unmeasured", r.only_unmeasured),
           object_figure("plan", plan_record(a, r.plan, r.rank.value_or(0), a.question.chips))}};
}

Record miss_record(const TrainAnswer& job, const RankedPlan& ranked) {
  Record out;
  add_machine(job, ranked, job.question.chips, out.figures);
  const double over = sum_of(ranked.figures.memory_bytes) - job.hw.hbm_capacity.value();
  out.figures.insert(out.figures.end(), {memory_figure(job, ranked), host_figure(ranked), stages_figure(ranked),
                                         datum("over_by_bytes", over)});
  return out;
}

Record fitting_record(const TrainAnswer& job, const RankedPlan& ranked) {
  Record out;
  add_machine(job, ranked, job.question.chips, out.figures);
  add_step(ranked, out.figures);
  out.figures.insert(out.figures.end(), {bound_figure(ranked), time_figure(ranked), memory_figure(job, ranked)});
  return out;
}

Record no_plan_record(const TrainAnswer& job) {
  RankedPlan plan;
  plan.figures.run = RunFigures{.economics = RunEconomics{.mtbf_s = 1}, .power = RunPower{}};
  return plan_record(job, plan, 0, 0);
}

std::vector<ShownColumn> ranking_columns(const TrainAnswer& a) {
  const auto any = [&](auto holds) { return std::any_of(a.plans.begin(), a.plans.end(), holds); };
  const bool chips_differ =
      any([&](const RankedPlan& p) { return p.plan.layout.chips() != a.plans.front().plan.layout.chips(); });
  // A plan that runs another batch than the one asked for must say so on any terminal.
  const bool adjusted = any([&](const RankedPlan& p) { return adjusts_batch(a, p.plan); });
  std::vector<ShownColumn> out{{"rank"},
                               {"chips", chips_differ ? 2 : 8},
                               {"layout"},
                               {"recipe", a.question.variants ? 2 : 5},
                               {"batch_tokens", adjusted ? 2 : 7},
                               {"step_time_s"},
                               {"step_time_low_s", 6, "", false},
                               {"step_time_high_s", 6, "", false},
                               {"mfu", 1},
                               {"memory_bytes", 2},
                               {"memory_fraction", 4, "", false}};
  if (a.workload.tokens) out.insert(out.end(), {{"run_time_s", 3}, {"run_cost_usd", 3}});
  out.push_back({"bound_by", 2});
  return out;
}

Record filter_record(const LayoutFilter& filter) {
  Record out;
  for (const LayoutDimension& d : pin_dimensions()) {
    if (const auto pinned = d.pin(filter)) out.figures.push_back(dimension_figure(d, *pinned));
  }
  return out;
}

Record search_record(const SearchStats& s, bool complete) {
  Record rejected;
  for (std::size_t i = 0; i < kRejectCount; ++i) {
    if (s.rejected[i] > 0) rejected.figures.push_back(count_figure(key_of(static_cast<Reject>(i)), s.rejected[i]));
  }
  std::vector<Record> facts;
  for (const StackCut& cut : stack_cuts(s)) {
    facts.push_back({{datum("fact", cut.fact->name), datum("says", cut.fact->says), datum("source", cut.fact->source),
                      count_figure("count", cut.layouts)}});
  }
  return {{count_figure("candidates", s.candidates), count_figure("feasible", s.feasible),
           count_figure("evaluated", s.evaluated), count_figure("pruned", s.pruned),
           object_figure("rejected", std::move(rejected)), records_figure("stack_facts", "", "", std::move(facts)),
           flag_figure("complete", complete)}};
}

Figure texts_figure(std::string_view key, const std::vector<std::string>& texts) {
  return list_figure(key, "", {texts.begin(), texts.end()});
}

Record train_query(const TrainAnswer& a) {
  return {{datum("model", a.model.name), datum("model_title", a.model.title), datum("hardware_title", a.hw.title),
           datum("slice", a.slice.name()), object_figure("fine_tune", fine_tune_record(a)),
           datum("documents", a.workload.documents ? Cell(lengths_text(*a.workload.documents)) : Cell{}),
           datum("stack_release", a.search.launcher ? Cell(a.search.launcher->name()) : Cell{})}};
}

}  // namespace scalecalc
