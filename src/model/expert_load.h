// How routed tokens spread over a model's experts, and from it how much more than the mean the fullest expert rank
// gets.
//
//   zipf:1.2      a power law: the n-th most popular expert draws in proportion to n^-1.2
//   load.csv      measured: tokens or shares by expert, as CSV, YAML or JSON
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "spec/model_spec.h"

namespace scalecalc {

class ExpertLoad {
 public:
  /// Tokens or shares by expert, numbered as the router numbers them; one at least above zero.
  explicit ExpertLoad(const std::vector<double>& loads);
  /// [EXPERT-LOAD] Popularity n^-alpha. Which expert is how popular is chance: the mean over placements drawn at
  /// random, always the same ones. An expert gets a token once, so the fullest rank has no more than every token's
  /// choices.
  static ExpertLoad zipf(const MoeSpec& moe, double alpha);

  /// Tokens of the fullest of `ranks` equal blocks of neighbouring experts over those of the mean one; `ranks` divides
  /// the experts. 1 for one rank.
  double fullest(std::int64_t ranks) const;

 private:
  ExpertLoad() = default;
  std::map<std::int64_t, double> fullest_;  ///< by ranks
};

/// What --expert-load says of a model's experts: a power law, or a file that has a number for each of them. UserError
/// with every problem and its place.
ExpertLoad load_expert_load(const std::string& said, const MoeSpec& moe);

/// "the fullest of 8 expert ranks gets 1.31 times the mean load", with what that leaves out.
std::string expert_load_text(const ExpertLoad& load, const std::string& said, std::int64_t ranks);

}  // namespace scalecalc
