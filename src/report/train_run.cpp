// The whole run below the ranking: how long and what for, where its time goes, what it draws.
#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"
#include "report/train_report.h"

namespace scalecalc {
namespace {

std::string share(double value) { return format_quantity(value, UnitKind::kFraction); }

const char* part_words(std::string_view part) {
  if (part == "ideal") return "the steps";
  if (part == "straggler") return "waiting for slow chips";
  if (part == "checkpoint") return "waiting for checkpoints";
  if (part == "rework") return "work done again after failures";
  if (part == "restart") return "restarts";
  return "short of hosts";
}

std::string totals(const TrainAnswer& answer, const RunFigures& run) {
  std::string text = fmt::format("{} tokens in {} steps: {}, {} chip-hours", compact_count(run.tokens),
                                 compact_count(run.steps), seconds_text(run.time_s), compact_count(run.chip_hours));
  if (run.cost_usd) text += ", " + compact_usd(*run.cost_usd);
  if (const auto price = price_of(answer); run.cost_usd && price) {
    text += fmt::format(" at {} a chip", format_quantity(*price, UnitKind::kUsdPerHour));
  }
  if (run.energy_j) text += ", " + energy_text(*run.energy_j);
  return text;
}

void add_time_table(const RunFigures& run, const RunEconomics& e, Section& out) {
  out.table.columns = {{.title = "time", .key = "cause", .flexible = true},
                       {.title = "", .key = "time_s", .format = Format::kSeconds},
                       {.title = "share", .key = "share", .format = Format::kFraction}};
  for (const auto& [part, time] : e.time_s) {
    if (time > 0) out.table.rows.push_back({{std::string(part_words(part)), time, time / run.time_s}});
  }
  out.table.rows.push_back({{std::string("run"), run.time_s, 1.0}, Role::kHeading});
}

/// The optimum, or how far the interval taken lies from it.
std::string interval_words(const RunEconomics& e) {
  const auto off = e.interval_s / e.optimal_interval_s;
  constexpr double kSame = 1e-6;
  if (off > 1 - kSame && off < 1 + kSame) return "the best interval";
  return fmt::format("best: {}", seconds_text(e.optimal_interval_s));
}

void add_failures(const RunEconomics& e, Section& out) {
  out.lines.push_back({fmt::format("{} interruptions, one every {}; a restart takes {}", compact_count(e.interruptions),
                                   seconds_text(e.mtbf_s), seconds_text(e.restart_s))});
  std::string checkpoint = fmt::format(
      "a checkpoint of {} every {} ({}): the job waits {}", format_quantity(e.checkpoint_bytes, UnitKind::kBytes),
      seconds_text(e.interval_s), interval_words(e), seconds_text(e.checkpoint_blocked_s));
  if (e.checkpoint_behind_s > 0)
    checkpoint += fmt::format(", and it is safe {} later", seconds_text(e.checkpoint_behind_s));
  checkpoint +=
      fmt::format("; {} to storage in the mean", format_quantity(e.storage_bytes_per_s, UnitKind::kBytesPerSecond));
  out.lines.push_back({std::move(checkpoint)});
}

void add_spares(const SpareFigures& s, Section& out) {
  std::string text = fmt::format("{} spare {} ({} chips), repairs of {}: a failure finds none with a chance of {}",
                                 group_thousands(s.hosts), s.hosts == 1 ? "host" : "hosts", compact_count(s.chips),
                                 seconds_text(s.repair_s), share(s.chance_none_left));
  if (s.other_time_s) {
    text += fmt::format("; {} the run would take {}",
                        s.elastic ? "waiting for repairs" : "going on with fewer data ranks (--elastic)",
                        seconds_text(*s.other_time_s));
  } else {
    text += "; with fewer data ranks (--elastic) it would not go on";
  }
  out.lines.push_back({std::move(text)});
}

Section economics_section(const RankedPlan& ranked) {
  const RunFigures& run = *ranked.figures.run;
  const RunEconomics& e = *run.economics;
  Section out{.title = "Where the time of the run goes"};
  add_time_table(run, e, out);
  out.lines.push_back({fmt::format("goodput {}, effective MFU {} (of {})", share(e.goodput), share(e.effective_mfu),
                                   share(ranked.figures.mfu))});
  if (e.mtbf_s > 0) add_failures(e, out);
  if (e.spares) add_spares(*e.spares, out);
  out.lines.push_back(
      {fmt::format("{} of tokens to load", format_quantity(e.data_bytes_per_s, UnitKind::kBytesPerSecond))});
  return out;
}

void add_power(const RunFigures& run, Section& out) {
  if (!run.power) return;
  const RunPower& p = *run.power;
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
  out.lines.push_back({std::move(text)});
}

}  // namespace

std::vector<Section> run_sections(const TrainAnswer& answer, const RankedPlan& ranked) {
  const std::string rates = fmt::format("{} tokens/s, {} tokens/s per chip", compact_count(ranked.figures.tokens_per_s),
                                        compact_count(ranked.figures.tokens_per_s_per_chip));
  if (!ranked.figures.run) return {{.title = "Tokens per second", .lines = {{rates}}}};
  Section whole{.title = "The whole run"};
  whole.lines.push_back({totals(answer, *ranked.figures.run)});
  whole.lines.push_back({rates});
  add_power(*ranked.figures.run, whole);
  std::vector<Section> out{std::move(whole)};
  if (ranked.figures.run->economics) out.push_back(economics_section(ranked));
  return out;
}

}  // namespace scalecalc
