// An answer as one flat line.
#include <gtest/gtest.h>

#include "report/output.h"

namespace scalecalc {
namespace {

TEST(Rows, AreCalledAsCsvCallsThem) {
  const Record inner{{count_figure("dp", 8), in_column("data_ranks", count_figure("data", 4))}};
  const Record of_files{{datum("total", Cell(2.5)), in_column("run_cost_usd", datum("cost_usd", Cell(7.0)))}};
  const Record deep{{object_figure("c", Record{{datum("d", Cell(1.0))}})}};
  Output output{.command = "x"};
  output.blocks.push_back(
      {.key = "plans",
       .records = {Record{{datum("mfu", Cell(0.5)), object_figure("layout", inner),
                           read_by(Readers::kJson, object_figure("memory_bytes", of_files)),
                           read_by(Readers::kJson, object_figure("b", deep)), datum("status", Cell(std::string("ok"))),
                           datum("with.dots", Cell{}), list_figure("shape", "", {Cell(4.0), Cell(2.0)}),
                           read_by(Readers::kPeople, datum("words", Cell(1.0)))}},
                   Record{{datum("mfu", Cell(0.25))}}}});
  EXPECT_EQ(output_rows(output, false),
            R"({"mfu":0.5,"dp":8,"data_ranks":4,"memory_bytes_total":2.5,"run_cost_usd":7,"b_c_d":1,"out_status":"ok",)"
            R"("with_dots":null,"shape":[4,2]})"
            "\n");
  EXPECT_EQ(output_rows(output, true), output_rows(output, false) + "{\"mfu\":0.25}\n");
  output.line_head = Record{{datum("model", Cell(std::string("m")))}};
  output.answer = Record{{datum("mfu", Cell(0.75))}};
  EXPECT_EQ(output_rows(output, false), "{\"model\":\"m\",\"mfu\":0.75}\n") << "the answer is not the first record";
}

TEST(Rows, SayOnceWhatCsvAndJsonHaveInTwoPlaces) {
  Output output{.command = "x"};
  const Record layout{{count_figure("dp", 8), count_figure("tp", 2)}};
  output.blocks.push_back({.records = {Record{{read_by(Readers::kJson, object_figure("layout", layout)),
                                               count_figure("chips", 16), read_by(Readers::kCsv, count_figure("dp", 8)),
                                               read_by(Readers::kCsv, count_figure("tp", 2))}}}});
  EXPECT_EQ(output_rows(output, false), "{\"chips\":16,\"dp\":8,\"tp\":2}\n");
  // The same plan as a member of a point: a curve calls it as a ranking does.
  Record plan = output.blocks.front().records.front();
  plan.figures.push_back(read_by(Readers::kJson, object_figure("memory", Record{{count_figure("weights", 3)}})));
  output.blocks.front().records = {Record{{count_figure("asked", 32), object_figure("plan", plan)}}};
  EXPECT_EQ(output_rows(output, false), "{\"asked\":32,\"chips\":16,\"dp\":8,\"tp\":2,\"memory_weights\":3}\n");
}

}  // namespace
}  // namespace scalecalc
