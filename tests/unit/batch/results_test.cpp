#include "batch/results.h"

#include <gtest/gtest.h>

#include "batch/answer_check.h"
#include "batch/database.h"
#include "batch/diff.h"
#include "batch/files.h"
#include "support/errors.h"
#include "support/scratch.h"
#include "support/studies.h"

namespace scalecalc {
namespace {

class Results : public testing::Test {
 protected:
  Results() : study_(test::small_study(3, 2)) {
    study_.axes[0] = test::axis("a", {"2", "1", "4"});
    rows_ = test::rows_by(study_, dir(), 2, 1, command_);
    manifest_ = read_manifest(dir(), "test");
  }

  std::string dir() const { return scratch_.path("out"); }
  std::vector<Violations> write(const std::vector<ResultTarget>& targets,
                                const std::vector<std::string>& conditions = {}) {
    std::vector<AnswerCheck> checks;
    for (const std::string& condition : conditions) checks.push_back(failing_if(condition));
    const ResultStyle style{.document = "{\n  \"schema\": \"x\"\n}\n", .title = "rows", .figures = {"half"}};
    return write_results(manifest_, dir(), targets, style, checks, [&](std::string_view text) { printed_ += text; });
  }
  std::string first_text(const std::string& path, const std::string& sql) {
    Database database(path);
    const Statement statement = database.prepare(sql);
    sqlite3_step(statement.handle());
    const unsigned char* text = sqlite3_column_text(statement.handle(), 0);
    return text == nullptr ? "NULL" : reinterpret_cast<const char*>(text);
  }

  test::Scratch scratch_;
  test::FakeCommand command_;
  Study study_;
  StudyManifest manifest_;
  std::string rows_;
  std::string printed_;
};

TEST_F(Results, GoToFilesAndStreams) {
  write({{ResultFormat::kJsonl, scratch_.path("r.jsonl")}, {ResultFormat::kCsv, ""}});
  EXPECT_EQ(scratch_.text("r.jsonl"), rows_);
  EXPECT_TRUE(
      printed_.starts_with("schema,tool_version,command,case,status,in_a,in_b,word,half,nested_deep_n,"
                           "nested_list,odd,question,reason\n"))
      << printed_;
  EXPECT_NE(printed_.find(",ok,2,b0,b0,1,0,\"[1,\"\"two\"\",{\"\"x\"\":[3]}]\",,scalecalc ask"), std::string::npos)
      << printed_;
}

TEST_F(Results, ColumnsDoNotDependOnTheShards) {
  write({{ResultFormat::kCsv, scratch_.path("two.csv")}});
  for (const std::uint64_t shards : {1U, 5U, 9U}) {
    const std::string place = scratch_.path("again" + std::to_string(shards));
    test::rows_by(study_, place, shards, 2, command_);
    write_results(read_manifest(place, "test"), place, {{ResultFormat::kCsv, scratch_.path("other.csv")}}, {}, {},
                  [](std::string_view) {});
    EXPECT_EQ(scratch_.text("other.csv"), scratch_.text("two.csv")) << shards;
  }
}

TEST_F(Results, OneDocumentHasTheLines) {
  write({{ResultFormat::kJson, ""}});
  const Json document = Json::parse(printed_);
  EXPECT_EQ(document["schema"], "x");
  ASSERT_EQ(document["rows"].size(), 6U);
  EXPECT_EQ(document["rows"][0], Json::parse(rows_.substr(0, rows_.find('\n'))));
}

TEST_F(Results, TablesShowWhatWasAskedAndTheFiguresNamed) {
  write({{ResultFormat::kMarkdown, ""}});
  EXPECT_NE(printed_.find("| a | b | status | half | reason |"), std::string::npos) << printed_;
  EXPECT_NE(printed_.find("| 4 | b0 | ok | 2 |"), std::string::npos) << printed_;
}

TEST_F(Results, ADatabaseHasTypedColumns) {
  const std::string path = scratch_.path("r.db");
  write({{ResultFormat::kSqlite, path}});
  EXPECT_EQ(first_text(path, "SELECT count(*) FROM ask"), "6");
  EXPECT_EQ(
      first_text(path, "SELECT typeof(half) || typeof(in_a) || typeof(odd) || typeof(in_b) FROM ask WHERE in_a = 4"),
      "integerintegerintegertext");
  EXPECT_EQ(first_text(path, "SELECT reason FROM ask WHERE status = 'infeasible'"), "nothing fits \"at all\"");
  EXPECT_EQ(first_text(path, "SELECT manifest_sha256 FROM studies WHERE command = 'ask'"), manifest_.hash);
}

TEST_F(Results, ADatabaseKeepsOtherTables) {
  const std::string path = scratch_.path("r.db");
  Database(path).execute("CREATE TABLE mine (x); INSERT INTO mine VALUES (7)");
  write({{ResultFormat::kSqlite, path}});
  write({{ResultFormat::kSqlite, path}});
  EXPECT_EQ(first_text(path, "SELECT x FROM mine"), "7");
  EXPECT_EQ(first_text(path, "SELECT count(*) FROM ask"), "6");
  EXPECT_EQ(first_text(path, "SELECT count(*) FROM studies"), "1");
}

TEST_F(Results, ConditionsCountRows) {
  const auto found = write({}, {"half > 1", "half > 9", "status <> 'ok'"});
  EXPECT_EQ(found[0].rows, 2U);
  EXPECT_EQ(found[0].questions.front(), "scalecalc ask w4 --a 4 --b b0: half = 2");
  EXPECT_EQ(found[1].rows, 0U);
  EXPECT_EQ(found[2].rows, 2U);
}

TEST_F(Results, NothingIsWrittenOfADamagedShard) {
  std::string text = read_whole_file(shard_path(dir(), 1, 2));
  text[text.size() / 3] ^= 1;
  scratch_.put("out/" + shard_name(1, 2), text);
  EXPECT_NE(test::problems_of([&] {
              write({{ResultFormat::kJsonl, scratch_.path("r.jsonl")}, {ResultFormat::kSqlite, scratch_.path("r.db")}});
            }),
            "");
  EXPECT_FALSE(file_exists(scratch_.path("r.jsonl")));
  EXPECT_FALSE(file_exists(scratch_.path("r.db")));
}

TEST_F(Results, DifferencesAreFoundByInputs) {
  std::string other = rows_;
  const auto replace = [&](const std::string& from, const std::string& to) {
    other.replace(other.find(from), from.size(), to);
  };
  replace("\"half\":1,", "\"half\":1.01,");
  replace("\"in_a\":4,\"in_b\":\"b1\"", "\"in_a\":5,\"in_b\":\"b1\"");
  const std::string old_file = scratch_.put("old.jsonl", rows_);
  const std::string new_file = scratch_.put("new.jsonl", other);
  EXPECT_TRUE(diff_results(old_file, old_file, {}).differences.empty());
  const ResultDiff strict = diff_results(old_file, new_file, {});
  ASSERT_EQ(strict.differences.size(), 3U);
  EXPECT_EQ(strict.differences[0].inputs, "a 2, b b0");
  EXPECT_EQ(strict.differences[0].column, "half");
  EXPECT_EQ(strict.differences[1].now, Cell("new"));
  EXPECT_EQ(strict.differences[2].inputs, "a 4, b b1");
  EXPECT_EQ(diff_results(old_file, new_file, {.tolerance = 0.02}).differences.size(), 2U);
  EXPECT_NE(
      test::problems_of([&] { diff_results(old_file, new_file, {.columns = {"halff"}}); }).find("did you mean 'half'?"),
      std::string::npos);
  EXPECT_NE(test::problems_of([&] { diff_results(old_file, scratch_.put("x.jsonl", "{}\n"), {}); }), "");
}

TEST(ResultDiff, WhatBecameBetterIsNotWorse) {
  const test::Scratch scratch;
  const auto rows = [&](const char* name, const std::string& status, const std::string& figures) {
    return scratch.put(
        name, R"({"schema":"scalecalc/batch-row/1","tool_version":"0","command":"train","case":0,"status":")" + status +
                  R"(","in_chips":8,)" + figures + "}\n");
  };
  const std::string before = rows("before.jsonl", "ok", R"("step_time_s":2,"mfu":0.4,"run_cost_usd":9,"plan":"dp 8")");
  const std::string better = rows("better.jsonl", "ok", R"("step_time_s":1,"mfu":0.5,"run_cost_usd":8,"plan":"dp 4")");
  const std::string worse = rows("worse.jsonl", "ok", R"("step_time_s":3,"mfu":0.3,"run_cost_usd":9,"plan":"dp 4")");
  const std::string none = rows("none.jsonl", "nothing_fits", R"("step_time_s":null,"mfu":null,"run_cost_usd":9)");
  const DiffOptions only_worse{.worse = true};
  EXPECT_EQ(diff_results(before, better, {}).differences.size(), 4U);
  EXPECT_TRUE(diff_results(before, better, only_worse).differences.empty());
  const ResultDiff found = diff_results(before, worse, only_worse);
  ASSERT_EQ(found.differences.size(), 2U);
  EXPECT_EQ(found.differences[0].column, "step_time_s");
  EXPECT_EQ(found.differences[1].column, "mfu");
  EXPECT_EQ(diff_results(before, none, only_worse).differences.size(),
            3U);  // the status, and two figures that are gone
  const std::string rates =
      R"("attained_flops_per_s":4,"peak_flops_per_usd":4,"decode_tokens_per_s_per_chip":4,"time_s_bubble":2,)"
      R"("usd_per_million_output_tokens":2,"memory_bytes_weights":2,"run_energy_j_per_token":2,"run_chip_hours":2)";
  const std::string losses =
      R"("attained_flops_per_s":2,"peak_flops_per_usd":2,"decode_tokens_per_s_per_chip":2,"time_s_bubble":4,)"
      R"("usd_per_million_output_tokens":4,"memory_bytes_weights":4,"run_energy_j_per_token":4,"run_chip_hours":4)";
  const std::string good = rows("good.jsonl", "ok", rates);
  const std::string bad = rows("bad.jsonl", "ok", losses);
  EXPECT_EQ(diff_results(good, bad, only_worse).differences.size(), 8U);
  EXPECT_TRUE(diff_results(bad, good, only_worse).differences.empty());
}

}  // namespace
}  // namespace scalecalc
