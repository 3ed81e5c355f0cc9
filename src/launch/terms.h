// What a plan says and a launch file says, in the same words: numbers (degrees, batches, shapes of the model) and words
// (policies, switches). Rows of a framework's table are products of these numbers and conditions on both.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace scalecalc {

struct LaunchTerms {
  std::map<std::string, std::int64_t, std::less<>> numbers;
  std::map<std::string, std::string, std::less<>> words;

  std::optional<std::int64_t> number(std::string_view name) const;
  std::optional<std::string> word(std::string_view name) const;
  /// A number where the value is one.
  void set(std::string_view name, std::string_view value);
  bool knows(std::string_view name) const { return numbers.contains(name) || words.contains(name); }
};

/// Every term that rows and limits may name, of training or of serving: the program gives it or reads it. A framework's
/// rows may have terms of their own beside (`terms:`).
using LaunchTermNames = std::set<std::string_view>;
const LaunchTermNames& launch_term_names(bool serving);

/// "mb*ga/pp": terms and whole numbers, each multiplied or divided by.
struct LaunchFactor {
  std::string name;  ///< empty: `number`
  std::int64_t number = 1;
  bool divides = false;
};
using LaunchProduct = std::vector<LaunchFactor>;
LaunchProduct parse_product(std::string_view text);

/// A product's value as a fraction in lowest terms; nothing if a term is not known.
struct LaunchFraction {
  std::int64_t above = 1, below = 1;
};
std::optional<LaunchFraction> value_of(const LaunchProduct& product, const LaunchTerms& terms);

/// "pp>1,remat=full,zero<3": whether all hold; nothing while that is not known.
std::optional<bool> holds(std::string_view conditions, const LaunchTerms& terms);

/// "remat=full,zero=1": the pairs.
std::vector<std::pair<std::string, std::string>> said(std::string_view says);

}  // namespace scalecalc
