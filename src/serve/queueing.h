// Requests through a server, or through a pool for prefill and one for decoding, event by event; and what their users
// see of it. The closed forms beside it are in steady_state.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "serve/queue_server.h"
#include "serve/request_mix.h"

namespace scalecalc {

/// Of a sample, nearest rank: the smallest value that the share does not exceed.
struct Percentiles {
  double mean = 0;
  double p50 = 0;
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
  std::optional<Percentiles> inter_token_s;  ///< over all gaps between tokens of all requests
  Percentiles latency_s;
  Percentiles wait_s;  ///< from arrival to the step that takes the request up
  double requests_per_s = 0;
  double output_tokens_per_s = 0;
  double mean_batch = 0;      ///< sequences in a decode step, over steps that decode
  double mean_decoding = 0;   ///< sequences between their first and last token, over time and all servers
  double mean_in_system = 0;  ///< requests, over time and all servers
  double utilisation = 0;     ///< share of the span a server is in a step
  std::int64_t steps = 0;
  std::int64_t evictions = 0;
  std::int64_t recomputed_tokens = 0;
  /// The queue did not grow: of the requests that came in the second half of the sample, fewer than 5 % (and fewer than
  /// 10) more waited at its end than at its start.
  bool stable = true;
};

struct QueueResult {
  QueueFigures figures;
  std::vector<RequestTimes> requests;  ///< in the order they arrived
};

/// A server's engine and its scheduler.
struct ServerKind {
  StepSeconds seconds;
  QueueRules rules;
};

/// UserError if a request does not fit the cache alone, with the room there is.
QueueResult simulate_queue(std::span<const ServedRequest> requests, const ServerKind& server);

/// Prefill and decode on servers of their own (DistServe, arXiv:2401.09670; Splitwise, arXiv:2311.18677). A request
/// goes to the prefill server with the fewest requests, its cache then to the decode server with the fewest. The first
/// token comes from the prefill server; the transfer counts in the first gap. Transfers do not queue, and a cache
/// leaves its prefill server when the prompt is done.
struct DisaggregatedPools {
  ServerKind prefill;
  ServerKind decode;
  std::int64_t prefill_servers = 1;
  std::int64_t decode_servers = 1;
  std::function<double(double tokens)> transfer_s;  ///< seconds for the cache of so many tokens
};

struct DisaggregatedResult {
  QueueResult both;
  QueueFigures prefill;  ///< of the prefill pool alone: latency is TTFT
  QueueFigures decode;   ///< of the decode pool alone: arrival is the end of the transfer
};

DisaggregatedResult simulate_disaggregated(std::span<const ServedRequest> requests, const DisaggregatedPools& pools);

}  // namespace scalecalc
