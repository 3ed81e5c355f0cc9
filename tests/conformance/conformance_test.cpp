// Runs every case of tests/conformance/*.yaml through the program's entry point and compares the JSON it prints.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/diagnostic.h"
#include "cli/run.h"
#include "conformance/case.h"
#include "golden/transcript.h"

namespace scalecalc::conformance {

void PrintTo(const Case& item, std::ostream* out) { *out << "chapter " << item.chapter << ", " << item.where; }

namespace {

using Json = nlohmann::json;

struct Answer {
  int exit = 0;
  Json document;
  std::string problems;
};

Answer ask(const std::string& command) {
  std::vector<std::string> words = golden::split_words(command);
  EXPECT_FALSE(words.empty());
  EXPECT_EQ(words.front(), "scalecalc");
  words.erase(words.begin());
  words.emplace_back("--json");
  std::ostringstream out;
  std::ostringstream err;
  cli::Environment env{.out = out, .err = err};
  Answer answer;
  answer.exit = cli::run(words, env);
  answer.problems = err.str();
  answer.document = Json::parse(out.str(), nullptr, false);
  return answer;
}

/// One step of a pointer. "key=text" takes the member of a list that has that text, such as name=fsdp_limit.
const Json* step(const Json& from, const std::string& token) {
  if (from.is_object()) return from.contains(token) ? &from.at(token) : nullptr;
  if (!from.is_array()) return nullptr;
  const std::size_t equals = token.find('=');
  if (equals == std::string::npos) {
    const std::size_t index = std::stoul(token);
    return index < from.size() ? &from.at(index) : nullptr;
  }
  for (const Json& item : from) {
    const Json* member = item.is_object() ? step(item, token.substr(0, equals)) : nullptr;
    if (member != nullptr && *member == token.substr(equals + 1)) return &item;
  }
  return nullptr;
}

const Json* find(const Json& document, const std::string& pointer) {
  const Json* at = &document;
  for (std::size_t begin = 1; at != nullptr && begin <= pointer.size();) {
    const std::size_t end = std::min(pointer.find('/', begin), pointer.size());
    at = step(*at, pointer.substr(begin, end - begin));
    begin = end + 1;
  }
  return at;
}

double number_at(const Json& document, const std::string& pointer) {
  const Json* value = find(document, pointer);
  if (value == nullptr) {
    ADD_FAILURE() << pointer << " is not in the answer";
    return std::nan("");
  }
  if (value->is_boolean()) return value->get<bool>() ? 1 : 0;
  if (!value->is_number()) {
    ADD_FAILURE() << pointer << " is no number: " << value->dump();
    return std::nan("");
  }
  return value->get<double>();
}

void compare(const Expectation& expected, double found) {
  const double allowed = expected.tolerance * std::fabs(expected.value);
  EXPECT_LE(std::fabs(found - expected.value), allowed)
      << expected.at << " is " << found << ", expected " << expected.value;
}

class Book : public testing::TestWithParam<Case> {};

TEST_P(Book, Case) {
  const Case& item = GetParam();
  std::map<std::string, Answer> answers;
  for (const Expectation& expected : item.expect) {
    SCOPED_TRACE("$ " + expected.run);
    if (!answers.contains(expected.run)) answers[expected.run] = ask(expected.run);
    const Answer& answer = answers[expected.run];
    ASSERT_EQ(answer.exit, item.exit) << answer.problems;
    ASSERT_TRUE(answer.document.is_object()) << "no JSON document";
    compare(expected, number_at(answer.document, expected.at));
  }
}

std::vector<Case> cases() {
  try {
    return load_cases(std::string(SCALECALC_SOURCE_DIR) + "/tests/conformance");
  } catch (const UserError& error) {
    std::string text;
    for (const Diagnostic& problem : error.diagnostics()) text += render(problem);
    throw std::runtime_error(text);
  }
}

std::string test_name(const testing::TestParamInfo<Case>& info) {
  std::string out = "chapter" + std::string(info.param.chapter < 10 ? "0" : "") + std::to_string(info.param.chapter);
  out += "_" + info.param.id;
  std::replace_if(
      out.begin(), out.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return out;
}

INSTANTIATE_TEST_SUITE_P(Conformance, Book, testing::ValuesIn(cases()), test_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Book);

}  // namespace
}  // namespace scalecalc::conformance
