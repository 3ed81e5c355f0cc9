// A --set that an answer does not depend on is refused by name; one that it does depend on, or that repeats the file,
// is not.
#include <gtest/gtest.h>

#include <sstream>

#include "base/quoting.h"
#include "cli/run.h"

namespace scalecalc::cli {
namespace {

/// What is said of a question with these --set: nothing where it is answered.
std::string complaint(const std::string& sets,
                      const std::string& question = "train llama3-8b --hw h100-sxm --chips 8") {
  std::ostringstream out, err;
  Environment env{.out = out, .err = err};
  std::vector<std::string> words = shell_words(question);
  for (const std::string& set : shell_words(sets)) {
    words.emplace_back("--set");
    words.push_back(set);
  }
  return run(words, env) == 0 ? "" : err.str();
}

std::string idle(const std::string& set) { return "--set " + set + ": no figure of this answer depends on it\n"; }

TEST(SetEffect, WhatChangesNothingIsRefused) {
  const std::string scaled = "hw.efficiency.block_scaled.value=0.5";  // of 8 bits, and this trains in 16
  EXPECT_EQ(complaint(scaled).find("error: " + idle(scaled)), 0U);
  EXPECT_EQ(complaint("hw.hbm.bandwidth=2TB/s " + scaled).find("error: " + idle(scaled)), 0U);
  EXPECT_EQ(complaint("hw.title=other").find("error: " + idle("hw.title=other")), 0U);
}

TEST(SetEffect, WhatChangesAFigureIsAnswered) {
  EXPECT_EQ(complaint("hw.hbm.bandwidth=2TB/s"), "");
  EXPECT_EQ(complaint("hw.efficiency.block_scaled.value=0.5",
                      "train llama3-8b --hw h100-sxm --chips 8 --precision fp8 --fp8-recipe blockwise"),
            "");
}

TEST(SetEffect, WhatTheFileSaysMayBeSaidAgain) {
  EXPECT_EQ(complaint("hw.hbm.capacity=80GiB"), "");
  EXPECT_EQ(complaint("hw.hbm.capacity=85.899345920GB"), "");
}

}  // namespace
}  // namespace scalecalc::cli
