#include "serve/over_seeds.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"

namespace scalecalc {
namespace {

template <class Of>
double mean_over(const std::vector<QueueFigures>& runs, Of of) {
  double sum = 0;
  for (const QueueFigures& run : runs) sum += of(run);
  return sum / static_cast<double>(runs.size());
}

}  // namespace

QueueFigures mean_of(const std::vector<QueueFigures>& runs) {
  QueueFigures out = runs.front();
  const auto percentiles = [&](auto of) {
    const auto each = [&](double Percentiles::*member) {
      return mean_over(runs, [&](const QueueFigures& run) { return of(run).*member; });
    };
    return Percentiles{each(&Percentiles::mean), each(&Percentiles::p50), each(&Percentiles::p90),
                       each(&Percentiles::p95), each(&Percentiles::p99)};
  };
  out.ttft_s = percentiles([](const QueueFigures& f) { return f.ttft_s; });
  out.latency_s = percentiles([](const QueueFigures& f) { return f.latency_s; });
  out.wait_s = percentiles([](const QueueFigures& f) { return f.wait_s; });
  const auto all_have = [&](auto member) {
    return std::all_of(runs.begin(), runs.end(), [&](const QueueFigures& f) { return (f.*member).has_value(); });
  };
  if (all_have(&QueueFigures::tpot_s)) out.tpot_s = percentiles([](const QueueFigures& f) { return *f.tpot_s; });
  if (all_have(&QueueFigures::inter_token_s)) {
    out.inter_token_s = percentiles([](const QueueFigures& f) { return *f.inter_token_s; });
  }
  for (double QueueFigures::*member :
       {&QueueFigures::span_s, &QueueFigures::requests_per_s, &QueueFigures::output_tokens_per_s,
        &QueueFigures::mean_batch, &QueueFigures::mean_decoding, &QueueFigures::mean_in_system,
        &QueueFigures::utilisation}) {
    out.*member = mean_over(runs, [&](const QueueFigures& f) { return f.*member; });
  }
  for (std::size_t i = 0; i < out.found_shares.size(); ++i) {
    out.found_shares[i] = mean_over(runs, [&](const QueueFigures& f) { return f.found_shares[i]; });
  }
  for (std::int64_t QueueFigures::*member :
       {&QueueFigures::requests, &QueueFigures::steps, &QueueFigures::evictions, &QueueFigures::recomputed_tokens}) {
    out.*member = 0;
    for (const QueueFigures& f : runs) out.*member += f.*member;
  }
  return out;
}

SeedErrors errors_of(const std::vector<QueueFigures>& runs) {
  // Student's t of 97.5 % by degrees of freedom, one less than the runs.
  constexpr std::array<double, 5> kStudent{0, 12.706, 4.303, 3.182, 2.776};
  const auto runs_count = static_cast<double>(runs.size());
  check(runs.size() <= kStudent.size(), "Student's t is known for so many runs");
  const auto half_width = [&](auto of) {
    const double mean = mean_over(runs, of);
    const double square = mean_over(runs, [&](const QueueFigures& f) { return (of(f) - mean) * (of(f) - mean); });
    return runs.size() > 1 ? kStudent[runs.size() - 1] * std::sqrt(square / (runs_count - 1)) : 0.0;
  };
  return {
      .ttft_s = half_width([](const QueueFigures& f) { return f.ttft_s.mean; }),
      .tpot_s = half_width([](const QueueFigures& f) { return f.tpot_s.value_or(Percentiles{}).mean; }),
      .inter_token_s = half_width([](const QueueFigures& f) { return f.inter_token_s.value_or(Percentiles{}).mean; }),
      .latency_s = half_width([](const QueueFigures& f) { return f.latency_s.mean; }),
      .wait_s = half_width([](const QueueFigures& f) { return f.wait_s.mean; }),
      .output_tokens_per_s = half_width([](const QueueFigures& f) { return f.output_tokens_per_s; })};
}

}  // namespace scalecalc
