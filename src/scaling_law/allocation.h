// Parameters N and training tokens D for a budget, by a scaling law. Hoffmann et al. (arXiv:2203.15556) for training
// alone; Sardana et al. (arXiv:2401.00448) for training and serving together. docs/model.md, [SCALING] and [LIFETIME].
#pragma once

#include "base/quantity.h"
#include "base/scalar.h"
#include "spec/law_spec.h"

namespace scalecalc {

/// L(N, D) = E + A / N^alpha + B / D^beta (Hoffmann et al., equation 2).
template <class R>
struct LossSurface {
  R e, a, b, alpha, beta;
};

/// UserError for a law that only knows its frontier; `asked` says what needs the loss.
void require_loss(const ScalingLaw& law, const char* asked);
/// Of a law with a loss.
template <class R>
LossSurface<R> read_surface(const Reader<R>& reader, const ScalingLaw& law);

template <class R>
struct Allocation {
  R parameters;
  R tokens;
};

template <class R>
R loss_at(const LossSurface<R>& law, const Allocation<R>& at);

/// 6 N D, of training (Kaplan et al., arXiv:2001.08361, section 2.1).
template <class R>
FlopsOf<R> flops_to_train(const Allocation<R>& at);
/// 2 N T, of serving T tokens (the same section: the forward pass).
template <class R>
FlopsOf<R> flops_to_serve(const R& parameters, const R& tokens);

/// Least loss for these training FLOPs (Hoffmann et al., equation 4).
template <class R>
Allocation<R> compute_optimal(const LossSurface<R>& law, const FlopsOf<R>& budget);
/// The same by a law that only knows its frontier.
template <class R>
Allocation<R> on_frontier(const Reader<R>& reader, const ScalingLaw& law, const FlopsOf<R>& budget);
/// By either kind of law.
template <class R>
Allocation<R> best_for(const Reader<R>& reader, const ScalingLaw& law, const FlopsOf<R>& budget);
/// Fewest training FLOPs for this loss, which lies above the irreducible one.
template <class R>
Allocation<R> cheapest_for(const LossSurface<R>& law, const R& loss);

/// Tokens at which N parameters have this loss; they must be able to (reaches).
template <class R>
R tokens_for(const LossSurface<R>& law, const R& loss, const R& parameters);
bool reaches(const LossSurface<double>& law, double loss, double parameters);
/// Parameters that have this loss after D tokens.
template <class R>
R parameters_for(const LossSurface<R>& law, const R& loss, const R& tokens);

// Serving T tokens costs as much as training on `kappa` tokens more, so that the life of a model costs 6 N (D + kappa).
// Where a FLOP of serving costs rho times one of training, kappa = rho T / 3.

/// Tokens D of the cheapest life with this loss: the root of alpha A N^-alpha = beta B D^-beta (1 + kappa / D).
double lifetime_tokens_for_loss(const LossSurface<double>& law, double loss, double kappa);
/// Tokens D of the least loss that 6 N (D + kappa) = `flops` buys: the root of the same condition.
double lifetime_tokens_for_budget(const LossSurface<double>& law, double flops, double kappa);
/// The kappa for which this choice is the cheapest life of its loss; below 0 if no serving makes it so.
double kappa_of(const LossSurface<double>& law, const Allocation<double>& at);

}  // namespace scalecalc
