// Draws requests and their arrival times from distributions, or replays a trace.
#include "serve/request_mix.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "base/check.h"

namespace scalecalc {

double RequestMix::decode_context() const {
  double steps = 0;
  double context = 0;
  if (rows.empty()) {
    steps = decode_steps();
    context = prompt.mean() * steps + (generate.mean_square() - generate.mean()) / 2;
  }
  for (const ServedRequest& row : rows) {
    const double g = static_cast<double>(row.generate);
    steps += g - 1;
    // Step j of g - 1 attends to prompt + j keys.
    context += (g - 1) * static_cast<double>(row.prompt) + g * (g - 1) / 2;
  }
  return steps > 0 ? context / steps : 0;
}

double RequestMix::most_found() const {
  if (!blocks) return 0;
  std::unordered_set<std::uint64_t> seen;
  double found = 0;
  for (const ServedRequest& row : rows) {
    std::int64_t known = 0;
    bool all = true;
    for (const std::uint64_t id : row.blocks->ids) {
      all = !seen.insert(id).second && all;
      if (all) known += row.blocks->tokens;
    }
    found += static_cast<double>(std::min(known, row.prompt - 1));
  }
  return found / (prompt.mean() * static_cast<double>(rows.size()));
}

std::int64_t RequestMix::largest_cached() const {
  if (rows.empty()) return prompt.largest() + generate.largest() - 1;
  std::int64_t largest = 0;
  for (const ServedRequest& row : rows) largest = std::max(largest, row.prompt + row.generate - 1);
  return largest;
}

Lengths shortened(const Lengths& fixed, double ratio) {
  check(fixed.is_fixed() && ratio > 0 && ratio <= 1, "one length is shortened");
  const std::int64_t longest = fixed.largest();
  const auto shortest = static_cast<std::int64_t>(ratio * static_cast<double>(longest));
  return Lengths({{.first = std::max<std::int64_t>(shortest, 1), .last = longest}});
}

namespace {

/// Draws rows of a mix, or lengths at random.
RandomStream row_stream(std::uint64_t seed) { return RandomStream(seed ^ 0x9E3779B97F4A7C15ULL); }
std::size_t drawn_row(RandomStream& stream, const RequestMix& mix) {
  return static_cast<std::size_t>(stream.uniform() * static_cast<double>(mix.rows.size()));
}

}  // namespace

std::vector<ServedRequest> drawn_requests(const RequestMix& mix, std::int64_t count, std::uint64_t seed) {
  check(count > 0, "there are requests");
  // Streams of their own, so that another length leaves the other numbers as they are.
  RandomStream prompts = row_stream(seed);
  RandomStream generations(seed ^ 0xC2B2AE3D27D4EB4FULL);
  std::vector<ServedRequest> out;
  out.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    ServedRequest request;
    if (mix.rows.empty()) {
      request.prompt = mix.prompt.at(prompts.uniform());
      request.generate = mix.generate.at(generations.uniform());
    } else {
      request = mix.rows[drawn_row(prompts, mix)];
      request.arrival_s = 0;
    }
    out.push_back(request);
  }
  return out;
}

std::vector<std::uint16_t> drawn_tenants(const RequestMix& mix, std::int64_t count, std::uint64_t seed) {
  std::vector<std::uint16_t> out;
  if (mix.tenants.empty()) return out;
  RandomStream rows = row_stream(seed);
  out.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) out.push_back(mix.tenant_of_row[drawn_row(rows, mix)]);
  return out;
}

std::vector<ServedRequest> poisson_requests(const RequestMix& mix, double rate, std::int64_t count,
                                            std::uint64_t seed) {
  check(rate > 0, "requests arrive");
  std::vector<ServedRequest> out = drawn_requests(mix, count, seed);
  RandomStream arrivals(seed);
  double unit_time = 0;
  for (ServedRequest& request : out) request.arrival_s = (unit_time += arrivals.exponential()) / rate;
  return out;
}

std::vector<ServedRequest> replayed_requests(const RequestMix& mix, std::int64_t count, std::optional<double> rate) {
  check(mix.has_arrivals && count > 0, "a trace with arrivals is replayed");
  const auto kept = std::min<std::size_t>(static_cast<std::size_t>(count), mix.rows.size());
  std::vector<ServedRequest> out(mix.rows.begin(), mix.rows.begin() + static_cast<std::ptrdiff_t>(kept));
  const double start = out.front().arrival_s;
  const double span = out.back().arrival_s - start;
  const double stretch = rate && span > 0 ? static_cast<double>(kept) / *rate / span : 1.0;
  for (ServedRequest& request : out) request.arrival_s = (request.arrival_s - start) * stretch;
  return out;
}

}  // namespace scalecalc
