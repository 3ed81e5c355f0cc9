#include "serve/request_mix.h"

#include <algorithm>

#include "base/check.h"
#include "serve/random_stream.h"

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

std::int64_t RequestMix::largest_cached() const {
  if (rows.empty()) return prompt.largest() + generate.largest() - 1;
  std::int64_t largest = 0;
  for (const ServedRequest& row : rows) largest = std::max(largest, row.prompt + row.generate - 1);
  return largest;
}

std::vector<ServedRequest> poisson_requests(const RequestMix& mix, double rate, std::int64_t count,
                                            std::uint64_t seed) {
  check(rate > 0 && count > 0, "requests arrive");
  // Streams of their own, so that another rate or another length leaves the other numbers as they are.
  RandomStream arrivals(seed);
  RandomStream prompts(seed ^ 0x9E3779B97F4A7C15ULL);
  RandomStream generations(seed ^ 0xC2B2AE3D27D4EB4FULL);
  std::vector<ServedRequest> out;
  out.reserve(static_cast<std::size_t>(count));
  double unit_time = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    unit_time += arrivals.exponential();
    ServedRequest request{.arrival_s = unit_time / rate};
    if (mix.rows.empty()) {
      request.prompt = mix.prompt.at(prompts.uniform());
      request.generate = mix.generate.at(generations.uniform());
    } else {
      const double at = prompts.uniform() * static_cast<double>(mix.rows.size());
      const ServedRequest& row = mix.rows[static_cast<std::size_t>(at)];
      request.prompt = row.prompt;
      request.generate = row.generate;
    }
    out.push_back(request);
  }
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
