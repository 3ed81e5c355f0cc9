#include "base/text.h"

#include <gtest/gtest.h>

#include <array>

namespace scalecalc {
namespace {

TEST(EditDistance, CountsEditsAndSwapsIgnoringCase) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("tpu-v5p", "TPU-V5P"), 0U);
  EXPECT_EQ(edit_distance("torsu", "torus"), 1U);
  EXPECT_EQ(edit_distance("bandwith", "bandwidth"), 1U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
}

TEST(Nearest, GivesTheBestOrItsTies) {
  const std::vector<std::string> chips{"tpu-v5p", "tpu-v5e", "h100-sxm", "h100-pcie", "llama3-70b"};
  using Names = std::vector<std::string>;
  EXPECT_EQ(nearest("tpu-v5pp", chips), Names{"tpu-v5p"});
  EXPECT_EQ(nearest("tpu-v5x", chips), (Names{"tpu-v5p", "tpu-v5e"}));
  EXPECT_EQ(nearest("llama370b", chips), Names{"llama3-70b"});
  EXPECT_EQ(nearest("H100", chips), (Names{"h100-sxm", "h100-pcie"}));
  EXPECT_EQ(nearest("zzz", chips), Names{});
  EXPECT_EQ(nearest("", chips), Names{});
  EXPECT_EQ(nearest(std::string(100000, 'x'), chips), Names{});
}

TEST(Nearest, ANameNotTypedToItsEndComesBeforeOtherLetters) {
  const std::vector<std::string> chips{"tpu-v2", "tpu-v3", "tpu-v4", "tpu-v5e", "tpu-v5p"};
  EXPECT_EQ(nearest("tpu-v5", chips), (std::vector<std::string>{"tpu-v5e", "tpu-v5p"}));
  EXPECT_EQ(nearest("tpu-v9", chips), (std::vector<std::string>{"tpu-v2", "tpu-v3", "tpu-v4"}));
}

TEST(Nearest, WhatStartsWithTheWordComesFirst) {
  const std::vector<std::string> models{"llama1-33b",    "llama-33b", "llama3-70b",
                                        "llama3.1-405b", "llama3-8b", "gemma-3-4b"};
  EXPECT_EQ(nearest("llama3", models), (std::vector<std::string>{"llama3-8b", "llama3-70b", "llama3.1-405b"}));
  EXPECT_EQ(nearest("llama3-8", models), std::vector<std::string>{"llama3-8b"});
  EXPECT_EQ(nearest("llama4-8b", models), std::vector<std::string>{"llama3-8b"});
}

TEST(WordLike, LeavesCaseAndSeparatorsAside) {
  constexpr std::array<std::string_view, 4> kWords{"bf16", "all-gather", "a-b", "ab"};
  EXPECT_EQ(word_like("BF16", kWords), 0U);
  EXPECT_EQ(word_like("allgather", kWords), 1U);
  EXPECT_EQ(word_like("All_Gather", kWords), 1U);
  EXPECT_EQ(word_like("ab", kWords), 3U);
  EXPECT_EQ(word_like("AB", kWords), std::nullopt) << "two words are so";
  EXPECT_EQ(word_like("", kWords), std::nullopt);
  EXPECT_EQ(word_like("bf32", kWords), std::nullopt);
}

TEST(Nearest, DoesNotReplaceMostOfAShortWord) {
  const std::vector<std::string> axes{"tp", "pp"};
  EXPECT_EQ(nearest("tq", axes), std::vector<std::string>{"tp"});
  EXPECT_EQ(nearest("ab", axes), std::vector<std::string>{});
}

TEST(DidYouMean, JoinsNames) {
  EXPECT_EQ(did_you_mean({}), "");
  EXPECT_EQ(did_you_mean({"x"}), "did you mean 'x'?");
  EXPECT_EQ(did_you_mean({"x", "y"}), "did you mean 'x' or 'y'?");
  EXPECT_EQ(did_you_mean({"x", "y", "z"}), "did you mean 'x', 'y' or 'z'?");
}

TEST(Utf8, FindsWhatIsNotUtf8) {
  constexpr std::size_t kNone = std::string_view::npos;
  EXPECT_EQ(invalid_utf8_at(""), kNone);
  EXPECT_EQ(invalid_utf8_at("a\u00e9\u6f22\U0001F600"), kNone);
  EXPECT_EQ(invalid_utf8_at("ab\xFF"), 2U);
  EXPECT_EQ(invalid_utf8_at("\xC0\x80"), 0U) << "overlong";
  EXPECT_EQ(invalid_utf8_at("\xED\xA0\x80"), 0U) << "surrogate";
  EXPECT_EQ(invalid_utf8_at("\xF4\x90\x80\x80"), 0U) << "above U+10FFFF";
  EXPECT_EQ(invalid_utf8_at("a\xE6\xBC"), 1U) << "truncated";
}

TEST(DisplayWidth, CountsColumns) {
  EXPECT_EQ(display_width("abc"), 3U);
  EXPECT_EQ(display_width("e\u0301"), 1U) << "combining accent";
  EXPECT_EQ(display_width("\u6f22\u5b57"), 4U);
  EXPECT_EQ(count_characters("\u6f22\u5b57"), 2U);
}

TEST(InQuotes, KeepsCharactersWholeWhenItShortens) {
  EXPECT_EQ(in_quotes("x"), "'x'");
  std::string wide;
  for (int i = 0; i < 100; ++i) wide += "\u6f22";
  const std::string shortened = in_quotes(wide);
  EXPECT_LT(shortened.size(), 70U);
  EXPECT_EQ(invalid_utf8_at(shortened), std::string_view::npos);
}

TEST(Wrap, BreaksAtSpaces) {
  EXPECT_EQ(wrap("", 10), "");
  EXPECT_EQ(wrap("one two three", 7), "one two\nthree");
  EXPECT_EQ(wrap("one two three", 8, 2), "one two\n  three");
  EXPECT_EQ(wrap("unbreakable", 4), "unbreakable");
  EXPECT_EQ(wrap("a\nb", 10), "a\nb");
  EXPECT_EQ(wrap("a step of 57 s on 64 chips", 12), "a step of\n57 s on\n64 chips") << "a number and its unit";
  EXPECT_EQ(wrap("59 s (50 s to 72 s), 1.16 min", 9), "59 s\n(50 s to\n72 s),\n1.16 min");
  EXPECT_EQ(wrap("5 longer", 6), "5\nlonger") << "what has no room together parts";
  EXPECT_EQ(wrap("2026-03 there", 8), "2026-03\nthere") << "a date has no unit";
  EXPECT_EQ(wrap("of 4,096, bf16", 9), "of 4,096,\nbf16") << "ends what it counts";
  EXPECT_EQ(with_fixed_units("57 s of 4,096, bf16"), "57\u00A0s of 4,096, bf16");
}

TEST(Join, PutsSeparatorsBetween) {
  EXPECT_EQ(join({}, ", "), "");
  EXPECT_EQ(join({"a", "b"}, ", "), "a, b");
  EXPECT_EQ(join_and({}), "");
  EXPECT_EQ(join_and({"a"}), "a");
  EXPECT_EQ(join_and({"a", "b", "c"}), "a, b and c");
}

TEST(MarkupEscaped, NothingIsLeftThatMarkupReads) {
  EXPECT_EQ(markup_escaped("a<b> & \"c\" 'd'"), "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;");
  EXPECT_EQ(markup_escaped("two\nlines\tand\x01"), "two\nlines and ");
  EXPECT_EQ(markup_escaped("größer"), "größer");
}

}  // namespace
}  // namespace scalecalc
