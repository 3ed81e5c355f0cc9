#include "report/output.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/scalar.h"
#include "report/render.h"

namespace scalecalc {
namespace {

using nlohmann::ordered_json;

Output sample_output() {
  const Reader<Traced> reader;
  const auto flops = read(reader, Flops(2e12), "flops", "shape");
  const auto rate = read(reader, FlopsPerSecond(1e12), "C", "data sheet");
  const Record point{{figure("flops", "FLOPs", Format::kFlops, flops),
                      figure("time_s", "time", Format::kSeconds, flops / rate, "book ch. 1"),
                      figure("rates.inner", "", Format::kNumber, Cell(3.5)),
                      figure("fits", "fits", Format::kFlag, Cell(1.0))}};
  Output out{.command = "sample", .title = "A sample"};
  out.query.figures.push_back(figure("shape", "shape", Format::kText, Cell(std::string("4x4"))));
  out.blocks.push_back({"points", "", true, {point}});
  out.blocks.push_back({"", "Alone", false, {Record{{list_figure("names", "names", {std::string("a"), 2.0})}}}});
  out.assumptions.push_back({"a thing", "--thing", "a source", false});
  return out;
}

TEST(Output, JsonNestsKeysAndKeepsTheirOrder) {
  const ordered_json json = ordered_json::parse(output_json(sample_output(), "1.0", false));
  EXPECT_EQ(json.begin().key(), "schema");
  EXPECT_EQ(json["schema"], "scalecalc/sample/1");
  EXPECT_EQ(json["query"]["shape"], "4x4");
  EXPECT_EQ(json["points"][0]["time_s"], 2);
  EXPECT_EQ(json["points"][0]["rates"]["inner"], 3.5);
  EXPECT_EQ(json["points"][0]["fits"], true);
  EXPECT_EQ(json["names"], ordered_json::parse(R"(["a", 2])"));
  EXPECT_EQ(json["assumptions"][0]["flag"], "--thing");
  EXPECT_FALSE(json.contains("explain"));
}

TEST(Output, ExplainTellsTheFormulaUnderTheFiguresLabel) {
  const ordered_json json = ordered_json::parse(output_json(sample_output(), "1.0", true));
  const auto& step = json["explain"][0]["steps"][0];
  EXPECT_EQ(step["name"], "time");
  EXPECT_EQ(step["formula"], "flops / C");
  EXPECT_EQ(step["unit"], "s");
  EXPECT_EQ(step["value"], 2);
  const std::string text = render_table(output_report(sample_output(), true), {});
  EXPECT_NE(text.find("time = flops / C"), std::string::npos) << text;
  EXPECT_EQ(render_table(output_report(sample_output(), false), {}).find("flops / C"), std::string::npos);
}

TEST(Output, ABlockForPeopleIsInTablesOnly) {
  Output output = sample_output();
  Block view{"", "In detail", true, {Record{{figure("more", "more", Format::kNumber, Cell(7.0))}}}, true};
  output.blocks.insert(output.blocks.begin(), view);
  EXPECT_NE(render_table(output_report(output, false), {}).find("In detail"), std::string::npos);
  EXPECT_FALSE(ordered_json::parse(output_json(output, "1.0", true)).contains("more"));
  EXPECT_EQ(record_block(output)->key, "points");
  output.blocks = {view};
  EXPECT_EQ(record_block(output), nullptr);
}

TEST(Output, TableShowsLabelledFiguresOnly) {
  const std::string text = render_table(output_report(sample_output(), false), {});
  EXPECT_NE(text.find("FLOPs    time  fits"), std::string::npos) << text;
  EXPECT_NE(text.find("2.00 TFLOP"), std::string::npos) << text;
  EXPECT_NE(text.find("yes"), std::string::npos) << text;
  EXPECT_NE(text.find("names  a, 2"), std::string::npos) << text;
  EXPECT_NE(text.find("a thing [a source] (change: --thing)"), std::string::npos) << text;
}

TEST(Output, CsvHasEveryFigureByItsKey) {
  EXPECT_EQ(render_csv(csv_records(sample_output())), "flops,time_s,rates_inner,fits\n2000000000000,2,3.5,1\n");
}

TEST(Output, JsonLinesCarryTheQuery) {
  const ordered_json line = ordered_json::parse(output_jsonl(sample_output(), "1.0"));
  EXPECT_EQ(line["query"]["shape"], "4x4");
  EXPECT_EQ(line["time_s"], 2);
}

TEST(Output, ARecordWithoutAFigureLeavesItsCellEmpty) {
  Output output = sample_output();
  output.blocks[0].records.push_back(Record{{figure("time_s", "time", Format::kSeconds, Cell(4.0))}});
  EXPECT_EQ(render_csv(csv_records(output)), "flops,time_s,rates_inner,fits\n2000000000000,2,3.5,1\n,4,,\n");
}

TEST(Output, AFormulaSharedByFiguresIsToldOnce) {
  Output output = sample_output();
  output.blocks[0].records.push_back(output.blocks[0].records[0]);
  EXPECT_EQ(output_explanation(output)[0].steps.size(), 1U);
}

TEST(Output, RecordsOfAGroupAreATableForPeopleAndOneListForMachines) {
  Output output = sample_output();
  Record other{{figure("time_s", "time", Format::kSeconds, Cell(4.0))}, "Second"};
  output.blocks[0].records[0].group = "First";
  output.blocks[0].records.push_back(other);
  const std::string text = render_table(output_report(output, false), {});
  EXPECT_LT(text.find("\nFirst\n"), text.find("\nSecond\n")) << text;
  EXPECT_EQ(ordered_json::parse(output_json(output, "1.0", false))["points"].size(), 2U);
}

TEST(Output, PeopleReadWhatIsShownAndMachinesTheValue) {
  Output output = sample_output();
  output.blocks[0].records[0].figures[1].shown = "a while";
  EXPECT_NE(render_table(output_report(output, false), {}).find("a while"), std::string::npos);
  EXPECT_EQ(ordered_json::parse(output_json(output, "1.0", false))["points"][0]["time_s"], 2);
  EXPECT_EQ(render_csv(csv_records(output)), "flops,time_s,rates_inner,fits\n2000000000000,2,3.5,1\n");
}

TEST(Output, ALongListOfDifferentFormulasIsExplainedWhole) {
  const Reader<Traced> reader;
  const Traced x = reader.input(2, "x", "");
  Output output{.command = "sample", .title = "Many"};
  output.blocks.push_back({"rules", "", true, {}});
  Output curve = output;
  for (int i = 0; i < 20; ++i) {
    const std::string name = "rule " + std::to_string(i);
    output.blocks[0].records.push_back(
        {{figure("value", "value", Format::kNumber, (x + Traced(i + 1.0)).with_name(name, ""))}});
    curve.blocks[0].records.push_back({{figure("value", "value", Format::kNumber, x + Traced(i + 1.0))}});
  }
  EXPECT_EQ(output_explanation(output)[0].steps.size(), 20U);
  EXPECT_EQ(output_explanation(curve)[0].steps.size(), 1U);
}

/// A ranking with an object that only JSON reads, which lends a column, and a second row without it.
Output ranking() {
  const auto row = [](double rank, std::optional<Record> run) {
    return Record{{count_figure("rank", rank, "#"), datum("time_s", 2.0),
                   read_by(Readers::kPeople, text_figure("layout", "layout", "tp 4")),
                   read_by(Readers::kCsv, count_figure("tp", 4)),
                   read_by(Readers::kJson, object_figure("run", std::move(run)))}};
  };
  const Record run{{in_column("run_cost", number_figure("cost", "cost", Format::kUsd, 8)), datum("other", 1.5)}};
  Output out{.command = "rank", .title = "Ranked"};
  out.blocks.push_back({.key = "plans",
                        .records = {row(1, run), row(2, std::nullopt)},
                        .columns = {{"run_cost"}, {"layout", 3, "how"}},
                        .lines = {{"a note"}}});
  return out;
}

TEST(Output, OneDescriptionServesEveryReader) {
  const Output output = ranking();
  const ordered_json json = ordered_json::parse(output_json(output, "1.0", false));
  EXPECT_EQ(json["plans"].dump(), R"([{"rank":1,"time_s":2,"run":{"cost":8,"other":1.5}},)"
                                  R"({"rank":2,"time_s":2,"run":null}])");
  const Report report = output_report(output, false);
  EXPECT_EQ(render_csv(csv_records(output)), "rank,time_s,tp,run_cost\n1,2,4,8\n2,2,4,\n");
  ASSERT_EQ(report.plans.columns.size(), 2u);
  EXPECT_EQ(report.plans.columns[0].title, "cost");
  EXPECT_EQ(report.plans.columns[1].title, "how");
  EXPECT_EQ(report.plans.columns[1].importance, 3);
  EXPECT_EQ(report.notes, std::vector<std::string>{"a note"});
}

TEST(Output, CsvWithoutRecordsHasItsHeader) {
  Output output = ranking();
  output.blocks[0].header = output.blocks[0].records[0];
  output.blocks[0].records.clear();
  EXPECT_EQ(render_csv(csv_records(output)), "rank,time_s,tp,run_cost\n");
}

TEST(Output, JsonLinesMayNameAnotherBlockSchemaAndHead) {
  Output output = ranking();
  output.blocks.push_back({.key = "front", .title = "Front", .records = {{{datum("x", 1.0)}}}});
  output.lines_of = "front";
  output.line_schema = "plan";
  output.line_head = Record{{datum("model", "tiny")}};
  output.keeps_points = true;
  EXPECT_EQ(output_jsonl(output, "1"), R"({"schema":"scalecalc/plan/1","tool_version":"1","model":"tiny","x":1.0})"
                                       "\n");
}

TEST(Output, AnObjectThatIsNotThereIsNull) {
  Output output = ranking();
  output.blocks.push_back({.key = "miss", .is_list = false});
  EXPECT_TRUE(ordered_json::parse(output_json(output, "1", false))["miss"].is_null());
}

}  // namespace
}  // namespace scalecalc
