// Requests through a server, or through a pool for prefill and one for decoding, event by event; and what their users
// see of it. Then the same in closed form.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "serve/queue_server.h"
#include "serve/request_mix.h"

namespace scalecalc {

/// Of a sample, nearest rank: the smallest value that the share does not exceed.
struct Percentiles {
  double mean = 0;
  double p50 = 0;
  double p90 = 0;
  double p95 = 0;
  double p99 = 0;
};

/// What one request went through.
struct RequestTimes {
  double arrival_s = 0;
  double admitted_s = 0;  ///< its first chunk started
  double first_token_s = 0;
  double finished_s = 0;
  std::int64_t generate = 1;

  double ttft_s() const { return first_token_s - arrival_s; }
  double latency_s() const { return finished_s - arrival_s; }
  /// Mean time between its tokens; of generations of two tokens or more.
  double tpot_s() const { return (finished_s - first_token_s) / static_cast<double>(generate - 1); }
};

struct QueueFigures {
  std::int64_t requests = 0;
  std::int64_t servers = 1;
  double span_s = 0;  ///< from the first arrival to the last token
  Percentiles ttft_s;
  std::optional<Percentiles> tpot_s;         ///< nothing if every generation is one token
  std::optional<Percentiles> inter_token_s;  ///< over all gaps between what clients get, of all requests
  Percentiles latency_s;
  Percentiles wait_s;  ///< from arrival to the step that takes the request up
  double requests_per_s = 0;
  double output_tokens_per_s = 0;
  double mean_batch = 0;      ///< sequences in a decode step, over steps that decode
  double mean_decoding = 0;   ///< sequences between their first and last token, over time and all servers
  double mean_in_system = 0;  ///< requests between sent and finished, over time and all servers
  double utilisation = 0;     ///< share of the span a server is in a step
  std::int64_t steps = 0;
  std::int64_t evictions = 0;
  std::int64_t recomputed_tokens = 0;
  /// Of the prompts' tokens, those that needed no prefill: found in the chips' memory, the host's, on disk.
  std::array<double, PrefixCache::kPlaces> found_shares{};
  double found_share() const { return found_shares[0] + found_shares[1] + found_shares[2]; }
  /// The queue did not grow: of the requests that came in the second half of the sample, fewer than 5 % (and fewer than
  /// 10) more waited at its end than at its start.
  bool stable = true;
};

/// Of these requests alone: how many, TTFT, TPOT, their whole time and their wait; nothing else.
QueueFigures seen_by_users(const std::vector<RequestTimes>& requests);

struct QueueResult {
  QueueFigures figures;
  std::vector<RequestTimes> requests;  ///< in the order they arrived
};

/// Which server a request goes to.
enum class RequestRouting : std::uint8_t {
  kRandom,       ///< any, as by a hash of the client: each sees its share of the rate
  kRoundRobin,   ///< one after the other
  kLeastLoaded,  ///< the one with the fewest requests
  /// The one that has most of its prompt, if that is more than half; else the one with the fewest requests, and always
  /// where some have many more than others (SGLang's router, cache_aware).
  kPrefixAware,
};
inline constexpr std::array<std::string_view, 4> kRoutingNames{"random", "round-robin", "least-loaded", "prefix-aware"};

/// What lies between clients and the engine. One loop takes requests and sends the tokens of all that are in flight, so
/// a request waits the longer for it the more there are.
struct FrontEnd {
  double request_s = 0;
  double per_client_s = 0;           ///< for each request in flight, itself counted
  std::int64_t stream_interval = 1;  ///< tokens that clients get together; the first comes alone

  double seconds(std::int64_t in_flight) const { return request_s + per_client_s * static_cast<double>(in_flight); }
};

/// A server's engine and its scheduler.
struct ServerKind {
  StepSeconds seconds;
  QueueRules rules;
  Stop stop{};  ///< a simulation throws Stopped when asked to end
  FrontEnd front_end{};
};

/// UserError if a request does not fit the cache alone, with the room there is.
QueueResult simulate_queue(std::span<const ServedRequest> requests, const ServerKind& server, std::int64_t servers = 1,
                           RequestRouting routing = RequestRouting::kLeastLoaded);

/// The same without arrivals: each of `clients` sends its next request as soon as it has the answer to its last, the
/// first ones all at once, until none is left.
QueueResult simulate_clients(std::span<const ServedRequest> requests, std::int64_t clients, const ServerKind& server,
                             std::int64_t servers = 1, RequestRouting routing = RequestRouting::kLeastLoaded);

/// Prefill and decode on servers of their own (DistServe, arXiv:2401.09670; Splitwise, arXiv:2311.18677). A request
/// goes to a prefill server, its cache then to the decode server with the fewest. The first token comes from the
/// prefill server; the transfer counts in the first gap. Transfers do not queue, and a cache leaves its prefill server
/// when the prompt is done. The front-end is that of the prefill servers.
struct DisaggregatedPools {
  ServerKind prefill;
  ServerKind decode;
  std::int64_t prefill_servers = 1;
  std::int64_t decode_servers = 1;
  std::function<double(double tokens)> transfer_s;        ///< seconds for the cache of so many tokens
  RequestRouting routing = RequestRouting::kLeastLoaded;  ///< to the prefill servers
};

struct DisaggregatedResult {
  QueueResult both;
  QueueFigures prefill;  ///< of the prefill pool alone: latency is TTFT
  QueueFigures decode;   ///< of the decode pool alone: arrival is the end of the transfer
};

/// With `clients` they send the requests, as above.
DisaggregatedResult simulate_disaggregated(std::span<const ServedRequest> requests, const DisaggregatedPools& pools,
                                           std::optional<std::int64_t> clients = std::nullopt);

// Continuous batching in its steady state, in closed form.
//
// A simulation's steps, in its own durations: given N sequences that decode, prompts from step to step are a Markov
// chain (prompt_chain.h), whose mean step is what a token of theirs takes; N itself is a queue whose server is shared:
//   gap(N)                           seconds between a sequence's tokens                       [GAP]
//   p(N) ~ prod L (G - 1) gap(j)/j   at L requests a second
//   L_max = B / ((G - 1) t + B X)    the largest stable rate, with X a prompt's part of full steps [RATE-MAX]
// TTFT is the mean number of prompts over the rate, by Little's law.                            [TTFT]

/// Sequences that decode at once at most: the rules' number, or what the cache holds. Under Admission::kRequestFits a
/// sequence holds its whole request; otherwise what it has, half of its generation on average. Also no more than
/// prompts can replace, one chunk a step.
double largest_batch(const StepSeconds& seconds, const QueueRules& rules, const RequestMix& mix);

/// Requests a second that a server keeps up with for ever [RATE-MAX].
double largest_rate(const StepSeconds& seconds, const QueueRules& rules, const RequestMix& mix);

/// Why means in closed form are only near those of a simulation: the first that holds (docs/model.md [LINE]).
enum class OnlyNear : std::uint8_t {
  kNothing,
  kTrace,
  kPrefixes,
  kRouting,
  kLengths,
  kRanks,
  kReceive,
  kWaits,
  kLoad,
  kFew,
  kPlaces,
};
/// As a clause that follows "because".
inline constexpr std::array<std::string_view, 11> kOnlyNearTexts{
    "",
    "arrivals are those of a trace",
    "prompts share prefixes",
    "a router looks at the queues",
    "lengths differ",
    "prompts of more than a quarter of a step fill several ranks unevenly",
    "the engine looks for requests only every few steps",
    "the engine lets prompts wait for others",
    "the rate is more than 0.8 of the largest",
    "few sequences decode, or only for a few steps",
    "requests wait for a place in the cache"};

struct SteadyState {
  double rate = 0;           ///< requests a second
  double largest_rate = 0;   ///< that the server keeps up with
  double largest_batch = 0;  ///< sequences decoding at that rate
  double utilisation = 0;    ///< rate / largest_rate
  /// Nothing of what follows has a steady state if the queue grows.
  bool stable = false;
  OnlyNear only_near = OnlyNear::kNothing;
  /// The means are those of a simulation, within 3 %.
  bool proven() const { return stable && only_near == OnlyNear::kNothing; }
  double batch = 0;          ///< sequences decoding, over time
  double step_s = 0;         ///< a decode step of so many, without a prompt
  double gap_s = 0;          ///< mean time between a sequence's tokens: TPOT
  double prefill_s = 0;      ///< a prompt, from its first step to its first token
  double prefill_share = 0;  ///< of time: steps with a prompt
  /// Mean wait for other prompts, for the step under way and for a place; nothing where there is no place for all.
  std::optional<double> wait_s;
  std::optional<double> ttft_s;
  double latency_s = 0;  ///< wait, prompt and generation; without the wait where that is nothing
  double output_tokens_per_s = 0;
  double finished_per_step = 0;         ///< requests a step, as many admitted
  double admitted_tokens_per_step = 0;  ///< prompt tokens that come into the cache: B P / G in the book, ch. 8
  double evicted_tokens_per_step = 0;   ///< tokens that leave it with their requests: B (P + G) / G
};

SteadyState steady_state(const StepSeconds& seconds, const QueueRules& rules, const RequestMix& mix, double rate);

/// Its rates alone, and what is known without its means of whether these would be proven.
SteadyState steady_rates(const StepSeconds& seconds, const QueueRules& rules, const RequestMix& mix, double rate);

/// Requests and tokens a step, of its gap between tokens.
void add_per_step(SteadyState& state, const RequestMix& mix);

/// Whether a server does so for ever: the rate is below the largest of its steady state.
bool keeps_up(const StepSeconds& seconds, const QueueRules& rules, const RequestMix& mix, double rate);

}  // namespace scalecalc
