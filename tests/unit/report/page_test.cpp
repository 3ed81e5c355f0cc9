#include "report/page.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/page_chart.h"

namespace scalecalc {
namespace {

constexpr const char* kEvil = "</script><script>x()</script><!-- & \" '";

Report evil_report() {
  Report out;
  out.title = kEvil;
  out.summary = {{kEvil, Role::kGood}};
  out.warnings = {kEvil};
  out.plans.columns = {{"#", "rank", Format::kInteger}, {kEvil, "what"}, {"time", "time_s", Format::kSeconds}};
  out.plans.rows = {{{1.0, std::string(kEvil), 0.5}, Role::kGood}};
  out.sections = {{.name = "more", .title = kEvil, .lines = {{"first = a\n= b"}, {kEvil, Role::kCommand}}}};
  return out;
}

std::size_t times(const std::string& text, std::string_view what) {
  std::size_t out = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size()) ++out;
  return out;
}

Plot curve() {
  return {.title = kEvil,
          .x = {.title = "chips", .format = Format::kInteger, .log = true},
          .y = {.title = "time", .format = Format::kSeconds},
          .series = {{.name = kEvil, .points = {{1, 0.002, kEvil}, {2, 0.001}}}}};
}

TEST(RenderPage, EveryTextIsEscapedAndThePolicyAllowsNothing) {
  const Report report = evil_report();
  const std::string page =
      render_page({.report = report, .plots = {curve()}, .question = kEvil, .made_by = "scalecalc 1"});
  EXPECT_TRUE(page.starts_with("<!DOCTYPE html>\n"));
  // Ours, and the libraries' and their data where they are built in; none from a name.
  EXPECT_EQ(times(page, "<script"), page_has_charts() ? 5U : 1U);
  EXPECT_EQ(times(page, "</script"), page_has_charts() ? 5U : 1U);
  EXPECT_EQ(page.find("x()</script><!--"), std::string::npos);
  EXPECT_NE(page.find("content=\"default-src 'none'; script-src 'sha256-"), std::string::npos);
  EXPECT_EQ(page.find("unsafe-eval"), std::string::npos);
  EXPECT_NE(page.find("<td class=\"n\" data-v=\"0.5\">500 ms</td>"), std::string::npos);
  EXPECT_NE(page.find("<li>first = a<br>= b</li>"), std::string::npos);
  EXPECT_NE(page.find("<li class=\"command\"><pre tabindex=\"0\"><code>&lt;/script&gt;"), std::string::npos);
  const std::string shown = page.substr(0, page.find("<footer>"));  // what follows are scripts
  for (const char* outside : {"http:", "https:", "<link", "<img", "src="})
    EXPECT_EQ(times(shown, outside), 0U) << outside;
  EXPECT_EQ(page.find("built without charts") == std::string::npos, page_has_charts());
}

/// What a row is, then the answers, then what tells layouts apart; the text keeps its own order.
TEST(RenderPage, TheReadersColumnsComeBeforeTheLayouts) {
  Report report;
  report.plans.columns = {{"#", "rank", Format::kInteger},
                          {"layout", "layout"},
                          {"bound by", "bound_by"},
                          {"cost", "run_cost_usd", Format::kUsd},
                          {"run", "run_time_s", Format::kSeconds}};
  report.plans.rows = {{{1.0, std::string("tp 2"), std::string("compute"), 5.0, 60.0}}};
  const std::string page = render_page({.report = report});
  std::size_t at = page.find("<table class=\"ranked cards\">");
  ASSERT_NE(at, std::string::npos);
  for (const char* heading : {">#<", ">run<", ">cost<", ">bound by<", ">layout<"}) {
    const std::size_t next = page.find(heading, at);
    ASSERT_NE(next, std::string::npos) << heading;
    EXPECT_GT(next, at) << heading;
    at = next;
  }
  EXPECT_NE(page.find("<td class=\"n\" data-v=\"60\" data-l=\"run\">"), std::string::npos) << "a card names its cells";
}

TEST(ChartSpec, BarsEndWhereTheirSpansDoAndOverlappingOnesAreThin) {
  const Plot plot{.x = {.title = "time", .format = Format::kSeconds},
                  .bars = {{"a", {{0, 2, 0}, {2, 3, 1}}}, {"a", {{0, 4, 0}, {1, 5, 1}}}},
                  .bar_kinds = {"work", "wait"}};
  const Json values = chart_spec(plot)["data"]["values"];
  ASSERT_EQ(values.size(), 4U);
  EXPECT_EQ(values[1]["x"], 2);
  EXPECT_EQ(values[1]["x2"], 3);
  EXPECT_EQ(values[1]["t"], "1.00 s");
  EXPECT_EQ(values[1]["v"], false);
  EXPECT_EQ(values[3]["v"], true);
  EXPECT_NE(values[0]["b"], values[2]["b"]) << "two bars of one label are two";
  EXPECT_EQ(chart_table(plot).rows.size(), 4U);
}

TEST(ChartSpec, CurvesStandInTheUnitOfTheirAxis) {
  const Json spec = chart_spec(curve());
  EXPECT_EQ(spec["data"]["values"][0]["y"], 2) << "2 ms on an axis of ms";
  EXPECT_EQ(spec["data"]["values"][0]["yt"], "2.00 ms");
  EXPECT_EQ(spec["data"]["values"][1]["n"], "");
}

TEST(ChartSpec, LimitsBeginWhereTheyCutNothing) {
  Plot plot = curve();
  for (const PlotLimits limits : {PlotLimits::kAtLeast, PlotLimits::kAtMost}) {
    plot.limits = limits;
    const Json params = chart_spec(plot)["params"];
    EXPECT_EQ(params[0]["value"], limits == PlotLimits::kAtLeast ? 1 : 2);
    EXPECT_EQ(params[1]["value"], limits == PlotLimits::kAtLeast ? 1 : 2);
  }
}

}  // namespace
}  // namespace scalecalc
