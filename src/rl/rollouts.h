// Generating the responses of one step: what each engine replica is given, and how long until the last token of all.
//
// All prompts of a step are there at once. A replica works through its share as serve's engine does (continuous
// batching, cache in blocks, evictions), event by event; when no prompt waits any more the batch thins out, and the
// longest response alone ends the step. No closed form of means has that tail.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/stop.h"
#include "serve/serve_question.h"
#include "serve/traffic.h"

namespace scalecalc {

struct RolloutLoad {
  RequestMix mix;
  std::int64_t prompts = 1;   ///< of a step
  std::int64_t rollouts = 1;  ///< responses to each
  double prefix_hit = 0;      ///< share of a prompt found in the cache
  double host_s = 0;          ///< beside every step of the engine
  std::int64_t depth = 0;     ///< steps by which the weights that generate may be older than those that train

  std::int64_t sequences() const { return prompts * rollouts; }
};

/// Means over the responses of a step, in tokens.
struct RolloutTokens {
  double prompt = 0;
  double response = 0;
  double longest = 0;  ///< longest response of all
  double square = 0;   ///< mean square of prompt and response together
  double total() const { return prompt + response; }
  /// Length at which equal sequences have the same tokens and the same pairs that attend: E[L^2] / E[L].
  double packed() const { return square / total(); }
};
RolloutTokens rollout_tokens(const RequestMix& mix, std::int64_t sequences);

/// `share` of the step's requests, drawn evenly from the distribution, in an order that mixes long and short; one of
/// them is as long as the longest of all `sequences`, for the replica that has it ends last.
std::vector<ServedRequest> rollout_share(const RequestMix& mix, std::int64_t sequences, std::int64_t share);

/// An engine's step of generation on some chips.
struct Generation {
  ServeLayout layout;
  std::int64_t chips = 0;
  double seconds = 0;    ///< of a step's responses
  double longest_s = 0;  ///< of the longest response from its first token
  /// Depth 0 and 1: share of the time after nine tenths of the responses have ended.
  double tail = 0;
  double mean_batch = 0;  ///< sequences of a replica's step
  double context = 0;     ///< tokens that each attends to, on average
  double decode_s = 0;    ///< a step of so many at that context
  double host_s = 0;      ///< of it, the framework's own
  std::int64_t evictions = 0;
  double weight_bytes = 0, kv_bytes = 0, fixed_bytes = 0, graph_bytes = 0;  ///< of a chip; the cache as large as it is
  double total_bytes() const { return weight_bytes + kv_bytes + fixed_bytes; }
  Slice slice{};
  Placement placement{};
};

/// The mean decode step with its formulas.
SecondsOf<Traced> explain_decode(const ServingSystem& system, const Generation& generation);

class Generator {
 public:
  /// Keeps what `system` points to; `taken` bytes of every chip are somebody else's.
  Generator(const ServingSystem& system, RolloutLoad load, ServePins fix, ServePins max, double taken = 0,
            Stop stop = {});

  // What follows throws Stopped when asked to end.

  /// The fastest layout on exactly so many chips; nothing if no layout holds the longest sequence, or none can take
  /// less than `worth` seconds.
  std::optional<Generation> best(std::int64_t chips, double worth);
  /// No layout on so many chips generates faster; nothing if none fits.
  std::optional<double> bound(std::int64_t chips);
  /// Where nothing fitted: the least bytes of a chip that a sequence would need.
  const std::optional<BindingLimit>& shortage() const { return shortage_; }
  std::size_t layouts() const { return layouts_; }
  std::size_t simulated() const { return simulated_; }

 private:
  struct Candidate {
    ServeLayout layout;
    Slice slice;
    Placement placement;
    ServeMemory memory;
    ServerKind server;
    double bound = 0;
  };
  const std::vector<Candidate>& candidates(std::int64_t chips);
  Candidate candidate(const ServeLayout& layout, const Slice& slice) const;
  double bound_of(const Candidate& candidate) const;
  Generation simulate(const Candidate& candidate, std::int64_t chips) const;
  Generation stream(const Candidate& candidate, std::int64_t chips) const;
  std::int64_t share_of(const ServeLayout& layout) const;

  std::shared_ptr<const HardwareSpec> hw_;
  ServeBasis<double> basis_;
  RolloutLoad load_;
  ServePins fix_, max_;
  Stop stop_;
  std::map<std::int64_t, std::vector<Candidate>> known_;
  std::optional<BindingLimit> shortage_;
  std::size_t layouts_ = 0;
  std::size_t simulated_ = 0;
};

}  // namespace scalecalc
