// Every transcript in this directory says what the program prints. SCALECALC_UPDATE_GOLDEN=1 writes what it prints now
// into the files; read the difference before keeping it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>

#include "config/catalog.h"
#include "golden/select.h"
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
  std::string differences;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::string different = difference(transcript.cases[i], found[i]);
    if (!different.empty()) differences += "$ " + found[i].command + "\n" + different + "\n";
  }
  if (differences.empty()) return;
  FAIL() << "tests/golden/" << GetParam() << ".transcript does not say what is printed.\n"
         << differences
         << "If that is meant: SCALECALC_UPDATE_GOLDEN=1 build/release/tests/golden_tests --gtest_filter='*/"
         << testing::UnitTest::GetInstance()->current_test_info()->name()
         << "' writes it; read git diff before keeping it.";
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string out = info.param;
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c == '-' || c == '.'; }, '_');
  return out;
}

INSTANTIATE_TEST_SUITE_P(Transcripts, Golden, testing::ValuesIn(names()), test_name);

// A member that is added to a command's JSON changes the transcripts with a whole document of it. There is one, as the
// contract's example, and one more at most for a document that has parts of it; all others say what they pin.
TEST(Transcripts, HaveTwoWholeDocumentsOfAKindAtMost) {
  static const std::regex kSchema(R"re("schema": ?"scalecalc/([a-z-]+)/)re");
  std::map<std::string, std::set<std::string>> whole;
  for (const std::string& name : names()) {
    for (const Case& item : parse_transcript(read(directory() / (name + ".transcript"))).cases) {
      std::smatch found;
      if (std::regex_search(item.out, found, kSchema)) whole[found[1]].insert(name);
    }
  }
  whole.erase("error");  // errors-as-json and what goes wrong with --json elsewhere
  EXPECT_GE(whole.size(), 10U);
  for (const auto& [schema, transcripts] : whole) {
    EXPECT_LE(transcripts.size(), 2U) << schema << ": " << testing::PrintToString(transcripts);
  }
}

/// golden_tests is linked with the frozen files in the place of the live ones (tests/CMakeLists.txt), and reads them
/// all.
TEST(FrozenCatalog, IsTheOneOfTheTranscripts) {
  const fs::path frozen = directory() / "catalog";
  std::size_t asked = 0;
  for (const EmbeddedFile& file : embedded_catalog()) {
    if (!fs::exists(frozen / file.path)) continue;
    EXPECT_EQ(text_of(file), read(frozen / file.path)) << file.path;
    const bool chip = file.path.starts_with("hardware/");
    if (!chip && !file.path.starts_with("models/")) continue;
    Transcript transcript;
    transcript.cases = {{fmt::format("scalecalc {} {} --json", chip ? "hw" : "model", file.name), {}, "", "", 0}};
    EXPECT_EQ(run_transcript(transcript).front().exit, 0) << file.path;
    ++asked;
  }
  EXPECT_GT(asked, 30U);
}

TEST(Transcript, KeepsItselfWhenWrittenAgain) {
  const std::string text =
      "# words\n# file: a.yaml\nx: 1\n# end\n# env: A=b=c\n# tty: 70\n$ scalecalc x\nout\n[stderr]\nerr\n[exit 2]\n"
      "$ scalecalc y --json\n| select a b\n| select c\nx\n| select d\n[exit 0]\n";
  const Transcript transcript = parse_transcript(text);
  EXPECT_EQ(write_transcript(transcript), text);
  EXPECT_EQ(transcript.tty, 70U);
  EXPECT_EQ(transcript.variables.at("A"), "b=c");
  ASSERT_EQ(transcript.files.size(), 1U);
  EXPECT_EQ(transcript.files[0].second, "x: 1\n");
  EXPECT_EQ(transcript.cases[1].select, (std::vector<std::string>{"a b", "c"}));
  EXPECT_EQ(transcript.cases[1].out, "x\n| select d\n");
}

TEST(Transcript, SaysWhatDiffersInEachStream) {
  const Case expected{"scalecalc x", {}, "a\nb\n", "", 0};
  EXPECT_EQ(difference(expected, expected), "");
  EXPECT_EQ(difference(expected, {"scalecalc x", {}, "a\nc\n", "d\n", 2}),
            "--- standard output, the transcript\n+++ standard output, printed now\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"
            "--- standard error, the transcript\n+++ standard error, printed now\n@@ -0,0 +1,1 @@\n+d\n"
            "-[exit 0]\n+[exit 2]\n");
}

TEST(Transcript, SelectsMembers) {
  const std::string json = R"({"a": {"b": 1.5, "c": "x"}, "l": [{"n": 1, "m": "p"}, {"n": null, "m": "q"}], "e": []})";
  EXPECT_EQ(select(json, "a.{b,c}  l[1].n"), "a.b = 1.5\na.c = \"x\"\nl[1].n = null\n");
  EXPECT_EQ(select(json, "l[].{n,m}"), "l[0].n = 1\nl[0].m = \"p\"\nl[1].n = null\nl[1].m = \"q\"\n");
  EXPECT_EQ(select(json, "l[m=q].n e[].n a"), "l[m=q].n = null\ne[] = none\na = {\"b\":1.5,\"c\":\"x\"}\n");
  EXPECT_EQ(select("{\"n\": 1}\n{\"n\": 2}\n", "[].n"), "[0].n = 1\n[1].n = 2\n");
  EXPECT_EQ(select("error: no\n", "a"), "error: no\n");
}

TEST(Transcript, RefusesAPathThatLeadsNowhere) {
  const auto said = [](const std::string& paths) -> std::string {
    try {
      select(R"({"a": {"b": 1, "c": 2}, "l": [1]})", paths);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(said("a.d"), "| select: a has no \"d\"; it has b c");
  EXPECT_EQ(said("x"), "| select: the document has no \"x\"; it has a l");
  EXPECT_EQ(said("l[1]"), "| select: l has no [1]; it is an array of 1");
  EXPECT_EQ(said("l[n=1]"), "| select: l has no [n=1]; it is an array of 1");
  EXPECT_EQ(said("a[]"), "| select: a has no []; it has b c");
  EXPECT_EQ(said("l[0].b"), "| select: l[0] has no \"b\"; it is 1");
  EXPECT_EQ(said("a.{b"), "| select: no } in {b");
}

}  // namespace
}  // namespace scalecalc::golden
