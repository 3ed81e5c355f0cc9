#include "config/yaml_reader.h"

#include <gtest/gtest.h>

#include <string>

#include "support/errors.h"

namespace scalecalc {
namespace {

/// Everything the reader has to say about a text, as a user sees it; "" if it reads.
std::string problems(const std::string& text) {
  return test::problems_of([&] { read_yaml(text, "x.yaml"); });
}

std::string place(const SourceSpan& span) {
  return std::to_string(span.line) + ":" + std::to_string(span.column) + "+" + std::to_string(span.length);
}

TEST(ReadYaml, KeepsScalarsAsText) {
  const ConfigNode root = read_yaml("a: 010\nb: yes\nc: 1e12\nd: \"5\"\ne: ~\nf:\ng: 'it''s'\n", "x.yaml");
  ASSERT_EQ(root.kind, ConfigNode::Kind::kMap);
  EXPECT_EQ(root.find("a")->text, "010");
  EXPECT_EQ(root.find("b")->text, "yes");
  EXPECT_EQ(root.find("c")->text, "1e12");
  EXPECT_EQ(root.find("d")->text, "5");
  EXPECT_TRUE(root.find("d")->quoted);
  EXPECT_FALSE(root.find("c")->quoted);
  EXPECT_TRUE(root.find("e")->is_null());
  EXPECT_TRUE(root.find("f")->is_null());
  EXPECT_EQ(root.find("g")->text, "it's");
  EXPECT_EQ(root.find("nothing"), nullptr);
}

TEST(ReadYaml, KnowsWhereKeysAndValuesStand) {
  const ConfigNode root = read_yaml(
      "\u00e9t\u00e9: \"\u00fc x\" # comment\nhbm:\n  capacity: 95GiB\nlist: [a, {b: 1}]\nempty:\nlast: two words\n",
      "x.yaml");
  EXPECT_EQ(place(root.entries[0].key_span), "1:1+3");
  EXPECT_EQ(place(root.entries[0].value.span), "1:6+5");
  EXPECT_EQ(root.entries[0].value.span.line_text.str(), "\u00e9t\u00e9: \"\u00fc x\" # comment");
  EXPECT_EQ(root.entries[0].value.span.file.str(), "x.yaml");
  EXPECT_EQ(place(root.find("hbm")->span), "2:1+3") << "a block map stands at its key";
  EXPECT_EQ(place(root.find("hbm")->find("capacity")->span), "3:13+5");
  EXPECT_EQ(place(root.find("list")->span), "4:7+1");
  EXPECT_EQ(place(root.find("list")->items[0].span), "4:8+1");
  EXPECT_EQ(place(root.find("list")->items[1].find("b")->span), "4:15+1");
  EXPECT_EQ(place(root.find("empty")->span), "5:1+5") << "an empty value stands at its key";
  EXPECT_EQ(place(root.find("last")->span), "6:7+9");
}

TEST(ReadYaml, ReadsWindowsLineEndsAndByteOrderMarks) {
  const ConfigNode root = read_yaml(
      "\xEF\xBB\xBF"
      "a: 1\r\nb:\r\n  c: two\r\n",
      "x.yaml");
  EXPECT_EQ(place(root.find("a")->span), "1:4+1");
  EXPECT_EQ(root.find("b")->find("c")->text, "two");
  EXPECT_EQ(root.find("b")->find("c")->span.line_text.str(), "  c: two");
}

TEST(ReadYaml, ReadsJsonIndentedWithTabs) {
  const ConfigNode root =
      read_yaml("{\n\t\"hidden_size\":8192,\n\t\"tie\": false,\n\t\"ids\": [1, null]\n}\n", "c.json");
  EXPECT_EQ(root.find("hidden_size")->text, "8192");
  EXPECT_EQ(place(root.find("hidden_size")->span), "2:16+4");
  EXPECT_EQ(root.find("tie")->text, "false");
  EXPECT_TRUE(root.find("ids")->items[1].is_null());
}

TEST(ReadYaml, LetsAliasesStandForTexts) {
  const ConfigNode root = read_yaml("a: &rate 5TB/s\nb: *rate\n", "x.yaml");
  EXPECT_EQ(root.find("a")->text, "5TB/s");
  EXPECT_EQ(root.find("b")->text, "5TB/s");
  EXPECT_EQ(place(root.find("a")->span), "1:10+5");
  EXPECT_EQ(place(root.find("b")->span), "2:4+5");
}

TEST(ReadYaml, AcceptsDocumentMarkers) {
  EXPECT_EQ(problems("---\na: 1\n...\n"), "");
  EXPECT_EQ(problems("# first\n%YAML 1.2\n---\na: 1\n"), "");
}

struct Broken {
  const char* name;
  std::string text;
  const char* shown;
};

class ReadBroken : public testing::TestWithParam<Broken> {};

TEST_P(ReadBroken, IsExplainedAtItsPlace) { EXPECT_EQ(problems(GetParam().text), GetParam().shown); }

std::string name_of(const testing::TestParamInfo<Broken>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(
    Structure, ReadBroken,
    testing::Values(Broken{"Empty", "", "x.yaml: error: the document is empty\n"},
                    Broken{"OnlyComment", "# nothing\n", "x.yaml: error: the document is empty\n"},
                    Broken{"Comma", ",",
                           "x.yaml:1:1: error: unexpected ',' after the end of the document\n"
                           "   1 | ,\n"
                           "     | ^\n"
                           "hint: check the indentation: a list and a map cannot stand side by side\n"},
                    Broken{"ListThenMap", "- a\nb: c\n",
                           "x.yaml:2:1: error: unexpected 'b' after the end of the document\n"
                           "   2 | b: c\n"
                           "     | ^\n"
                           "hint: check the indentation: a list and a map cannot stand side by side\n"},
                    Broken{"SecondDocument", "a: 1\n---\nb: 2\n",
                           "x.yaml:2:1: error: a second document starts here; a file holds one\n"
                           "   2 | ---\n"
                           "     | ^~~\n"
                           "hint: put it in a file of its own\n"},
                    Broken{"DuplicateKeysTogether", "a: 1\na: 2\nb: 3\nb: 4\n",
                           "x.yaml:2:1: error: duplicate key 'a'\n"
                           "   2 | a: 2\n"
                           "     | ^\n"
                           "hint: it stands in line 1 already\n"
                           "x.yaml:4:1: error: duplicate key 'b'\n"
                           "   4 | b: 4\n"
                           "     | ^\n"
                           "hint: it stands in line 3 already\n"},
                    Broken{"NoColon", "a: 1\nbandwidth 5\n",
                           "x.yaml:2:1: error: expected ':' after 'bandwidth 5'\n"
                           "   2 | bandwidth 5\n"
                           "     | ^~~~~~~~~~~\n"},
                    Broken{"KeyGluedToValue", "a:1\nb: 2\n",
                           "x.yaml:2:2: error: unexpected ':'\n"
                           "   2 | b: 2\n"
                           "     |  ^\n"
                           "hint: put a text that holds ': ' in quotes; check the line above and the indentation\n"},
                    Broken{"TwoColons", "note: rate: 5\n",
                           "x.yaml:1:11: error: unexpected ':'\n"
                           "   1 | note: rate: 5\n"
                           "     |           ^\n"
                           "hint: put a text that holds ': ' in quotes; check the line above and the indentation\n"},
                    Broken{"ListKey", "? [a]\n: b\n",
                           "x.yaml:1:3: error: a key is a text, not a list\n"
                           "   1 | ? [a]\n"
                           "     |   ^\n"},
                    Broken{"Tab", "a:\n\tb: 1\n",
                           "x.yaml:2:1: error: a tab is used as indentation\n"
                           "   2 |  b: 1\n"
                           "     | ^\n"
                           "hint: indent with spaces\n"},
                    Broken{"ReservedCharacter", "a: @x\n",
                           "x.yaml:1:4: error: a text cannot start with this character\n"
                           "   1 | a: @x\n"
                           "     |    ^\n"
                           "hint: put it in quotes\n"},
                    Broken{"Escape", "a: \"C:\\qux\"\n",
                           "x.yaml:1:9: error: unknown escape sequence in a quoted text\n"
                           "   1 | a: \"C:\\qux\"\n"
                           "     |         ^\n"
                           "hint: write \\\\ for a backslash\n"},
                    Broken{"TextAfterQuote", "a: \"b\" c\n",
                           "x.yaml:1:8: error: expected a key at the indentation of the map\n"
                           "   1 | a: \"b\" c\n"
                           "     |        ^\n"
                           "hint: check the indentation, and that nothing follows a quoted text\n"}),
    name_of);

INSTANTIATE_TEST_SUITE_P(Truncated, ReadBroken,
                         testing::Values(Broken{"Map", "a: {b: 1,\n  c: 2\n",
                                                "x.yaml:1:4: error: the '{' opened here is never closed\n"
                                                "   1 | a: {b: 1,\n"
                                                "     |    ^\n"},
                                         Broken{"Json", "{\n  \"a\": [1, 2",
                                                "x.yaml:2:8: error: the '[' opened here is never closed\n"
                                                "   2 |   \"a\": [1, 2\n"
                                                "     |        ^\n"},
                                         Broken{"ListRunsIntoKey", "a: [1, 2\nb: 3\n",
                                                "x.yaml:2:2: error: expected ',' or ']'\n"
                                                "   2 | b: 3\n"
                                                "     |  ^\n"
                                                "hint: the '[' in line 1 is still open\n"},
                                         Broken{"ExtraBracket", "a: [1]]\n",
                                                "x.yaml:1:7: error: a closing bracket without an opening one\n"
                                                "   1 | a: [1]]\n"
                                                "     |       ^\n"},
                                         Broken{"Quote", "it's: fine\nb: 'x\nc: 1",
                                                "x.yaml:2:4: error: the quote opened here is never closed\n"
                                                "   2 | b: 'x\n"
                                                "     |    ^\n"},
                                         // yaml-cpp closes this one by itself, because the file ends with a line end.
                                         Broken{"QuoteWithLineEnd", "a: \"x\nb: 2\n",
                                                "x.yaml:1:4: error: the quote opened here is never closed\n"
                                                "   1 | a: \"x\n"
                                                "     |    ^\n"}),
                         name_of);

INSTANTIATE_TEST_SUITE_P(
    Refused, ReadBroken,
    testing::Values(Broken{"AliasOfList", "a: &x [1]\nb: *x\n",
                           "x.yaml:1:4: error: an anchor on a list: only texts can have one\n"
                           "   1 | a: &x [1]\n"
                           "     |    ^\n"
                           "hint: write the value out where it is needed\n"
                           "x.yaml:2:4: error: an alias may only stand for a text, not for a list or a map\n"
                           "   2 | b: *x\n"
                           "     |    ^~\n"
                           "hint: write the value out\n"},
                    Broken{"UnknownAlias", "a: *nope\n",
                           "x.yaml:1:4: error: an alias to an anchor that is not defined above\n"
                           "   1 | a: *nope\n"
                           "     |    ^\n"},
                    Broken{"MergeKey", "<<: {a: 1}\n",
                           "x.yaml:1:1: error: merge keys ('<<') are not supported\n"
                           "   1 | <<: {a: 1}\n"
                           "     | ^~\n"
                           "hint: write the fields out\n"},
                    Broken{"Tag", "a: !!str 3\n",
                           "x.yaml:1:4: error: tags such as '!!str' are not supported\n"
                           "   1 | a: !!str 3\n"
                           "     |    ^~~~~\n"
                           "hint: quotes make a value a text\n"},
                    Broken{"Nul", std::string("a: \0", 4),
                           "x.yaml:1:4: error: not a text file: unexpected byte 0x00\n"
                           "   1 | a: ?\n"
                           "     |    ^\n"
                           "hint: is this the right file?\n"},
                    // yaml-cpp would take 0x04 for the end of the file and drop the rest in silence.
                    Broken{"EndOfTransmission",
                           "a: 1\n\x04"
                           "b: 2\n",
                           "x.yaml:2:1: error: not a text file: unexpected byte 0x04\n"
                           "   2 | ?b: 2\n"
                           "     | ^\n"
                           "hint: is this the right file?\n"},
                    Broken{"Binary",
                           "\x7F"
                           "ELF\xFF",
                           "x.yaml:1:1: error: not a text file: unexpected byte 0x7f\n"
                           "   1 | ?ELF?\n"
                           "     | ^\n"
                           "hint: is this the right file?\n"}),
    name_of);

std::string first_problem(const std::string& text) {
  try {
    read_yaml(text, "x.yaml");
  } catch (const UserError& error) {
    return error.diagnostics().front().message;
  }
  return "";
}

TEST(ReadYaml, StopsAtDeepNestingAndBombs) {
  EXPECT_EQ(first_problem(std::string(100000, '[')), "nested more than 32 levels deep");
  EXPECT_EQ(first_problem(std::string(30, '[') + std::string(30, ']')), "");
  EXPECT_EQ(first_problem(std::string(33, '[') + std::string(33, ']')), "nested more than 32 levels deep");
  std::string dashes;
  for (int i = 0; i < 1000; ++i) dashes += "- ";
  EXPECT_EQ(first_problem(dashes), "nested more than 32 levels deep");
  std::string many = "[";
  for (int i = 0; i < 100001; ++i) many += "a,";
  EXPECT_EQ(first_problem(many + "]"), "more than 100,000 values in one document");
}

TEST(ReadYaml, ReportsAtMostTwentyProblems) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "a: 1\n";
  try {
    read_yaml(text, "x.yaml");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(error.diagnostics().size(), 20U);
  }
}

}  // namespace
}  // namespace scalecalc
