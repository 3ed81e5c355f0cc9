// What an answer owes its reader besides figures: what it assumed, and how a figure came about.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "base/traced.h"

namespace scalecalc {

/// Something the answer rests on that the user did not say, and how to say it.
struct Assumption {
  std::string text;      ///< "batch 4.19M tokens (512 sequences of 8,192)"
  std::string flag;      ///< "--batch-tokens", or empty
  std::string source;    ///< where the default comes from
  bool warning = false;  ///< a figure is missing or replaced, not merely defaulted
  /// What is assumed, and which value it has. Of an assumption with a flag both are those of the flag in the answer's
  /// query, unless they are given here: where the query has none, or speaks of several chips.
  std::string key{};
  std::variant<std::monostate, std::string, double> value{};
};

/// A change to the question that was searched and does what is wanted.
struct FlagChange {
  std::string flag;   ///< "--chips"
  std::string value;  ///< "16"

  std::string text() const { return flag + ' ' + value; }
};
/// "--chips 16 or --offload auto".
std::string either_of(const std::vector<FlagChange>& changes);

struct ExplainSection {
  std::string title;
  std::vector<ExplainedStep> steps;
  std::vector<std::string> remarks;
};

}  // namespace scalecalc
