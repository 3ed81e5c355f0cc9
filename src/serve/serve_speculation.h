// Speculative decoding: a draft of k tokens, one step that verifies them. Sources: scaling book, chapter 7; expected
// tokens: Leviathan et al. 2023, arXiv:2211.17192 equation 1.
#pragma once

#include <map>
#include <memory>

#include "serve/serve_question.h"
#include "serve/serving_cost.h"

namespace scalecalc {

/// Tokens that a step of k drafted ones yields: (1 - a^(k+1)) / (1 - a); k + 1 if all are kept.
double speculated_tokens(double accept, double drafted);

class Speculator {
 public:
  /// Keeps references.
  Speculator(const SpeculationAsked& asked, const ServingSystem& system, const ModelSpec& draft);

  /// Of one token with so many sequences of a replica.
  SpeculationFigures figures(const ServeLayout& layout, const Slice& slice, const ServingCost<double>& target,
                             double batch, double context) const;
  /// The same with the largest batch, of 1, 2, 4 ... `most`, at which it still pays.
  void find_break_even(SpeculationFigures& figures, const ServeLayout& layout, const Slice& slice,
                       const ServingCost<double>& target, double most, double context) const;
  /// Bytes of the draft's weights on each chip of a layout.
  double bytes(const ServeLayout& layout) const;

 private:
  ServeLayout draft_layout(const ServeLayout& layout) const;
  const ServingCost<double>& cost(const ServeLayout& layout, const Slice& slice) const;

  const SpeculationAsked& asked_;
  ServingSystem system_;
  ServeBasis<double> basis_;
  mutable std::map<ServeLayout, ServingCost<double>> known_;
};

}  // namespace scalecalc
