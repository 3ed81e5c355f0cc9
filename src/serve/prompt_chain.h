// The prompts' part of continuous batching in its steady state: who waits and who is computed, from step to step.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "serve/queue_server.h"
#include "serve/request_mix.h"

namespace scalecalc {

/// The engine under one mix of requests. All durations are those of the simulation's steps.
class SteadyEngine {
 public:
  /// Keeps references to the step's seconds and the rules.
  SteadyEngine(const StepSeconds& seconds, const QueueRules& rules, const RequestMix& mix);

  bool mixes() const { return rules_.batching == Batching::kChunkedPrefill; }
  const QueueRules& rules() const { return rules_; }
  double decode_step(double batch) const { return batch > 0 ? seconds_(decoding(batch)) : 0; }

  /// Tokens of prompts that a step computes at most, of all and of one.
  double chunk(double batch) const;
  double chunk_of_one(double batch) const;
  /// Of a prompt, on average.
  double computed_tokens() const { return computed_; }
  bool one_length() const { return prompts_.size() == 1; }
  /// Steps that a prompt takes when it does not share any: mean and variance.
  std::pair<double, double> steps_of_one(double batch) const;
  /// Tokens that prompts have in such steps, ascending, each with its share of them.
  std::vector<std::pair<double, double>> chunks(double batch) const;

  /// A step that computes so many tokens of so many prompts.
  double prefill_step(double batch, double prompts, double tokens, double largest = 0) const;
  /// One that computes so many tokens of prompts of one length in line, of whose first so many are left.
  double step_in_line(double batch, double head, double tokens) const;
  /// One with no room for more, of so many prompts on average.
  double full_step(double batch, double prompts) const;
  /// E[X] where prompts wait in line, so that every step with prompts is full.
  double packed_cost(double batch) const;

 private:
  struct Prompt {
    double computed, cached;
  };
  StepLoad decoding(double batch) const { return {.sequences = batch, .context_tokens = batch * context_}; }

  const StepSeconds& seconds_;
  const QueueRules& rules_;
  double context_;
  std::vector<Prompt> prompts_;  ///< equally likely ones, in whose place expectations are taken
  double computed_ = 0;          ///< tokens of a prompt
  double keys_ = 0;              ///< they attend to, all together
};

/// What is seen while so many sequences decode; their number changes slowly beside that of prompts.
struct PromptQueue {
  double prompts = 0;     ///< that have no first token yet, over time
  double in_service = 0;  ///< of them in a step
  double gap_s = 0;       ///< of a sequence's decode steps, the mean
  double step_share = 0;  ///< of time: steps with a prompt
  double step_s = 0;      ///< of decode steps, the mean of all, whoever is there
  double dispersion = 1;  ///< of the prompts that end during so many decode steps as a sequence has: variance over mean
  bool settled = true;    ///< followed until nothing changed
};

/// The number of prompts from step to step, a Markov chain: those of a step whose last chunk it was leave, and all that
/// came during the step are there at the next (docs/model.md [PROMPTS]).
class PromptChain {
 public:
  /// `decodes`: steps of a sequence; 0 = gap_s is the mean of all decode steps.
  PromptChain(const SteadyEngine& engine, double batch, double rate, double decodes);

  PromptQueue solve() const;

 private:
  using Chances = std::vector<double>;

  PromptQueue crowd() const;
  double duration(double prompts) const;
  double largest_of(double prompts) const;
  Chances leaving(double prompts) const;
  static void add_arrivals(double mean, double weight, std::size_t from, Chances& to);
  double decode_steps(std::size_t prompts) const;
  Chances beside_a_new_one(const Chances& share, const std::vector<double>& time) const;
  void decoding(const std::vector<Chances>& to, const std::vector<double>& time, const Chances& share,
                PromptQueue& out) const;
  PromptQueue figures(const Chances& share, const std::vector<double>& time) const;

  const SteadyEngine& engine_;
  double batch_, rate_, decodes_;
  double steps_ = 1, steps_variance_ = 0;          ///< of a prompt
  double each_ = 1;                                ///< tokens of a prompt in a step
  double at_once_ = 1;                             ///< prompts that a step has room for
  double decode_ = 0;                              ///< a step without a prompt
  double looks_ = 1;                               ///< such steps before the next look for requests
  std::vector<std::pair<double, double>> chunks_;  ///< as the engine's
  double chunk_variance_ = 0;
};

}  // namespace scalecalc
