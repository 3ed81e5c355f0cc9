// What a user sees of a wrong question.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/diagnostic.h"

namespace scalecalc::test {

/// Everything `ask` has to say, as a user sees it; "" if it finds nothing wrong.
template <class Ask>
std::string problems_of(Ask&& ask) {
  try {
    ask();
  } catch (const UserError& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::kQuestionWrong);
    std::string out;
    for (const Diagnostic& d : error.diagnostics()) out += render(d);
    return out;
  }
  return "";
}

}  // namespace scalecalc::test
