#include "base/run_files.h"

#include <gtest/gtest.h>

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
