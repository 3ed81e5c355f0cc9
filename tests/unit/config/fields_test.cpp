#include "config/fields.h"

#include <gtest/gtest.h>

#include <functional>

#include "config/yaml_reader.h"

namespace scalecalc {
namespace {

/// Reads a text with `use` and gives all problems as a user sees them.
std::string problems(const std::string& text, const std::function<void(Fields&)>& use) {
  const ConfigNode root = read_yaml(text, "x.yaml");
  Problems found;
  Fields fields(root, "hardware", found);
  use(fields);
  fields.finish();
  try {
    found.throw_if_any();
  } catch (const UserError& error) {
    std::string out;
    for (const Diagnostic& d : error.diagnostics()) out += render(d);
    return out;
  }
  return "";
}

TEST(Fields, ReadsEveryKindOfValue) {
  const std::string text =
      "name: tpu\nchips: 4k\nbandwidth: 400Gbps\nkind: ring\ntwisted: true\nsource: [a, b]\none: c\npod: [4, 8]\nnote: "
      "~\n";
  EXPECT_EQ(problems(text,
                     [](Fields& f) {
                       EXPECT_EQ(f.text("name"), "tpu");
                       EXPECT_EQ(f.count("chips"), 4000);
                       EXPECT_EQ(f.quantity("bandwidth", UnitKind::kBytesPerSecond), 50e9);
                       EXPECT_EQ(f.word("kind", {"torus", "ring"}), 1U);
                       EXPECT_TRUE(f.flag("twisted", false));
                       EXPECT_TRUE(f.flag("absent", true));
                       EXPECT_EQ(f.text_list("source"), (std::vector<std::string>{"a", "b"}));
                       EXPECT_EQ(f.text_list("one"), std::vector<std::string>{"c"});
                       EXPECT_EQ(f.count_list("pod"), (std::vector<std::int64_t>{4, 8}));
                       EXPECT_FALSE(f.has("note"));
                       EXPECT_EQ(f.optional_text("absent"), std::nullopt);
                       EXPECT_EQ(f.optional_count("absent"), std::nullopt);
                       EXPECT_EQ(f.optional_quantity("absent", UnitKind::kSeconds), std::nullopt);
                       EXPECT_EQ(f.optional_word("absent", {"a"}), std::nullopt);
                       EXPECT_EQ(f.node("absent"), nullptr);
                       EXPECT_TRUE(f.text_list("absent").empty());
                       EXPECT_TRUE(f.count_list("absent").empty());
                     }),
            "");
}

TEST(Fields, ReportsAllProblemsOfADocumentInFileOrder) {
  const std::string text = "bandwidth: 2.8 TBs\nkind: torsu\ncapacityy: 1GB\n";
  EXPECT_EQ(problems(text,
                     [](Fields& f) {
                       f.quantity("capacity", UnitKind::kBytes);
                       f.word("kind", {"torus", "switched", "ring"});
                       EXPECT_EQ(f.quantity("bandwidth", UnitKind::kBytesPerSecond), 1.0);
                     }),
            "x.yaml:1:1: error: hardware has no 'capacity'\n"
            "   1 | bandwidth: 2.8 TBs\n"
            "     | ^\n"
            "hint: 'capacity' is a size such as 96GB, 80GiB or 512KiB\n"
            "x.yaml:1:12: error: 'bandwidth': '2.8 TBs' is not a bandwidth: unknown unit 'TBs'\n"
            "   1 | bandwidth: 2.8 TBs\n"
            "     |            ^~~~~~~\n"
            "hint: did you mean '2.8 TB/s'? accepted: 3.35TB/s, 900 GB/s, 400Gbps\n"
            "x.yaml:2:7: error: 'kind' is 'torsu'; it must be one of torus, switched, ring\n"
            "   2 | kind: torsu\n"
            "     |       ^~~~~\n"
            "hint: did you mean 'torus'?\n"
            "x.yaml:3:1: error: unknown key 'capacityy' in hardware\n"
            "   3 | capacityy: 1GB\n"
            "     | ^~~~~~~~~\n"
            "hint: did you mean 'capacity'?\n");
}

struct Wrong {
  const char* name;
  const char* text;
  std::function<void(Fields&)> use;
  const char* shown;
};

class FieldsWrong : public testing::TestWithParam<Wrong> {};

TEST_P(FieldsWrong, IsExplained) { EXPECT_EQ(problems(GetParam().text, GetParam().use), GetParam().shown); }

std::string name_of_wrong(const testing::TestParamInfo<Wrong>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(
    All, FieldsWrong,
    testing::Values(
        Wrong{"NotAMapIsReportedOnce", "[1, 2]", [](Fields& f) { f.text("a"), f.count("b"); },
              "x.yaml:1:1: error: hardware must be a map of fields, not a list\n"
              "   1 | [1, 2]\n"
              "     | ^\n"},
        Wrong{"Empty", "name:\n", [](Fields& f) { f.text("name"); },
              "x.yaml:1:1: error: 'name' is empty\n"
              "   1 | name:\n"
              "     | ^~~~\n"
              "hint: 'name' is a text\n"},
        Wrong{"EmptyText", "name: ''\n", [](Fields& f) { f.text("name"); },
              "x.yaml:1:7: error: 'name' is an empty text\n"
              "   1 | name: ''\n"
              "     |       ^~\n"},
        Wrong{"MapForText", "name: {a: 1}\n", [](Fields& f) { f.text("name"); },
              "x.yaml:1:7: error: 'name' must be a text, not a map\n"
              "   1 | name: {a: 1}\n"
              "     |       ^\n"},
        Wrong{"ListForQuantity", "rate: [1]\n", [](Fields& f) { f.quantity("rate", UnitKind::kBytesPerSecond); },
              "x.yaml:1:7: error: 'rate' must be a bandwidth such as 3.35TB/s, 900 GB/s or 400Gbps, not a list\n"
              "   1 | rate: [1]\n"
              "     |       ^\n"},
        Wrong{"Yes", "on: yes\n", [](Fields& f) { f.flag("on", false); },
              "x.yaml:1:5: error: 'on' must be true or false, not 'yes'\n"
              "   1 | on: yes\n"
              "     |     ^~~\n"},
        Wrong{"Zero", "rate: 0GB/s\n", [](Fields& f) { f.quantity("rate", UnitKind::kBytesPerSecond); },
              "x.yaml:1:7: error: 'rate' is 0GB/s; it must be above 0\n"
              "   1 | rate: 0GB/s\n"
              "     |       ^~~~~\n"},
        Wrong{"TooMany", "chips: 2k\n",
              [](Fields& f) {
                EXPECT_EQ(f.count("chips", {1, 1024}), 1);
              },
              "x.yaml:1:8: error: 'chips' is 2k; it must be from 1 to 1,024\n"
              "   1 | chips: 2k\n"
              "     |        ^~\n"},
        Wrong{"TooFew", "chips: 1\n",
              [](Fields& f) {
                EXPECT_EQ(f.optional_count("chips", {2, 1e15}), 2);
              },
              "x.yaml:1:8: error: 'chips' is 1; it must be at least 2\n"
              "   1 | chips: 1\n"
              "     |        ^\n"},
        Wrong{"TooLong", "wait: 5s\n",
              [](Fields& f) {
                f.quantity("wait", UnitKind::kSeconds, {0, 1});
              },
              "x.yaml:1:7: error: 'wait' is 5s; it must be from 0 to 1 s\n"
              "   1 | wait: 5s\n"
              "     |       ^~\n"},
        Wrong{"ListItem", "pod: [4, x]\n", [](Fields& f) { f.count_list("pod"); },
              "x.yaml:1:10: error: 'pod': 'x' is not a count: it does not start with a digit\n"
              "   1 | pod: [4, x]\n"
              "     |          ^\n"
              "hint: accepted: 8960, 4M, 70B, 15T, 128k, 16e6, 4Mi\n"},
        Wrong{"NestedList", "source: [a, [b]]\n", [](Fields& f) { f.text_list("source"); },
              "x.yaml:1:13: error: 'source' must be a list of texts; this item is a list\n"
              "   1 | source: [a, [b]]\n"
              "     |             ^\n"},
        Wrong{"UnknownKeyNearNone", "name: a\nzzzz: 1\n", [](Fields& f) { f.text("name"), f.has("kind"); },
              "x.yaml:2:1: error: unknown key 'zzzz' in hardware\n"
              "   2 | zzzz: 1\n"
              "     | ^~~~\n"
              "hint: known keys: name, kind\n"},
        Wrong{"MissingNodeIsReportedOnce", "name: a\n",
              [](Fields& f) {
                f.text("name");
                Fields inner(f.required_node("hbm"), "hbm", f.problems());
                inner.text("capacity");
                f.problems().add(inner.span(), "hbm has no source");
                inner.finish();
              },
              "x.yaml:1:1: error: hardware has no 'hbm'\n"
              "   1 | name: a\n"
              "     | ^\n"}),
    name_of_wrong);

TEST(Problems, KeepsTwenty) {
  Problems found;
  for (int i = 0; i < 50; ++i) found.add({"x.yaml", i + 1, 1, 1, ""}, "bad");
  try {
    found.throw_if_any();
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(error.diagnostics().size(), 20U);
  }
}

}  // namespace
}  // namespace scalecalc
