#include "base/run_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <future>
#include <memory>
#include <thread>

#include <filesystem>

#include "base/io.h"
#include "support/errors.h"
#include "support/scratch.h"

namespace scalecalc {
namespace {

constexpr const char* kRefused = "an output would replace this file";

bool refused(const std::string& said) { return said.find(kRefused) != std::string::npos; }

TEST(RunFiles, NoFileIsReadAndReplaced) {
  const test::Scratch scratch;
  const std::string path = scratch.put("a.yaml", "before");
  std::filesystem::create_symlink(path, scratch.path("link"));
  std::filesystem::create_hard_link(path, scratch.path("other"));
  for (const char* name : {"a.yaml", "link", "other"}) {
    const RunFiles files;
    read_text_file(path);
    EXPECT_TRUE(refused(test::problems_of([&] { AtomicFile(scratch.path(name)); }))) << name;
  }
  for (const char* name : {"a.yaml", "link", "other"}) {
    const RunFiles files;
    const AtomicFile output(scratch.path(name));
    EXPECT_TRUE(refused(test::problems_of([&] { read_text_file(path); }))) << name;
  }
  EXPECT_EQ(scratch.text("a.yaml"), "before");
}

TEST(RunFiles, TwoOutputsHaveTwoFiles) {
  const test::Scratch scratch;
  scratch.put("a.csv", "before");
  std::filesystem::create_symlink("a.csv", scratch.path("link"));
  std::filesystem::create_directory_symlink(".", scratch.path("again"));
  const RunFiles files;
  for (const char* first : {"a.csv", "new.csv"}) {
    auto output = std::make_unique<AtomicFile>(scratch.path(first));
    const std::string name = first;
    for (const std::string& second : {name, "./" + name, "again/" + name, "again/again/./" + name}) {
      const std::string said = test::problems_of([&] { AtomicFile(scratch.path(second)); });
      EXPECT_NE(said.find("two outputs"), std::string::npos) << first << " and " << second << ": " << said;
    }
    if (name == "a.csv") {
      EXPECT_NE(test::problems_of([&] { AtomicFile(scratch.path("link")); }), "");
    }
    EXPECT_EQ(test::problems_of([&] { AtomicFile(scratch.path("other.csv")); }), "");
    output->commit("first");
    AtomicFile(scratch.path(first)).commit("second");  // one after the other they may
    EXPECT_EQ(scratch.text(first), "second");
  }
}

TEST(RunFiles, AnOutputKeepsPermissionsAndNoSetuid) {
  const test::Scratch scratch;
  const std::string path = scratch.put("a.csv", "before");
  ASSERT_EQ(::chmod(path.c_str(), 06750), 0);
  AtomicFile(path).commit("after");
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0750U);
}

TEST(RunFiles, OtherFilesAndOtherRunsMay) {
  const test::Scratch scratch;
  const std::string path = scratch.put("a.yaml", "before");
  {
    const RunFiles files;
    read_text_file(path);
    AtomicFile(scratch.path("b.yaml")).commit("b");
  }
  const RunFiles files;
  AtomicFile(path).commit("after");
  EXPECT_EQ(read_text_file(path), "after") << "a file that was replaced is another";
}

/// Programs that ask on several threads, in whatever order the runs end.
TEST(RunFiles, RunsOfSeveralThreadsKnowNothingOfOneAnother) {
  const test::Scratch scratch;
  const std::string path = scratch.put("a.yaml", "before");
  std::promise<void> begun, ended;
  std::string refusal;
  auto first = std::make_unique<RunFiles>();
  std::thread other([&] {
    const RunFiles second;
    read_text_file(path);
    begun.set_value();
    ended.get_future().wait();
    refusal = test::problems_of([&] { AtomicFile(path).commit("x"); });
  });
  begun.get_future().wait();
  AtomicFile(path).commit("after");
  EXPECT_EQ(read_text_file(scratch.put("b.yaml", "b")), "b");
  first.reset();
  ended.set_value();
  other.join();
  EXPECT_FALSE(refused(refusal)) << "it is another file by now";
  const RunFiles third;
  EXPECT_EQ(read_text_file(path), "x");
  EXPECT_TRUE(refused(test::problems_of([&] { AtomicFile(path).commit("y"); })));
}

}  // namespace
}  // namespace scalecalc
