#include "report/answer_plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/scalar.h"
#include "base/text.h"
#include "base/units.h"
#include "report/answer_bars.h"
#include "report/layout_map.h"
#include "report/sensitivity_output.h"
#include "report/serve_output.h"
#include "report/train_words.h"
#include "serve/requests.h"
#include "serve/step_operations.h"

namespace scalecalc {
namespace {

/// A line of no points: a bound.
PlotSeries bound_line_of(std::string name, std::vector<PlotPoint> points) {
  return {.name = std::move(name), .points = std::move(points), .marked = false};
}

std::string number_text(double value) { return text_of(Cell(value), Format::kNumber); }

Plot scaling_curve(const TrainCurve& curve) {
  Plot out{.x = {.title = "chips", .format = Format::kInteger, .log = true},
           .y = {.title = "tokens/s", .format = Format::kCount, .log = true}};
  PlotSeries planned{.name = "fastest plan of each count"};
  PlotSeries linear = bound_line_of("linear from the first count on", {});
  for (const CurvePoint& p : curve.points) {
    out.x.ticks.push_back(to_double(p.chips));
    if (!p.plan) continue;
    planned.points.push_back({to_double(p.chips), p.plan->figures.tokens_per_s, layout_words(p.plan->plan.layout)});
    const PlotPoint& first = planned.points.front();
    linear.points.push_back({to_double(p.chips), first.y * to_double(p.chips) / first.x});
  }
  if (curve.end && curve.points[curve.end->last].plan) {
    const CurvePoint& last = curve.points[curve.end->last];
    out.marks.push_back(
        {.at = {to_double(last.chips), last.plan->figures.tokens_per_s},
         .text = fmt::format("linear up to {} chips: each does {} of its work at the first count",
                             group_thousands(last.chips), text_of(last.efficiency, Format::kFraction))});
  }
  out.series = {std::move(planned), std::move(linear)};
  return out;
}

/// Days against dollars where the run is known, else tokens per second against those of a chip.
Plot front_plot(const TrainCurve& curve) {
  const bool run = !curve.front.empty() && std::all_of(curve.front.begin(), curve.front.end(), [](const auto& p) {
    return p.figures.run && p.figures.run->cost_usd;
  });
  Plot out{.title = "Time against cost: no plan is faster than one of these and as cheap"};
  if (run) {
    out.x = {.title = "time of the run", .format = Format::kSeconds, .log = true};
    out.y = {.title = "cost of the run", .format = Format::kUsd};
  } else {
    out.x = {.title = "tokens/s", .format = Format::kCount, .log = true};
    out.y = {.title = "tokens/s per chip (a cheaper run has more)"};
  }
  PlotSeries front{.name = "Pareto front"};
  out.limits = run ? PlotLimits::kAtMost : PlotLimits::kAtLeast;
  const auto at = [&](const RankedPlan& p) {
    const std::string name =
        fmt::format("{} chips, {}", group_thousands(p.plan.slice.chips), layout_words(p.plan.layout));
    return run ? PlotPoint{p.figures.run->time_s, *p.figures.run->cost_usd, name}
               : PlotPoint{p.figures.tokens_per_s, p.figures.tokens_per_s_per_chip, name};
  };
  for (const RankedPlan& p : curve.front) front.points.push_back(at(p));
  if (!curve.front.empty()) {
    const auto chips = [](const RankedPlan& p) { return group_thousands(p.plan.slice.chips); };
    out.marks.push_back(
        {.at = front.points.front(), .text = fmt::format("fastest: {} chips", chips(curve.front.front()))});
    if (curve.front.size() > 1) {
      out.marks.push_back(
          {.at = front.points.back(), .text = fmt::format("cheapest: {} chips", chips(curve.front.back()))});
    }
  }
  out.series = {std::move(front)};
  return out;
}

/// Axes, roofs and ridges; the axis of x holds `others` too.
Plot roofs_plot(const std::vector<ChipRoof>& roofs, const std::vector<double>& others) {
  Plot out{.x = {.title = "intensity (FLOP/byte)", .log = true},
           .y = {.title = "attained", .format = Format::kFlopsPerSecond, .log = true}};
  double low = roofs.front().ridge(), high = low;
  for (const ChipRoof& roof : roofs) {
    low = std::min(low, roof.ridge());
    high = std::max(high, roof.ridge());
  }
  for (const double x : others) {
    low = std::min(low, x);
    high = std::max(high, x);
  }
  constexpr double kBeyond = 4;
  low /= kBeyond;
  high *= kBeyond;
  for (const ChipRoof& roof : roofs) {
    out.series.push_back(bound_line_of(
        roof.name, {{low, low * roof.bytes_per_s}, {roof.ridge(), roof.flops_per_s}, {high, roof.flops_per_s}}));
    out.marks.push_back(
        {.at = {roof.ridge(), roof.flops_per_s},
         .text = fmt::format("ridge{}: {} FLOP/byte, {}", roofs.size() > 1 ? " of " + roof.name : "",
                             number_text(roof.ridge()), text_of(roof.flops_per_s, Format::kFlopsPerSecond))});
  }
  return out;
}

/// The swept size of an operation.
double swept_size(const Operation& operation, std::string_view swept) {
  if (const Matmul* m = std::get_if<Matmul>(&operation)) return m->rows;
  if (const Elementwise* e = std::get_if<Elementwise>(&operation)) return e->elements;
  if (const DotProduct* d = std::get_if<DotProduct>(&operation)) return d->elements;
  if (const ParameterLoad* l = std::get_if<ParameterLoad>(&operation)) return l->parameters;
  if (const Attention* a = std::get_if<Attention>(&operation))
    return swept == "query" ? a->query : swept == "kv" ? a->kv : a->sequences;
  return 0;
}

std::string points_name(const RooflineQuestion& q, const RooflineAnswer& found) {
  if (q.swept.empty() || found.points.size() < 2) return "the operation";
  const auto size = [&](const RooflinePoint& p) { return text_of(swept_size(p.operation, q.swept), Format::kInteger); };
  return fmt::format("{} of {} to {}", q.swept, size(found.points.front()), size(found.points.back()));
}

Plot time_over_size(const RooflineQuestion& q, const RooflineAnswer& found) {
  Plot out{.x = {.title = q.swept, .format = Format::kCount, .log = true},
           .y = {.title = "time", .format = Format::kSeconds, .log = true}};
  PlotSeries times{.name = points_name(q, found)};
  for (const RooflinePoint& p : found.points)
    times.points.push_back({swept_size(p.operation, q.swept), value_of(p.time)});
  if (!q.swept.empty()) out.series = {std::move(times)};
  return out;
}

}  // namespace

std::vector<Plot> train_curve_plots(const TrainCurve& curve) {
  std::vector<Plot> out;
  if (curve.points.size() > 1) out.push_back(scaling_curve(curve));
  if (curve.pareto) out.push_back(front_plot(curve));
  return out;
}

Plot serve_plot(const ServeAnswer& answer) {
  const ServeQuestion& q = answer.question;
  const char* counted = one_pass(answer) ? "texts" : "tokens";
  Plot out{.x = {.title = fmt::format("{}/s per user", counted), .log = true},
           .y = {.title = fmt::format("{}/s per chip", counted), .log = true}};
  out.limits = PlotLimits::kAtLeast;
  std::map<std::size_t, PlotSeries> systems;
  for (const ServePoint& p : answer.points) {
    systems[p.system].points.push_back({p.tokens_per_s_per_user(), p.tokens_per_s_per_chip(),
                                        fmt::format("{} on {} chips, batch {}, TTFT {}", describe(p.layout), p.chips,
                                                    batch_text(p), seconds_text(p.ttft_s))});
  }
  for (auto& [system, series] : systems) {
    series.name = fmt::format("{}{}", q.batches.empty() ? "Pareto front" : "batches asked for",
                              q.hardware.size() > 1 ? ", " + answer.systems[system].hw->title : "");
    series.joined = q.batches.empty();
    out.series.push_back(std::move(series));
  }
  if (answer.best) {
    const ServePoint& p = *answer.best;
    out.marks.push_back({.at = {p.tokens_per_s_per_user(), p.tokens_per_s_per_chip()},
                         .text = fmt::format("best {}: {} on {} chips, batch {}",
                                             kServeObjectiveNames[static_cast<std::size_t>(q.objective)],
                                             describe(p.layout), p.chips, batch_text(p))});
  }
  if (q.slo_tpot && !answer.points.empty()) {
    out.marks.push_back({PlotMarkKind::kAtX,
                         {1 / *q.slo_tpot, 0},
                         fmt::format("limit: TPOT of at most {}, on its right", seconds_text(*q.slo_tpot))});
  }
  return out;
}

namespace {

PlotSeries operations_under_roofs(std::string name, const StepTerms<double>& terms, const StepRows<double>& rows) {
  PlotSeries out{.name = std::move(name), .points = {}, .joined = false};
  std::set<std::string> seen;  // kinds of layers share operations
  for (const ServeOperation& op : step_operations(terms, rows)) {
    if (op.flops <= 0 || op.bytes <= 0 || op.time_s <= 0) continue;
    PlotPoint point{op.flops / op.bytes, op.flops / op.time_s,
                    fmt::format("{}, {} a layer", op.name, text_of(Cell(op.time_s), Format::kSeconds))};
    if (seen.insert(fmt::format("{} {}", point.name, point.x)).second) out.points.push_back(std::move(point));
  }
  return out;
}

/// [SERVE-OP] A step of the best point that decodes, or verifies a draft, and the first new tokens of prompts that one
/// step takes.
Plot serve_operations_plot(const ServeAnswer& answer, const ServePoint& best) {
  const ServeQuestion& q = answer.question;
  const ServingSystem& system = answer.systems[best.system].serving;
  const std::vector<ChipRoof> roofs = roofs_of(*system.hw, {system.formats.compute, DType::kBf16});
  if (roofs.empty()) return {};
  const ServeBasis<double> basis(Reader<double>{}, system);
  const StepTerms<double> terms = step_terms(basis, best.layout, best.slice, best.placement);
  const double replicas = to_double(best.pools ? best.pools->decode_replicas : best.layout.dp);
  std::vector<PlotSeries> points;
  if (!one_pass(answer)) {
    const ServeStep decode{.decode_sequences = std::ceil(best.batch / replicas),
                           .tokens_each = q.speculation ? 1 + to_double(q.speculation->drafted) : 1,
                           .context = decode_context(answer)};
    points.push_back(operations_under_roofs(
        q.speculation ? "an operation of a step that verifies a draft" : "an operation of a decode step", terms,
        rows_of(decode, best.layout)));
  }
  if (one_pass(answer)) {
    const double texts = texts_of_a_pass(answer, system, best.layout, std::ceil(best.batch / replicas));
    points.push_back(operations_under_roofs(fmt::format("an operation of a pass of {:g} texts", texts), terms,
                                            rows_of(pass_of(answer, texts), best.layout)));
  } else if (!best.pools) {  // another pool takes the prompts
    const double prompt = decoder_prompt(answer), cached = std::floor(prompt * q.prefix_hit);
    const double tokens = std::min(prompt - cached, system.rank_chunk(best.layout));
    const ServeStep prompts{.prefill_sequences = serve_lanes(best.layout), .prefill_tokens = tokens, .cached = cached};
    points.push_back(
        operations_under_roofs(fmt::format("of {} tokens of a prompt", text_of(Cell(tokens), Format::kInteger)), terms,
                               rows_of(prompts, best.layout)));
  }
  Plot out = roofs_with_points(roofs, std::move(points));
  out.title = fmt::format("Operations of the best point under the chip's roofs: {}, batch {}", describe(best.layout),
                          batch_text(best));
  return out;
}

}  // namespace

std::vector<Plot> serve_page_plots(const ServeAnswer& answer) {
  constexpr std::size_t kMostShown = 16;
  StackedBars steps, memory;
  double capacity = 0;
  const std::size_t n = answer.points.size(), shown = std::min(n, kMostShown);
  for (std::size_t k = 0; k < shown; ++k) {
    const ServePoint& p = answer.points[shown < 2 ? 0 : k * (n - 1) / (shown - 1)];
    const std::string label = fmt::format("batch {}: {}, {} chips", batch_text(p), describe(p.layout), p.chips);
    steps.emplace_back(label, decode_parts(p.time));
    memory.emplace_back(label, memory_parts(p.memory));
    capacity = std::max(capacity, p.capacity);
  }
  std::vector<Plot> out{serve_plot(answer)};
  if (shown == 0) return out;
  const std::string step = one_pass(answer) ? "pass" : "decode step";
  out.push_back(stacked_plot(shown < n ? fmt::format("Where the {} goes: {} of the {} points", step, shown, n)
                                       : fmt::format("Where the {} goes", step),
                             {.title = step, .format = Format::kSeconds}, steps));
  Plot held = stacked_plot("Memory of a chip", {.title = "memory of a chip", .format = Format::kBytes}, memory);
  held.marks.push_back(
      {PlotMarkKind::kAtX, {capacity, 0}, fmt::format("what a chip has: {}", text_of(Cell(capacity), Format::kBytes))});
  out.push_back(std::move(held));
  if (answer.best) {
    out.push_back(serve_operations_plot(answer, *answer.best));
    Plot map = layout_map(*answer.systems[answer.best->system].hw, answer.best->slice, answer.best->placement,
                          answer.best->layout.ep, answer.best->layout.etp);
    map.title += " (best)";
    out.push_back(std::move(map));
  }
  return out;
}

std::vector<ChipRoof> roofs_of(const HardwareSpec& hw, std::initializer_list<DType> formats) {
  std::vector<ChipRoof> out;
  const double memory = hw.hbm_bandwidth.value();
  for (const DType dtype : formats) {
    const auto peak = hw.matmul_peak[static_cast<std::size_t>(dtype)];
    if (!peak || (!out.empty() && out.front().flops_per_s == peak->value())) continue;
    out.push_back({fmt::format("roof: {} in {}, {}", text_of(Cell(peak->value()), Format::kFlopsPerSecond),
                               name_of(dtype), text_of(Cell(memory), Format::kBytesPerSecond)),
                   peak->value(), memory});
  }
  return out;
}

Plot roofs_with_points(const std::vector<ChipRoof>& roofs, std::vector<PlotSeries> points) {
  std::vector<double> intensities;
  for (const PlotSeries& series : points) {
    for (const PlotPoint& p : series.points) intensities.push_back(p.x);
  }
  Plot out = roofs_plot(roofs, intensities);
  for (PlotSeries& series : points) out.series.push_back(std::move(series));
  return out;
}

Plot roofline_plot(const RooflineQuestion& q, const RooflineAnswer& found) {
  const bool placed = std::all_of(found.points.begin(), found.points.end(), [](const RooflinePoint& p) {
    return p.intensity && value_of(p.work.flops) > 0 && value_of(p.bytes) > 0;
  });
  if (!found.rates.compute || !placed) return time_over_size(q, found);
  const double chips = to_double(q.sharing.chips);
  PlotSeries points{.name = points_name(q, found), .joined = false};
  std::vector<double> intensities;
  for (const RooflinePoint& p : found.points) {
    intensities.push_back(value_of(*p.intensity));
    points.points.push_back({intensities.back(), value_of(p.attained)});
  }
  const ChipRoof roof{
      fmt::format("roof: {} of {}, {} of {}", text_of(chips * value_of(*found.rates.compute), Format::kFlopsPerSecond),
                  found.rates.compute_name, text_of(chips * value_of(found.rates.memory), Format::kBytesPerSecond),
                  found.rates.memory_name),
      chips * value_of(*found.rates.compute), chips * value_of(found.rates.memory)};
  Plot out = roofs_plot({roof}, intensities);
  out.series.push_back(std::move(points));
  PlotSeries measured{.name = "measured", .joined = false};
  for (const MeasuredTime& m : found.measured)
    measured.points.push_back({intensities.at(m.point), value_of(m.attained)});
  if (!measured.points.empty()) out.series.push_back(std::move(measured));
  return out;
}

Plot hw_plot(const HwAnswer& answer) {
  std::vector<ChipRoof> roofs;
  for (const HwChip& chip : answer.chips) {
    const HwRates& rates = chip.rates;
    const auto hbm = std::find_if(rates.channels.begin(), rates.channels.end(),
                                  [](const HwChannel& channel) { return channel.name == "hbm"; });
    if (hbm == rates.channels.end()) continue;
    std::map<double, std::vector<std::string>, std::greater<>> by_rate;  // formats of one rate share a roof
    for (const auto& [dtype, rate] : rates.matmul) {
      const bool alone = answer.chips.size() == 1 && !answer.question.dtype;
      if (alone || dtype == rates.dtype) by_rate[value_of(rate)].emplace_back(name_of(dtype));
    }
    for (const auto& [rate, formats] : by_rate) {
      const std::string chip_name = answer.chips.size() > 1 ? chip.hw.name + " " : "";
      roofs.push_back({chip_name + join_and(formats), rate, value_of(hbm->rate)});
    }
  }
  return roofs.empty() ? Plot{} : roofs_plot(roofs, {});
}

Plot collective_plot(const CollectiveAnswer& answer) {
  const auto& points = answer.points;
  const bool groups = points.front().group != points.back().group;
  Plot out{.x = {.title = "bytes", .format = Format::kBytes, .log = true},
           .y = {.title = "time", .format = Format::kSeconds, .log = true}};
  if (groups) out.x = {.title = "chips of a group", .format = Format::kInteger, .log = true};
  std::map<double, PlotSeries> by_bytes;  // one curve for each size where groups are swept
  for (const CollectivePoint& p : points) {
    PlotSeries& series = by_bytes[groups ? value_of(p.bytes) : 0];
    series.name = groups ? text_of(value_of(p.bytes), Format::kBytes) : "the model";
    series.points.push_back({groups ? to_double(p.group) : value_of(p.bytes), value_of(p.time.time)});
  }
  PlotSeries measured{.name = "measured", .joined = false};
  for (const CollectivePoint& p : points) {
    for (const MeasuredPoint& m : p.measured)
      measured.points.push_back({groups ? to_double(p.group) : value_of(p.bytes), value_of(m.time)});
  }
  for (auto& [bytes, series] : by_bytes) out.series.push_back(std::move(series));
  if (!measured.points.empty()) out.series.push_back(std::move(measured));
  return out;
}

std::vector<Plot> bounds_plots(const BoundsAnswer& answer) {
  const PlotAxis batch{.title = "batch", .format = Format::kInteger, .log = true};
  Plot rates{.x = batch, .y = {.title = "tokens/s", .format = Format::kCount, .log = true}};
  Plot steps{.x = batch, .y = {.title = "decode step", .format = Format::kSeconds, .log = true}};
  PlotSeries rate{.name = "tokens/s of the deployment"}, step{.name = "time of a decode step"};
  for (const ServingPoint& p : answer.points) {
    if (p.tokens_per_s) rate.points.push_back({value_of(p.batch), value_of(*p.tokens_per_s)});
    if (p.step) step.points.push_back({value_of(p.batch), value_of(*p.step)});
  }
  rates.series = {std::move(rate)};
  steps.series = {std::move(step)};
  return {std::move(rates), std::move(steps)};
}

Plot model_plot(const ModelFigures& found) {
  Plot out{.x = {.title = "tokens of a sequence", .format = Format::kInteger, .log = true},
           .y = {.title = "share of the forward FLOPs", .format = Format::kFraction}};
  PlotSeries share{.name = "attention's scores"};
  for (const ContextFigures& row : found.contexts) share.points.push_back({row.seq, row.attention_share.value()});
  if (found.break_even) {
    out.marks.push_back({PlotMarkKind::kAtX,
                         {*found.break_even, 0},
                         fmt::format("{} tokens: scores cost as much as the layers' matmuls",
                                     text_of(*found.break_even, Format::kInteger))});
  }
  out.series = {std::move(share)};
  return out;
}

std::vector<Plot> scaling_plots(const ScalingQuestion& q, const ScalingAnswer& found) {
  Plot losses{
      .title = fmt::format("Loss of {:.3g} training FLOPs, by the size of the model", found.budget.value().value()),
      .x = {.title = "parameters", .format = Format::kCount, .log = true},
      .y = {.title = "loss (nats per token)"}};
  if (found.saving) losses.title = "Loss of the lifetime-optimal choice's training FLOPs, by the size of the model";
  PlotSeries sizes{.name = q.law.title};
  for (const SizePoint& p : found.sizes) {
    if (p.loss) sizes.points.push_back({p.at.parameters, *p.loss});
  }
  for (const AllocationFigures& a : found.allocations) {
    if (!a.loss || sizes.points.empty()) continue;
    const std::string name = a.kind == AllocationKind::kModel             ? q.model->title
                             : a.kind == AllocationKind::kLifetimeOptimal ? "lifetime-optimal"
                                                                          : "compute-optimal";
    losses.marks.push_back(
        {.at = {a.at.parameters.value(), a.loss->value()},
         .text = fmt::format("{}: {} parameters, {} tokens", name, compact_count(a.at.parameters.value()),
                             compact_count(a.at.tokens.value()))});
  }
  losses.series = {std::move(sizes)};
  Plot laws{.title = "The same training FLOPs by each law",
            .x = {.title = "parameters", .format = Format::kCount, .log = true},
            .y = {.title = "tokens", .format = Format::kCount, .log = true}};
  for (const LawPoint& p : found.laws) {
    laws.series.push_back({.name = p.law->title, .points = {{p.at.parameters, p.at.tokens}}, .joined = false});
  }
  return {std::move(losses), std::move(laws)};
}

Plot tornado_plot(const std::vector<InputElasticity>& elasticities, double swing) {
  constexpr std::size_t kMostBars = 20;
  constexpr double kVisible = 0.01;  // of the widest bar
  const std::string by = text_of(swing, Format::kFraction);
  Plot tornado{.title = "What each input does to the time of a step, the plan as it is",
               .x = {.title = "change of the step's time", .format = Format::kFraction},
               .bar_kinds = {fmt::format("the input {} lower", by), fmt::format("the input {} higher", by)}};
  for (const InputElasticity& e : elasticities) {
    if (tornado.bars.size() < kMostBars && e.widest() > kVisible * elasticities.front().widest())
      tornado.bars.push_back(bar_of_two(e.input.name, e.low.change, e.high.change));
  }
  return tornado;
}

std::vector<Plot> sensitivity_plots(const SensitivityAnswer& answer) {
  std::vector<Plot> out{tornado_plot(answer.elasticities, answer.question.swing)};
  if (!answer.codesign) return out;
  // Over the range that moves fastest, one curve for each choice of the others.
  const Codesign& sweep = *answer.codesign;
  const SetRange& range = sweep.ranges.back();
  Plot curves{.title = answer.question.fixed ? "Step time of plan 1 over the sweep"
                                             : "Step time over the sweep, planned anew at every point",
              .x = {.title = range.path, .format = format_of(range.unit), .log = true},
              .y = {.title = "time of a step", .format = Format::kSeconds, .log = true}};
  std::map<std::vector<std::size_t>, PlotSeries> series;
  for (const CodesignPoint& point : sweep.points) {
    if (!point.plan) continue;
    const std::vector<std::size_t> others(point.at.begin(), point.at.end() - 1);
    PlotSeries& one = series[others];
    std::vector<std::string> names;
    for (std::size_t r = 0; r < others.size(); ++r) {
      const SetRange& other = sweep.ranges[r];
      names.push_back(fmt::format("{} {}", other.path, quantity_text(other.numbers[others[r]], other.unit)));
    }
    one.name = names.empty() ? "fastest plan" : join(names, ", ");
    one.points.push_back({range.numbers[point.at.back()], point.plan->plan.step_s});
  }
  for (auto& [at, one] : series) curves.series.push_back(std::move(one));
  out.push_back(std::move(curves));
  return out;
}

}  // namespace scalecalc
