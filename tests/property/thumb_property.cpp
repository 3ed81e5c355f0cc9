// The rules of thumb over random machines and jobs: the four readings agree, and each limit is what its derivation
// says.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/scalar.h"
#include "bounds/formulas.h"

namespace scalecalc {
namespace {

struct Job {
  double alpha, batch, chips, width, data_axes, tensor_axes, weight_scale, activation_scale, sparsity;
};

Job random_job() {
  const auto between = [](int low, int high) { return static_cast<double>(*rc::gen::inRange(low, high)); };
  return {.alpha = between(50, 20000),
          .batch = between(1000, 100'000'000),
          .chips = between(1, 100'000),
          .width = between(256, 65536),
          .data_axes = between(1, 3),
          .tensor_axes = between(1, 3),
          .weight_scale = between(1, 5) / 2,
          .activation_scale = between(1, 5) / 2,
          .sparsity = between(1, 33)};
}

template <class R>
rules::MixedSplit<R> split_of(const Reader<R>& reader, const Job& j) {
  return {.alpha = FlopsPerByteOf<R>(reader.input(j.alpha, "alpha", "")),
          .weight_scale = R(j.weight_scale),
          .activation_scale = R(j.activation_scale),
          .data_axes = R(j.data_axes),
          .tensor_axes = R(j.tensor_axes),
          .width = reader.input(j.width, "F", ""),
          .sparsity = R(j.sparsity)};
}

/// Time of the slower exchange with X data ranks, in units of 4 D / W.
double all_to_all(const Job& j, double x) {
  const double y = j.chips / x;
  return std::max(j.weight_scale * j.sparsity * j.width / (y * j.data_axes),
                  j.activation_scale * j.batch / (x * j.tensor_axes));
}

RC_GTEST_PROP(Thumb, AllReadingsAgree, ()) {
  const Job j = random_job();
  const auto plain = split_of(Reader<double>{}, j);
  const auto traced = split_of(Reader<Traced>{}, j);
  const auto dual = split_of(Reader<Dual>("F"), j);
  const double limit = rules::mixed_limit(plain);
  RC_ASSERT(rules::mixed_limit(traced).value() == limit);
  RC_ASSERT(rules::mixed_limit(dual).value == limit);
  RC_ASSERT(std::abs(rules::mixed_limit(dual).derivative * j.width + limit) < 1e-9 * limit);
  const double x = rules::optimal_data_ranks(plain, j.batch, j.chips);
  RC_ASSERT(rules::optimal_data_ranks(traced, Traced(j.batch), Traced(j.chips)).value() == x);
}

RC_GTEST_PROP(Thumb, NoSplitExchangesFasterThanTheOptimum, ()) {
  const Job j = random_job();
  const double best = rules::optimal_data_ranks(split_of(Reader<double>{}, j), j.batch, j.chips);
  for (const double factor : {0.25, 0.5, 0.9, 1.1, 2.0, 4.0}) {
    RC_ASSERT(all_to_all(j, best) <= all_to_all(j, best * factor) * (1 + 1e-12));
  }
}

RC_GTEST_PROP(Thumb, TheMixedLimitIsWhereTheOptimumTakesAsLongAsTheMatmuls, ()) {
  const Job j = random_job();
  const auto split = split_of(Reader<double>{}, j);
  const double x = rules::optimal_data_ranks(split, j.batch, j.chips);
  const double math = j.batch * j.width / (j.chips * j.alpha);
  const double ratio = rules::mixed_math_over_comms(split, j.batch / j.chips);
  RC_ASSERT(std::abs(ratio - math / all_to_all(j, x)) < 1e-9 * ratio);
  RC_ASSERT((ratio > 1) == (j.batch / j.chips > rules::mixed_limit(split)));
}

RC_GTEST_PROP(Thumb, LimitsFollowWhatIsSent, ()) {
  const Job j = random_job();
  const FlopsPerByte alpha(j.alpha);
  const double data = rules::data_limit(alpha, j.weight_scale, j.data_axes, j.sparsity);
  RC_ASSERT(rules::data_limit(alpha, 2 * j.weight_scale, j.data_axes, j.sparsity) == 2 * data);
  RC_ASSERT(rules::data_limit(alpha, j.weight_scale, j.data_axes + 1, j.sparsity) < data);
  const double tensor = rules::tensor_limit(alpha, j.activation_scale, j.tensor_axes, j.width);
  RC_ASSERT(rules::tensor_limit(alpha * 2.0, j.activation_scale / 2, j.tensor_axes, j.width) == tensor);  // int8
  RC_ASSERT(rules::tensor_limit(alpha, j.activation_scale, j.tensor_axes, 2 * j.width) == 2 * tensor);
}

}  // namespace
}  // namespace scalecalc
