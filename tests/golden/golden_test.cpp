// Every transcript in this directory says what the program prints. SCALECALC_UPDATE_GOLDEN=1 writes what it prints now
// into the files; read the difference before keeping it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "golden/transcript.h"

namespace scalecalc::golden {
namespace {

namespace fs = std::filesystem;

fs::path directory() { return fs::path(SCALECALC_SOURCE_DIR) / "tests" / "golden"; }

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(directory())) {
    if (entry.path().extension() == ".transcript") out.push_back(entry.path().stem().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string read(const fs::path& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

bool updating() {
  const char* value = std::getenv("SCALECALC_UPDATE_GOLDEN");
  return value != nullptr && std::string(value) == "1";
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, PrintsWhatTheTranscriptSays) {
  const fs::path path = directory() / (GetParam() + ".transcript");
  Transcript transcript = parse_transcript(read(path));
  const std::vector<Case> found = run_transcript(transcript);
  if (updating()) {
    transcript.cases = found;
    std::ofstream(path, std::ios::binary) << write_transcript(transcript);
    return;
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    SCOPED_TRACE("$ " + found[i].command);
    EXPECT_EQ(found[i].out, transcript.cases[i].out);
    EXPECT_EQ(found[i].err, transcript.cases[i].err);
    EXPECT_EQ(found[i].exit, transcript.cases[i].exit);
  }
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string out = info.param;
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c == '-' || c == '.'; }, '_');
  return out;
}

INSTANTIATE_TEST_SUITE_P(Transcripts, Golden, testing::ValuesIn(names()), test_name);

TEST(Transcript, KeepsItselfWhenWrittenAgain) {
  const std::string text =
      "# words\n# file: a.yaml\nx: 1\n# end\n# env: A=b=c\n# tty: 70\n$ scalecalc x\nout\n[stderr]\nerr\n[exit 2]\n"
      "$ scalecalc y\n[exit 0]\n";
  const Transcript transcript = parse_transcript(text);
  EXPECT_EQ(write_transcript(transcript), text);
  EXPECT_EQ(transcript.tty, 70U);
  EXPECT_EQ(transcript.variables.at("A"), "b=c");
  ASSERT_EQ(transcript.files.size(), 1U);
  EXPECT_EQ(transcript.files[0].second, "x: 1\n");
}

TEST(Transcript, SplitsWordsAsAShellWould) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(split_words("scalecalc  train 'a b' --set \"x=y z\" ''"),
            (Words{"scalecalc", "train", "a b", "--set", "x=y z", ""}));
}

}  // namespace
}  // namespace scalecalc::golden
