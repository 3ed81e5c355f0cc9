// Computes the best parameters and tokens for a budget by a scaling law, with inference if asked.
#include "scaling_law/allocation.h"

#include <fmt/format.h>

#include <cmath>

#include "base/check.h"
#include "base/diagnostic.h"

namespace scalecalc {
namespace {

constexpr const char* kTraining = "6 N D: Kaplan et al. (arXiv:2001.08361), section 2.1";

template <class R>
FlopsOf<R> flops(double count) {
  return FlopsOf<R>(R(count));
}

/// Root of a function that rises from below zero to above it between two positive numbers, to the last bit: halves the
/// ratio of the ends.
template <class F>
double root_between(double low, double high, F rising) {
  check(rising(low) <= 0 && rising(high) >= 0, "the root lies between the ends");
  for (;;) {
    const double middle = std::sqrt(low) * std::sqrt(high);
    if (!(middle > low && middle < high)) return high;
    (rising(middle) < 0 ? low : high) = middle;
  }
}

}  // namespace

void require_loss(const ScalingLaw& law, const char* asked) {
  if (law.loss) return;
  throw UserError(
      fmt::format("{} needs a law of the loss, and {} only says where its best points lie", asked, law.name),
      "--law chinchilla-besiroglu or --law chinchilla has one");
}

template <class R>
LossSurface<R> read_surface(const Reader<R>& reader, const ScalingLaw& law) {
  check(law.loss.has_value(), "the law has a loss");
  const LossLaw& l = *law.loss;
  return {reader.input(l.irreducible, "E", law.source), reader.input(l.parameter_scale, "A", law.source),
          reader.input(l.token_scale, "B", law.source), reader.input(l.parameter_exponent, "alpha", law.source),
          reader.input(l.token_exponent, "beta", law.source)};
}

template <class R>
R loss_at(const LossSurface<R>& law, const Allocation<R>& at) {
  return named(law.e + law.a / power(at.parameters, law.alpha) + law.b / power(at.tokens, law.beta), "loss",
               "Hoffmann et al. (arXiv:2203.15556), equation 2");
}

template <class R>
FlopsOf<R> flops_to_train(const Allocation<R>& at) {
  return named(flops<R>(6) * at.parameters * at.tokens, "training FLOPs", kTraining);
}

template <class R>
FlopsOf<R> flops_to_serve(const R& parameters, const R& tokens) {
  return named(flops<R>(2) * parameters * tokens, "serving FLOPs",
               "2 N for each token: Kaplan et al. (arXiv:2001.08361), section 2.1");
}

template <class R>
Allocation<R> compute_optimal(const LossSurface<R>& law, const FlopsOf<R>& budget) {
  constexpr const char* kSource = "Hoffmann et al. (arXiv:2203.15556), equation 4";
  const R sum = law.alpha + law.beta;
  const R g = named(power(law.alpha * law.a / (law.beta * law.b), R(1) / sum), "G", kSource);
  const R product = budget / flops<R>(6);
  const R parameters = named(g * power(product, law.beta / sum), "N", kSource);
  return {parameters, named(product / parameters, "D", kTraining)};
}

template <class R>
Allocation<R> on_frontier(const Reader<R>& reader, const ScalingLaw& law, const FlopsOf<R>& budget) {
  check(law.frontier.has_value(), "the law has a frontier");
  const FrontierLaw& f = *law.frontier;
  const R value = reader.input(f.value, f.of_tokens ? "tokens of the law" : "parameters of the law", law.source);
  const FlopsOf<R> at = read(reader, Flops(f.flops), "FLOPs of the law", law.source);
  const R exponent = reader.input(f.exponent, "exponent of the law", law.source);
  const R found = named(value * power(budget / at, exponent), f.of_tokens ? "D" : "N", law.source);
  const R other = named(budget / flops<R>(6) / found, f.of_tokens ? "N" : "D", kTraining);
  return f.of_tokens ? Allocation<R>{other, found} : Allocation<R>{found, other};
}

template <class R>
Allocation<R> best_for(const Reader<R>& reader, const ScalingLaw& law, const FlopsOf<R>& budget) {
  return law.loss ? compute_optimal(read_surface(reader, law), budget) : on_frontier(reader, law, budget);
}

template <class R>
Allocation<R> cheapest_for(const LossSurface<R>& law, const R& loss) {
  constexpr const char* kSource = "least 6 N D of a loss: alpha A / N^alpha = beta B / D^beta";
  const R above = named(loss - law.e, "reducible loss", "loss less the law's irreducible part");
  const R sum = law.alpha + law.beta;
  return {named(power(law.a * sum / (law.beta * above), R(1) / law.alpha), "N", kSource),
          named(power(law.b * sum / (law.alpha * above), R(1) / law.beta), "D", kSource)};
}

template <class R>
R tokens_for(const LossSurface<R>& law, const R& loss, const R& parameters) {
  const R left = loss - law.e - law.a / power(parameters, law.alpha);
  return named(power(law.b / left, R(1) / law.beta), "D", "tokens at which the loss is reached: equation 2 solved");
}

bool reaches(const LossSurface<double>& law, double loss, double parameters) {
  return loss - law.e - law.a / std::pow(parameters, law.alpha) > 0;
}

template <class R>
R parameters_for(const LossSurface<R>& law, const R& loss, const R& tokens) {
  const R left = loss - law.e - law.b / power(tokens, law.beta);
  return named(power(law.a / left, R(1) / law.alpha), "N", "parameters with the loss: equation 2 solved");
}

double lifetime_tokens_for_loss(const LossSurface<double>& law, double loss, double kappa) {
  const double above = loss - law.e;
  check(above > 0 && kappa >= 0, "the loss can be reached");
  const double without_serving = cheapest_for(law, loss).tokens;
  // Serving moves the choice to more tokens. With ever more of them nothing is left to gain by another one.
  const auto gain = [&](double tokens) {
    const double from_tokens = law.b * std::pow(tokens, -law.beta);
    return law.alpha * (above - from_tokens) - law.beta * from_tokens * (1 + kappa / tokens);
  };
  double most = without_serving * 2;
  while (gain(most) < 0) most *= 2;
  const double least = without_serving / 2;  // below the root, as its gain is negative for every kappa
  return root_between(least, most, gain);
}

double lifetime_tokens_for_budget(const LossSurface<double>& law, double flops, double kappa) {
  const auto gain = [&](double tokens) {
    const double parameters = flops / (6 * (tokens + kappa));
    return law.alpha * law.a * std::pow(parameters, -law.alpha) -
           law.beta * law.b * std::pow(tokens, -law.beta) * (1 + kappa / tokens);
  };
  double least = 1;
  double most = 1;
  while (gain(most) < 0) most *= 2;
  while (gain(least) > 0) least /= 2;
  return root_between(least, most, gain);
}

double kappa_of(const LossSurface<double>& law, const Allocation<double>& at) {
  const double of_parameters = law.alpha * law.a * std::pow(at.parameters, -law.alpha);
  const double of_tokens = law.beta * law.b * std::pow(at.tokens, -law.beta);
  return at.tokens * (of_parameters / of_tokens - 1);
}

#define SCALECALC_INSTANTIATE(R)                                                              \
  template LossSurface<R> read_surface(const Reader<R>&, const ScalingLaw&);                  \
  template R loss_at(const LossSurface<R>&, const Allocation<R>&);                            \
  template FlopsOf<R> flops_to_train(const Allocation<R>&);                                   \
  template FlopsOf<R> flops_to_serve(const R&, const R&);                                     \
  template Allocation<R> compute_optimal(const LossSurface<R>&, const FlopsOf<R>&);           \
  template Allocation<R> on_frontier(const Reader<R>&, const ScalingLaw&, const FlopsOf<R>&); \
  template Allocation<R> best_for(const Reader<R>&, const ScalingLaw&, const FlopsOf<R>&);    \
  template Allocation<R> cheapest_for(const LossSurface<R>&, const R&);                       \
  template R tokens_for(const LossSurface<R>&, const R&, const R&);                           \
  template R parameters_for(const LossSurface<R>&, const R&, const R&)
SCALECALC_INSTANTIATE(double);
SCALECALC_INSTANTIATE(Traced);
#undef SCALECALC_INSTANTIATE

}  // namespace scalecalc
