// Attention of sequences that are packed with documents of several lengths, each attended to by itself.
#pragma once

#include <optional>

#include "model/lengths.h"
#include "model/ops.h"

namespace scalecalc {

/// [PACKED] Tokens a token of such a sequence attends to in the mean: a document of l tokens has l mean_context(l) in
/// all, so that of full attention it is E[l^2] / (2 E[l]). Without documents one fills the sequence.
template <class R>
R mean_context(Reach reach, const R& span, const R& seq, const std::optional<Lengths>& documents) {
  if (!documents) return mean_context(reach, span, seq);
  const LengthMoments& all = documents->moments();
  const R tokens(all.sum);
  if (reach == Reach::kFixed) return span;
  if (reach == Reach::kBoth) return R(all.squares) / tokens;
  if (reach == Reach::kAround) {  // l^2 up to half the span, span l - span^2 / 4 beyond
    const LengthMoments within = documents->moments_up_to(static_cast<std::int64_t>(value_of(span) / 2));
    const LengthMoments beyond = all - within;
    return (R(within.squares) + span * R(beyond.sum) - span * span * R(beyond.share / 4)) / tokens;
  }
  if (reach == Reach::kAll || value_of(span) >= static_cast<double>(documents->largest())) {
    return R(all.squares) / (R(2.0) * tokens);
  }
  const auto whole = static_cast<std::int64_t>(value_of(span));
  if (reach != Reach::kChunk) {  // l^2 / 2 up to the span, span l - span^2 / 2 beyond
    const LengthMoments within = documents->moments_up_to(whole);
    const LengthMoments beyond = all - within;
    return (R(within.squares / 2) + span * R(beyond.sum) - span * span * R(beyond.share / 2)) / tokens;
  }
  R pairs(0.0);  // k chunks and a rest of l - k span: (k span^2 + rest^2) / 2
  LengthMoments before;
  for (std::int64_t k = 0; k * whole <= documents->largest(); ++k) {
    const LengthMoments upto = documents->moments_up_to((k + 1) * whole - 1);
    const LengthMoments part = upto - before;
    const double n = static_cast<double>(k);
    pairs = pairs + (span * span * R((n + n * n) * part.share) + R(part.squares) - span * R(2 * n * part.sum)) / R(2.0);
    before = upto;
  }
  return pairs / tokens;
}

}  // namespace scalecalc
