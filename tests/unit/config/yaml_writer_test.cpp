#include "config/yaml_writer.h"

#include <gtest/gtest.h>

#include "config/yaml_reader.h"

namespace scalecalc {
namespace {

std::string again(const std::string& yaml) { return write_yaml(read_yaml(yaml, "x.yaml")); }

TEST(WriteYaml, KeepsSmallMapsOnALine) {
  const std::string text =
      "schema: x/1\nlist: [a, b]\nmap: {a: 1, b: [2, 3]}\nlayers:\n  - {repeat: 1, kinds: [full/dense]}\n"
      "empty: {}\nnone: []\n";
  EXPECT_EQ(again(text), text);
}

TEST(WriteYaml, BreaksLongMaps) {
  std::string line = "map: {";
  for (int i = 0; i < 20; ++i) line += "key_" + std::to_string(i) + ": 1, ";
  const std::string out = again(line + "last: {a: 1}}\n");
  EXPECT_TRUE(out.starts_with("map:\n  key_0: 1\n  key_1: 1\n")) << out;
  EXPECT_TRUE(out.ends_with("  last: {a: 1}\n")) << out;
}

TEST(WriteYaml, QuotesWhatWouldReadAsSomethingElse) {
  EXPECT_EQ(again("a: \"true\"\nb: \"12\"\nc: \"\"\nd: \"x: y\"\ne: 'a \"b\" \\'\nf: \"null\"\ng: \"- x\"\n"),
            "a: \"true\"\nb: \"12\"\nc: \"\"\nd: \"x: y\"\ne: \"a \\\"b\\\" \\\\\"\nf: \"null\"\ng: \"- x\"\n");
  EXPECT_EQ(again("a: true\nb: 12\nc:\nd: 1e-05\ne: full/dense\n"),
            "a: true\nb: 12\nc: null\nd: 1e-05\ne: full/dense\n");
  EXPECT_EQ(again("\"a b\": 1\n\"#c\": \"l1\\nl2\"\n\u00e9: \u00fc\n"),
            "a b: 1\n\"#c\": \"l1\\x0al2\"\n\"\u00e9\": \"\u00fc\"\n");
}

TEST(WriteYaml, WritesNoControls) { EXPECT_EQ(again("a: \"\\e\\x9b\\x7f\"\n"), "a: \"\\x1b\\x9b\\x7f\"\n"); }

TEST(WriteYaml, IsStable) {
  for (const std::string text : {"a: \" x\"\n", "a: \"[b\"\n", "a: '@x'\n", "a: \"%x\"\n", "a: \"=\"\n", "a: '...'\n",
                                 "a: \"--- b\"\n", "a: '!x'\n", "a: \"a\\tb\"\n", "a: [[1, [2]], {b: {c: []}}]\n"}) {
    const std::string once = again(text);
    EXPECT_EQ(again(once), once) << text;
    EXPECT_EQ(read_yaml(once, "y").find("a")->text, read_yaml(text, "x").find("a")->text) << once;
  }
}

}  // namespace
}  // namespace scalecalc
