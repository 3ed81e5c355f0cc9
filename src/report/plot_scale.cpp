// Chooses ticks and units of an axis and maps values to places on it, for all writers of pictures.
#include "report/plot_scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "base/quoting.h"
#include "base/units.h"

namespace scalecalc {
namespace {

std::optional<UnitKind> unit_kind(Format format) {
  switch (format) {
    case Format::kCount:
    case Format::kUsd: return UnitKind::kCount;
    case Format::kBytes: return UnitKind::kBytes;
    case Format::kSeconds: return UnitKind::kSeconds;
    case Format::kFraction: return UnitKind::kFraction;
    case Format::kFlops:
    case Format::kFlopsPerSecond: return UnitKind::kFlopsPerSecond;
    case Format::kBytesPerSecond: return UnitKind::kBytesPerSecond;
    case Format::kWatts: return UnitKind::kWatts;
    case Format::kHertz: return UnitKind::kHertz;
    case Format::kText:
    case Format::kInteger:
    case Format::kNumber:
    case Format::kFlag: break;
  }
  return std::nullopt;
}

/// "1,000", "0.25", "1e+07".
std::string tick_label(double in_units) {
  constexpr double kGrouped = 1000, kMostGrouped = 1e7;
  const double whole = std::round(in_units);
  const bool is_whole = std::abs(in_units - whole) < 1e-9 * std::max(1.0, std::abs(in_units));
  if (is_whole && std::abs(whole) >= kGrouped && std::abs(whole) < kMostGrouped)
    return group_thousands(static_cast<long long>(whole));
  constexpr double kNoise = 1e-12;  // 0.1 x 3 - 0.3
  return fmt::format("{:.6g}", std::abs(in_units) < kNoise ? 0.0 : in_units);
}

/// The smallest of 1, 2, 5 times a power of ten that is not below `least`.
double round_step(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double times : {1.0, 2.0, 5.0}) {
    if (times * power >= least * (1 - 1e-9)) return times * power;
  }
  return 10 * power;
}

}  // namespace

bool has_data(const Plot& plot) {
  return !plot.bars.empty() || !plot.cells.empty() ||
         std::any_of(plot.series.begin(), plot.series.end(), [](const PlotSeries& s) { return !s.points.empty(); });
}

PlotUnit plot_unit(Format format, double size) {
  const auto kind = unit_kind(format);
  if (!kind) return {};
  // The digits and the unit that the rest of the program would print.
  constexpr int kDigits = 15, kKept = 12;
  const std::string text = format_quantity(size > 0 ? size : 1, *kind, kDigits);
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  std::string name = end;
  name.erase(0, std::min(name.find_first_not_of(' '), name.size()));
  if (format == Format::kFlops) name.erase(name.find("/s"));
  if (format == Format::kUsd) name = "$" + name;
  return {std::strtod(fmt::format("{:.{}g}", (size > 0 ? size : 1) / number, kKept).c_str(), nullptr), name};
}

PlotScale::PlotScale(const PlotAxis& axis, std::vector<double> values, std::size_t most) {
  std::erase_if(values, [](double v) { return !std::isfinite(v); });
  if (values.empty()) values = {0, 1};
  const auto [least, largest] = std::minmax_element(values.begin(), values.end());
  const double low = *least, high = *largest;
  log_ = axis.log && low > 0;
  unit_ = plot_unit(axis.format, log_ ? std::sqrt(low) * std::sqrt(high) : std::max(std::abs(low), std::abs(high)));
  title_ = unit_.name.empty() ? axis.title : fmt::format("{} ({})", axis.title, unit_.name);
  low_ = low / unit_.factor;
  high_ = high / unit_.factor;
  if (log_) {
    low_ = std::log10(low_);
    high_ = std::log10(high_);
    constexpr double kRoom = 0.04, kLeast = 0.1;  // of the axis; of a decade
    const double room = std::max(kRoom * (high_ - low_), kLeast);
    low_ -= room;
    high_ += room;
  } else if (low_ == high_) {  // a single value stands in the middle
    const double room = low_ == 0 ? 1 : std::abs(low_);
    low_ -= room;
    high_ += room;
  }
  most = std::max<std::size_t>(most, 2);
  if (!axis.ticks.empty()) {
    for (const double tick : axis.ticks) add_tick(tick / unit_.factor);
  } else if (log_) {
    log_ticks(most);
    if (ticks_.size() < 2) steps_inside(most);
  } else {
    linear_ticks(most);
  }
}

void PlotScale::add_tick(double in_units) { ticks_.push_back({in_units * unit_.factor, tick_label(in_units)}); }

/// The axis is widened to whole steps.
void PlotScale::linear_ticks(std::size_t most) {
  const double step = round_step((high_ - low_) / static_cast<double>(most - 1));
  constexpr double kOn = 1e-9;  // a value this near to a step is on it
  const double first = std::floor(low_ / step + kOn), last = std::ceil(high_ / step - kOn);
  for (double n = first; n <= last; ++n) add_tick(n * step);
  low_ = first * step;
  high_ = last * step;
}

/// Round steps on a log axis too short for decades.
void PlotScale::steps_inside(std::size_t most) {
  ticks_.clear();
  const double low = std::pow(10, low_), high = std::pow(10, high_);
  const double step = round_step((high - low) / static_cast<double>(most - 1));
  for (double n = std::ceil(low / step); n * step <= high; ++n) add_tick(n * step);
}

/// 1, 2, 5 of each decade where that is not too many, else decades, or every second, fourth, ... of them.
void PlotScale::log_ticks(std::size_t most) {
  const double first = std::floor(low_), last = std::ceil(high_);
  for (const std::vector<double>& digits : {std::vector<double>{1, 2, 5}, std::vector<double>{1}}) {
    for (double every = 1; every <= std::max(1.0, last - first); every *= 2) {
      ticks_.clear();
      for (double decade = first; decade <= last; decade += every) {
        for (const double digit : digits) {
          const double at = decade + std::log10(digit);
          if (at >= low_ && at <= high_) add_tick(digit * std::pow(10, decade));
        }
      }
      if (ticks_.size() <= most && !ticks_.empty()) return;
      if (digits.size() > 1) break;
    }
  }
}

double PlotScale::place(double value) const {
  const double in_units = value / unit_.factor;
  return ((log_ ? std::log10(in_units) : in_units) - low_) / (high_ - low_);
}

PlotScales plot_scales(const Plot& plot, std::size_t most_x, std::size_t most_y) {
  std::vector<double> x, y;
  for (const PlotSeries& series : plot.series) {
    for (const PlotPoint& point : series.points) {
      x.push_back(point.x);
      y.push_back(point.y);
    }
  }
  for (const PlotMark& mark : plot.marks) {
    if (mark.kind != PlotMarkKind::kAtY) x.push_back(mark.at.x);
    if (mark.kind != PlotMarkKind::kAtX) y.push_back(mark.at.y);
  }
  if (!plot.bars.empty()) x.push_back(0);
  for (const PlotBar& bar : plot.bars) {
    for (const PlotSpan& span : bar.spans) x.insert(x.end(), {span.from, span.to});
  }
  return {PlotScale(plot.x, std::move(x), most_x), PlotScale(plot.y, std::move(y), most_y)};
}

std::string mark_letter(std::size_t index) {
  constexpr std::size_t kLetters = 26;
  return std::string(1, static_cast<char>('A' + index % kLetters));
}

Plot printable_plot(Plot plot) {
  plot.title = printable_lines(plot.title);
  for (PlotAxis* axis : {&plot.x, &plot.y}) axis->title = printable_lines(axis->title);
  for (PlotSeries& series : plot.series) {
    series.name = printable_lines(series.name);
    for (PlotPoint& point : series.points) point.name = printable_lines(point.name);
  }
  for (PlotCell& cell : plot.cells) cell.panel = printable_lines(cell.panel);
  for (PlotMark& mark : plot.marks) mark.text = printable_lines(mark.text);
  for (PlotBar& bar : plot.bars) bar.label = printable_lines(bar.label);
  for (std::string& kind : plot.bar_kinds) kind = printable_lines(kind);
  return plot;
}

}  // namespace scalecalc
