// Conditions such as "mfu < 0.35 AND in_chips >= 256": SQLite's expressions over named values, so that there is no
// language of our own to learn.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "report/report.h"

namespace scalecalc {

/// The words of a condition outside its texts: names, and SQL's own.
std::vector<std::string> names_in(std::string_view condition);

/// UserError if one of them cannot be read or speaks of none of these names; "time_s_*" stands for all that start so.
void check_names(const std::vector<std::string>& conditions, const std::vector<std::string>& names);

/// For one thread at a time.
class Condition {
 public:
  /// UserError, saying where the text came from (`where`), for what SQLite cannot read or a name that is none of
  /// `columns`, with the nearest.
  Condition(const std::string& text, const std::vector<std::string>& columns, const SourceSpan& where);
  ~Condition();
  Condition(Condition&&) noexcept;
  Condition& operator=(Condition&&) noexcept;

  /// Whether it holds for these values of the columns; a comparison with nothing does not.
  bool holds(const std::vector<Cell>& values);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace scalecalc
