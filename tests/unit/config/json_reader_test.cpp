#include "config/json_reader.h"

#include <gtest/gtest.h>

#include <string>

#include "support/errors.h"

namespace scalecalc {
namespace {

/// Everything the reader has to say about a text, as a user sees it; "" if it reads.
std::string json_problems(const std::string& text) {
  return test::problems_of([&] { read_json(text, "x.json"); });
}

/// The first problem without the source line: "1:3 message | hint".
std::string problem(const std::string& text) {
  try {
    read_json(text, "x.json");
  } catch (const UserError& error) {
    const Diagnostic& d = error.diagnostics().at(0);
    return std::to_string(d.where.line) + ":" + std::to_string(d.where.column) + " " + d.message +
           (d.hint.empty() ? "" : " | " + d.hint);
  }
  return "";
}

std::string json_place(const SourceSpan& span) {
  return std::to_string(span.line) + ":" + std::to_string(span.column) + "+" + std::to_string(span.length);
}

TEST(ReadJson, KeepsScalarsAsTextAndKnowsQuotes) {
  const ConfigNode root = read_json(
      R"({"a": 1e-05, "b": true, "c": null, "d": "null", "e": -0.5, "f": {}, "g": [], "h": [1, [2]], "i": 0})",
      "x.json");
  ASSERT_EQ(root.kind, ConfigNode::Kind::kMap);
  EXPECT_EQ(root.find("a")->text, "1e-05");
  EXPECT_FALSE(root.find("a")->quoted);
  EXPECT_EQ(root.find("b")->text, "true");
  EXPECT_TRUE(root.find("c")->is_null());
  EXPECT_FALSE(root.find("d")->is_null());
  EXPECT_EQ(root.find("e")->text, "-0.5");
  EXPECT_EQ(root.find("f")->kind, ConfigNode::Kind::kMap);
  EXPECT_TRUE(root.find("g")->items.empty());
  EXPECT_EQ(root.find("h")->items.at(1).items.at(0).text, "2");
}

TEST(ReadJson, KnowsWhereThingsStand) {
  const ConfigNode root = read_json("{\n\t\"\u00e9t\u00e9\": \"\u00fc\",\n\t\"m\": {\"n\": 12}\n}\n", "x.json");
  EXPECT_EQ(json_place(root.span), "1:1+1");
  EXPECT_EQ(json_place(root.entries[0].key_span), "2:2+5");
  EXPECT_EQ(json_place(root.entries[0].value.span), "2:9+3");
  EXPECT_EQ(root.entries[0].value.span.line_text.str(), "\t\"\u00e9t\u00e9\": \"\u00fc\",");
  EXPECT_EQ(json_place(root.find("m")->span), "3:7+1");
  EXPECT_EQ(json_place(root.find("m")->find("n")->span), "3:13+2");
  EXPECT_EQ(root.find("m")->find("n")->span.file.str(), "x.json");
}

TEST(ReadJson, DecodesEscapes) {
  const ConfigNode root =
      read_json(R"(["\"\\\/\b\f\n\r\t", "\u00e9\u20AC", "\ud83d\ude00", "<\uff5cend\uff5c>"])", "x");
  EXPECT_EQ(root.items[0].text, "\"\\/\b\f\n\r\t");
  EXPECT_EQ(root.items[1].text, "\u00e9\u20AC");
  EXPECT_EQ(root.items[2].text, "\U0001F600");
  EXPECT_EQ(root.items[3].text, "<\uff5cend\uff5c>");
}

TEST(ReadJson, TakesTheWordsThatPythonWrites) {
  // transformers saves time_step_limit of Mamba models as [0.0, Infinity].
  const ConfigNode root = read_json(R"({"limit": [0.0, Infinity, -Infinity, NaN]})", "x.json");
  EXPECT_EQ(root.find("limit")->items[1].text, "Infinity");
  EXPECT_EQ(root.find("limit")->items[2].text, "-Infinity");
}

TEST(ReadJson, ReadsWindowsLineEndsByteOrderMarksAndTabs) {
  const ConfigNode root = read_json("\xEF\xBB\xBF{\r\n\t\"a\":\t1\r\n}\r\n", "x.json");
  EXPECT_EQ(json_place(root.find("a")->span), "2:7+1");
}

TEST(ReadJson, RefusesWhatOnlyYamlAllows) {
  EXPECT_EQ(json_problems("{\n  \"a\": 1,\n}\n"),
            "x.json:2:9: error: JSON allows no comma before '}'\n"
            "   2 |   \"a\": 1,\n"
            "     |         ^\n");
  EXPECT_EQ(problem("[1, 2,]"), "1:6 JSON allows no comma before ']'");
  EXPECT_EQ(problem("{'a': 1}"), "1:2 expected a key in double quotes, found '''");
  EXPECT_EQ(problem("{\"a\": 'b'}"), "1:7 a single quote: JSON texts stand in double quotes");
  EXPECT_EQ(problem("{a: 1}"), "1:2 expected a key in double quotes, found 'a'");
  EXPECT_EQ(problem("{\"a\": 1 // one\n}"), "1:9 a comment: JSON has none | take it out, or write YAML");
  EXPECT_EQ(problem("# c\n{}"), "1:1 a comment: JSON has none | take it out, or write YAML");
  EXPECT_EQ(problem("{\"a\": True}"), "1:7 'True' is Python, not JSON | JSON has true, false and null");
  const std::string no_value =
      " is no JSON value | texts stand in double quotes; numbers are decimal, without leading zeros";
  EXPECT_EQ(problem("{\"a\": yes}"), "1:7 'yes'" + no_value);
  for (const std::string number : {"010", "+1", ".5", "1.", "1e", "0x10", "1_000", "-", "1.2.3", "infinity", "--1"}) {
    EXPECT_EQ(problem("[" + number + "]"), "1:2 '" + number + "'" + no_value);
  }
}

TEST(ReadJson, SaysWhatIsMissing) {
  EXPECT_EQ(problem(""), "1:1 the document is empty");
  EXPECT_EQ(problem(" \n "), "1:1 the document is empty");
  EXPECT_EQ(problem("{\"a\": 1"), "1:1 the '{' opened here is never closed");
  EXPECT_EQ(problem("{\"a\": [1, 2"), "1:7 the '[' opened here is never closed");
  EXPECT_EQ(problem("{\"a\": [1,"), "1:7 the '[' opened here is never closed");
  EXPECT_EQ(problem("{\"a\": 1 \"b\": 2}"), "1:9 expected ',' or '}', found '\"' | the '{' in line 1 is still open");
  EXPECT_EQ(problem("{\"a\" 1}"), "1:6 expected ':' after 'a', found '1'");
  EXPECT_EQ(problem("{\"a\": }"), "1:7 expected a value, found '}'");
  EXPECT_EQ(problem("{\"a\": 1, , \"b\": 2}"), "1:10 expected a key in double quotes, found ','");
  EXPECT_EQ(problem("{\"a\": \"b}"), "1:7 the quote opened here is never closed on its line");
  EXPECT_EQ(problem("{} {}"), "1:4 unexpected '{' after the end of the document | a JSON file holds one value");
  EXPECT_EQ(problem("{\"a\": 1}\nx"), "2:1 unexpected 'x' after the end of the document | a JSON file holds one value");
}

TEST(ReadJson, RefusesDuplicateKeysAndBadTexts) {
  EXPECT_EQ(problem("{\"a\": 1,\n \"a\": 2}"), "2:2 duplicate key 'a' | it stands in line 1 already");
  EXPECT_EQ(problem("[\"\\x\"]"), "1:3 unknown escape sequence in a text | write \\\\ for a backslash");
  EXPECT_EQ(problem("[\"\\u12g4\"]"), "1:3 \\u needs four hexadecimal digits");
  EXPECT_EQ(problem("[\"\\ud83d\"]"), "1:3 half of a surrogate pair is no character");
  EXPECT_EQ(problem("[\"\\ude00\"]"), "1:3 half of a surrogate pair is no character");
  EXPECT_EQ(problem("[\"a\tb\"]"), "1:4 a control character (0x09) in a text | write it as an escape, such as \\t");
  EXPECT_NE(problem("[\"\xff\"]").find("not UTF-8"), std::string::npos);
}

TEST(ReadJson, BoundsDepthAndSize) {
  EXPECT_EQ(problem(std::string(32, '[') + std::string(32, ']')), "");
  EXPECT_EQ(problem(std::string(33, '[') + std::string(33, ']')), "1:33 nested more than 32 levels deep");
  std::string many = "[0";
  for (int i = 0; i < 100'000; ++i) many += ",0";
  EXPECT_EQ(problem(many + "]"), "1:200000 more than 100,000 values in one document | is this the right file?");
}

TEST(LooksLikeJson, ByItsFirstTwoSigns) {
  EXPECT_TRUE(looks_like_json(" {\n \"a\": 1}"));
  EXPECT_TRUE(looks_like_json("{}"));
  EXPECT_FALSE(looks_like_json("{a: 1}"));
  EXPECT_FALSE(looks_like_json("name: x"));
  EXPECT_FALSE(looks_like_json("{"));
  EXPECT_FALSE(looks_like_json(""));
}

}  // namespace
}  // namespace scalecalc
