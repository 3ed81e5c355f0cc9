// A study's rows do not depend on how its work is divided.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "batch/cases.h"
#include "support/scratch.h"
#include "support/studies.h"

namespace scalecalc {
namespace {

Study any_study() {
  Study out = test::small_study(*rc::gen::inRange<std::size_t>(1, 6), *rc::gen::inRange<std::size_t>(1, 7));
  if (*rc::gen::arbitrary<bool>()) out.axes[0].columns[0] = test::axis("a", {"2", "1", "7"}).columns[0];
  if (*rc::gen::arbitrary<bool>()) out.where = "a % 2 = 0 OR b = 'b1'";
  out.all_records = *rc::gen::arbitrary<bool>();
  return out;
}

RC_GTEST_PROP(Study, NumbersAndPointsAreOneToOne, ()) {
  const Study study = any_study();
  const Cases cases(study);
  for (std::uint64_t number = 0; number < cases.size(); ++number) {
    RC_ASSERT(cases.number(cases.point(number)) == number);
  }
}

RC_GTEST_PROP(Study, RowsAreTheSameForAnyShardsAndThreads, ()) {
  const Study study = any_study();
  const test::Scratch scratch;
  test::FakeCommand command{.records = 2};
  const std::string whole = test::rows_by(study, scratch.path("one"), 1, 1, command);
  const std::uint64_t cases = Cases(study).size();
  const std::uint64_t shards = *rc::gen::element<std::uint64_t>(1, 2, 3, 7, 8, 64, cases + 5);
  RC_ASSERT(test::rows_by(study, scratch.path("many"), shards, *rc::gen::inRange(1U, 4U), command) == whole);
}

/// Stopped over and over, nothing is asked twice and nothing is lost.
RC_GTEST_PROP(Study, InterruptedRunsGoOn, ()) {
  Study study = any_study();
  study.all_records = false;
  const test::Scratch scratch;
  test::FakeCommand plain;
  const std::string whole = test::rows_by(study, scratch.path("one"), 1, 1, plain);
  std::uint64_t asked = 0;
  const StudyManifest manifest = make_manifest(study, "test", 2);
  write_manifest(manifest, scratch.path("cut"));
  for (int i = 0; i < 30; ++i) {
    test::FakeCommand stopped;
    stopped.stop_after = *rc::gen::inRange<std::uint64_t>(0, 4);
    const Ask ask = stopped.ask();
    for (std::uint64_t shard = 0; shard < 2; ++shard) {
      if (run_shard(manifest, scratch.path("cut"), shard, ask, {.jobs = 1}).end != RunEnd::kDone) break;
    }
    asked += std::min(stopped.asked.load(), stopped.stop_after);
  }
  test::FakeCommand last;
  const std::string rows = test::rows_by(study, scratch.path("cut"), 2, 1, last);
  RC_ASSERT(rows == whole);
  RC_ASSERT(asked + last.asked == plain.asked);
}

}  // namespace
}  // namespace scalecalc
