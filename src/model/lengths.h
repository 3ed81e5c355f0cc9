// Lengths of prompts and generations, or of training documents, in tokens: a distribution, not one mean.
//
//   8192                    every one
//   1024..8192              every whole number between, equally likely
//   512:0.3,2048:0.7        a histogram; a bin is a length or a range, its share any positive number
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/units.h"

namespace scalecalc {

/// Whole numbers first..last, equally likely.
struct LengthBin {
  std::int64_t first = 1;
  std::int64_t last = 1;
  double share = 1;  ///< of all; a distribution's shares sum to 1
};

/// Of the lengths that lie in a range: their share of all, and the sums of lengths and squares over it.
struct LengthMoments {
  double share = 0, sum = 0, squares = 0;
  LengthMoments operator-(const LengthMoments& o) const { return {share - o.share, sum - o.sum, squares - o.squares}; }
};

class Lengths {
 public:
  /// Shares are divided by their sum; bins are sorted and may overlap.
  explicit Lengths(std::vector<LengthBin> bins);
  static Lengths fixed(std::int64_t tokens) { return Lengths({{tokens, tokens, 1}}); }
  /// Every value equally likely; `values` is not empty.
  static Lengths of(std::vector<std::int64_t> values);

  const std::vector<LengthBin>& bins() const { return bins_; }
  bool is_fixed() const { return smallest() == largest(); }
  std::int64_t smallest() const;
  std::int64_t largest() const;
  double mean() const;
  double mean_square() const;
  /// Of the lengths up to `tokens`.
  LengthMoments moments_up_to(std::int64_t tokens) const;
  const LengthMoments& moments() const { return moments_; }
  /// The smallest length that a share `p` of all does not exceed, 0 <= p <= 1.
  std::int64_t quantile(double p) const;
  /// The length at `u`, uniform in [0, 1): bin by bin, within a bin by its remainder.
  std::int64_t at(double u) const;

 private:
  std::vector<LengthBin> bins_;
  LengthMoments moments_;  ///< of all
};

/// The distribution a text names, or what is wrong with it. Lengths are counts of 1 or more.
std::variant<Lengths, UnitError> parse_lengths(std::string_view text);

/// The text that parses to it: "8192", "1024..8192", "512:0.3,2048:0.7".
std::string lengths_text(const Lengths& lengths);

}  // namespace scalecalc
