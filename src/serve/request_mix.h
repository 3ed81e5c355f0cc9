// What the requests of a service look like: lengths drawn from distributions, or the rows of a trace; when they
// arrive.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "model/lengths.h"
#include "serve/prefix_cache.h"

namespace scalecalc {

// Random numbers that are the same on every platform: std::mt19937_64 is specified to the bit, the standard library's
// distributions are not, and neither is std::log.
class RandomStream {
 public:
  explicit RandomStream(std::uint64_t seed) : engine_(seed) {}

  /// Uniform in [0, 1), a multiple of 2^-53.
  double uniform() { return static_cast<double>(engine_() >> 11) * 0x1.0p-53; }

  /// Exponential with mean 1 by comparisons alone: von Neumann, "Various techniques used in connection with random
  /// digits", NBS Applied Mathematics Series 12 (1951), 36-38. A descending run of odd length accepts its first number.
  double exponential() {
    for (double whole = 0;; whole += 1) {
      const double first = uniform();
      bool odd = true;
      for (double last = first;; odd = !odd) {
        const double next = uniform();
        if (next >= last) break;
        last = next;
      }
      if (odd) return whole + first;
    }
  }

 private:
  std::mt19937_64 engine_;
};

struct ServedRequest {
  double arrival_s = 0;
  std::int64_t prompt = 1;               ///< tokens
  std::int64_t generate = 1;             ///< tokens, the first included
  const PromptBlocks* blocks = nullptr;  ///< what its prompt shares with others; of the mix it comes from
};

/// The blocks of a trace's prompts.
struct TraceBlocks {
  std::vector<std::uint64_t> ids;
  std::vector<PromptBlocks> prompts;  ///< in `ids`
};

/// Limits of a percentile; nothing = no limit.
struct LatencyLimits {
  std::optional<double> ttft_s;
  std::optional<double> tpot_s;
  std::optional<double> latency_s;
  double share = 0.95;  ///< of requests that keep each of them: 0.5, 0.95 or 0.99
  bool any() const { return ttft_s || tpot_s || latency_s; }
};

/// One of several users of a service: a share of its requests, with lengths and limits of their own.
struct Tenant {
  std::string name;
  double share = 1;                         ///< of the requests; those of all are divided by their sum
  std::optional<Lengths> prompt, generate;  ///< absent: as the other requests
  LatencyLimits limits;
};

/// Lengths of prompt and generation: independent of each other, or together as in a trace.
struct RequestMix {
  Lengths prompt = Lengths::fixed(1);
  Lengths generate = Lengths::fixed(1);
  std::vector<ServedRequest> rows;              ///< of a trace; empty if the two are independent
  bool has_arrivals = false;                    ///< the rows say when they arrive
  std::shared_ptr<const TraceBlocks> blocks{};  ///< of the rows, if they say what they share
  std::vector<std::string> notes{};             ///< what was assumed while the rows were read
  std::vector<Tenant> tenants{};                ///< whose requests the rows are; see of_tenants
  std::vector<std::uint16_t> tenant_of_row{};   ///< index into `tenants`
  double length_ratio = 1;  ///< asked for: the shortest length over the longest, of prompts and of generations

  /// It has arrivals, all at one moment: a burst has no rate.
  bool is_burst() const { return has_arrivals && rows.back().arrival_s <= rows.front().arrival_s; }
  bool is_fixed() const { return prompt.is_fixed() && generate.is_fixed(); }
  /// Decode steps of a request: its first token comes from the prefill.
  double decode_steps() const { return generate.mean() - 1; }
  /// Keys a decode token attends to, itself included, on average over all decode tokens; 0 if there are none.
  double decode_context() const;
  /// Share of all prompts' tokens that a cache which forgets nothing would find.
  double most_found() const;
  /// Most tokens in the cache that a request may come to.
  std::int64_t largest_cached() const;
};

/// A trace, by its header or keys: CSV with the columns prompt, generate and, if wanted, arrival in seconds since any
/// moment, not falling, or one JSON object a line (".jsonl") with these keys; Azure's and BurstGPT's CSV; Mooncake's
/// JSON lines, with what prompts share; ShareGPT's JSON, in characters; detailed results of vLLM's and SGLang's
/// benchmarks. UserError with file:line:column otherwise.
RequestMix read_trace(std::string_view text, const std::string& file);

/// Every whole number from `ratio` times the longest to it, equally likely: vllm bench serve --random-range-ratio, as
/// InferenceMAX uses it. The lengths are fixed, 0 < ratio <= 1.
Lengths shortened(const Lengths& fixed, double ratio);

/// The requests of the mix's tenants: rows as many as their shares say, over which the lengths of each lie evenly.
/// Tenants without lengths of their own have those of `mix`.
RequestMix of_tenants(const RequestMix& mix);

/// `count` requests without arrivals; rows of a trace are drawn with replacement.
std::vector<ServedRequest> drawn_requests(const RequestMix& mix, std::int64_t count, std::uint64_t seed);

/// Whose they are, by the tenants' numbers.
std::vector<std::uint16_t> drawn_tenants(const RequestMix& mix, std::int64_t count, std::uint64_t seed);

/// The same, arriving at random, `rate` a second (Poisson).
std::vector<ServedRequest> poisson_requests(const RequestMix& mix, double rate, std::int64_t count, std::uint64_t seed);

/// The first `count` rows of a trace with arrivals, counted from the first; `rate`, if given, stretches the times so
/// that so many arrive a second.
std::vector<ServedRequest> replayed_requests(const RequestMix& mix, std::int64_t count,
                                             std::optional<double> rate = std::nullopt);

}  // namespace scalecalc
