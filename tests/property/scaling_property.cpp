// Properties of scaling laws: what more compute and more serving do to the best choice, and the conditions it meets.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "scaling_law/allocation.h"

namespace scalecalc {
namespace {

double between(double low, double high) {
  const int step = *rc::gen::inRange(0, 10'001);
  return low + (high - low) * step / 10'000;
}
double log_between(double low, double high) { return std::exp2(between(std::log2(low), std::log2(high))); }

LossSurface<double> any_law() {
  return {between(0, 3), log_between(10, 1e4), log_between(10, 1e5), between(0.1, 0.5), between(0.1, 0.5)};
}

RC_GTEST_PROP(ScalingProperty, FirstOrderConditionHoldsAndTheBudgetIsSpent, ()) {
  const LossSurface<double> l = any_law();
  const double flops = log_between(1e18, 1e28);
  const Allocation<double> best = compute_optimal(l, Flops(flops));
  RC_ASSERT(std::abs(flops_to_train(best).value() / flops - 1) < 1e-9);
  const double n = l.alpha * l.a * std::pow(best.parameters, -l.alpha);
  const double d = l.beta * l.b * std::pow(best.tokens, -l.beta);
  RC_ASSERT(std::abs(n / d - 1) < 1e-9);
}

RC_GTEST_PROP(ScalingProperty, MoreComputeIsALargerModelOnMoreTokensWithLessLoss, ()) {
  const LossSurface<double> l = any_law();
  const double flops = log_between(1e18, 1e27);
  const double kappa = *rc::gen::arbitrary<bool>() ? 0 : log_between(1e6, 1e15);
  const auto at = [&](double budget) {
    const double tokens = lifetime_tokens_for_budget(l, budget, kappa);
    return Allocation<double>{budget / (6 * (tokens + kappa)), tokens};
  };
  const Allocation<double> less = at(flops);
  const Allocation<double> more = at(flops * 2);
  RC_ASSERT(more.parameters > less.parameters);
  RC_ASSERT(more.tokens > less.tokens);
  RC_ASSERT(loss_at(l, more) < loss_at(l, less));
}

RC_GTEST_PROP(ScalingProperty, MoreServingIsASmallerModelOnMoreTokens, ()) {
  const LossSurface<double> l = any_law();
  const Allocation<double> trained = compute_optimal(l, Flops(log_between(1e18, 1e26)));
  const double loss = loss_at(l, trained);
  const double kappa = trained.tokens * log_between(0.01, 100);
  const double less = lifetime_tokens_for_loss(l, loss, kappa);
  const double more = lifetime_tokens_for_loss(l, loss, 2 * kappa);
  RC_ASSERT(more > less);
  RC_ASSERT(parameters_for(l, loss, more) < parameters_for(l, loss, less));
  // The condition of [LIFETIME].
  const double n = l.alpha * l.a * std::pow(parameters_for(l, loss, more), -l.alpha);
  const double d = l.beta * l.b * std::pow(more, -l.beta) * (1 + 2 * kappa / more);
  RC_ASSERT(std::abs(n / d - 1) < 1e-6);
}

RC_GTEST_PROP(ScalingProperty, NoOtherLifeOfTheLossIsCheaper, ()) {
  const LossSurface<double> l = any_law();
  const Allocation<double> trained = compute_optimal(l, Flops(log_between(1e18, 1e26)));
  const double loss = loss_at(l, trained);
  const double kappa = trained.tokens * log_between(0.01, 100);
  const double best = lifetime_tokens_for_loss(l, loss, kappa);
  const double other = best * log_between(0.5, 100);
  RC_PRE(reaches({l.e, l.b, l.a, l.beta, l.alpha}, loss, other));  // the token term alone must leave room
  const auto life = [&](double tokens) { return parameters_for(l, loss, tokens) * (tokens + kappa); };
  RC_ASSERT(life(other) >= life(best) * (1 - 1e-9));
}

RC_GTEST_PROP(ScalingProperty, TheTracedReadingIsThePlainOne, ()) {
  const LossSurface<double> l = any_law();
  const Reader<Traced> reader;
  const LossSurface<Traced> traced{reader.input(l.e, "E", ""), reader.input(l.a, "A", ""), reader.input(l.b, "B", ""),
                                   reader.input(l.alpha, "alpha", ""), reader.input(l.beta, "beta", "")};
  const double flops = log_between(1e18, 1e28);
  const Allocation<Traced> best = compute_optimal(traced, read(reader, Flops(flops), "C", ""));
  const Allocation<double> plain = compute_optimal(l, Flops(flops));
  RC_ASSERT(best.parameters.value() == plain.parameters);
  RC_ASSERT(best.tokens.value() == plain.tokens);
  RC_ASSERT(reevaluate(best.tokens) == plain.tokens);
}

}  // namespace
}  // namespace scalecalc
