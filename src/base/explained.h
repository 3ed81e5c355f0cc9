// What an answer owes its reader besides figures: what it assumed, and how a figure came about.
#pragma once

#include <string>
#include <string_view>
#include <utility>
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
  /// query, unless they are given here.
  std::string key{};
  std::variant<std::monostate, std::string, double> value{};
  std::string of{};  ///< of several systems the one it speaks of

  Assumption& as(std::string_view its_key) & {
    key = its_key;
    return *this;
  }
  Assumption& is(std::string_view text_value) & {
    value = std::string(text_value);
    return *this;
  }
  Assumption& is(double number) & {
    value = number;
    return *this;
  }
  Assumption&& as(std::string_view its_key) && { return std::move(as(its_key)); }
  Assumption&& is(std::string_view text_value) && { return std::move(is(text_value)); }
  Assumption&& is(double number) && { return std::move(is(number)); }
};
/// "--set hw.hbm.bandwidth=5TB/s"
inline Assumption changed_by_set(const std::string& set) {
  const std::size_t equals = set.find('=');
  return Assumption{"changed by --set " + set, "--set", "command line"}
      .as(set.substr(0, equals))
      .is(equals == std::string::npos ? "" : std::string_view(set).substr(equals + 1));
}

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
