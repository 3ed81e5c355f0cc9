// Writes a picture as a Vega-Lite specification, for pages.
#include "report/page_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "base/quoting.h"
#include "report/plot_scale.h"

namespace scalecalc {
namespace {

/// Told apart on white and on black; shapes and dashes tell series apart as well.
constexpr std::array<const char*, 14> kMarkColours{"#2f7fc1", "#c8741a", "#1f9470", "#a955a0", "#74808c",
                                                   "#c14d4d", "#3f9fbf", "#98801a", "#7468cf", "#5f9132",
                                                   "#c0708c", "#47808f", "#96684a", "#6a7f2b"};
constexpr const char *kGrey = "#74808c", *kRed = "#c14d4d";
constexpr int kChartHeight = 320, kBarStep = 26;
constexpr std::size_t kTicksX = 8, kTicksY = 7;

Json encoded(const char* field, const char* type) { return {{"field", field}, {"type", type}}; }

/// An axis over values in its unit.
Json axis_of(const PlotScale& scale, const char* field) {
  Json out = encoded(field, "quantitative");
  out["title"] = scale.title();
  Json values = Json::array();
  for (const PlotTick& tick : scale.ticks()) values.push_back(finite(tick.value / scale.unit().factor));
  out["axis"] = {{"values", std::move(values)}};
  out["scale"] = scale.log() ? Json{{"type", "log"}, {"nice", false}, {"padding", 12}}
                             : Json{{"zero", false}, {"nice", true}, {"padding", 12}};
  return out;
}

Json tip(const char* field, const std::string& title) {
  return {{"field", field}, {"type", "nominal"}, {"title", title}};
}

/// Labels of a nominal axis must differ: what is told twice gets signs without width.
class UniqueLabels {
 public:
  std::string operator()(const std::string& label) {
    std::string out = label;
    for (int n = seen_[label]++; n > 0; --n) out += "\u200b";
    return out;
  }

 private:
  std::map<std::string, int> seen_;
};

std::vector<std::string> series_names(const Plot& plot) {
  UniqueLabels unique;
  std::vector<std::string> out;
  for (const PlotSeries& series : plot.series) out.push_back(unique(series.name));
  return out;
}

Json colours(std::size_t count) {
  Json out = Json::array();
  for (std::size_t i = 0; i < count; ++i) out.push_back(kMarkColours.at(i % kMarkColours.size()));
  return out;
}

class CurvesChart {
 public:
  explicit CurvesChart(const Plot& plot)
      : plot_(plot), scales_(plot_scales(plot, kTicksX, kTicksY)), names_(series_names(plot)) {}

  Json run() {
    Json out = {{"height", kChartHeight}, {"data", {{"values", points()}}}};
    if (has_limits()) add_limits(out);
    // Of nothing there is no layer: Vega warns of scales without values.
    Json layers = Json::array();
    for (Json& layer : limit_rules()) layers.push_back(std::move(layer));
    if (has_limits()) {
      layers.push_back(dragged("x"));
      layers.push_back(dragged("y"));
    }
    if (any_series(&PlotSeries::joined)) layers.push_back(lines());
    if (any_series(&PlotSeries::marked)) layers.push_back(dots());
    for (Json& layer : letters()) layers.push_back(std::move(layer));
    out["layer"] = std::move(layers);
    return out;
  }

 private:
  bool any_series(bool PlotSeries::*is) const {
    return std::any_of(plot_.series.begin(), plot_.series.end(),
                       [&](const PlotSeries& s) { return s.*is && !s.points.empty(); });
  }
  bool drawable(const PlotPoint& p) const {
    return std::isfinite(p.x) && std::isfinite(p.y) && (!scales_.x.log() || p.x > 0) && (!scales_.y.log() || p.y > 0);
  }
  double x(double value) const { return finite(value / scales_.x.unit().factor); }
  double y(double value) const { return finite(value / scales_.y.unit().factor); }

  Json points() const {
    Json out = Json::array();
    for (std::size_t s = 0; s < plot_.series.size(); ++s) {
      const PlotSeries& series = plot_.series[s];
      int order = 0;
      for (const PlotPoint& p : series.points) {
        if (!drawable(p)) continue;
        out.push_back({{"s", names_[s]},
                       {"n", p.name},
                       {"x", x(p.x)},
                       {"y", y(p.y)},
                       {"xt", text_of(p.x, plot_.x.format)},
                       {"yt", text_of(p.y, plot_.y.format)},
                       {"o", order++},
                       {"l", series.joined},
                       {"m", series.marked}});
      }
    }
    return out;
  }

  Json colour() const {
    Json out = encoded("s", "nominal");
    out["scale"] = {{"domain", names_}, {"range", colours(names_.size())}};
    out["title"] = nullptr;
    if (names_.size() < 2) out["legend"] = nullptr;
    return out;
  }
  Json told_apart(const char* by) const {
    Json out = encoded("s", "nominal");
    out["scale"] = {{"domain", names_}};
    out["title"] = nullptr;
    if (names_.size() < 2) out["legend"] = nullptr;
    return {{by, std::move(out)}};
  }

  Json both_axes() const { return {{"x", axis_of(scales_.x, "x")}, {"y", axis_of(scales_.y, "y")}}; }

  Json lines() const {
    Json encoding = both_axes();
    encoding["color"] = colour();
    encoding["order"] = encoded("o", "quantitative");
    encoding.update(told_apart("strokeDash"));
    return {{"transform", Json::array({{{"filter", "datum.l"}}})},
            {"mark", {{"type", "line"}, {"strokeWidth", 2}, {"aria", false}}},
            {"encoding", std::move(encoding)}};
  }

  Json dots() const {
    Json encoding = both_axes();
    encoding["color"] = colour();
    encoding.update(told_apart("shape"));
    Json tips = Json::array();
    if (names_.size() > 1) tips.push_back(tip("s", "series"));
    const auto named = [](const PlotSeries& s) {
      return std::any_of(s.points.begin(), s.points.end(), [](const PlotPoint& p) { return !p.name.empty(); });
    };
    if (std::any_of(plot_.series.begin(), plot_.series.end(), named)) tips.push_back(tip("n", "what"));
    tips.push_back(tip("xt", plot_.x.title));
    tips.push_back(tip("yt", plot_.y.title));
    encoding["tooltip"] = std::move(tips);
    if (has_limits()) {
      const char* within =
          at_least() ? "datum.x >= limit_x && datum.y >= limit_y" : "datum.x <= limit_x && datum.y <= limit_y";
      encoding["opacity"] = {{"condition", {{"test", within}, {"value", 1}}}, {"value", 0.15}};
    }
    return {{"transform", Json::array({{{"filter", "datum.m"}}})},
            {"mark", {{"type", "point"}, {"filled", true}, {"size", has_limits() ? 110 : 70}, {"opacity", 1}}},
            {"encoding", std::move(encoding)}};
  }

  /// Of marks that are limits.
  std::vector<Json> limit_rules() const {
    Json vertical = Json::array(), level = Json::array();
    for (const PlotMark& mark : plot_.marks) {
      if (mark.kind == PlotMarkKind::kAtX) vertical.push_back({{"x", x(mark.at.x)}, {"t", mark.text}});
      if (mark.kind == PlotMarkKind::kAtY) level.push_back({{"y", y(mark.at.y)}, {"t", mark.text}});
    }
    const auto rules = [&](const char* field, const PlotScale& scale, Json values) {
      return Json{{"data", {{"values", std::move(values)}}},
                  {"mark", {{"type", "rule"}, {"strokeDash", {3, 4}}, {"strokeWidth", 2}, {"color", kGrey}}},
                  {"encoding", {{field, axis_of(scale, field)}, {"tooltip", tip("t", "limit")}}}};
    };
    std::vector<Json> out;
    if (!vertical.empty()) out.push_back(rules("x", scales_.x, std::move(vertical)));
    if (!level.empty()) out.push_back(rules("y", scales_.y, std::move(level)));
    return out;
  }

  /// A circle and a letter, of which the key below says what they are.
  std::vector<Json> letters() const {
    Json values = Json::array();
    std::size_t letter = 0;
    for (const PlotMark& mark : plot_.marks) {
      if (mark.kind != PlotMarkKind::kPoint) continue;
      values.push_back({{"x", x(mark.at.x)}, {"y", y(mark.at.y)}, {"k", mark_letter(letter++)}, {"t", mark.text}});
    }
    if (values.empty()) return {};
    Json circle = both_axes(), text = both_axes();
    circle["tooltip"] = tip("t", "marked");
    text["text"] = encoded("k", "nominal");
    const Json data = {{"values", std::move(values)}};
    std::vector<Json> out;
    out.push_back({{"data", data},
                   {"mark", {{"type", "point"}, {"size", 260}, {"strokeWidth", 2}, {"color", kGrey}}},
                   {"encoding", std::move(circle)}});
    out.push_back({{"data", data},
                   {"mark", {{"type", "text"}, {"dy", -17}, {"fontWeight", "bold"}}},
                   {"encoding", std::move(text)}});
    return out;
  }

  // Limits that a reader sets: two parameters, a rule at each, and points beyond them pale.

  bool has_limits() const { return plot_.limits != PlotLimits::kNone; }
  bool at_least() const { return plot_.limits == PlotLimits::kAtLeast; }

  struct Range {
    double least = 0, most = 0;
  };
  Range range(bool of_x) const {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    Range out{kInfinity, -kInfinity};
    for (const PlotSeries& series : plot_.series) {
      for (const PlotPoint& p : series.points) {
        if (!drawable(p)) continue;
        const double value = of_x ? x(p.x) : y(p.y);
        out = {std::min(out.least, value), std::max(out.most, value)};
      }
    }
    return out;
  }

  void add_limits(Json& out) const {
    Json limits;
    for (const bool of_x : {true, false}) {
      const PlotScale& scale = of_x ? scales_.x : scales_.y;
      const Range r = range(of_x);
      const char* name = of_x ? "limit_x" : "limit_y";
      out["params"].push_back({{"name", name}, {"value", finite(at_least() ? r.least : r.most)}});
      limits[of_x ? "x" : "y"] = {{"title", of_x ? plot_.x.title : plot_.y.title},
                                  {"unit", scale.unit().name},
                                  {"least", finite(r.least)},
                                  {"most", finite(r.most)},
                                  {"log", scale.log()}};
    }
    limits["at_least"] = at_least();
    out["usermeta"] = {{"limits", std::move(limits)}};
  }

  Json dragged(const char* axis) const {
    const bool of_x = axis[0] == 'x';
    Json at = axis_of(of_x ? scales_.x : scales_.y, axis);
    return {
        {"data", {{"values", Json::array({Json::object()})}}},
        {"transform", Json::array({{{"calculate", std::string("limit_") + axis}, {"as", axis}}})},
        {"mark", {{"type", "rule"}, {"strokeWidth", 3}, {"color", kRed}, {"cursor", of_x ? "ew-resize" : "ns-resize"}}},
        {"encoding", {{axis, std::move(at)}}}};
  }

  const Plot& plot_;
  PlotScales scales_;
  std::vector<std::string> names_;
};

std::string kind_of(const Plot& plot, std::size_t kind) {
  return plot.bar_kinds.empty() ? "" : plot.bar_kinds.at(kind);
}

Json bars_spec(const Plot& plot) {
  const PlotScales scales = plot_scales(plot, kTicksX, 2);
  const double unit = scales.x.unit().factor;
  UniqueLabels unique;
  Json values = Json::array(), labels = Json::array(), limits = Json::array();
  for (const PlotBar& bar : plot.bars) {
    const std::string label = unique(bar.label);
    labels.push_back(label);
    double low = 0, high = 0;  // what is covered: a span that lies on another is thinner, so that both are seen
    for (const PlotSpan& span : bar.spans) {
      const double from = std::min(span.from, span.to), to = std::max(span.from, span.to);
      constexpr double kTouch = 1e-9;
      const double touch = kTouch * std::max(high - low, to - from);
      const bool over = std::min(high, to) - std::max(low, from) > touch;
      low = std::min(low, from);
      high = std::max(high, to);
      values.push_back({{"b", label},
                        {"k", kind_of(plot, span.kind)},
                        {"x", finite(span.from / unit)},
                        {"x2", finite(span.to / unit)},
                        {"v", over},
                        {"t", text_of(span.to - span.from, plot.x.format)},
                        {"to", text_of(span.to, plot.x.format)}});
    }
  }
  for (const PlotMark& mark : plot.marks) {
    if (mark.kind == PlotMarkKind::kAtX) limits.push_back({{"x", finite(mark.at.x / unit)}, {"t", mark.text}});
  }
  Json x = axis_of(scales.x, "x");
  x["scale"] = {{"zero", true}, {"nice", false}};
  Json y = encoded("b", "nominal");
  y["sort"] = labels;
  y["title"] = nullptr;
  y["axis"] = {{"labelPadding", 6}};
  Json colour = encoded("k", "nominal");
  colour["scale"] = {{"domain", plot.bar_kinds}, {"range", colours(plot.bar_kinds.size())}};
  colour["title"] = nullptr;
  if (plot.bar_kinds.size() < 2) colour["legend"] = nullptr;
  Json tips = Json::array({tip("b", "bar")});
  if (!plot.bar_kinds.empty()) tips.push_back(tip("k", "part"));
  tips.push_back(tip("t", plot.x.title));
  tips.push_back(tip("to", "until"));
  Json encoding = {{"x", x}, {"x2", {{"field", "x2"}}}, {"y", y}, {"tooltip", std::move(tips)}};
  if (!plot.bar_kinds.empty()) encoding["color"] = std::move(colour);
  Json layers = Json::array();
  const auto bars = [&](bool over) {
    const bool any = std::any_of(values.begin(), values.end(), [&](const Json& v) { return v["v"] == over; });
    if (!any) return;
    Json mark = {{"type", "bar"}, {"color", kMarkColours.front()}};
    if (over) mark["height"] = {{"band", 0.4}};
    layers.push_back({{"transform", Json::array({{{"filter", over ? "datum.v" : "!datum.v"}}})},
                      {"mark", std::move(mark)},
                      {"encoding", encoding}});
  };
  bars(false);
  bars(true);
  if (!limits.empty()) {
    layers.push_back({{"data", {{"values", std::move(limits)}}},
                      {"mark", {{"type", "rule"}, {"strokeDash", {3, 4}}, {"strokeWidth", 2}, {"color", kRed}}},
                      {"encoding", {{"x", x}, {"tooltip", tip("t", "limit")}}}});
  }
  return {
      {"height", kBarStep * plot.bars.size()}, {"data", {{"values", std::move(values)}}}, {"layer", std::move(layers)}};
}

/// A square for each chip, coloured by its rank in the dimension that the reader chooses.
Json map_spec(const Plot& plot) {
  Json values = Json::array(), choices = Json::array(), tips = Json::array();
  std::vector<std::string> panels;
  double columns = 0;
  tips.push_back(tip("at", "chip"));
  for (std::size_t d = 0; d < plot.map_dimensions.size(); ++d) {
    choices.push_back(plot.map_dimensions[d]);
    tips.push_back(encoded(plot.map_dimensions[d].c_str(), "quantitative"));
  }
  for (const PlotCell& cell : plot.cells) {
    Json value = {{"x", cell.x},
                  {"y", cell.y},
                  {"p", cell.panel},
                  {"at", fmt::format("{}{} {:g}, {} {:g}", cell.panel.empty() ? "" : cell.panel + ", ", plot.x.title,
                                     cell.x, plot.y.title, cell.y)}};
    for (std::size_t d = 0; d < cell.ranks.size(); ++d) value[plot.map_dimensions[d]] = cell.ranks[d];
    values.push_back(std::move(value));
    columns = std::max(columns, cell.x + 1);
    if (std::find(panels.begin(), panels.end(), cell.panel) == panels.end()) panels.push_back(cell.panel);
  }
  Json x = encoded("x", "ordinal"), y = encoded("y", "ordinal"), colour = encoded("rank", "quantitative");
  x["title"] = plot.x.title;
  y["title"] = plot.y.title;
  x["axis"] = y["axis"] = {{"labelAngle", 0}, {"labelOverlap", true}};
  colour["scale"] = {{"scheme", "viridis"}};
  colour["title"] = "rank";
  colour["legend"] = {{"direction", "horizontal"}, {"gradientLength", 160}, {"tickMinStep", 1}};
  constexpr double kSmall = 14, kLarge = 34, kMapWidth = 420;
  const double cell = panels.size() > 1 ? kSmall : std::clamp(std::floor(kMapWidth / columns), kSmall, kLarge);
  const Json one = {{"width", {{"step", cell}}},
                    {"height", {{"step", cell}}},
                    {"mark", {{"type", "rect"}, {"stroke", "#8888"}, {"strokeWidth", 0.5}}},
                    {"encoding", {{"x", x}, {"y", y}, {"color", colour}, {"tooltip", tips}}}};
  Json out = {
      {"params",
       Json::array({{{"name", "dimension"},
                     {"value", choices.front()},
                     {"bind", {{"input", "select"}, {"options", choices}, {"name", "coloured by the rank in "}}}}})},
      {"data", {{"values", std::move(values)}}},
      {"transform", Json::array({{{"calculate", "datum[dimension]"}, {"as", "rank"}}})},
      {"usermeta", {{"own_width", true}}}};
  if (panels.size() < 2) {
    out.update(one);
    return out;
  }
  constexpr double kPageColumns = 56;
  out["facet"] = {{"field", "p"}, {"type", "nominal"}, {"title", nullptr}, {"sort", panels}};
  out["columns"] = std::max(1.0, std::floor(kPageColumns / (columns + 3)));
  out["spec"] = one;
  out["resolve"] = {{"axis", {{"x", "independent"}}}, {"scale", {{"y", "independent"}}}};
  return out;
}

}  // namespace

Json chart_config() {
  Json category = colours(kMarkColours.size());
  return {{"background", "transparent"},
          {"font", "system-ui, sans-serif"},
          {"view", {{"stroke", nullptr}}},
          {"range", {{"category", std::move(category)}}},
          {"axis",
           {{"labelFontSize", 12},
            {"titleFontSize", 12},
            {"titleFontWeight", "normal"},
            {"labelOverlap", true},
            {"labelFlush", true}}},
          {"axisX", {{"labelAngle", 0}}},
          {"legend", {{"orient", "bottom"}, {"direction", "vertical"}, {"labelFontSize", 12}, {"symbolSize", 80}}}};
}

Json chart_spec(const Plot& given) {
  Plot plot = printable_plot(given);
  Json out = !plot.cells.empty() ? map_spec(plot) : plot.bars.empty() ? CurvesChart(plot).run() : bars_spec(plot);
  if (plot.cells.empty()) {
    out["width"] = "container";
    out["autosize"] = {{"type", "fit-x"}, {"contains", "padding"}};
  }
  return out;
}

std::vector<std::string> chart_key(const Plot& given) {
  const Plot plot = printable_plot(given);
  std::vector<std::string> out;
  std::size_t letter = 0;
  for (const PlotMark& mark : plot.marks) {
    out.push_back(mark.kind == PlotMarkKind::kPoint ? fmt::format("{}: {}", mark_letter(letter++), mark.text)
                                                    : fmt::format("dashed: {}", mark.text));
  }
  return out;
}

Table chart_table(const Plot& given) {
  const Plot plot = printable_plot(given);
  Table out;
  if (!plot.bars.empty()) {
    out.columns = {{"bar"},
                   {"part"},
                   {.title = "value", .format = plot.x.format},
                   {.title = "from", .format = plot.x.format},
                   {.title = "to", .format = plot.x.format}};
    for (const PlotBar& bar : plot.bars) {
      for (const PlotSpan& span : bar.spans)
        out.rows.push_back({{bar.label, kind_of(plot, span.kind), span.to - span.from, span.from, span.to}});
    }
    if (plot.bar_kinds.empty()) {
      out.columns.erase(out.columns.begin() + 1);
      for (Row& row : out.rows) row.cells.erase(row.cells.begin() + 1);
    }
    return out;
  }
  const bool named = std::any_of(plot.series.begin(), plot.series.end(), [](const PlotSeries& s) {
    return std::any_of(s.points.begin(), s.points.end(), [](const PlotPoint& p) { return !p.name.empty(); });
  });
  out.columns = {
      {"series"}, {.title = plot.x.title, .format = plot.x.format}, {.title = plot.y.title, .format = plot.y.format}};
  if (named) out.columns.insert(out.columns.begin() + 1, {"what"});
  for (const PlotSeries& series : plot.series) {
    for (const PlotPoint& p : series.points) {
      Row row{{series.name, p.x, p.y}};
      if (named) row.cells.insert(row.cells.begin() + 1, p.name);
      out.rows.push_back(std::move(row));
    }
  }
  return out;
}

}  // namespace scalecalc
