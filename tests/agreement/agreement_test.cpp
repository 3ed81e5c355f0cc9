// Every command that can answer a question must give the same answer.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <set>
#include <sstream>

#include "agreement/ask.h"
#include "agreement/row.h"
#include "base/quoting.h"
#include "golden/transcript.h"

namespace scalecalc::agreement {
namespace {

constexpr bool kLinksHaveOneOwner = true;  // true: the rows that wait for it are held to the rest

Rows table() {
  Rows out;
  model_rows(out);
  machine_rows(out);
  job_rows(out);
  memory_rows(out);
  link_rows(out);
  if (kLinksHaveOneOwner) waiting_link_rows(out);
  return out;
}

/// The table again, shared between the tests of this process.
const Rows& rows() {
  static const Rows kRows = table();
  return kRows;
}

double value_of(const Cell& cell) {
  static const Json kNothing;
  return agreement::value_of(cell.command.empty() ? kNothing : ask(cell.command), cell.value);
}

/// "model design" for the commands that have others inside.
std::string command_of(const Cell& cell) {
  const std::vector<std::string> words = shell_words(cell.command);
  const bool inner = words.size() > 1 && (words[1] == "list" || words[1] == "design" || words[1] == "--serve");
  return inner ? words[0] + " " + words[1] : words[0];
}

class Agreement : public testing::TestWithParam<std::size_t> {};

TEST_P(Agreement, HoldsBetweenCommands) {
  const Row& row = rows()[GetParam()];
  std::ostringstream answers;
  answers.precision(15);
  std::optional<double> first;
  bool agree = true;
  for (const Cell& cell : row.cells) {
    std::optional<double> value;
    try {
      value = value_of(cell);
      answers << "  " << *value;
    } catch (const std::exception& error) {
      answers << "  " << error.what();
    }
    answers << " : " << (cell.command.empty() ? "by hand" : cell.command) << " : " << cell.value << "\n";
    if (!first) first = value;
    agree = agree && value && std::abs(*value - *first) <= row.tolerance * std::abs(*first);
  }
  EXPECT_TRUE(agree) << row.fact << ", " << row.machine << "\n" << answers.str();
}

std::string test_name(const testing::TestParamInfo<std::size_t>& info) {
  std::string out;
  for (const char c : rows()[info.param].fact + "_" + rows()[info.param].machine) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      out += c;
    } else if (!out.empty() && out.back() != '_') {
      out += '_';
    }
  }
  return out + "_" + std::to_string(info.param);
}

INSTANTIATE_TEST_SUITE_P(Table, Agreement, testing::Range<std::size_t>(0, rows().size()), test_name);

TEST(AgreementTable, AsksManyCommands) {
  std::set<std::string> commands;
  for (const Row& row : rows()) {
    EXPECT_GE(row.cells.size(), 2U) << row.fact;
    for (const Cell& cell : row.cells) {
      if (!cell.command.empty()) commands.insert(command_of(cell));
    }
  }
  EXPECT_GE(rows().size(), 60U);
  EXPECT_GE(commands.size(), 12U);
}

}  // namespace
}  // namespace scalecalc::agreement
