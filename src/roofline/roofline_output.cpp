// Shows the rates, the time and the limit of one operation, for `scalecalc roofline`.
#include "roofline/roofline_output.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/scalar.h"
#include "base/units.h"
#include "report/roof_plots.h"

namespace scalecalc {
namespace {

/// A figure that may not exist: null then.
/// Figures with their working, or, for the points of a long curve, which nobody explains, without.
class RooflineFigures {
 public:
  explicit RooflineFigures(bool explained) : explained_(explained) {}

  template <class X>
  void add(std::string_view key, std::string_view label, Format format, const X& value) {
    out_.push_back(explained_ ? figure(key, label, format, value) : figure(key, label, format, Cell(value_of(value))));
  }
  template <class X>
  void add(std::string_view key, std::string_view label, Format format, const std::optional<X>& value) {
    if (value) return add(key, label, format, *value);
    out_.push_back(figure(key, label, format, Cell{}));
  }
  void add(Figure plain) { out_.push_back(std::move(plain)); }
  std::vector<Figure> take() { return std::move(out_); }

 private:
  bool explained_;
  std::vector<Figure> out_;
};

/// Memory for people.
std::string_view memory_label(OperandHome home) {
  switch (home) {
    case OperandHome::kHbm: return "HBM";
    case OperandHome::kVmem: return "VMEM";
    case OperandHome::kHost: return "PCIe";
  }
  return "";
}

/// The sizes that tell one point from another. The one that is swept gets a column.
std::vector<Figure> size_figures(const Operation& operation, std::string_view swept) {
  std::vector<Figure> out;
  const auto size = [&](std::string_view key, double value) {
    out.push_back(number_figure(key, key == swept ? key : "", Format::kInteger, value));
  };
  if (const Matmul* m = std::get_if<Matmul>(&operation)) size("batch", m->rows);
  if (const Elementwise* e = std::get_if<Elementwise>(&operation)) size("elements", e->elements);
  if (const DotProduct* d = std::get_if<DotProduct>(&operation)) size("elements", d->elements);
  if (const ParameterLoad* l = std::get_if<ParameterLoad>(&operation)) size("parameters", l->parameters);
  if (const Attention* a = std::get_if<Attention>(&operation)) {
    size("batch", a->sequences);
    size("query", a->query);
    size("kv", a->kv);
  }
  return out;
}

/// What people need no column for, because nothing of it is done.
struct PartsShown {
  bool compute = true;
  bool memory = true;
};

PartsShown shown_of(const RooflineAnswer& found) {
  const bool moves = std::any_of(found.points.begin(), found.points.end(),
                                 [](const RooflinePoint& p) { return value_of(p.bytes) > 0; });
  return {found.rates.compute.has_value(), moves};
}

void add_times(const RooflinePoint& p, const RooflineQuestion& question, const RooflineAnswer& found,
               const PartsShown& shown, RooflineFigures& out) {
  const bool linked = found.rates.link.has_value();
  const bool overhead = value_of(p.overhead) > 0;
  out.add("compute_time_s", shown.compute ? "compute" : "", Format::kSeconds, p.compute_time);
  out.add("memory_time_s", shown.memory ? memory_label(question.from) : "", Format::kSeconds, p.memory_time);
  out.add("link_time_s", linked ? "link" : "", Format::kSeconds, p.link_time);
  out.add("overhead_s", overhead ? "overhead" : "", Format::kSeconds, p.overhead);
  out.add("time_s", "time", Format::kSeconds, p.time);
  out.add("upper_time_s", "at most", Format::kSeconds, p.upper_time);
}

void add_work(const RooflinePoint& p, const RooflineQuestion& question, const PartsShown& shown, RooflineFigures& out) {
  const Traced chips(static_cast<double>(question.sharing.chips));
  const bool shared = question.sharing.chips > 1;
  out.add("flops", shown.compute ? "FLOPs" : "", Format::kFlops, p.work.flops);
  out.add("bytes", shown.memory ? "bytes" : "", Format::kBytes, p.bytes);
  out.add("intensity_flops_per_byte", shown.memory && shown.compute ? "FLOP/byte" : "", Format::kNumber, p.intensity);
  out.add("intensity_approximate_flops_per_byte", p.work.tile_intensity ? "large tiles" : "", Format::kNumber,
          p.work.tile_intensity);
  out.add("flops_per_chip", "", Format::kFlops, named(p.work.flops / chips, "FLOPs per chip", ""));
  out.add("bytes_per_chip", shared && shown.memory ? "bytes/chip" : "", Format::kBytes,
          named(p.bytes / chips, "bytes per chip", ""));
  out.add("input_bytes", "", Format::kBytes, p.work.input);
  out.add("weight_bytes", "", Format::kBytes, p.work.weight);
  out.add("result_bytes", "", Format::kBytes, p.work.result);
  out.add("exchanged_bytes", "", Format::kBytes, p.work.exchanged);
  out.add("useful_fraction", p.work.useful ? "useful" : "", Format::kFraction, p.work.useful);
}

Record point_record(const RooflinePoint& p, const RooflineQuestion& question, const RooflineAnswer& found,
                    const PartsShown& shown, bool explained) {
  RooflineFigures out(explained);
  for (Figure& size : size_figures(p.operation, question.swept)) out.add(std::move(size));
  add_work(p, question, shown, out);
  add_times(p, question, found, shown, out);
  out.add(text_figure("bound_by", "bound by", p.bound_by));
  for (const std::string_view bound : {"compute", "memory", "link"}) {
    out.add(flag_figure(fmt::format("{}_bound", bound), p.bound_by == bound));
  }
  out.add("attained_flops_per_s", shown.compute ? "attained" : "", Format::kFlopsPerSecond, p.attained);
  out.add("fraction_of_peak", "of peak", Format::kFraction, p.fraction_of_peak);
  return {out.take()};
}

/// What a narrow terminal leaves out first.
void set_importance(Record& record) {
  for (Figure& f : record.figures) {
    const std::string_view key = f.key;
    if (key == "upper_time_s") f.importance = 4;
    if (key == "attained_flops_per_s") f.importance = 3;
    if (key == "flops" || key == "bytes") f.importance = 2;
    if (key == "bytes_per_chip" || key == "intensity_flops_per_byte") f.importance = 1;
  }
}

void add_critical(std::vector<Figure>& out, const std::optional<Critical>& critical, const std::string& key,
                  const std::string& label) {
  if (!critical) return;
  out.push_back(maybe_figure(key, label, Format::kNumber, critical->value));
  out.push_back(flag_figure(key + "_exists", critical->value.has_value()));
  if (critical->reason.empty()) {
    out.push_back(figure(key + "_reason", "", Format::kText, Cell{}));
  } else {
    out.push_back(text_figure(key + "_reason", label, critical->reason));
  }
}

Record critical_record(const RooflineQuestion& question, const RooflineAnswer& found) {
  Record out;
  add_critical(out.figures, found.critical_batch, "critical_batch", "critical batch");
  if (found.critical_batch) {
    out.figures.push_back(maybe_figure("critical_batch_approximate", "critical batch, weights' bytes alone",
                                       Format::kNumber, found.critical_batch->approximate));
  }
  add_critical(out.figures, found.critical_prompt, "critical_prompt", "critical prompt length");
  const bool contraction = question.sharing.split == MatmulSplit::kContraction;
  add_critical(out.figures, found.critical_dimension, "critical_dimension",
               contraction ? "critical D of the split" : "critical F of the split");
  return out;
}

Record machine_record(const RooflineQuestion& question, const RooflineAnswer& found) {
  const RooflineRates& rates = found.rates;
  Record out;
  std::vector<Figure>& f = out.figures;
  f.push_back(maybe_figure("peak_flops_per_s", rates.compute_name + " peak", Format::kFlopsPerSecond, rates.peak));
  const bool below = rates.peak && value_of(*rates.peak) != value_of(*rates.compute);
  f.push_back(maybe_figure("compute_flops_per_s", below ? "reached by large shapes" : "", Format::kFlopsPerSecond,
                           rates.compute));
  f.push_back(text_figure("memory", "", rates.memory_name));
  const std::string_view memory = memory_label(question.from);
  f.push_back(figure("memory_bytes_per_s", fmt::format("{} bandwidth", memory), Format::kBytesPerSecond, rates.memory));
  f.push_back(maybe_figure("link_bytes_per_s", rates.link_name + " bandwidth", Format::kBytesPerSecond, rates.link));
  const std::string_view key = "critical_intensity_flops_per_byte.";
  // The sentence above speaks of the shape asked about, which may reach less of the peak.
  const std::string_view large = question.calibrated && rates.half_dim.value() > 0 ? " with large shapes" : "";
  f.push_back(maybe_figure(std::string(key) + rates.memory_name,
                           fmt::format("FLOP/byte to be compute-bound{}, {}", large, memory), Format::kNumber,
                           found.memory_intensity));
  if (rates.link) {
    f.push_back(maybe_figure(std::string(key) + rates.link_name,
                             fmt::format("FLOP/byte to be compute-bound{}, {}", large, rates.link_name),
                             Format::kNumber, found.link_intensity));
  }
  return out;
}

Record measured_record(const MeasuredTime& m, std::size_t number, const PartsShown& shown) {
  Record out{{count_figure("number", number, "#"), count_figure("point", m.point),
              figure("measured_s", "measured", Format::kSeconds, m.seconds),
              figure("roofline_fraction", "of roofline", Format::kFraction, m.roofline_fraction),
              figure("attained_flops_per_s", shown.compute ? "attained" : "", Format::kFlopsPerSecond, m.attained),
              maybe_figure("fraction_of_peak", "of peak", Format::kFraction, m.fraction_of_peak),
              maybe_figure("speedup_over_first", "vs first", Format::kNumber, m.speedup_over_first),
              maybe_figure("speedup_over_previous", "vs previous", Format::kNumber, m.speedup_over_previous)}};
  set_importance(out);
  return out;
}

Record query_record(const RooflineQuestion& question, const RooflineAnswer& found, const HardwareSpec& hw,
                    const std::string& operation) {
  Record out{{text_figure("operation", "", operation), text_figure("hardware", "", hw.name),
              text_figure("hardware_title", "", hw.title),
              text_figure("unit", "", unit_of(question) == ComputeUnit::kVector ? "vector" : "matrix"),
              text_figure("from", "", found.rates.memory_name)}};
  if (found.rates.link) {
    out.figures.push_back(text_figure("over", "", found.rates.link_name));
  } else {
    out.figures.push_back(datum("convention", Cell{}));
  }
  return out;
}

/// FLOPs a byte from which on the units are the slower, at the rate that this very shape reaches.
double needed_intensity(const RooflinePoint& p, const RooflineAnswer& found) {
  const double compute = value_of(p.compute_time);
  const double memory = value_of(p.memory_time);
  if (compute <= 0 || memory <= 0) return value_of(*found.memory_intensity);
  return value_of(p.work.run) / value_of(p.bytes) * memory / compute;
}

/// What binds a single point, in one sentence.
Line bound_line(const RooflinePoint& p, const RooflineAnswer& found) {
  const std::string time = text_of(Cell(value_of(p.time)), Format::kSeconds);
  std::string text = fmt::format("{}, bound by {}", time, p.bound_by);
  if (p.intensity && found.memory_intensity && value_of(p.work.flops) > 0) {
    text += fmt::format(": {} FLOP/byte, and {} are needed to be compute-bound",
                        text_of(Cell(value_of(*p.intensity)), Format::kNumber),
                        text_of(Cell(needed_intensity(p, found)), Format::kNumber));
  }
  return {std::move(text)};
}

/// The operation of all points; where some mask what lies ahead and others do not, neither.
std::string title_of(const RooflineQuestion& question) {
  std::string out = describe(question.operations.front(), question.types, question.swept);
  const auto masks = [&](bool causal) {
    return std::any_of(question.operations.begin(), question.operations.end(), [&](const Operation& operation) {
      const Attention* attention = std::get_if<Attention>(&operation);
      return attention != nullptr && attention->causal == causal;
    });
  };
  if (masks(true) && masks(false)) out.replace(0, out.find(' '), "causal or full");
  return out;
}

}  // namespace

Output roofline_output(const RooflineQuestion& question, const RooflineAnswer& found, const HardwareSpec& hw,
                       const std::vector<Assumption>& noted) {
  const std::string operation = title_of(question);
  Output out{.command = "roofline"};
  const std::string machine = question.sharing.chips == 1
                                  ? hw.title
                                  : fmt::format("{} x {}", group_thousands(question.sharing.chips), hw.title);
  out.title = fmt::format("Roofline of {} on {}", operation, machine);
  if (found.points.size() == 1) out.summary.push_back(bound_line(found.points.front(), found));
  out.query = query_record(question, found, hw, operation);
  Block points{.key = "points"};
  const PartsShown shown = shown_of(found);
  constexpr std::size_t kExplained = 12;  // of a longer curve the first point is explained
  for (const RooflinePoint& point : found.points) {
    const bool explained = points.records.size() < kExplained;
    points.records.push_back(point_record(point, question, found, shown, explained));
    set_importance(points.records.back());
  }
  out.blocks.push_back(std::move(points));
  Record critical = critical_record(question, found);
  if (!critical.figures.empty()) {
    out.blocks.push_back({"", "Where it becomes compute-bound", false, {std::move(critical)}});
  }
  out.blocks.push_back({"machine", "Rates of one chip", false, {machine_record(question, found)}});
  if (!found.measured.empty()) {
    Block measured{"measured", "Measured", true, {}};
    for (std::size_t i = 0; i < found.measured.size(); ++i) {
      measured.records.push_back(measured_record(found.measured[i], i + 1, shown));
    }
    out.blocks.push_back(std::move(measured));
  }
  out.plots = {roofline_plot(question, found)};
  out.assumptions = noted;
  out.assumptions.insert(out.assumptions.end(), found.assumptions.begin(), found.assumptions.end());
  return out;
}

namespace {

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

}  // namespace scalecalc
