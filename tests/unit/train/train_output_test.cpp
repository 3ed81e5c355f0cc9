#include "train/train_words.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "train/train_output.h"
#include "unit/train/sample_answer.h"
#include "unit/train/train_texts.h"

namespace scalecalc {
namespace {

const Section* find_section(const Report& report, const std::string& title_start) {
  for (const Section& section : report.sections) {
    if (section.title.starts_with(title_start)) return &section;
  }
  return nullptr;
}

std::vector<std::string> section_lines(const Section& section) {
  std::vector<std::string> out;
  for (const Line& line : section.lines) out.push_back(line.text);
  return out;
}

TEST(LayoutWords, NameDegreesAboveOne) {
  Layout layout = sample_plan().plan.layout;
  EXPECT_EQ(degrees_text(layout), "fsdp 8, tp 4+sp");
  EXPECT_EQ(recipe_text(layout), "mb 2 x 4, remat selective, zero 3");
  layout.ep = 8;
  layout.pp = 4;
  layout.vpp = 2;
  layout.schedule = Schedule::kInterleaved;
  EXPECT_EQ(degrees_text(layout), "fsdp 8, tp 4+sp, pp 4, vpp 2, ep 8, etp 1");
  EXPECT_EQ(recipe_text(layout), "mb 2 x 4, remat selective, zero 3, interleaved");
  EXPECT_EQ(fix_text(layout),
            "--fix dp=1,fsdp=8,tp=4,sp=1,cp=1,pp=4,vpp=2,ep=8,etp=1,ep_overlap=0,zero=3,mb=2,ga=4,split=default,"
            "remat=selective,offload=none,schedule=interleaved,loss=whole");
  EXPECT_EQ(degrees_text(Layout{}), "unsharded");
}

TEST(TrainReport, TitleSaysTheQuestion) {
  const Report report = train_report(sample_answer());
  EXPECT_EQ(report.title,
            "Training Tiny <1B> on 36 x Chip (3x3x4): batch 524k tokens, sequences of 8,192, bf16, adam; fastest "
            "first");
  ASSERT_EQ(report.summary.size(), 3U);  // the headline: which plan, and how long, how much, what binds; the software
  EXPECT_NE(report.summary[0].text.find("tp 4+sp"), std::string::npos) << report.summary[0].text;
  EXPECT_NE(report.summary[1].text.find("bound by"), std::string::npos) << report.summary[1].text;
  EXPECT_EQ(report.summary[2].text, "software: stack 1.2 (default; --stack NAME chooses another)");
  EXPECT_TRUE(report.warnings.empty());
  EXPECT_EQ(report.notes.front(), "The best 2 are shown; --top N shows more.");
}

TEST(TrainReport, MarksPlansNearTheBestAndTheRecommendedOne) {
  TrainAnswer answer = sample_answer();
  EXPECT_EQ(train_report(answer).plans.rows[0].cells[0], Cell("1*"));
  EXPECT_EQ(train_report(answer).plans.rows[1].cells[0], Cell("2"));
  answer.plans[1].plan.step_s = answer.plans[0].plan.step_s * 1.009;
  answer.plans[1].plan.batch_seqs = answer.plans[0].plan.batch_seqs;
  answer.plans[1].plan.slice.chips = answer.plans[0].plan.slice.chips;
  EXPECT_EQ(train_report(answer).plans.rows[1].cells[0], Cell("2="));
  answer.question.objective = Objective::kMemory;
  EXPECT_EQ(train_report(answer).plans.rows[1].cells[0], Cell("2"));
}

TEST(TrainReport, EveryRowHasEveryColumn) {
  const Report report = train_report(sample_answer());
  ASSERT_EQ(report.plans.rows.size(), 2U);
  for (const Table& table : {report.plans, csv_records(train_output(sample_answer(), true))}) {
    for (const Row& row : table.rows) EXPECT_EQ(row.cells.size(), table.columns.size());
  }
  EXPECT_EQ(report.plans.rows[0].role, Role::kGood);
}

TEST(TrainReport, TakesTheStepApart) {
  const Report report = train_report(sample_answer());
  const Section* section = find_section(report, "Where the step goes");
  ASSERT_NE(section, nullptr);
  EXPECT_EQ(section->title, "Where the step goes (2 s, between 1.75 s and 2.5 s)");
  double sum = 0;
  double shares = 0;
  for (std::size_t i = 0; i + 1 < section->table.rows.size(); ++i) {
    sum += std::get<double>(section->table.rows[i].cells[1]);
    shares += std::get<double>(section->table.rows[i].cells[2]);
  }
  EXPECT_DOUBLE_EQ(sum, std::get<double>(section->table.rows.back().cells[1]));
  EXPECT_DOUBLE_EQ(shares, 1.0);
  EXPECT_EQ(section->table.rows.size(), 4U) << "causes that cost nothing are not listed";
}

TEST(TrainReport, SaysWhatStaysIdleAndWhatItCosts) {
  const Report report = train_report(sample_answer());
  const Section* plan = find_section(report, "In detail: plan 1, recommended");
  ASSERT_NE(plan, nullptr);
  EXPECT_EQ(section_lines(*plan),
            (std::vector<std::string>{
                "fsdp 8, tp 4+sp; mb 2 x 4, remat selective, zero 3",
                "each step runs 64 sequences of 8,192, 524k tokens: as asked", "4 of 36 chips stay idle",
                "--fix dp=1,fsdp=8,tp=4,sp=1,cp=1,pp=1,vpp=1,ep=1,etp=1,zero=3,mb=2,ga=4,remat=selective,offload=none,"
                "loss=whole"}));
  EXPECT_EQ(plan->lines.back().role, Role::kCommand);
  const Section* run = find_section(report, "The whole run");
  ASSERT_NE(run, nullptr);
  EXPECT_EQ(section_lines(*run),
            (std::vector<std::string>{"1T tokens in 1.91M steps: 44.2 d, 33.9k chip-hours, $136k at $4.00/h a chip",
                                      "262k tokens/s, 8.19k tokens/s per chip"}));
}

TEST(TrainReport, NamesTheFlagOfEachAssumption) {
  const Report report = train_report(sample_answer());
  const Section* assumed = find_section(report, "Assumed");
  ASSERT_NE(assumed, nullptr);
  EXPECT_EQ(section_lines(*assumed), (std::vector<std::string>{"sequences of 8,192 tokens [as trained] (change: --seq)",
                                                               "warning: no price is known"}));
  EXPECT_EQ(assumed->lines[1].role, Role::kWarning);
}

TEST(TrainReport, SaysWhatIsShortWhenNothingFits) {
  const Report report = train_report(sample_miss());
  ASSERT_EQ(report.summary.size(), 4U);
  EXPECT_EQ(report.summary[0].text,
            "Nothing fits. Chip memory is short: the nearest layout needs 125 GB of the 100 GB on each chip, 25 GB too "
            "many.");
  EXPECT_EQ(report.summary[1].text, "Nearest layout: fsdp 8, tp 4+sp; mb 2 x 4, remat selective, zero 3");
  EXPECT_EQ(report.summary[2].text, "What would fit: --chips 64");
  const Section* memory = find_section(report, "Memory of the nearest layout");
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(std::get<std::string>(memory->table.rows.back().cells[0]), "short");
  EXPECT_DOUBLE_EQ(std::get<double>(memory->table.rows.back().cells[1]), 25e9);
}

TEST(TrainReport, SaysWhenNoLayoutExists) {
  TrainAnswer answer = sample_miss();
  answer.nearest_miss.reset();
  answer.would_fit.clear();
  const Report report = train_report(answer);
  ASSERT_FALSE(report.summary.empty());
  EXPECT_EQ(report.summary[0].text, "No layout is possible; the reasons are counted below.");
}

TEST(TrainReport, MarksAnInterruptedSearch) {
  const Report report = train_report(sample_answer(), false);
  EXPECT_EQ(report.warnings,
            std::vector<std::string>{"interrupted: the search is incomplete, better layouts may be missing"});
}

TEST(TrainReport, PrintsExplanationsAsFormulaNumbersValueSource) {
  TrainAnswer answer = sample_answer();
  answer.question.explain = true;
  answer.question.plan = 1;
  answer.explanation = {{"Memory",
                         {{"weights", "params * 2 / fsdp", "80e9 * 2 / 8", 20e9, kByteDim, "book ch. 4"},
                          {"ratio", "a / b", "1 / 3", 1.0 / 3, Dim{}, ""}},
                         {"a remark"}}};
  const Report report = train_report(answer);
  const Section* explained = find_section(report, "Explained, plan 1: Memory");
  ASSERT_NE(explained, nullptr);
  EXPECT_EQ(section_lines(*explained),
            (std::vector<std::string>{"weights = params * 2 / fsdp\n= 80e9 * 2 / 8\n= 20 GB [book ch. 4]",
                                      "ratio = a / b\n= 1 / 3\n= 0.3333", "a remark"}));
}

TEST(RejectKeys, AreDistinct) {
  std::vector<std::string_view> keys;
  for (std::size_t i = 0; i < kRejectCount; ++i) {
    const std::string_view key = key_of(static_cast<Reject>(i));
    EXPECT_FALSE(key.empty());
    EXPECT_EQ(std::count(keys.begin(), keys.end(), key), 0);
    keys.push_back(key);
  }
  EXPECT_EQ(key_of(Reject::kMemory), "memory");
  EXPECT_EQ(key_of(Reject::kBatchSmall), "batch_small");
}

TEST(TrainPlots, StepsHaveTheirBandsAndPartsAddUp) {
  const std::vector<Plot> plots = train_plots(sample_answer());
  ASSERT_EQ(plots.size(), 3U);
  ASSERT_EQ(plots[0].bars.size(), 2U);
  EXPECT_EQ(plots[0].bars[0].label, "1: 2.00 s");
  EXPECT_DOUBLE_EQ(plots[0].bars[0].spans.at(0).to, 2);
  EXPECT_DOUBLE_EQ(plots[0].bars[0].spans.at(1).from, 1.75);
  EXPECT_DOUBLE_EQ(plots[0].bars[0].spans.at(1).to, 2.5);
  EXPECT_DOUBLE_EQ(plots[1].bars.back().spans.at(0).to, 2);  // 1.5 + 0.25 + 0.25
  EXPECT_EQ(plots[2].bars.back().label, "free: 49.0 GB");    // 100 - 20 - 30 - 1
  EXPECT_DOUBLE_EQ(plots[2].bars.back().spans.at(0).to, 100e9);
  EXPECT_TRUE(train_plots(sample_miss()).empty());
}

}  // namespace
}  // namespace scalecalc
