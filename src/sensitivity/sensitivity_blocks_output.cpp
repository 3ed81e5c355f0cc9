// Makes the tables of `scalecalc sensitivity`: inputs, ten percent of each rate, the balance, the sweep.
#include <fmt/format.h>

#include "base/text.h"
#include "sensitivity/sensitivity_output.h"
#include "train/train_words.h"

namespace scalecalc {
Format format_of(const Dim& unit) {
  if (unit == kFlopDim - kSecondDim) return Format::kFlopsPerSecond;
  if (unit == kByteDim - kSecondDim) return Format::kBytesPerSecond;
  if (unit == kSecondDim) return Format::kSeconds;
  if (unit == kByteDim) return Format::kBytes;
  return Format::kNumber;
}

namespace {

constexpr std::string_view kDualReading = "dual-number reading of the step's formulas";

Figure quantity(std::string_view key, std::string_view label, const std::optional<double>& value, const Dim& unit,
                int importance = 0) {
  Figure out = figure(key, label, Format::kNumber, cell_of(value));
  out.shown = value ? quantity_text(*value, unit) : "none";
  out.importance = importance;
  return out;
}

/// Dimensions of a model are whole numbers.
Figure value_figure(const SensitiveInput& input) {
  Figure out = quantity("value", "value", input.value, input.unit, 2);
  if (input.kind == InputKind::kModel) out.shown = text_of(Cell(input.value), Format::kInteger);
  return out;
}

Traced step_leaf(double step_s) { return Traced::leaf(step_s, "step time", "the plan's", kSecondDim); }

/// "-20%".
std::string swing_text(double share) { return fmt::format("{:+.4g}%", 100 * share); }

/// What a swing does to the step, with its working.
void add_swung(std::vector<Figure>& out, const InputElasticity& e, const SwungStep& at, std::string_view key,
               double share) {
  const Traced there =
      Traced::leaf(at.step_s, fmt::format("step time at {:.4g} x {}", at.value / e.input.value, e.input.name),
                   kDualReading, kSecondDim);
  const Traced change = (there / step_leaf(e.step_s) - Traced(1.0))
                            .with_name(fmt::format("change at {} of {}", swing_text(share), e.input.name),
                                       "step time there / step time - 1");
  out.push_back(number_figure(fmt::format("{}_value", key), "", Format::kNumber, at.value));
  out.push_back(number_figure(fmt::format("{}_step_time_s", key), "", Format::kNumber, at.step_s));
  out.push_back(figure(fmt::format("{}_change", key), "at " + swing_text(share), Format::kFraction, change));
  out.push_back(flag_figure(fmt::format("{}_fits", key), at.fits));
}

std::string note_of(const InputElasticity& e) {
  std::vector<std::string> out;
  if (e.input.name == "model.layers") out.emplace_back("all stages in proportion");
  if (e.input.name == "batch") out.emplace_back("by microbatches of a step");
  if (e.input.name == "model.moe.top_k") out.emplace_back("nodes a token reaches held");
  if (!e.low.fits) out.emplace_back("does not fit in memory below");
  if (!e.high.fits) out.emplace_back("does not fit in memory above");
  return join(out, "; ");
}

Traced elasticity_of(const InputElasticity& e) {
  const Traced slope =
      Traced::leaf(e.slope, fmt::format("d step time / d {}", e.input.name), kDualReading, kSecondDim - e.input.unit);
  const Traced value = Traced::leaf(e.input.value, e.input.name, e.input.source, e.input.unit);
  return (slope * value / step_leaf(e.step_s))
      .with_name("elasticity by " + e.input.name, "ELASTICITY, docs/model.md: d ln T / d ln x");
}

Record elasticity_record(const SensitivityAnswer& a, const InputElasticity& e, bool notes) {
  const Traced elasticity = elasticity_of(e);
  const Traced tokens = (Traced(e.input.tokens) - elasticity)
                            .with_name("elasticity of tokens/s by " + e.input.name,
                                       "that of the step's tokens (1 for seq and batch) less that of its time");
  Record out;
  std::vector<Figure>& f = out.figures;
  f.push_back(text_figure("input", "input", e.input.name));
  f.push_back(text_figure("kind", "", std::string(name_of(e.input.kind))));
  f.push_back(value_figure(e.input));
  f.push_back(text_figure("unit", "", unit_name(e.input.unit)));
  f.push_back(figure("elasticity", "elasticity", Format::kNumber, elasticity));
  f.push_back(with_importance(figure("elasticity_tokens_per_s", "of tokens/s", Format::kNumber, tokens), 3));
  if (a.resolved.usd_per_chip_hour) {
    const Traced usd = (Traced(0.0) - tokens)
                           .with_name("elasticity of dollars by " + e.input.name,
                                      "price per chip-hour x chips / tokens per second, at a fixed price");
    f.push_back(with_importance(figure("elasticity_usd", "of dollars", Format::kNumber, usd), 4));
  } else {
    f.push_back(number_figure("elasticity_usd", "", Format::kNumber, std::nullopt));
  }
  add_swung(f, e, e.low, "low", -a.question.swing);
  add_swung(f, e, e.high, "high", a.question.swing);
  f.push_back(text_figure("note", notes ? "note" : "", note_of(e), 5));
  return out;
}

std::string changes_text(const std::vector<ComparedDimension>& changes) {
  std::vector<std::string> out;
  for (const ComparedDimension& c : changes) out.push_back(fmt::format("{} {} -> {}", c.name, c.best, c.other));
  return out.empty() ? "none" : join(out, ", ");
}

Figure changes_figure(const std::vector<ComparedDimension>& changes) {
  std::vector<Record> records;
  for (const ComparedDimension& c : changes) {
    records.push_back(
        {{text_figure("dimension", "", c.name), text_figure("from", "", c.best), text_figure("to", "", c.other)}});
  }
  return with_importance(records_figure("changes", "layout changes", changes_text(changes), std::move(records)), 1);
}

/// The time a move leaves, against the step's.
Figure moved(std::string_view key, std::string_view label, const RateChange& change, double step_s, bool more) {
  const double there = more ? change.more_s : change.less_s;
  const std::string at = fmt::format("{:.4g} x {}", change.rate.factor(more ? 1.1 : 0.9), change.rate.name);
  const Traced ratio =
      step_leaf(step_s) / Traced::leaf(there, "step time at " + at, kDualReading, kSecondDim) - Traced(1.0);
  return figure(key, label, Format::kFraction, ratio.with_name("tokens/s at " + at, "step time / step time there - 1"));
}

Record rate_record(const SensitivityAnswer& a, const RateChange& change) {
  Record out;
  std::vector<Figure>& f = out.figures;
  f.push_back(text_figure("input", "rate", change.rate.name));
  f.back().rigid = true;
  f.push_back(quantity("value", "value", change.rate.value, change.rate.unit, 2));
  f.push_back(text_figure("unit", "", unit_name(change.rate.unit)));
  f.push_back(moved("gain", "10% more", change, a.reoptimised.base.step_s, true));
  f.push_back(moved("loss", "10% less", change, a.reoptimised.base.step_s, false));
  f.push_back(flag_figure("less_fits", change.less_fits));
  if (!change.free) {
    f.push_back(number_figure("gain_reoptimised", "", Format::kNumber, std::nullopt));
    f.push_back(number_figure("elasticity_reoptimised", "", Format::kNumber, std::nullopt));
    f.push_back(records_figure("changes", "", "", {}));
    return out;
  }
  const FreePlan& free = *change.free;
  const Traced before =
      Traced::leaf(free.before_s, "best time per token", "the search at the rates as they are", kSecondDim);
  const Traced after = Traced::leaf(free.after_s, "best time per token with 10% more " + change.rate.name,
                                    "the search at the moved rate", kSecondDim);
  const Traced gain =
      (before / after - Traced(1.0))
          .with_name("tokens/s with 10% more " + change.rate.name + ", plan free", "best time / best time there - 1");
  f.push_back(figure("gain_reoptimised", "10% more, plan free", Format::kFraction, gain));
  f.push_back(number_figure("elasticity_reoptimised", "", Format::kNumber, free.elasticity));
  f.push_back(changes_figure(free.changes));
  return out;
}

/// FLOP/s of the job's format for each byte a second of the rate.
Figure per_byte(std::string_view key, std::string_view label, const std::optional<double>& rate,
                const BalanceGroup& compute, const BalanceGroup& group, std::string_view where, int importance) {
  if (!rate || group.unit == compute.unit) return number_figure(key, label, Format::kNumber, std::nullopt, importance);
  const Traced peak = Traced::leaf(compute.rate, compute.name, "hardware file", compute.unit);
  const Traced bytes =
      Traced::leaf(*rate, where.empty() ? group.name : fmt::format("{} of {}", where, group.name),
                   where.empty() ? "hardware file" : "bisected on the dual-number reading", group.unit);
  const std::string name =
      fmt::format("FLOP/s per byte/s of {}{}", group.name, where.empty() ? "" : fmt::format(", {}", where));
  return with_importance(figure(key, label, Format::kNumber, (peak / bytes).with_name(name, "KNEE, docs/model.md")),
                         importance);
}

}  // namespace

std::string quantity_text(double value, const Dim& unit) { return text_of(Cell(value), format_of(unit)); }

Block elasticity_block(const SensitivityAnswer& a) {
  constexpr std::size_t kBriefRows = 8;
  Block out{.key = "elasticities", .brief_rows = kBriefRows};
  bool notes = false;
  for (const InputElasticity& e : a.elasticities) notes = notes || !note_of(e).empty();
  for (const InputElasticity& e : a.elasticities) out.records.push_back(elasticity_record(a, e, notes));
  return out;
}

Block rate_change_block(const SensitivityAnswer& a) {
  constexpr std::size_t kBriefRows = 4;
  Block out{.key = "reoptimised", .title = "Tokens/s with ten per cent of one rate", .brief_rows = kBriefRows};
  for (const RateChange& change : a.reoptimised.rates) out.records.push_back(rate_record(a, change));
  return out;
}

Block balance_block(const SensitivityAnswer& a) {
  Block out{.key = "balance", .title = "Balance this plan wants"};
  for (const BalanceGroup& g : a.balance) {
    const BalanceGroup& compute = a.balance.front();
    out.records.push_back({{text_figure("input", "rate", g.name), quantity("value", "has", g.rate, g.unit),
                            text_figure("unit", "", unit_name(g.unit)),
                            per_byte("flops_per_byte", "FLOP/byte", g.rate, compute, g, "", 1),
                            number_figure("elasticity", "elasticity", Format::kNumber, g.elasticity, 5),
                            quantity("knee", "stops helping at", g.knee, g.unit),
                            per_byte("knee_flops_per_byte", "FLOP/byte there", g.knee, compute, g, "knee", 2),
                            quantity("as_compute", "counts as compute at", g.as_compute, g.unit, 3),
                            per_byte("as_compute_flops_per_byte", "FLOP/byte then", g.as_compute, compute, g,
                                     "where it counts as compute", 4)}});
  }
  return out;
}

Block codesign_block(const Codesign& sweep) {
  Block out{.key = "sweep", .title = "Sweep"};
  for (const CodesignPoint& point : sweep.points) {
    Record record;
    std::vector<Figure>& f = record.figures;
    for (std::size_t r = 0; r < sweep.ranges.size(); ++r) {
      Figure value = figure(fmt::format("value_{}", r + 1), sweep.ranges[r].path, Format::kNumber,
                            Cell(sweep.ranges[r].numbers[point.at[r]]));
      value.shown = quantity_text(sweep.ranges[r].numbers[point.at[r]], sweep.ranges[r].unit);
      f.push_back(std::move(value));
    }
    const auto from_plan = [&](double v) { return point.plan ? std::optional(v) : std::nullopt; };
    const PlanFigures figures = point.plan ? point.plan->figures : PlanFigures{};
    const double step = point.plan ? point.plan->plan.step_s : 0;
    f.push_back(figure("step_time_s", "step", Format::kSeconds, point.plan ? Cell(step) : Cell{}));
    f.push_back(with_importance(
        number_figure("tokens_per_s_per_chip", "tok/s/chip", Format::kNumber, from_plan(figures.tokens_per_s_per_chip)),
        1));
    f.push_back(with_importance(figure("mfu", "MFU", Format::kFraction, point.plan ? Cell(figures.mfu) : Cell{}), 2));
    f.push_back(number_figure("elasticity_compute", "compute", Format::kNumber, from_plan(point.elasticity.compute)));
    f.push_back(number_figure("elasticity_hbm", "HBM", Format::kNumber, from_plan(point.elasticity.hbm)));
    f.push_back(number_figure("elasticity_links", "links", Format::kNumber, from_plan(point.elasticity.links)));
    f.push_back(text_figure("bound_by", "bound by", point.plan ? figures.bound_by : "nothing fits", 4));
    f.push_back(text_figure("layout", "layout", point.plan ? degrees_text(point.plan->plan.layout) : "", 3));
    f.push_back(text_figure("fix", "", point.plan ? fix_text(point.plan->plan.layout) : ""));
    out.records.push_back(std::move(record));
  }
  return out;
}

}  // namespace scalecalc
