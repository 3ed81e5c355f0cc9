// Statistics of predictions: what must hold for any lists of numbers.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "calibrate/minimize.h"
#include "validate/statistics.h"

namespace scalecalc {
namespace {

/// Few distinct values, so that ties are common.
rc::Gen<std::vector<double>> list_of(std::size_t size) {
  return rc::gen::container<std::vector<double>>(
      size, rc::gen::map(rc::gen::inRange(0, 8), [](int x) { return static_cast<double>(x); }));
}

RC_GTEST_PROP(StatisticsProperty, CorrelationsSeeOrderAlone, ()) {
  const auto size = *rc::gen::inRange<std::size_t>(2, 12);
  const std::vector<double> a = *list_of(size);
  const std::vector<double> b = *list_of(size);
  std::vector<double> stretched(a);
  for (double& x : stretched) x = std::exp(x) + 3;
  for (const auto correlation : {spearman, kendall}) {
    const auto value = correlation(a, b);
    RC_ASSERT(value.has_value() == correlation(stretched, b).has_value());
    if (!value) continue;
    RC_ASSERT(std::abs(*value) <= 1 + 1e-12);
    RC_ASSERT(std::abs(*value - *correlation(stretched, b)) < 1e-12);
    RC_ASSERT(std::abs(*value - *correlation(b, a)) < 1e-12);
    RC_ASSERT(std::abs(*correlation(a, a) - 1) < 1e-12);
  }
}

RC_GTEST_PROP(StatisticsProperty, QuantilesRiseFromTheLeastToTheMost, ()) {
  const std::vector<double> values = *list_of(*rc::gen::inRange<std::size_t>(1, 12));
  double before = *std::min_element(values.begin(), values.end());
  for (int step = 0; step <= 10; ++step) {
    const double value = quantile(values, step / 10.0);
    RC_ASSERT(value >= before);
    before = value;
  }
  RC_ASSERT(before == *std::max_element(values.begin(), values.end()));
}

RC_GTEST_PROP(MinimizeProperty, NoStepFromTheMinimumOfABowlLeadsDown, ()) {
  const auto size = *rc::gen::inRange<std::size_t>(2, 6);
  const std::vector<double> bottom = *list_of(size);
  const auto bowl = [&](const std::vector<double>& x) {
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += (1 + static_cast<double>(i)) * std::pow(x[i] - bottom[i] / 4, 2);
    return sum;
  };
  const Bounds bounds{std::vector<double>(size, 0), std::vector<double>(size, 1)};
  const std::vector<double> found = minimize(bowl, std::vector<double>(size, 0.5), bounds);
  for (std::size_t i = 0; i < size; ++i) {
    RC_ASSERT(std::abs(found[i] - std::clamp(bottom[i] / 4, 0.0, 1.0)) < 5e-3);
  }
}

}  // namespace
}  // namespace scalecalc
