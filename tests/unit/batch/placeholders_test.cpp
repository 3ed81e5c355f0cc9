#include "batch/study.h"

#include <gtest/gtest.h>

namespace scalecalc {
namespace {

std::string shown(std::string_view text) {
  std::string out;
  for (const TextPart& part : split_placeholders(text)) out += part.is_name ? "<" + part.text + ">" : part.text;
  return out;
}

TEST(Placeholders, AreFound) {
  EXPECT_EQ(shown("{b}x8192x{f}"), "<b>x8192x<f>");
  EXPECT_EQ(shown("plain"), "plain");
  EXPECT_EQ(shown(""), "");
}

TEST(Placeholders, BracesCanBeWritten) {
  EXPECT_EQ(shown("{{b}}"), "{b}");
  EXPECT_EQ(shown("{open"), "{open");
  EXPECT_EQ(shown("close}"), "close}");
}

}  // namespace
}  // namespace scalecalc
