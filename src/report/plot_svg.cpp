// Draws an answer's pictures as one SVG file, for slides and print.
#include "report/plot_svg.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "base/text.h"
#include "report/plot_scale.h"
#include "report/table_layout.h"

namespace scalecalc {
namespace {

constexpr double kPageWidth = 960, kMargin = 24, kPlotHeight = 400, kBarHeight = 22, kLine = 20;
constexpr double kYLabels = 84;            // left of a curve's axis: its title and labels
constexpr std::size_t kTextColumns = 118;  // of 14 px type on a line
constexpr std::size_t kTitleColumns = 80;  // of 18 px type

/// Dark on white and apart for the colour-blind (Okabe and Ito 2008, darkened for print).
constexpr std::array<std::string_view, 6> kColours{"#00528a", "#b34700", "#00694e", "#8a3a6e", "#1a1a1a", "#7a5c00"};
constexpr std::string_view kPale = "#cfe3f2";
constexpr std::array<std::string_view, 6> kDashes{"", "8 4", "2 3", "10 3 2 3", "14 5", "5 2 2 2"};

class SvgPage {
 public:
  explicit SvgPage(const Output& output) : output_(output) {}

  std::string run() {
    top_ = kMargin;
    paragraph(output_.title, "title", kTitleColumns, 24);
    bool drawn = false;
    for (const Plot& plot : output_.plots) {
      if (!has_data(plot)) continue;
      top_ += drawn ? 2 * kLine : kLine / 2;
      drawn = true;
      if (!plot.title.empty()) paragraph(plot.title, "heading", kTextColumns, kLine);
      if (plot.bars.empty()) {
        curves(plot);
      } else {
        bars(plot);
      }
    }
    if (!drawn) {
      paragraph("There is nothing to draw.", "", kTextColumns, kLine);
      for (const Line& line : output_.summary) paragraph(line.text, "", kTextColumns, kLine);
    }
    if (!output_.complete) paragraph("Interrupted: what was not answered yet is missing.", "", kTextColumns, kLine);
    return head(top_ + kMargin) + body_ + "</svg>\n";
  }

 private:
  std::string head(double height) const {
    return fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
        "height=\"{1:.0f}\" role=\"img\">\n<title>{2}</title>\n"
        "<style>text{{font:14px sans-serif;fill:#1a1a1a}}.title{{font-size:18px;font-weight:bold}}"
        ".heading{{font-size:15px;font-weight:bold}}.grid{{stroke:#d9d9d9}}.axis{{stroke:#1a1a1a;stroke-width:1.5}}"
        ".line{{fill:none;stroke-width:2.5}}.limit{{stroke:#1a1a1a;stroke-width:1.5;stroke-dasharray:3 4}}"
        ".letter{{font-weight:bold}}</style>\n"
        "<rect width=\"{0:.0f}\" height=\"{1:.0f}\" fill=\"#ffffff\"/>\n",
        kPageWidth, height, markup_escaped(output_.title));
  }

  void text(double x, double y, std::string_view words, std::string_view anchor = "start", std::string_view cls = "",
            std::string_view more = "") {
    body_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}{}>{}</text>\n", x, y, anchor,
                         cls.empty() ? "" : fmt::format(" class=\"{}\"", cls), more, markup_escaped(words));
  }

  void paragraph(const std::string& words, std::string_view cls, std::size_t columns, double line, double x = kMargin) {
    const std::string folded = fold_text(words, columns, 0);
    for (std::size_t at = 0; at <= folded.size();) {
      const std::size_t end = std::min(folded.find('\n', at), folded.size());
      top_ += line;
      text(x, top_, folded.substr(at, end - at), "start", cls);
      at = end + 1;
    }
  }

  void line(double x0, double y0, double x1, double y1, std::string_view cls) {
    body_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", x0, y0, x1,
                         y1, cls);
  }

  static std::string_view colour(std::size_t series) { return kColours[series % kColours.size()]; }

  /// Another shape for each series.
  void marker(std::size_t series, double x, double y, double r = 5) {
    const bool hollow = series % 6 >= 4;
    const std::string paint = fmt::format("fill=\"{}\" stroke=\"{}\" stroke-width=\"1.5\"",
                                          hollow ? "#ffffff" : colour(series), colour(series));
    switch (series % 4) {
      case 0: body_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" {}/>\n", x, y, r, paint); return;
      case 1: polygon({{x, y - r - 1}, {x + r + 1, y + r}, {x - r - 1, y + r}}, paint); return;
      case 2: polygon({{x - r, y - r}, {x + r, y - r}, {x + r, y + r}, {x - r, y + r}}, paint); return;
      default: polygon({{x, y - r - 2}, {x + r + 1, y}, {x, y + r + 2}, {x - r - 1, y}}, paint);
    }
  }
  void polygon(std::initializer_list<PlotPoint> corners, const std::string& paint) {
    std::string points;
    for (const PlotPoint& p : corners) points += fmt::format("{}{:.1f},{:.1f}", points.empty() ? "" : " ", p.x, p.y);
    body_ += fmt::format("<polygon points=\"{}\" {}/>\n", points, paint);
  }
  void polyline(std::size_t series, const std::vector<PlotPoint>& points) {
    std::string at;
    for (const PlotPoint& p : points) at += fmt::format("{}{:.1f},{:.1f}", at.empty() ? "" : " ", p.x, p.y);
    const std::string_view dash = kDashes[series % kDashes.size()];
    body_ += fmt::format("<polyline class=\"line\" stroke=\"{}\"{} points=\"{}\"/>\n", colour(series),
                         dash.empty() ? "" : fmt::format(" stroke-dasharray=\"{}\"", dash), at);
  }

  struct Frame {
    double left = 0, right = 0, top = 0, bottom = 0;
    double x(double share) const { return left + share * (right - left); }
    double y(double share) const { return bottom - share * (bottom - top); }
  };

  void x_axis(const Frame& f, const PlotScale& scale) {
    double end = 0;
    constexpr double kCharacter = 8;
    for (const PlotTick& tick : scale.ticks()) {
      const double place = scale.place(tick.value);
      if (place < 0 || place > 1) continue;
      const double x = f.x(place), half = kCharacter * static_cast<double>(display_width(tick.label)) / 2;
      if (x - half < end) continue;  // labels must not touch
      end = x + half + kCharacter;
      line(x, f.top, x, f.bottom, "grid");
      text(x, f.bottom + kLine, tick.label, "middle");
    }
    line(f.left, f.bottom, f.right, f.bottom, "axis");
    text((f.left + f.right) / 2, f.bottom + 2.2 * kLine, scale.title(), "middle");
  }

  void y_axis(const Frame& f, const PlotScale& scale) {
    for (const PlotTick& tick : scale.ticks()) {
      const double place = scale.place(tick.value);
      if (place < 0 || place > 1) continue;
      line(f.left, f.y(place), f.right, f.y(place), "grid");
      text(f.left - 8, f.y(place) + 5, tick.label, "end");
    }
    line(f.left, f.top, f.left, f.bottom, "axis");
    const double x = kMargin + 4, y = (f.top + f.bottom) / 2;
    text(x, y, scale.title(), "middle", "", fmt::format(" transform=\"rotate(-90 {:.1f} {:.1f})\"", x, y));
  }

  void curves(const Plot& plot) {
    const PlotScales scales = plot_scales(plot, 10, 8);
    const Frame f{kMargin + kYLabels, kPageWidth - kMargin, top_ + kLine, top_ + kLine + kPlotHeight};
    x_axis(f, scales.x);
    y_axis(f, scales.y);
    const auto place = [&](const PlotPoint& p) {
      return PlotPoint{f.x(scales.x.place(p.x)), f.y(scales.y.place(p.y))};
    };
    for (const PlotMark& mark : plot.marks) {
      const PlotPoint at = place(mark.at);
      if (mark.kind == PlotMarkKind::kAtX) line(at.x, f.top, at.x, f.bottom, "limit");
      if (mark.kind == PlotMarkKind::kAtY) line(f.left, at.y, f.right, at.y, "limit");
    }
    for (std::size_t s = 0; s < plot.series.size(); ++s) {
      std::vector<PlotPoint> points;
      for (const PlotPoint& p : plot.series[s].points) points.push_back(place(p));
      if (plot.series[s].joined && points.size() > 1) polyline(s, points);
      constexpr std::size_t kMany = 100;
      const double size = points.size() > kMany ? 2.5 : 5;
      for (std::size_t i = 0; plot.series[s].marked && i < points.size(); ++i) {
        marker(s, points[i].x, points[i].y, size);
      }
    }
    std::size_t letters = 0;
    for (const PlotMark& mark : plot.marks) {
      if (mark.kind != PlotMarkKind::kPoint) continue;
      const PlotPoint at = place(mark.at);
      body_ += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"9\" fill=\"none\" stroke=\"#1a1a1a\" stroke-width=\"2\"/>\n", at.x,
          at.y);
      text(at.x, at.y - 13, mark_letter(letters++), "middle", "letter");
    }
    top_ = f.bottom + 2.2 * kLine;
    legend(plot);
  }

  void bars(const Plot& plot) {
    const PlotScales scales = plot_scales(plot, 8, 2);
    std::size_t label = 0;
    for (const PlotBar& bar : plot.bars) label = std::max(label, display_width(bar.label));
    const double labels = std::min(kPageWidth / 2, 8 * static_cast<double>(label) + 16);
    const Frame f{kMargin + labels, kPageWidth - 2 * kMargin, top_ + kLine,
                  top_ + kLine + kBarHeight * static_cast<double>(plot.bars.size())};
    x_axis(f, scales.x);
    const double zero = f.x(scales.x.place(0));
    for (std::size_t i = 0; i < plot.bars.size(); ++i) {
      const PlotBar& bar = plot.bars[i];
      const double y = f.top + kBarHeight * static_cast<double>(i);
      text(f.left - 8, y + 16, bar.label, "end");
      for (const PlotSpan& span : bar.spans) {
        bar_rect(f.x(scales.x.place(span.from)), f.x(scales.x.place(span.to)), y + 3, style(plot, span.kind));
      }
    }
    line(zero, f.top, zero, f.bottom, "axis");
    top_ = f.bottom + 2.2 * kLine;
    legend(plot);
  }
  static std::size_t style(const Plot& plot, std::size_t kind) { return plot.bar_kinds.empty() ? 1 : kind; }
  /// Style 0 is pale, the others as series are; an outline would hide a thin one.
  void bar_rect(double from, double to, double y, std::size_t style) {
    constexpr double kThin = 3;
    const std::string_view dark = colour(style == 0 ? 0 : style - 1), fill = style == 0 ? kPale : dark;
    body_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" fill=\"{}\" stroke=\"{}\"/>\n",
                         std::min(from, to), y, std::abs(to - from), kBarHeight - 6, fill,
                         std::abs(to - from) < kThin ? fill : dark);
  }

  void legend(const Plot& plot) {
    const double x = kMargin + kYLabels;
    const auto words = [&](const std::string& text) { paragraph(text, "", kTextColumns - 18, kLine, x + 44); };
    top_ += kLine / 2;
    for (std::size_t k = 0; k < plot.bar_kinds.size() && !plot.bars.empty(); ++k) {
      bar_rect(x, x + 34, top_ + 5, k);
      words(plot.bar_kinds[k]);
    }
    for (std::size_t s = 0; s < plot.series.size(); ++s) {
      const double y = top_ + kLine - 5;
      if (plot.series[s].joined) polyline(s, {{x, y}, {x + 34, y}});
      if (plot.series[s].marked) marker(s, x + 17, y);
      words(plot.series[s].name);
    }
    std::size_t letters = 0;
    for (const PlotMark& mark : plot.marks) {
      if (mark.kind == PlotMarkKind::kPoint) {
        text(x + 17, top_ + kLine, mark_letter(letters++), "middle", "letter");
      } else {
        line(x, top_ + kLine - 5, x + 34, top_ + kLine - 5, "limit");
      }
      words(mark.text);
    }
  }

  const Output& output_;
  double top_ = 0;
  std::string body_;
};

}  // namespace

std::string render_svg(const Output& output) { return SvgPage(output).run(); }

}  // namespace scalecalc
