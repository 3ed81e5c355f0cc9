// Every model on every chip, a sample of the pairs that is the same every time: an answer of finite figures, or one
// message that says what is missing; never a bug. tests/batch/everything.py asks all of them.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>
#include <regex>
#include <sstream>

#include "cli/run.h"
#include "config/catalog.h"
#include "property/cases.h"

namespace scalecalc {
namespace {

using AnswerJson = nlohmann::json;

struct ToldOfPair {
  int code = 0;
  std::string out, err;
};

ToldOfPair asked_of_pair(const std::vector<std::string>& words) {
  std::ostringstream out, err;
  cli::Environment env{.out = out, .err = err};
  const int code = cli::run(words, env);
  return {code, out.str(), err.str()};
}

bool says_no_number(const std::string& text) {
  static const std::regex kWords(R"(\b(nan|inf)\b)", std::regex::icase);
  return std::regex_search(text, kWords);
}

/// What no machine has: figures that are no numbers, shares above one.
void expect_possible(const AnswerJson& value, const std::string& at) {
  if (value.is_object()) {
    for (const auto& [key, member] : value.items()) expect_possible(member, at + '.' + key);
  } else if (value.is_array()) {
    for (const AnswerJson& item : value) expect_possible(item, at + "[]");
  } else if (value.is_number()) {
    const double number = value.get<double>();
    const bool share = at.ends_with(".mfu") || at.ends_with(".hfu") || at.ends_with("memory_fraction");
    EXPECT_TRUE(std::isfinite(number)) << at;
    EXPECT_TRUE(!share || number <= 1 + 1e-9) << at << " is " << number;
    EXPECT_TRUE(!at.ends_with("_s") || number >= 0) << at << " is " << number;
  } else if (value.is_string()) {
    EXPECT_FALSE(says_no_number(value.get<std::string>())) << at << ": " << value;
  }
}

void expect_answer_or_reason(std::vector<std::string> words) {
  std::string question;
  for (const std::string& word : words) question += word + ' ';
  SCOPED_TRACE(question);
  words.emplace_back("--json");
  const ToldOfPair told = asked_of_pair(words);
  ASSERT_TRUE(told.code == 0 || told.code == 2 || told.code == 3) << told.code << ": " << told.err;
  if (told.code == 2) {
    EXPECT_NE(told.err.find("error: "), std::string::npos) << told.err;
    EXPECT_FALSE(says_no_number(told.err)) << told.err;
    return;
  }
  expect_possible(AnswerJson::parse(told.out), "");
}

std::size_t sampled_pairs() {
  const char* asked = std::getenv("SCALECALC_EVERYTHING_PAIRS");
  if (asked == nullptr) return test::all_cases() ? 16 : 3;
  return static_cast<std::size_t>(std::strtoull(asked, nullptr, 10));
}

TEST(EverythingProperty, APairIsAnsweredOrSaysWhatItLacks) {
  const Catalog catalog;
  const std::vector<std::string> models = catalog.names(CatalogKind::kModel);
  const std::vector<std::string> chips = catalog.names(CatalogKind::kHardware);
  ASSERT_FALSE(models.empty() || chips.empty());
  std::mt19937 random(20);
  for (std::size_t i = 0; i < sampled_pairs(); ++i) {
    const std::string model = models[random() % models.size()], chip = chips[random() % chips.size()];
    expect_answer_or_reason({"model", model});
    expect_answer_or_reason({"bounds", model, "--hw", chip});
    expect_answer_or_reason({"train", model, "--hw", chip, "--chips", "8", "--top", "1"});
    expect_answer_or_reason({"serve", model, "--hw", chip});
  }
}

}  // namespace
}  // namespace scalecalc
