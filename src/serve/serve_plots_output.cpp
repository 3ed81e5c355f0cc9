// Draws the Pareto front of a serving answer, and the pictures of its page.
#include "serve/serve_plots_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/scalar.h"
#include "base/text.h"
#include "base/units.h"
#include "report/layout_map.h"
#include "report/plot_bars.h"
#include "report/roof_plots.h"
#include "serve/requests.h"
#include "serve/serve_output.h"
#include "serve/step_operations.h"

namespace scalecalc {

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

}  // namespace scalecalc
