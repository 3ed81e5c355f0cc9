// How routed tokens spread over a model's experts, and from it how much more than the mean the fullest expert rank
// gets.
//
//   zipf:1.2      a power law: the n-th most popular expert draws in proportion to n^-1.2
//   load.csv      measured: tokens or shares by expert, as CSV, YAML or JSON
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "spec/model_spec.h"

namespace scalecalc {

/// Experts of `experts` that at least one of `tokens` tokens goes to, each to `top_k` at random, every expert as
/// likely: E (1 - (1 - k/E)^T).
double experts_touched(double experts, double top_k, double tokens);

/// Chance of each expert that a token goes to it.
class ExpertChances {
 public:
  ExpertChances() = default;
  /// In proportion to `loads`, `top_k` of them chosen and each once: what is above 1 goes to the others.
  ExpertChances(std::vector<double> loads, double top_k);
  static ExpertChances zipf(const MoeSpec& moe, double alpha);

  /// [EXPERT-TOUCHED] The sum over experts of 1 - (1 - p)^tokens.
  double touched(double tokens) const;
  const std::vector<double>& chances() const { return chances_; }
  /// With so many copies, each of the expert whose copies have most, which they share evenly (EPLB, arXiv:2412.19437
  /// section 3.4): an entry for every copy.
  ExpertChances copied(std::int64_t copies) const;

 private:
  explicit ExpertChances(std::vector<double> chances);
  std::vector<double> chances_;
  std::vector<double> log_missed_;  ///< log(1 - p)
};

class ExpertLoad {
 public:
  /// Tokens or shares by expert, numbered as the router numbers them; one at least above zero.
  explicit ExpertLoad(const std::vector<double>& loads, double top_k = 1);
  /// [EXPERT-LOAD] Popularity n^-alpha. Which expert is how popular is chance: the mean over placements drawn at
  /// random, always the same ones. An expert gets a token once, so the fullest rank has no more than every token's
  /// choices.
  static ExpertLoad zipf(const MoeSpec& moe, double alpha);

  /// Tokens of the fullest of `ranks` equal blocks of neighbouring experts over those of the mean one; `ranks` divides
  /// the experts. 1 for one rank.
  double fullest(std::int64_t ranks) const;
  const ExpertChances& chances() const { return chances_; }
  /// With copies of the most loaded, dealt so that the fullest rank has little: the largest first, each to the rank
  /// that has least and room (EPLB). `fullest` then is of every number of ranks that divides experts and copies.
  ExpertLoad copied(std::int64_t copies) const;

 private:
  ExpertLoad() = default;
  ExpertChances chances_;
  std::map<std::int64_t, double> fullest_;  ///< by ranks
};

/// Says that experts are chosen as by a router that nobody balances: by a power law of the chip's expert_skew.
inline constexpr std::string_view kNaturalLoad = "natural";

/// What --expert-load says of a model's experts: a power law, or a file that has a number for each of them. UserError
/// with every problem and its place.
ExpertLoad load_expert_load(const std::string& said, const MoeSpec& moe);

/// "the fullest of 8 expert ranks gets 1.31 times the mean load", with what that leaves out; of a load with `copies`.
std::string expert_load_text(const ExpertLoad& load, const std::string& said, std::int64_t ranks,
                             std::int64_t copies = 0);

}  // namespace scalecalc
