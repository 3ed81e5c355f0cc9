#include "batch/shard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "batch/merge.h"
#include "batch/run_shard.h"
#include "support/errors.h"
#include "support/scratch.h"
#include "support/studies.h"

namespace scalecalc {
namespace {

namespace fs = std::filesystem;

class Shards : public testing::Test {
 protected:
  Shards() : study_(test::small_study(5, 7)), manifest_(make_manifest(study_, "test", 3)) {
    write_manifest(manifest_, dir());
    expected_ = test::rows_by(study_, scratch_.path("whole"), 1, 1, plain_);
  }

  std::string dir() const { return scratch_.path("out"); }
  std::string file(std::uint64_t shard) const { return shard_path(dir(), shard, manifest_.shards); }
  void run(std::uint64_t shard, test::FakeCommand& command) {
    run_shard(manifest_, dir(), shard, command.ask(), {.jobs = 1});
  }
  void run_all() {
    for (std::uint64_t shard = 0; shard < 3; ++shard) run(shard, plain_);
  }
  std::string merged() {
    std::string out;
    merge_shards(manifest_, dir(), [&](std::string_view line) { out += std::string(line) + "\n"; });
    return out;
  }
  std::string refused() {
    return test::problems_of([&] { merged(); });
  }

  test::Scratch scratch_;
  Study study_;
  StudyManifest manifest_;
  test::FakeCommand plain_;
  std::string expected_;
};

TEST_F(Shards, MergeIntoTheOrderOfTheCases) {
  run_all();
  EXPECT_EQ(merged(), expected_);
  const ShardStates states = shard_states(manifest_, dir());
  EXPECT_EQ(states.rows, 35U);
  EXPECT_EQ(states.statuses[0], 35U);
}

TEST_F(Shards, MissingOnesAreNamed) {
  run(1, plain_);
  EXPECT_NE(refused().find("2 of 3 shards are missing: 0,2"), std::string::npos);
}

TEST_F(Shards, ALandedShardIsNotAskedAgain) {
  run(0, plain_);
  test::FakeCommand again;
  run(0, again);
  EXPECT_EQ(again.asked, 0U);
}

TEST_F(Shards, WhatASampleAskedIsNotAskedAgain) {
  test::FakeCommand first;
  const StudySample sample = sample_study(study_, Cases(study_), first.ask(), 7, 1e9);
  EXPECT_EQ(first.asked, 7U);
  EXPECT_EQ(sample.replies.size(), 7U);
  test::FakeCommand rest;
  for (std::uint64_t shard = 0; shard < 3; ++shard) {
    run_shard(manifest_, dir(), shard, rest.ask(), {.jobs = 2, .known = &sample.replies});
  }
  EXPECT_EQ(rest.asked, 35U - 7U);
  EXPECT_EQ(merged(), expected_);
}

TEST_F(Shards, AStoppedOneGoesOnBehindItsLastRow) {
  test::FakeCommand stopped;
  stopped.stop_after = 5;
  run(2, stopped);
  EXPECT_FALSE(file_exists(file(2)));
  test::FakeCommand rest;
  run(2, rest);
  EXPECT_EQ(rest.asked, 11U - 5U);
  run(0, plain_);
  run(1, plain_);
  EXPECT_EQ(merged(), expected_);
}

TEST_F(Shards, AHalfWrittenRowIsAskedAgain) {
  test::FakeCommand stopped;
  stopped.stop_after = 4;
  run(2, stopped);
  for (const std::string& name : names_in(dir())) {
    if (is_unfinished(name)) fs::resize_file(fs::path(dir()) / name, fs::file_size(fs::path(dir()) / name) - 3);
  }
  test::FakeCommand rest;
  run(2, rest);
  EXPECT_EQ(rest.asked, 11U - 3U);
  run_all();
  EXPECT_EQ(merged(), expected_);
}

TEST_F(Shards, EveryDamageIsNoticed) {
  run_all();
  const std::string whole = read_whole_file(file(1));
  for (const std::size_t at : {std::size_t{100}, whole.size() / 2, whole.size() - 2}) {
    std::string text = whole;
    text[at] = text[at] == '1' ? '2' : '1';
    scratch_.put("out/" + shard_name(1, 3), text);
    EXPECT_NE(refused(), "") << at;
  }
  scratch_.put("out/" + shard_name(1, 3), whole.substr(0, whole.size() - 1));
  EXPECT_NE(refused().find("1 of 3 shards are damaged: 1"), std::string::npos);
  scratch_.put("out/" + shard_name(1, 3), "");
  EXPECT_NE(refused().find("damaged"), std::string::npos);
  scratch_.put("out/" + shard_name(1, 3), whole + whole.substr(whole.rfind('{', whole.size() - 2)));
  EXPECT_NE(refused(), "");
  scratch_.put("out/" + shard_name(1, 3), whole);
  EXPECT_EQ(merged(), expected_);
}

TEST_F(Shards, ForeignOnesAreRefused) {
  run_all();
  Study other = study_;
  other.arguments = {"other"};
  const StudyManifest foreign = make_manifest(other, "test", 3);
  write_manifest(foreign, scratch_.path("other"));
  run_shard(foreign, scratch_.path("other"), 1, plain_.ask(), {.jobs = 1});
  fs::copy_file(shard_path(scratch_.path("other"), 1, 3), file(1), fs::copy_options::overwrite_existing);
  EXPECT_NE(refused().find("1 of 3 shards belong to another study: 1"), std::string::npos);
}

TEST_F(Shards, TwoWorkersOnOneShardDoNoHarm) {
  // One holds the file of unfinished rows; the other works on one of its own.
  ShardWriter first(manifest_, dir(), 1, row_head("test", "ask"));
  run(1, plain_);
  EXPECT_TRUE(file_exists(file(1)));
  run(0, plain_);
  run(2, plain_);
  EXPECT_EQ(merged(), expected_);
}

TEST_F(Shards, MoreShardsThanCasesAreEmptyButThere) {
  EXPECT_EQ(test::rows_by(study_, scratch_.path("many"), 40, 2, plain_), expected_);
}

TEST_F(Shards, StrictStopsAtTheFirstWithoutAnAnswer) {
  Study study = study_;
  study.axes[0] = test::axis("a", {"2", "1", "3"});
  const StudyManifest manifest = make_manifest(study, "test", 1);
  write_manifest(manifest, scratch_.path("strict"));
  const ShardRun run = run_shard(manifest, scratch_.path("strict"), 0, plain_.ask(), {.jobs = 2, .strict = true});
  EXPECT_EQ(run.end, RunEnd::kFailed);
  EXPECT_EQ(run.failed_question, "scalecalc ask w1 --a 1 --b b0");
  EXPECT_EQ(run.statuses[0], 7U);
  EXPECT_FALSE(file_exists(shard_path(scratch_.path("strict"), 0, 1)));
}

TEST_F(Shards, AllRecordsOfAnAnswerAreRows) {
  study_.all_records = true;
  test::FakeCommand many{.records = 3};
  const std::string whole = test::rows_by(study_, scratch_.path("all1"), 1, 1, many);
  EXPECT_EQ(std::count(whole.begin(), whole.end(), '\n'), 105);
  EXPECT_EQ(test::rows_by(study_, scratch_.path("all4"), 4, 2, many), whole);
  // Killed between the rows of one case.
  const StudyManifest manifest = make_manifest(study_, "test", 1);
  write_manifest(manifest, scratch_.path("cut"));
  test::FakeCommand stopped{.records = 3, .stop_after = 2};
  run_shard(manifest, scratch_.path("cut"), 0, stopped.ask(), {.jobs = 1});
  for (const std::string& name : names_in(scratch_.path("cut"))) {
    if (!is_unfinished(name)) continue;
    const std::string text = scratch_.text("cut/" + name);
    fs::resize_file(scratch_.path("cut/" + name), text.rfind('\n', text.size() - 2) + 1);
  }
  EXPECT_EQ(test::rows_by(study_, scratch_.path("cut"), 1, 1, many), whole);
}

TEST(IndexList, IsWhatSchedulersRead) {
  EXPECT_EQ(index_list({}), "");
  EXPECT_EQ(index_list({2, 5, 7}), "2,5,7");
  EXPECT_EQ(index_list({0, 1, 3, 4, 5, 9}), "0,1,3-5,9");
}

}  // namespace
}  // namespace scalecalc
