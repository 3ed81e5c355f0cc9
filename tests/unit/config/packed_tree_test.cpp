#include "config/packed_tree.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "config/catalog.h"
#include "config/yaml_reader.h"

namespace scalecalc {
namespace {

void expect_same(const SourceSpan& a, const SourceSpan& b, const std::string& where) {
  EXPECT_EQ(a.file.str(), b.file.str()) << where;
  EXPECT_EQ(a.line, b.line) << where;
  EXPECT_EQ(a.column, b.column) << where;
  EXPECT_EQ(a.length, b.length) << where;
  EXPECT_EQ(a.line_text.str(), b.line_text.str()) << where;
}

void expect_same(const ConfigNode& a, const ConfigNode& b, const std::string& where) {
  ASSERT_EQ(a.kind, b.kind) << where;
  EXPECT_EQ(a.text, b.text) << where;
  EXPECT_EQ(a.quoted, b.quoted) << where;
  expect_same(a.span, b.span, where);
  ASSERT_EQ(a.items.size(), b.items.size()) << where;
  for (std::size_t i = 0; i < a.items.size(); ++i) expect_same(a.items[i], b.items[i], where + "." + std::to_string(i));
  ASSERT_EQ(a.entries.size(), b.entries.size()) << where;
  for (std::size_t i = 0; i < a.entries.size(); ++i) {
    EXPECT_EQ(a.entries[i].key, b.entries[i].key) << where;
    expect_same(a.entries[i].key_span, b.entries[i].key_span, where);
    expect_same(a.entries[i].value, b.entries[i].value, where + "." + a.entries[i].key);
  }
}

void expect_kept(std::string_view text) {
  const ConfigNode read = read_yaml(text, "f.yaml");
  expect_same(unpack(pack(read, text), text, "f.yaml"), read, "document");
}

TEST(PackedTree, KeepsWhatYamlSays) {
  expect_kept("a: 1\nb: [x, 'y', {c: \"\"}]\r\nd:\n  - e: null\n  - \n");
  expect_kept("text: >-\n  folded\n  lines\nlong: \"" + std::string(500, 'x') + "\"\n");
  expect_kept("- \u00e9: \u00fc\n");
  expect_kept("{\u00e9: 1, 'b': plain, c: \u00fc, d: 2}\n");
}

TEST(PackedTree, TheCatalogIsParsedAsItIsWritten) {
  ASSERT_GT(embedded_catalog().size(), 100U);
  for (const EmbeddedFile& file : embedded_catalog()) {
    const std::string name = "built-in:" + std::string(file.path);
    expect_same(document_of(file), read_yaml(text_of(file), name), std::string(file.path));
  }
}

/// A document has a node for every few bytes: what they say of their place they share.
TEST(PackedTree, NodesOfALineShareItsText) {
  constexpr std::string_view kText = "a: {b: [1, 2]}\nc: 3\n";
  const ConfigNode read = read_yaml(kText, "f.yaml");
  for (const ConfigNode& document : {read, unpack(pack(read, kText), kText, "f.yaml")}) {
    const ConfigNode& list = *document.find("a")->find("b");
    EXPECT_EQ(&list.items[0].span.line_text.str(), &list.items[1].span.line_text.str());
    EXPECT_EQ(&list.items[0].span.file.str(), &document.find("c")->span.file.str());
    EXPECT_EQ(document.find("c")->span.line_text.str(), "c: 3");
  }
}

TEST(PackedTree, WhatIsCutOffIsABug) {
  constexpr std::string_view kText = "a: {b: [1, 2, 3]}";
  const std::string packed = pack(read_yaml(kText, "f"), kText);
  for (std::size_t size = 0; size < packed.size(); ++size) {
    EXPECT_THROW(unpack(packed.substr(0, size), kText, "f"), InternalError) << size;
  }
  EXPECT_THROW(unpack(packed + "s", kText, "f"), InternalError);
  EXPECT_THROW(unpack("x" + packed.substr(1), kText, "f"), InternalError);
}

}  // namespace
}  // namespace scalecalc
