// Prompts that are computed in the order they came, from step to step: a Markov chain of the tokens that are left.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "serve/prompt_chain.h"

namespace scalecalc {

/// Prompts of one length where nobody passes another: one at a time takes all that a step has for prompts, or each is
/// computed in one step and a step's last one is cut (docs/model.md [LINE]). Each step takes `chunk` tokens off what is
/// left, and the prompts that came during it add theirs. From an empty line on, the number of steps says how much of
/// the first prompt is left, so the number of prompts is all there is to follow: exact while so many sequences decode.
class PromptLine {
 public:
  static bool holds(const SteadyEngine& engine);
  /// It does, and the ranks that a step has are so evenly filled that it is as long as the chain has it.
  static bool proven(const SteadyEngine& engine);

  /// As PromptChain's.
  PromptLine(const SteadyEngine& engine, double batch, double rate, double decodes);

  PromptQueue solve();

 private:
  using Chances = std::vector<double>;
  /// Sums over a run, from a line of new prompts to an empty one; weighted by its chances.
  struct BusyPeriod {
    double seconds = 0, steps = 0;
    double prompt_s = 0, served_s = 0;  ///< prompts times seconds
    double completed = 0, beside = 0;   ///< prompts that ended; pairs of them in one step
    Chances next;                       ///< prompts that came during its last step
    double left_over = 0;               ///< chances that it is not over as far as was looked
  };
  /// What comes during a step.
  static void poisson(double mean, Chances& out);

  void begin_alone();
  double mean_step();
  double full_share();
  double prompts_in(double tokens) const;
  double step_seconds(double left);
  void add_step(BusyPeriod& run, double weight, double prompts, double left, double seconds) const;
  BusyPeriod settled_run(PromptQueue& out);
  BusyPeriod run_from(const Chances& first, bool begins);
  Chances first_prompts(const Chances& at_end) const;
  void begin_decoding(double left, double weight, const Chances& came);
  void decoding(double come, PromptQueue& out);

  const SteadyEngine& engine_;
  double batch_, rate_, decodes_;
  double prompt_, chunk_;
  double empty_s_, empty_steps_;  ///< of a step without a prompt
  double full_s_ = 0;             ///< of a full one, on average
  std::size_t most_ = 1;          ///< prompts; more are not told apart
  double parts_ = 1;              ///< of a prompt that are told apart where sequences decode
  double work_ = 0;               ///< chances that were moved
  Chances begins_;                ///< by tokens left, in parts
  std::map<std::pair<long, long>, double> seconds_;
};

/// What prompts do beside so many sequences that decode, by the chain that knows them best.
PromptQueue prompt_queue(const SteadyEngine& engine, double batch, double rate, double decodes);

}  // namespace scalecalc
