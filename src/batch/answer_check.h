// What an answer has to be like: conditions of --fail-if and files of --expect, one kind of thing for answers and rows.
//
//   mfu: {least: 0.4}                            a file of expectations: names of -o row, and what they are
//   step_time_s: {value: 8.24, tolerance: 2%}
//   run_cost_usd: {most: 4e6}
//   bound_by: compute                            a row that was kept, -o row=FILE, is such a file too
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "batch/condition.h"
#include "report/json_text.h"

namespace scalecalc {

struct AnswerCheck {
  std::string said;                ///< "mfu < 0.5"; "expect.yaml:1: mfu at least 0.4"
  std::string fails_if;            ///< a condition (batch/condition.h)
  std::vector<std::string> names;  ///< it speaks of
  bool expected = false;           ///< of --expect: what an answer has not is nothing, where a condition is wrong then
};

/// Whether it is one of `names`, of which "time_s_*" stands for all that start so.
bool is_known_name(const std::string& name, const std::vector<std::string>& names);

AnswerCheck failing_if(const std::string& condition);
/// Of a file's text. UserError with file:line:column for what is no expectation, and for names that are none of `names`
/// (as check_names()), with the nearest.
std::vector<AnswerCheck> read_expectations(const std::string& text, const std::string& path,
                                           const std::vector<std::string>& names);

/// A value of a row: texts, numbers and nothing stay what they are, lists are their JSON.
Cell cell_of(const Json& value);

/// Checks of rows with these columns, for one thread at a time.
class AnswerChecks {
 public:
  /// UserError for a condition that speaks of none of the columns.
  AnswerChecks(std::vector<AnswerCheck> checks, std::vector<std::string> columns);

  /// Which of them fail.
  std::vector<std::size_t> failing(const Json& row);

 private:
  std::vector<AnswerCheck> checks_;
  std::vector<std::string> columns_;
  std::vector<Condition> conditions_;
};

/// "mfu = 0.43, step_time_s = 6.7": what the check speaks of.
std::string values_in(const AnswerCheck& check, const Json& row);

}  // namespace scalecalc
