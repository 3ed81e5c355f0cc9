// Assumes a training batch for a model that names none, and says where it comes from.
#include "model/usual_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/diagnostic.h"
#include "base/text.h"
#include "base/units.h"

namespace scalecalc {
namespace {

/// "4,194,304", whole numbers in full.
std::string plain_count(double value) {
  constexpr double kLargest = 1e15;
  return value < kLargest && value == std::floor(value) ? group_thousands(static_cast<long long>(value))
                                                        : fmt::format("{:.4g}", value);
}

}  // namespace

double usual_batch(double active_parameters) {
  return std::exp2(std::round(std::log2(kBatchScale * std::pow(active_parameters, kBatchExponent))));
}

std::string usual_batch_source() {
  return fmt::format(
      "assumed: none is published; {:g} N^{:g} of N active parameters, to a power of two, as published runs from GPT-3 "
      "to DeepSeek-V3 had, within a factor of {:g}",
      kBatchScale, kBatchExponent, kBatchScatter);
}

void refuse_run_below_step(double tokens, double step_tokens, std::optional<double> usual, bool typed) {
  constexpr double kRounding = 1e-9;
  if (tokens >= step_tokens * (1 - kRounding)) return;
  std::string message =
      fmt::format("{} tokens are less than one step of {} tokens", plain_count(tokens), plain_count(step_tokens));
  if (!typed) {
    throw UserError("the run's " + message, "--tokens says how long the run is, --batch-tokens the step");
  }
  // A suffix was left out: the one that comes nearest to the usual length, or to a thousand steps.
  constexpr double kSteps = 1'000;
  const double near = usual.value_or(kSteps * step_tokens);
  constexpr std::array<std::pair<double, char>, 4> kSuffixes{{{1e3, 'k'}, {1e6, 'M'}, {1e9, 'B'}, {1e12, 'T'}}};
  const auto* nearest = std::min_element(kSuffixes.begin(), kSuffixes.end(), [&](const auto& a, const auto& b) {
    return std::abs(std::log(tokens * a.first / near)) < std::abs(std::log(tokens * b.first / near));
  });
  throw UserError(
      "--tokens: " + message,
      fmt::format("did you mean --tokens {:g}{}? --batch-tokens says how large a step is", tokens, nearest->second));
}

}  // namespace scalecalc
