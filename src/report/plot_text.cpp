// Draws an answer's pictures as text in braille dots or ASCII, for terminals.
#include "report/plot_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/quoting.h"
#include "base/text.h"
#include "report/plot_scale.h"
#include "report/table_layout.h"

namespace scalecalc {
namespace {

constexpr std::size_t kUsualColumns = 80, kFewestColumns = 30, kMostColumns = 100;

/// What lines and points are drawn with.
struct PlotGlyphs {
  std::array<std::string_view, 6> points, bars;
  std::string_view y_axis, y_tick, corner, x_axis, x_tick, limit_x, limit_y, ellipsis;
};
constexpr PlotGlyphs kUnicode{.points = {"●", "▲", "■", "◆", "○", "△"},
                              .bars = {"░", "█", "▒", "▓", "◆", "○"},
                              .y_axis = "│",
                              .y_tick = "┤",
                              .corner = "└",
                              .x_axis = "─",
                              .x_tick = "┬",
                              .limit_x = "┊",
                              .limit_y = "┄",
                              .ellipsis = "…"};
constexpr PlotGlyphs kAscii{.points = {"*", "o", "+", "x", "#", "%"},
                            .bars = {"-", "#", "=", "+", "o", "%"},
                            .y_axis = "|",
                            .y_tick = "+",
                            .corner = "+",
                            .x_axis = "-",
                            .x_tick = "+",
                            .limit_x = ":",
                            .limit_y = "=",
                            .ellipsis = "~"};

/// Cells of one column each. A line leaves dots, eight to a cell in braille, and never hides what was put there.
class PlotCanvas {
 public:
  PlotCanvas(std::size_t width, std::size_t height, bool braille)
      : width_(width), height_(height), braille_(braille), dots_(width * height), put_(width * height) {}

  /// Places are shares of the canvas, from the lower left.
  void line(double x0, double y0, double x1, double y1) {
    const double wide = static_cast<double>(dots_wide() - 1), high = static_cast<double>(dots_high() - 1);
    const double steps = std::max({1.0, std::ceil(std::abs(x1 - x0) * wide), std::ceil(std::abs(y1 - y0) * high)});
    for (long i = 0; i <= std::lround(steps); ++i) {
      const auto at = static_cast<double>(i);
      dot(x0 + (x1 - x0) * at / steps, y0 + (y1 - y0) * at / steps);
    }
  }
  void put(double x, double y, std::string_view glyph) {
    put_[index(cell(x, width_), height_ - 1 - cell(y, height_))] = glyph;
  }
  /// Does not hide what was put before.
  void put_below(double x, double y, std::string_view glyph) {
    std::string& at = put_[index(cell(x, width_), height_ - 1 - cell(y, height_))];
    if (at.empty()) at = glyph;
  }

  std::string row(std::size_t r) const {
    std::string out;
    for (std::size_t c = 0; c < width_; ++c) {
      const std::size_t i = index(c, r);
      if (!put_[i].empty()) {
        out += put_[i];
      } else if (dots_[i] == 0) {
        out += ' ';
      } else {
        out += braille_ ? braille(dots_[i]) : ".";
      }
    }
    out.erase(out.find_last_not_of(' ') + 1);
    return out;
  }

 private:
  std::size_t dots_wide() const { return braille_ ? 2 * width_ : width_; }
  std::size_t dots_high() const { return braille_ ? 4 * height_ : height_; }
  std::size_t index(std::size_t column, std::size_t row) const { return row * width_ + column; }
  static std::size_t cell(double share, std::size_t count) {
    return static_cast<std::size_t>(std::lround(std::clamp(share, 0.0, 1.0) * static_cast<double>(count - 1)));
  }
  void dot(double x, double y) {
    const std::size_t column = cell(x, dots_wide()), row = dots_high() - 1 - cell(y, dots_high());
    if (!braille_) {
      dots_[index(column, row)] = 1;
      return;
    }
    // Unicode 10, block 2800: bits of a cell's dots by row, left and right.
    constexpr std::array<std::array<unsigned, 2>, 4> kBits{{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}};
    dots_[index(column / 2, row / 4)] |= kBits[row % 4][column % 2];
  }
  static std::string braille(unsigned bits) {
    constexpr unsigned kContinuation = 0x80, kSixBits = 6, kMask = 0x3f;
    return {static_cast<char>(0xe2), static_cast<char>(0xa0 + (bits >> kSixBits)),
            static_cast<char>(kContinuation + (bits & kMask))};
  }

  std::size_t width_, height_;
  bool braille_;
  std::vector<unsigned> dots_;
  std::vector<std::string> put_;
};

std::string padded_left(std::string text, std::size_t width) {
  const std::size_t has = display_width(text);
  return has < width ? std::string(width - has, ' ') + text : text;
}

class PlotText {
 public:
  PlotText(const Plot& plot, std::size_t width, bool unicode)
      : plot_(plot),
        width_(width),
        glyphs_(unicode ? kUnicode : kAscii),
        unicode_(unicode),
        scales_(plot_scales(plot, width / kColumnsOfTick, kTicksOfY)) {}

  std::string run() {
    if (!plot_.title.empty()) paragraph(plot_.title, 0);
    if (plot_.bars.empty()) {
      curves();
    } else {
      bars();
    }
    legend();
    return std::move(out_);
  }

 private:
  static constexpr std::size_t kColumnsOfTick = 10, kTicksOfY = 6, kIndent = 2;

  void paragraph(const std::string& text, std::size_t indent) {
    std::string folded = fold_text(text, width_ - indent, 0);
    for (std::size_t at = 0; at <= folded.size();) {
      const std::size_t end = std::min(folded.find('\n', at), folded.size());
      out_ += std::string(indent, ' ') + folded.substr(at, end - at) + '\n';
      at = end + 1;
    }
  }

  std::string_view point_glyph(std::size_t series) const { return glyphs_.points[series % glyphs_.points.size()]; }

  std::string_view bar_glyph(std::size_t kind) const {
    return glyphs_.bars[(plot_.bar_kinds.empty() ? 1 : kind) % glyphs_.bars.size()];
  }

  void curves() {
    std::size_t label = 0;
    for (const PlotTick& tick : scales_.y.ticks()) label = std::max(label, display_width(tick.label));
    const std::size_t left = kIndent + label + 1;  // the axis stands there
    const std::size_t wide = width_ - left - 2;
    const std::size_t high = std::clamp<std::size_t>(wide / 4, 8, 20);
    PlotCanvas canvas(wide, high, unicode_);
    draw(canvas, wide, high);
    std::vector<std::string> labels(high);
    for (const PlotTick& tick : scales_.y.ticks()) {
      const double at = scales_.y.place(tick.value);
      if (at >= 0 && at <= 1) labels[high - 1 - row_of(at, high)] = tick.label;
    }
    paragraph(scales_.y.title(), kIndent);
    for (std::size_t r = 0; r < high; ++r) {
      out_ += padded_left(labels[r], left - 1) + ' ';
      out_ += labels[r].empty() ? glyphs_.y_axis : glyphs_.y_tick;
      out_ += canvas.row(r) + '\n';
    }
    x_axis(left, wide);
  }

  static std::size_t row_of(double share, std::size_t rows) {
    return static_cast<std::size_t>(std::lround(share * static_cast<double>(rows - 1)));
  }

  void draw(PlotCanvas& canvas, std::size_t wide, std::size_t high) const {
    const auto x = [&](const PlotPoint& p) { return scales_.x.place(p.x); };
    const auto y = [&](const PlotPoint& p) { return scales_.y.place(p.y); };
    std::size_t letters = 0;
    for (const PlotMark& mark : plot_.marks) {  // first, so that limits do not hide points
      const double steps = static_cast<double>(mark.kind == PlotMarkKind::kAtX ? high : wide) - 1;
      for (double i = 0; mark.kind != PlotMarkKind::kPoint && i <= steps; ++i) {
        if (mark.kind == PlotMarkKind::kAtX) {
          canvas.put(x(mark.at), i / steps, glyphs_.limit_x);
        } else {
          canvas.put_below(i / steps, y(mark.at), glyphs_.limit_y);
        }
      }
    }
    for (std::size_t s = 0; s < plot_.series.size(); ++s) {
      const PlotSeries& series = plot_.series[s];
      for (std::size_t i = 0; i + 1 < series.points.size() && series.joined; ++i) {
        const PlotPoint &a = series.points[i], &b = series.points[i + 1];
        canvas.line(x(a), y(a), x(b), y(b));
        if (!series.marked && several_lines()) canvas.put((x(a) + x(b)) / 2, (y(a) + y(b)) / 2, point_glyph(s));
      }
      for (const PlotPoint& p : series.points) {
        if (series.marked) canvas.put(x(p), y(p), point_glyph(s));
      }
    }
    for (const PlotMark& mark : plot_.marks) {
      if (mark.kind == PlotMarkKind::kPoint) canvas.put(x(mark.at), y(mark.at), mark_letter(letters++));
    }
  }

  /// Lines without points, which only a glyph of their own tells apart.
  bool several_lines() const {
    return std::count_if(plot_.series.begin(), plot_.series.end(), [](const auto& s) { return !s.marked; }) > 1;
  }

  /// Labels that would touch the one before are left out.
  void x_axis(std::size_t left, std::size_t wide) {
    std::vector<bool> ticks(wide);
    std::string labels;
    std::size_t end = 0;
    for (const PlotTick& tick : scales_.x.ticks()) {
      const double place = scales_.x.place(tick.value);
      if (place < 0 || place > 1) continue;
      const std::size_t at = left + 1 + row_of(place, wide);
      const std::size_t size = display_width(tick.label);
      std::size_t begin = at - std::min(at, size / 2);
      begin = std::min(begin, width_ - std::min(width_, size));
      if (end > 0 && begin < end + 2) continue;
      ticks[at - left - 1] = true;
      labels += std::string(begin - end, ' ') + tick.label;
      end = begin + size;
    }
    out_ += std::string(left, ' ') + std::string(glyphs_.corner);
    for (const bool tick : ticks) out_ += tick ? glyphs_.x_tick : glyphs_.x_axis;
    out_ += '\n' + labels + '\n';
    const std::string& title = scales_.x.title();
    paragraph(title, left + 1 + display_width(title) <= width_ ? left + 1 : kIndent);
  }

  /// The end of a name tells more than its start: hw.network.node.latency.
  std::string shortened(const std::string& text, std::size_t room) const {
    if (display_width(text) <= room) return text;
    std::string_view rest = text;
    while (display_width(rest) + 1 > room && !rest.empty()) next_code_point(rest);
    return std::string(glyphs_.ellipsis) + std::string(rest);
  }

  void bars() {
    std::size_t label = 0;
    for (const PlotBar& bar : plot_.bars) label = std::max(label, display_width(bar.label));
    label = std::min(label, width_ / 2 - kIndent);
    const std::size_t left = kIndent + label + 1, wide = width_ - left - 2;
    for (const PlotBar& bar : plot_.bars) {
      PlotCanvas canvas(wide, 1, unicode_);
      const double zero = scales_.x.place(0), cells = static_cast<double>(wide - 1);
      for (const PlotSpan& span : bar.spans) {
        // The cell where it begins belongs to the one before it.
        const long from = std::lround(scales_.x.place(span.from) * cells);
        const long to = std::lround(scales_.x.place(span.to) * cells);
        for (long i = from; i != to;) {
          i += from < to ? 1 : -1;
          canvas.put(static_cast<double>(i) / cells, 0, bar_glyph(span.kind));
        }
      }
      if (zero > 0) canvas.put(zero, 0, glyphs_.y_axis);
      out_ +=
          padded_left(shortened(bar.label, label), left - 1) + ' ' + std::string(glyphs_.y_axis) + canvas.row(0) + '\n';
    }
    x_axis(left, wide);
  }

  void entry(std::string_view glyph, const std::string& text) {
    std::string folded = fold_text(text, width_ - kIndent - 3, 0);
    for (std::size_t at = 0; at <= folded.size();) {
      const std::size_t end = std::min(folded.find('\n', at), folded.size());
      out_ +=
          std::string(kIndent, ' ') + std::string(at == 0 ? glyph : " ") + "  " + folded.substr(at, end - at) + '\n';
      at = end + 1;
    }
  }

  void legend() {
    for (std::size_t k = 0; k < plot_.bar_kinds.size() && !plot_.bars.empty(); ++k) {
      entry(bar_glyph(k), plot_.bar_kinds[k]);
    }
    for (std::size_t s = 0; s < plot_.series.size(); ++s) {
      const bool dots = !plot_.series[s].marked && !several_lines();
      entry(dots ? (unicode_ ? "⠒" : ".") : point_glyph(s), plot_.series[s].name);
    }
    std::size_t letters = 0;
    for (const PlotMark& mark : plot_.marks) {
      switch (mark.kind) {
        case PlotMarkKind::kPoint: entry(mark_letter(letters++), mark.text); break;
        case PlotMarkKind::kAtX: entry(glyphs_.limit_x, mark.text); break;
        case PlotMarkKind::kAtY: entry(glyphs_.limit_y, mark.text); break;
      }
    }
  }

  const Plot& plot_;
  std::size_t width_;
  const PlotGlyphs& glyphs_;
  bool unicode_;
  PlotScales scales_;
  std::string out_;
};

}  // namespace

std::string render_plots(const Output& output, const TextOptions& options) {
  const std::size_t width =
      std::clamp(options.width == 0 ? kUsualColumns : options.width, kFewestColumns, kMostColumns);
  const std::string title = fold_text(printable_lines(output.title), width, 0);
  std::string out = options.colour ? "\x1b[1m" + title + "\x1b[0m\n" : title + "\n";
  bool drawn = false;
  for (const Plot& plot : output.plots) {
    if (!has_data(plot)) continue;
    out += '\n' + PlotText(printable_plot(plot), width, options.unicode).run();
    drawn = true;
  }
  if (!drawn) {
    out += "\nThere is nothing to draw.\n";
    for (const Line& line : output.summary) out += fold_text(printable_lines(line.text), width, 0) + '\n';
  }
  if (!output.complete) out += "\nInterrupted: what was not answered yet is missing.\n";
  return out;
}

}  // namespace scalecalc
