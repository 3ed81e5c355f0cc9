#include <gtest/gtest.h>

#include <sstream>

#include "base/text.h"
#include "report/render.h"

#include "unit/train/sample_answer.h"
#include "unit/train/train_texts.h"

namespace scalecalc {
namespace {

Report small_report() {
  Report report{.title = "A <b> & \"c\""};
  report.summary = {{"all *well*", Role::kGood}};
  report.warnings = {"careful"};
  report.notes = {"noted"};
  report.plans.columns = {{.title = "#", .key = "rank", .format = Format::kInteger},
                          {.title = "a|b", .key = "layout"},
                          {.title = "time", .key = "time_s", .format = Format::kSeconds}};
  report.plans.rows = {{{1.0, std::string("x, \"y\""), 0.5}, Role::kGood}};
  report.sections = {{.title = "More", .lines = {{"first = a\n= b"}}}};
  return report;
}

TEST(RenderTable, PlainForAPipe) {
  EXPECT_EQ(render_table(small_report(), {}),
            "A <b> & \"c\"\n"
            "all *well*\n"
            "warning: careful\n"
            "\n"
            "#  a|b       time\n"
            "1  x, \"y\"  500 ms\n"
            "noted\n"
            "\n"
            "More\n"
            "  first = a\n"
            "    = b\n");
}

TEST(RenderTable, ColoursByRoleAndDrawsTheRule) {
  std::string rule;
  for (int i = 0; i < 17; ++i) rule += "\u2500";
  EXPECT_EQ(render_table(small_report(), {.width = 80, .unicode = true, .colour = true}),
            "\x1b[1mA <b> & \"c\"\x1b[0m\n"
            "\x1b[32mall *well*\x1b[0m\n"
            "\x1b[33mwarning: careful\x1b[0m\n"
            "\n"
            "\x1b[1m#  a|b       time\x1b[0m\n"
            "\x1b[2m" +
                rule +
                "\x1b[0m\n"
                "\x1b[32m1  x, \"y\"  500 ms\x1b[0m\n"
                "\x1b[2mnoted\x1b[0m\n"
                "\n"
                "\x1b[1mMore\x1b[0m\n"
                "  first = a\n"
                "    = b\n");
}

TEST(RenderTable, FitsEveryWidthFromSixty) {
  TrainAnswer answer = sample_answer();
  answer.question.explain = true;
  answer.question.plan = 1;
  answer.explanation = {{"Long", {{"x", std::string(300, 'a') + " + b", "1 + 2", 3, Dim{}, "book"}}, {}}};
  for (const TrainAnswer& each : {answer, sample_miss()}) {
    for (std::size_t width = kNarrowest; width < 140; ++width) {
      std::istringstream lines(render_table(train_report(each), {.width = width, .unicode = true}));
      for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("  --fix ")) continue;  // a command is one line, to be copied whole
        EXPECT_LE(display_width(line), width) << line;
      }
    }
  }
}

TEST(RenderTable, SaysWhatItLeavesOut) {
  const std::string text = render_table(train_report(sample_answer()), {.width = 60});
  EXPECT_NE(text.find("(not shown at this width: "), std::string::npos);
  EXPECT_EQ(render_table(train_report(sample_answer()), {}).find("not shown"), std::string::npos);
}

TEST(RenderTable, TreatsNarrowerTerminalsAsSixty) {
  EXPECT_EQ(render_table(train_report(sample_answer()), {.width = 10}),
            render_table(train_report(sample_answer()), {.width = 60}));
}

TEST(RenderCsv, QuotesAndGivesBaseUnits) {
  EXPECT_EQ(render_csv(small_report().plans), "rank,layout,time_s\n1,\"x, \"\"y\"\"\",0.5\n");
  Table empty = small_report().plans;
  empty.rows.clear();
  EXPECT_EQ(render_csv(empty), "rank,layout,time_s\n");
}

TEST(RenderCsv, HasUnitsInTheHeaderWords) {
  const std::string text = render_csv(csv_records(train_output(sample_answer(), true)));
  EXPECT_EQ(
      text.substr(0, text.find('\n')),
      "rank,chips,slice,dp,fsdp,tp,sp,cp,pp,vpp,split,ep,etp,ep_overlap,zero,remat,cp_comm,offload,"
      "schedule,micro_batch_seqs,grad_accum,loss,batch_seqs,batch_tokens,step_time_s,step_time_low_s,step_time_"
      "high_s,"
      "mfu,hfu,tokens_per_s,"
      "tokens_per_s_per_chip,tflops_per_chip,bound_by,time_s_compute,time_s_hbm,time_s_tp_exposed,time_s_fsdp_exposed,"
      "time_s_dp_exposed,time_s_cp_exposed,time_s_ep_exposed,time_s_pp_exposed,time_s_offload_exposed,time_s_bubble,"
      "time_s_optimizer,time_s_overhead,memory_bytes,capacity_bytes,memory_fraction,"
      "memory_low_bytes,memory_high_bytes,memory_verdict,run_tokens,run_steps,"
      "run_time_s,run_chip_hours,run_cost_usd,run_energy_j,run_ideal_time_s,run_goodput,run_effective_mfu,"
      "run_interruptions,run_checkpoint_interval_s,run_power_w,run_energy_j_per_token");
}

TEST(RenderMarkdown, EscapesMarkup) {
  EXPECT_EQ(render_markdown(small_report()),
            "# A \\<b> & \"c\"\n"
            "\n"
            "all \\*well\\*\n"
            "\n"
            "**Warning:** careful\n"
            "\n"
            "| # | a\\|b | time |\n"
            "|---:|---|---:|\n"
            "| 1 | x, \"y\" | 500 ms |\n"
            "\n"
            "noted\n"
            "\n"
            "## More\n"
            "\n"
            "- first = a = b\n");
}

/// A line to copy is one line, whatever the width.
TEST(Renderers, NoneBreaksACommand) {
  const std::string command = "scalecalc train 'my model' --chips 64 --fix " + std::string(200, 'a');
  Report report = small_report();
  report.sections[0].lines = {{"before"}, {command, Role::kCommand}};
  for (const std::size_t width : {0UL, 60UL, 80UL, 120UL}) {
    EXPECT_NE(render_table(report, {.width = width}).find("  " + command + "\n"), std::string::npos) << width;
  }
  EXPECT_TRUE(render_markdown(report).ends_with("- before\n\n```sh\n" + command + "\n```\n"))
      << render_markdown(report);
}

TEST(Renderers, NothingFromAFileReachesATerminalOrASpreadsheetAsACommand) {
  Report report = small_report();
  report.title = report.warnings[0] = report.notes[0] = "a\x1b]0;b\x07";
  report.summary[0].text = report.sections[0].title = report.sections[0].lines[0].text = "a\x1b[2Jb\u009b";
  report.plans.columns[1].title = "a\x1b";
  report.plans.rows[0].cells[1] = std::string("=1+1\x1b\r");
  for (const std::string& text : {render_table(report, {}), render_markdown(report), render_csv(report.plans)}) {
    EXPECT_EQ(text.find_first_of("\x1b\x07\r"), std::string::npos) << text;
    EXPECT_EQ(text.find("\u009b"), std::string::npos) << text;
  }
}

TEST(RenderCsv, NeutralisesFormulas) {
  EXPECT_EQ(csv_field("=1+1"), "'=1+1");
  EXPECT_EQ(csv_field("@SUM(A1)"), "'@SUM(A1)");
  EXPECT_EQ(csv_field("+cmd|' /C calc'!A0"), "'+cmd|' /C calc'!A0");
  EXPECT_EQ(csv_field("-m.yaml"), "'-m.yaml");
  EXPECT_EQ(csv_field("-2+3,1"), "\"'-2+3,1\"");
  EXPECT_EQ(csv_field("-12.5e-3"), "-12.5e-3") << "a number is one";
  EXPECT_EQ(csv_field("a\tb\rc"), "a\\x09b\\x0dc");
  EXPECT_EQ(csv_field("two\nlines"), "\"two\nlines\"");
}

}  // namespace
}  // namespace scalecalc
