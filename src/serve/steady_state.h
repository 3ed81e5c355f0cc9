// Continuous batching in its steady state, in closed form.
//
// Every decode step takes t(B) with B sequences; chunks of prompts come on top. A request's chunks add X(B) seconds to
// the steps they ride in (or are steps of their own). At L requests a second, chunks take L X of each second, the rest
// is decode steps:
//   gap = t(B) / (1 - L X(B))        seconds between a sequence's tokens                       [GAP]
//   B = L (G - 1) gap                sequences decoding, by Little's law; L at a full batch is
//   L_max = B / ((G - 1) t + B X)    the largest stable rate                                   [RATE-MAX]
// A prompt waits for the prompts before it and for the step under way: an M/G/1 queue whose server decodes when no
// prompt waits, W = L E[S^2] / (2 (1 - L E[S])) + t / 2 (Kleinrock, Queueing Systems I, section 5.7; vacations: Doshi,
// Queueing Systems 1 (1986) 29-66), with S a prompt's chunks from first to last; of equal prompts M/D/1.    [TTFT]
#pragma once

#include <optional>

#include "serve/queue_server.h"
#include "serve/request_mix.h"

namespace scalecalc {

/// Sequences that decode at once at most: the rules' number, or what the cache holds. Under Admission::kRequestFits a
/// sequence holds its whole request; otherwise what it has, half of its generation on average. Also no more than
/// prompts can replace, one chunk a step.
double largest_batch(const StepSeconds& seconds, const QueueRules& rules, const RequestMix& mix);

/// Requests a second that a server keeps up with for ever [RATE-MAX].
double largest_rate(const StepSeconds& seconds, const QueueRules& rules, const RequestMix& mix);

struct SteadyState {
  double rate = 0;           ///< requests a second
  double largest_rate = 0;   ///< that the server keeps up with
  double largest_batch = 0;  ///< sequences decoding at that rate
  double utilisation = 0;    ///< rate / largest_rate
  /// Nothing of what follows has a steady state if the queue grows.
  bool stable = false;
  double batch = 0;          ///< sequences decoding, over time
  double step_s = 0;         ///< a decode step without a prompt
  double gap_s = 0;          ///< mean time between a sequence's tokens: TPOT
  double prefill_s = 0;      ///< a prompt, from its first step to its first token
  double prefill_share = 0;  ///< of time: steps with a prompt
  /// Mean wait for other prompts and for the step under way; nothing where prompts share steps so much that the queue
  /// of single prompts would grow.
  std::optional<double> wait_s;
  std::optional<double> ttft_s;
  double latency_s = 0;  ///< wait, prompt and generation; without the wait where that is nothing
  double output_tokens_per_s = 0;
  double finished_per_step = 0;         ///< requests a step, as many admitted
  double admitted_tokens_per_step = 0;  ///< prompt tokens that come into the cache: B P / G in the book, ch. 8
  double evicted_tokens_per_step = 0;   ///< tokens that leave it with their requests: B (P + G) / G
};

SteadyState steady_state(const StepSeconds& seconds, const QueueRules& rules, const RequestMix& mix, double rate);

/// Mean wait in an M/G/1 queue: rate E[S^2] / (2 (1 - rate E[S])) (Pollaczek-Khinchine). rate E[S] < 1.
double pollaczek_khinchine_wait(double rate, double mean_service, double mean_square_service);

}  // namespace scalecalc
