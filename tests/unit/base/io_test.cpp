#include "base/io.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/diagnostic.h"
#include "base/limits.h"

namespace scalecalc {
namespace {

namespace fs = std::filesystem;

class Io : public testing::Test {
 protected:
  Io() : place_(fs::temp_directory_path() / ("scalecalc_io_" + std::to_string(::getpid()))) {
    fs::create_directories(place_);
  }
  ~Io() override { fs::remove_all(place_); }

  std::string at(const std::string& name) const { return (place_ / name).string(); }
  void put(const std::string& name, const std::string& content) const {
    std::ofstream(at(name), std::ios::binary) << content;
  }
  std::string get(const std::string& name) const {
    std::ifstream in(at(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(place_), fs::directory_iterator()));
  }

  fs::path place_;
};

template <class Action>
std::string error_of(Action action, ExitCode code) {
  try {
    action();
  } catch (const UserError& error) {
    EXPECT_EQ(error.exit_code(), code);
    std::string out;
    for (const Diagnostic& d : error.diagnostics()) out += render(d);
    return out;
  }
  return "no error";
}

TEST_F(Io, ReadsAFileWithoutItsByteOrderMark) {
  put("a", "\xEF\xBB\xBFname: x\n");
  EXPECT_EQ(read_text_file(at("a")), "name: x\n");
}

TEST_F(Io, SaysWhyAFileCannotBeRead) {
  const auto reading = [&](const std::string& name) {
    return error_of([&] { read_text_file(at(name)); }, ExitCode::kQuestionWrong);
  };
  EXPECT_EQ(reading("none"), at("none") + ": error: cannot read the file: No such file or directory\n");
  EXPECT_EQ(reading(""), at("") + ": error: cannot read the file: it is a directory\n");
  put("big", std::string(limits::kTextFile + 1, 'x'));
  EXPECT_EQ(reading("big"), at("big") +
                                ": error: cannot read the file: it is larger than 32 MiB\n"
                                "hint: a model or hardware file is a few kilobytes: is this the right file?\n");
  put("binary", std::string("a\nb\0c", 5));
  EXPECT_EQ(reading("binary"),
            at("binary") +
                ":2: error: not a UTF-8 text file: byte 0x00\n"
                "hint: is this the right file? A text in another encoding can be converted with iconv -t UTF-8\n");
  put("latin1", "caf\xE9\n");
  EXPECT_EQ(reading("latin1"),
            at("latin1") +
                ":1: error: not a UTF-8 text file: byte 0xe9\n"
                "hint: is this the right file? A text in another encoding can be converted with iconv -t UTF-8\n");
}

TEST_F(Io, AnOutputAppearsOnlyWhenItIsCommitted) {
  put("out", "old");
  {
    AtomicFile file(at("out"));
    EXPECT_EQ(get("out"), "old");
  }
  EXPECT_EQ(get("out"), "old");
  EXPECT_EQ(files(), 1U) << "the temporary is removed";
  AtomicFile(at("out")).commit("new");
  EXPECT_EQ(get("out"), "new");
  EXPECT_EQ(files(), 1U);
}

TEST_F(Io, PartsAppearTogether) {
  AtomicFile file(at("parts"));
  file.append("one ");
  file.append("two ");
  EXPECT_FALSE(fs::exists(at("parts")));
  file.commit("three");
  EXPECT_EQ(get("parts"), "one two three");
}

TEST_F(Io, AMovedOutputStillCommits) {
  AtomicFile first(at("out"));
  AtomicFile second(std::move(first));
  second.commit("x");
  EXPECT_EQ(get("out"), "x");
}

TEST_F(Io, KeepsPermissionsAndLinks) {
  put("real", "old");
  ASSERT_EQ(::chmod(at("real").c_str(), 0640), 0);
  fs::create_symlink(at("real"), at("link"));
  AtomicFile(at("link")).commit("new");
  EXPECT_TRUE(fs::is_symlink(at("link")));
  EXPECT_EQ(get("real"), "new");
  EXPECT_EQ(fs::status(at("real")).permissions(), fs::perms(0640));
}

TEST_F(Io, SaysBeforeTheWorkThatAnOutputCannotBeWritten) {
  const auto opening = [&](const std::string& path) {
    return error_of([&] { AtomicFile file(path); }, ExitCode::kOutputFailed);
  };
  EXPECT_EQ(opening(at("no/such/out")),
            at("no/such/out") + ": error: cannot write the file: No such file or directory\n");
  EXPECT_EQ(opening(at("")), at("") + ": error: cannot write the file: it is a directory\n");
  EXPECT_EQ(opening(""), "error: the output file name is empty\n");
}

TEST_F(Io, ReportsAFullDevice) {
  EXPECT_EQ(error_of([] { AtomicFile("/dev/full").commit("x"); }, ExitCode::kOutputFailed),
            "/dev/full: error: cannot write the file: No space left on device\n");
  AtomicFile("/dev/null").commit("x");
}

TEST_F(Io, WhatIsUnfinishedGoesUnlessItGetsItsName) {
  const auto made = [&](const char* name) {
    return [this, name] {
      fs::create_directory(at(name));
      return at(name);
    };
  };
  {
    const Unfinished gone(made("gone"));
    put("gone/file", "x");
    Unfinished kept(made("kept"));
    EXPECT_TRUE(kept.rename_to(at("name")));
    EXPECT_FALSE(Unfinished(made("lost")).rename_to(at("nowhere/name")));
  }
  EXPECT_EQ(files(), 1U);
  EXPECT_TRUE(fs::exists(at("name")));
}

}  // namespace
}  // namespace scalecalc
