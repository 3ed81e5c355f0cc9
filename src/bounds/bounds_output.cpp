// Shows the limits that `scalecalc bounds` found, the inputs they rest on, and what was left out.
#include "bounds/bounds_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/scalar.h"
#include "base/text.h"
#include "base/units.h"
#include "bounds/bounds_serving_output.h"
#include "report/brief_blocks.h"

namespace scalecalc {
namespace {

/// "850 tokens per chip", "2.10 ms": the number in the form its unit has in tables.
std::string shown_value(const Bound& bound) {
  constexpr double kLargeFlops = 1e21;  // beyond the prefixes people know
  const Cell value = bound.value.value();
  if (bound.dim == kByteDim && bound.unit == "bytes") return text_of(value, Format::kBytes);
  if (bound.dim == kSecondDim) return text_of(value, Format::kSeconds);
  if (bound.dim == kFlopDim && bound.value.value() < kLargeFlops) return text_of(value, Format::kFlops);
  if (bound.dim == kUsdDim) return text_of(value, Format::kUsd);
  if (bound.dim == kByteDim - kSecondDim) return text_of(value, Format::kBytesPerSecond);
  if (bound.dim == kFlopDim - kSecondDim) return text_of(value, Format::kFlopsPerSecond);
  constexpr double kCountsFrom = 1e4;
  const bool count = bound.dim == Dim{} && bound.value.value() >= kCountsFrom;
  const std::string number = text_of(value, count ? Format::kCount : Format::kNumber);
  return bound.unit.empty() ? number : number + " " + bound.unit;
}

std::string words(const std::string& name) {
  std::string out = name;
  std::replace(out.begin(), out.end(), '_', ' ');
  return out;
}

template <class T>
Cell limit_cell(const std::optional<T>& value) {
  if (!value) return {};
  return static_cast<double>(*value);
}

Record record_of(const Bound& bound) {
  Figure name = figure("name", "rule", Format::kText, bound.name);
  name.shown = words(bound.name);
  Figure value = figure("value", "value", Format::kNumber, bound.value);
  value.shown = shown_value(bound);
  Figure symbol = figure("symbol", "formula", Format::kText, bound.symbol);
  symbol.importance = 4;  // rather left out than making the sentences narrow
  Figure condition = figure("condition", "says", Format::kText, bound.condition);
  condition.importance = 1;
  return {{std::move(name), std::move(symbol), std::move(value), figure("unit", "", Format::kText, bound.unit),
           figure("holds", "holds", Format::kFlag, limit_cell(bound.holds)), std::move(condition),
           figure("source", "", Format::kText, bound.source)},
          std::string(title_of(bound.group))};
}

Record record_of(const LayerPass& pass) {
  Figure name = figure("name", "pass", Format::kText, pass.name);
  name.shown = words(pass.name);
  const double comms = pass.comms_time.value().value();
  Figure ratio = figure("math_over_comms", "", Format::kNumber, Cell{});
  if (comms > 0) ratio = figure("math_over_comms", "", Format::kNumber, Cell(pass.math_time.value().value() / comms));
  Record out{{std::move(name), figure("flops", "FLOPs", Format::kFlops, pass.flops),
              figure("bytes", "bytes", Format::kBytes, pass.bytes),
              figure("math_time_s", "math", Format::kSeconds, pass.math_time),
              figure("data_time_s", "weights", Format::kSeconds, pass.data_time),
              figure("tensor_time_s", "activations", Format::kSeconds, pass.tensor_time),
              figure("comms_time_s", "", Format::kSeconds, pass.comms_time),
              figure("time_s", "time", Format::kSeconds, pass.time), std::move(ratio),
              figure("compute_bound", "compute-bound", Format::kFlag, Cell(pass.compute_bound ? 1.0 : 0.0)),
              figure("note", "note", Format::kText, pass.note.empty() ? Cell{} : Cell(pass.note))}};
  constexpr std::array kImportance{0, 3, 2, 0, 1, 1, 0, 0, 0, 0, 4};
  for (std::size_t i = 0; i < out.figures.size(); ++i) out.figures[i].importance = kImportance[i];
  return out;
}

/// The rules that decide, for a brief answer: what limits each way of dividing the work, memory, the run, serving.
constexpr std::array<std::string_view, 18> kDeciding{"tokens_per_chip",
                                                     "fsdp_limit",
                                                     "fsdp_most_chips",
                                                     "mixed_limit",
                                                     "tp_power_of_two",
                                                     "ep_wide_min_d_ff",
                                                     "dcn_limit",
                                                     "training_bytes_per_chip",
                                                     "least_bytes_per_chip",
                                                     "run_time",
                                                     "cost",
                                                     "critical_batch",
                                                     "latency_floor",
                                                     "kv_bytes_per_token",
                                                     "chips_for_weights",
                                                     "compute_gain",  // against the machine of --versus
                                                     "tensor_intensity_gain",
                                                     "data_intensity_gain"};

Block deciding_block(const BoundsAnswer& answer) {
  Block out{.title = "What decides", .for_people = true, .shown = Shown::kBrief};
  for (const Bound& bound : answer.bounds) {
    if (std::find(kDeciding.begin(), kDeciding.end(), bound.name) == kDeciding.end()) continue;
    out.records.push_back(record_of(bound));
    out.records.back().group.clear();
  }
  out.columns = {{"name"}, {"value"}, {"holds"}, {"condition", 1}};
  return out;
}

/// "critical batch 166 sequences, latency floor 5.70 us": where nothing is judged.
std::string rules_text(const BoundsAnswer& answer) {
  constexpr std::size_t kMost = 4;
  std::vector<std::string> parts;
  for (const Bound& bound : answer.bounds) {
    if (std::find(kDeciding.begin(), kDeciding.end(), bound.name) == kDeciding.end() || parts.size() == kMost) continue;
    parts.push_back(words(bound.name) + " " + shown_value(bound));
  }
  return join(parts, ", ");
}

Block bounds_end(const BoundsQuestion& q, const BoundsAnswer& answer) {
  std::vector<Line> lines{
      {fmt::format("more: --verbose (all {} rules with their formulas), --for training or "
                   "serving{}",
                   answer.bounds.size(), q.model ? "; scalecalc train, serve" : "")}};
  if (!answer.left_out.empty()) {
    std::vector<std::string> needs;
    for (const LeftOut& item : answer.left_out) {
      if (std::find(needs.begin(), needs.end(), item.needs) == needs.end()) needs.push_back(item.needs);
    }
    lines.push_back({"left out for want of: " + join(needs, "; ")});
  }
  return brief_end_block(std::move(lines));
}

template <class T>
Figure asked(std::string_view key, const std::optional<T>& value) {
  return figure(key, "", Format::kNumber, limit_cell(value));
}

Figure asked(std::string_view key, const std::string& text) {
  return figure(key, "", Format::kText, text.empty() ? Cell{} : Cell(text));
}

std::string dtype_text(const std::optional<DType>& dtype, DType otherwise) {
  return std::string(name_of(dtype.value_or(otherwise)));
}

/// The question as understood, defaults filled in.
Record query_of(const BoundsQuestion& q, const BoundsAnswer& answer) {
  const BoundsAsked& a = answer.asked;
  Record out{{asked("model", q.model ? q.model->name : ""), asked("hardware", q.hw.name),
              asked("versus", q.versus ? q.versus->name : ""), asked("parameters", a.parameters),
              asked("active_parameters", a.active_parameters), asked("chips", a.chips),
              asked("slices", std::optional(a.slices)), asked("batch_tokens", a.batch_tokens), asked("seq", a.seq),
              asked("tokens", a.tokens), asked("weights", dtype_text(q.weights, q.compute)),
              asked("gradients", dtype_text(q.gradients, q.compute)),
              asked("activations", dtype_text(q.activations, q.compute))}};
  using Degree = std::pair<const char*, std::optional<std::int64_t>>;
  const std::initializer_list<Degree> degrees{
      {"fix.dp", q.fix.dp}, {"fix.fsdp", q.fix.fsdp}, {"fix.tp", q.fix.tp},          {"fix.cp", q.fix.cp},
      {"fix.pp", q.fix.pp}, {"fix.ep", q.fix.ep},     {"fix.ga", q.fix.microbatches}};
  for (const auto& [key, value] : degrees) out.figures.push_back(asked(key, value));
  add_serving_query(out, q);
  return out;
}

std::string title_of(const BoundsQuestion& q, const BoundsAnswer& answer) {
  const BoundsAsked& a = answer.asked;
  std::string out =
      fmt::format("Rules of thumb for {}, on {}{}",
                  q.model        ? q.model->title
                  : a.parameters ? fmt::format("a dense model of {} parameters", compact_count(*a.parameters))
                                 : "any dense model",
                  a.chips ? group_thousands(static_cast<long long>(*a.chips)) + " x " : "", q.hw.title);
  if (a.batch_tokens) out += fmt::format(": batch {} tokens", compact_count(*a.batch_tokens));
  return out + (a.batch_tokens ? ", " : ": ") +
         std::string(name_of(q.scope == BoundScope::kServing ? serving_formats(q).compute : q.compute));
}

}  // namespace

Output bounds_output(const BoundsQuestion& q, const BoundsAnswer& answer) {
  Output out{.command = "bounds", .title = title_of(q, answer)};
  for (const std::string& line : answer.verdict) out.headline.push_back({line});
  if (answer.verdict.empty()) out.headline.push_back({rules_text(answer)});
  out.query = query_of(q, answer);
  // A curve is what was asked for: it stands first, and CSV and JSON Lines write what stands first.
  const bool curve = answer.points.size() > 1;
  if (curve) add_serving_points(out, answer);
  Block rules{.key = "bounds"};
  for (const Bound& bound : answer.bounds) rules.records.push_back(record_of(bound));
  rules.shown = Shown::kFull;
  out.blocks.push_back(std::move(rules));
  out.blocks.push_back(deciding_block(answer));
  if (q.scope != BoundScope::kServing) {
    Block layers{.key = "layers", .title = "One layer of two matmuls on each chip"};
    for (const LayerPass& pass : answer.layers) layers.records.push_back(record_of(pass));
    layers.shown = Shown::kFull;
    out.blocks.push_back(std::move(layers));
  }
  if (!curve) add_serving_points(out, answer);
  out.plots = bounds_plots(answer);
  out.assumptions = answer.assumptions;
  out.deciding = {"--seq", "--batch-tokens", "--tokens", "--mfu", "--price", "--params", "--batch", "--context"};
  Block left_out{.key = "left_out", .title = "Left out"};
  for (const LeftOut& item : answer.left_out) {
    left_out.records.push_back({{figure("rules", "rules", Format::kText, Cell(item.rules)),
                                 figure("needs", "need", Format::kText, Cell(item.needs))}});
  }
  left_out.shown = Shown::kFull;
  out.blocks.push_back(std::move(left_out));
  out.blocks.push_back(bounds_end(q, answer));
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

}  // namespace scalecalc
