#include "batch/deaths.h"

#include <gtest/gtest.h>

#include <csignal>

#include "batch/run_shard.h"
#include "support/scratch.h"
#include "support/studies.h"

namespace scalecalc {
namespace {

class Died : public testing::Test {
 protected:
  Died() : manifest_(make_manifest(test::small_study(3, 4), "test", 1)) { write_manifest(manifest_, dir()); }

  std::string dir() const { return scratch_.path("out"); }
  std::string file() const { return "out/died." + manifest_.hash.substr(0, 12); }

  test::Scratch scratch_;
  StudyManifest manifest_;
};

using DiedDeathTest = Died;

TEST_F(DiedDeathTest, TheCaseIsNotedAndTheSignalEndsTheProcess) {
  for (const int signal : {SIGSEGV, SIGFPE, SIGABRT}) {
    EXPECT_EXIT(
        {
          const FaultWatch watch(dir(), manifest_, std::nullopt);
          const CaseAsked asked(static_cast<std::uint64_t>(signal % 12));
          std::raise(signal);
        },
        testing::KilledBySignal(signal), "");
  }
  EXPECT_EQ(deaths_in(dir(), manifest_), (Deaths{{SIGSEGV % 12, SIGSEGV}, {SIGFPE, SIGFPE}, {SIGABRT, SIGABRT}}));
  EXPECT_TRUE(deaths_in(dir(), make_manifest(test::small_study(3, 4), "test", 2)).empty());
}

TEST_F(DiedDeathTest, OutsideOfCasesNothingIsNoted) {
  EXPECT_EXIT(
      {
        const FaultWatch watch(dir(), manifest_, std::nullopt);
        { const CaseAsked asked(3); }
        std::raise(SIGSEGV);
      },
      testing::KilledBySignal(SIGSEGV), "");
  EXPECT_TRUE(deaths_in(dir(), manifest_).empty());
}

TEST_F(Died, LinesThatAreCutShortSpoilNone) {
  EXPECT_TRUE(deaths_in(dir(), manifest_).empty());
  scratch_.put(file(), "\n7 11\n\n1\n12 11\n\nx 4\n-1 4\n\n2 8\n\n5 1");
  EXPECT_EQ(deaths_in(dir(), manifest_), (Deaths{{7, 11}, {2, 8}}));
}

TEST_F(Died, SuchCasesAreRowsAndAreNotAsked) {
  scratch_.put(file(), "\n7 11\n");
  KnownReplies known;
  for (const auto& [number, signal] : deaths_in(dir(), manifest_)) known.emplace(number, reply_of_death(signal));
  test::FakeCommand command;
  const StudySample sample =
      sample_study(manifest_.study, Cases(manifest_.study), command.ask(), manifest_.cases, 1e9, known);
  EXPECT_EQ(command.asked, 11U);
  EXPECT_EQ(sample.replies.at(7).exit, 70);
  const ShardRun run = run_shard(manifest_, dir(), 0, command.ask(), {.jobs = 2, .known = &known});
  EXPECT_EQ(command.asked, 22U);
  EXPECT_EQ(run.statuses[static_cast<std::size_t>(RowStatus::kBug)], 1U);
  EXPECT_NE(scratch_.text("out/shard-00000-of-00001.jsonl").find("the program died of signal 11 (SIGSEGV)"),
            std::string::npos);
}

TEST_F(Died, OnlyThisProcessIsHandedItsDirectory) {
  const auto left_by = [](int process) {
    return handed_on_directory([process](const std::string&) { return std::to_string(process) + ":a:b"; });
  };
  EXPECT_EQ(left_by(::getpid()), "a:b");
  EXPECT_EQ(left_by(::getppid()), std::nullopt);
  EXPECT_EQ(handed_on_directory({}), std::nullopt);
}

}  // namespace
}  // namespace scalecalc
