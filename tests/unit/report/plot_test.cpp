#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/text.h"
#include "report/plot_scale.h"
#include "report/plot_svg.h"
#include "report/plot_text.h"

namespace scalecalc {
namespace {

std::vector<std::string> tick_labels(const PlotScale& scale) {
  std::vector<std::string> out;
  for (const PlotTick& tick : scale.ticks()) out.push_back(tick.label);
  return out;
}

std::vector<std::string> drawn_lines(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

Output picture(Plot plot) {
  Output out{.title = "Asked"};
  out.plots = {std::move(plot)};
  return out;
}

Plot diagonal() {
  return {.x = {.title = "chips", .format = Format::kInteger},
          .y = {.title = "speed"},
          .series = {{.name = "plan", .points = {{0, 0}, {10, 10}}}}};
}

TEST(PlotUnit, AsTheProgramPrintsSuchAFigure) {
  const auto is = [](Format format, double size, double factor, const char* name) {
    const PlotUnit unit = plot_unit(format, size);
    EXPECT_DOUBLE_EQ(unit.factor, factor) << name;
    EXPECT_EQ(unit.name, name);
  };
  is(Format::kSeconds, 0.02, 1e-3, "ms");
  is(Format::kSeconds, 7200, 3600, "h");
  is(Format::kFlopsPerSecond, 3e13, 1e12, "TFLOP/s");
  is(Format::kFlops, 3e13, 1e12, "TFLOP");
  is(Format::kBytes, 5e9, 1e9, "GB");
  is(Format::kUsd, 2.5e7, 1e6, "$M");
  is(Format::kUsd, 3, 1, "$");
  is(Format::kFraction, 0.3, 0.01, "%");
  is(Format::kInteger, 8960, 1, "");
}

TEST(PlotScale, RoundStepsThatHoldAllValues) {
  // 97 / 5 = 19.4, and the next of 1, 2, 5 is 20.
  const PlotScale scale({.title = "speed"}, {0, 97}, 6);
  EXPECT_EQ(tick_labels(scale), (std::vector<std::string>{"0", "20", "40", "60", "80", "100"}));
  EXPECT_DOUBLE_EQ(scale.place(0), 0);
  EXPECT_DOUBLE_EQ(scale.place(50), 0.5);
}

TEST(PlotScale, InTheUnitOfTheAxis) {
  const PlotScale scale({.title = "time", .format = Format::kSeconds}, {0, 0.04}, 5);
  EXPECT_EQ(scale.title(), "time (ms)");
  EXPECT_EQ(tick_labels(scale), (std::vector<std::string>{"0", "10", "20", "30", "40"}));
  EXPECT_DOUBLE_EQ(scale.place(0.02), 0.5);
}

TEST(PlotScale, DecadesOfALogAxis) {
  const PlotScale scale({.title = "chips", .format = Format::kInteger, .log = true}, {1, 1000}, 6);
  EXPECT_TRUE(scale.log());
  EXPECT_EQ(tick_labels(scale), (std::vector<std::string>{"1", "10", "100", "1,000"}));
  EXPECT_NEAR(scale.place(std::sqrt(1000.0)), 0.5, 1e-12);
  EXPECT_GT(scale.place(1), 0);  // points do not lie on the frame
  EXPECT_LT(scale.place(1000), 1);
}

TEST(PlotScale, OneTwoFiveWhereThereIsRoom) {
  const PlotScale scale({.title = "n", .log = true}, {1, 100}, 7);
  EXPECT_EQ(tick_labels(scale), (std::vector<std::string>{"1", "2", "5", "10", "20", "50", "100"}));
}

TEST(PlotScale, NoLogOfZero) { EXPECT_FALSE(PlotScale({.title = "n", .log = true}, {0, 100}, 5).log()); }

TEST(PlotScale, ASingleValueStandsInside) {
  for (const double value : {-3.0, 0.0, 7.0, 1e12}) {
    for (const bool log : {false, true}) {
      const PlotScale scale({.title = "n", .log = log}, {value}, 5);
      EXPECT_GT(scale.place(value), 0) << value;
      EXPECT_LT(scale.place(value), 1) << value;
      EXPECT_GE(scale.ticks().size(), 1U) << value;
    }
  }
}

TEST(PlotText, ADiagonalFromCornerToCorner) {
  const std::vector<std::string> lines = drawn_lines(render_plots(picture(diagonal()), {.width = 30}));
  // Asked, blank, title of y, eight rows, axis, labels, title of x, legend. The labels of y are two wide, so the axis
  // stands in column 5 and 23 columns are left.
  ASSERT_EQ(lines.size(), 15U);
  EXPECT_EQ(lines[0], "Asked");
  EXPECT_EQ(lines[2], "  speed");
  EXPECT_EQ(lines[3].substr(0, 6), "  10 +");
  EXPECT_EQ(lines[3].find('*'), 28U);
  EXPECT_EQ(lines[3].size(), 29U);
  EXPECT_EQ(lines[10].substr(0, 7), "   0 +*");
  EXPECT_EQ(lines[11], "     ++----------+----------+");
  EXPECT_EQ(lines[12], "      0          5         10");
  EXPECT_EQ(lines[13], "      chips");
  EXPECT_EQ(lines[14], "  *  plan");
  for (std::size_t row = 4; row < 10; ++row) EXPECT_NE(lines[row].find('.'), std::string::npos) << row;
}

TEST(PlotText, BrailleOnlyWhereTheStreamShowsIt) {
  const auto ascii = [](const std::string& text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 128; });
  };
  EXPECT_TRUE(ascii(render_plots(picture(diagonal()), {.width = 60})));
  EXPECT_NE(render_plots(picture(diagonal()), {.width = 60, .unicode = true}).find("●"), std::string::npos);
}

TEST(PlotText, MarksHaveLettersAndLimitsALine) {
  Plot plot = diagonal();
  plot.marks = {{.at = {5, 5}, .text = "best"},
                {PlotMarkKind::kAtX, {2, 0}, "limit of x"},
                {PlotMarkKind::kAtY, {0, 8}, "limit of y"}};
  const std::string text = render_plots(picture(plot), {.width = 60});
  EXPECT_NE(text.find("  A  best\n"), std::string::npos);
  EXPECT_NE(text.find("  :  limit of x\n"), std::string::npos);
  EXPECT_NE(text.find("  =  limit of y\n"), std::string::npos);
  EXPECT_GE(std::count(text.begin(), text.end(), ':'), 8);  // down the whole plot
}

TEST(PlotText, BarsGoBothWaysFromZero) {
  Plot plot{
      .x = {.title = "change", .format = Format::kFraction},
      .bars = {{"wide", {{0, -0.4, 0}, {0, 0.4, 1}}}, {"narrow", {{0, -0.2, 0}, {0, 0.2, 1}}}, {"none", {{0, 0}}}},
      .bar_kinds = {"less", "more"}};
  const std::vector<std::string> lines = drawn_lines(render_plots(picture(plot), {.width = 50}));
  const auto count = [&](std::size_t line, char c) { return std::count(lines[line].begin(), lines[line].end(), c); };
  ASSERT_GE(lines.size(), 5U);
  EXPECT_EQ(lines[2].find("  wide |"), 2U);
  EXPECT_NEAR(static_cast<double>(count(2, '#')), 2.0 * static_cast<double>(count(3, '#')), 1);
  EXPECT_EQ(count(2, '#'), count(2, '-'));
  EXPECT_EQ(count(4, '#') + count(4, '-'), 0);
}

TEST(PlotText, PartsFollowEachOtherAlongTheSameAxis) {
  const Plot plot{.x = {.title = "time", .format = Format::kSeconds},
                  .bars = {{"first", {{0, 4, 0}}}, {"then", {{4, 10, 0}}}, {"both", {{0, 4, 0}, {4, 10, 1}}}}};
  const std::vector<std::string> lines = drawn_lines(render_plots(picture(plot), {.width = 50}));
  ASSERT_GE(lines.size(), 5U);
  // No kind has a name, so all look alike and there is no legend: axis, labels and its title are the last lines.
  EXPECT_EQ(lines.size(), 8U);
  const std::size_t from = lines[2].find('#'), to = lines[2].rfind('#');
  EXPECT_EQ(from, lines[2].find('|') + 2);  // the bar begins beside zero
  EXPECT_EQ(lines[3].find('#'), to + 1);
  EXPECT_EQ(lines[4].find('#'), from);
  EXPECT_EQ(lines[4].rfind('#'), lines[3].rfind('#'));
  EXPECT_NEAR(static_cast<double>(to - from + 1) / static_cast<double>(lines[4].rfind('#') - from + 1), 0.4, 0.03);
}

TEST(PlotText, AnAnswerWithoutACurveSaysSo) {
  Output none{.title = "Asked"};
  none.summary = {{"nothing fits"}};
  EXPECT_EQ(render_plots(none, {}), "Asked\n\nThere is nothing to draw.\nnothing fits\n");
}

/// Any plot: values over many decades, names without a blank, many series and marks.
Plot random_plot(std::mt19937_64& random) {
  const auto whole = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  const auto value = [&] {
    const double size = std::pow(10, std::uniform_real_distribution<double>(-9, 18)(random));
    return whole(0, 4) == 0 ? -size : size;
  };
  const auto name = [&] {
    std::string out;
    for (int words = whole(1, 6); words > 0; --words)
      out += std::string(static_cast<std::size_t>(whole(1, 70)), 'n') + ' ';
    return out + "äöü";
  };
  const auto axis = [&] {
    return PlotAxis{.title = name(), .format = static_cast<Format>(whole(0, 12)), .log = whole(0, 1) == 1};
  };
  Plot out{.title = name(), .x = axis(), .y = axis()};
  for (int kinds = whole(0, 7); kinds > 0; --kinds) out.bar_kinds.push_back(name());
  for (int series = whole(0, 8); series > 0; --series) {
    out.series.push_back({.name = name(), .joined = whole(0, 1) == 1, .marked = whole(0, 1) == 1});
    for (int points = whole(0, 9); points > 0; --points) out.series.back().points.push_back({value(), value()});
  }
  for (int marks = whole(0, 4); marks > 0; --marks)
    out.marks.push_back({static_cast<PlotMarkKind>(whole(0, 2)), {value(), value()}, name()});
  if (whole(0, 3) == 0) {
    for (int bars = whole(1, 9); bars > 0; --bars) {
      out.bars.push_back({name(), {}});
      for (int spans = whole(0, 5); spans > 0; --spans)
        out.bars.back().spans.push_back({value(), value(), static_cast<std::size_t>(whole(0, 7))});
    }
  }
  return out;
}

TEST(PlotText, NoLineIsWiderThanItsColumns) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 400; ++round) {
    Output output{.title = "What " + std::string(120, 'w')};
    output.plots = {random_plot(random), random_plot(random)};
    const std::size_t asked = static_cast<std::size_t>(round) % 130;
    const std::size_t columns = asked == 0 ? 80 : std::clamp<std::size_t>(asked, 30, 100);
    for (const bool unicode : {false, true}) {
      for (const std::string& line : drawn_lines(render_plots(output, {.width = asked, .unicode = unicode}))) {
        ASSERT_LE(display_width(line), columns) << "round " << round << ": " << line;
      }
    }
  }
}

TEST(PlotSvg, TextsAreTextsAndEscaped) {
  Plot plot = diagonal();
  plot.series.front().name = "A <b> & \"c\"\x01";
  plot.marks = {{.at = {5, 5}, .text = "best"}};
  const std::string svg = render_svg(picture(plot));
  EXPECT_TRUE(svg.starts_with(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox="));
  EXPECT_NE(svg.find(">A &lt;b&gt; &amp; &quot;c&quot; </text>"), std::string::npos);
  EXPECT_NE(svg.find(">best</text>"), std::string::npos);
  EXPECT_NE(svg.find(">chips</text>"), std::string::npos);
  EXPECT_EQ(svg.find('\x01'), std::string::npos);
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
}

TEST(PlotSvg, SeriesDifferWithoutColour) {
  Plot plot = diagonal();
  plot.series.push_back({.name = "other", .points = {{0, 10}, {10, 0}}});
  const std::string svg = render_svg(picture(plot));
  EXPECT_NE(svg.find("<circle"), std::string::npos);
  EXPECT_NE(svg.find("<polygon"), std::string::npos);
  EXPECT_NE(svg.find("stroke-dasharray=\"8 4\""), std::string::npos);
}

}  // namespace
}  // namespace scalecalc
