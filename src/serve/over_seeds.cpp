// Computes means of simulations with their confidence over several seeds or parts.
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

constexpr std::size_t kParts = 20;
constexpr double kStudentOfParts = 2.093;  // of 97.5 %, with one degree of freedom less

/// Of the mean of equally long parts.
double half_width_of(const std::array<double, kParts>& parts) {
  double sum = 0, square = 0;
  for (const double x : parts) sum += x;
  const double mean = sum / kParts;
  for (const double x : parts) square += (x - mean) * (x - mean);
  return kStudentOfParts * std::sqrt(square / (kParts - 1) / kParts);
}

}  // namespace

std::optional<MeanErrors> errors_of(const QueueResult& run) {
  constexpr std::size_t kFewest = 20;  // of a part
  const std::size_t size = run.requests.size() / kParts;
  if (size < kFewest || !run.figures.stable) return std::nullopt;
  struct Means {
    double ttft = 0, latency = 0, wait = 0, tpot = 0, answers = 0, decoding = 0, tokens = 0;
  };
  std::array<Means, kParts> parts{};
  for (std::size_t i = 0; i < size * kParts; ++i) {
    const RequestTimes& r = run.requests[i];
    Means& part = parts[i / size];
    const double each = 1 / static_cast<double>(size);
    part.ttft += each * r.ttft_s();
    part.latency += each * r.latency_s();
    part.wait += each * (r.admitted_s - r.arrival_s);
    if (r.generate <= 1) continue;
    part.tpot += r.tpot_s();
    part.answers += 1;
    part.decoding += r.finished_s - r.first_token_s;
    part.tokens += static_cast<double>(r.generate - 1);
  }
  const auto half_width = [&](auto of) {
    std::array<double, kParts> each{};
    std::transform(parts.begin(), parts.end(), each.begin(), of);
    return half_width_of(each);
  };
  // Tokens may come to clients several at a time.
  const double of_tokens =
      run.figures.inter_token_s && run.figures.tpot_s ? run.figures.inter_token_s->mean / run.figures.tpot_s->mean : 0;
  return MeanErrors{
      .ttft_s = half_width([](const Means& p) { return p.ttft; }),
      .tpot_s = half_width([](const Means& p) { return p.answers > 0 ? p.tpot / p.answers : 0; }),
      .inter_token_s = of_tokens * half_width([](const Means& p) { return p.tokens > 0 ? p.decoding / p.tokens : 0; }),
      .latency_s = half_width([](const Means& p) { return p.latency; }),
      .wait_s = half_width([](const Means& p) { return p.wait; })};
}

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

MeanErrors errors_of(const std::vector<QueueFigures>& runs) {
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
