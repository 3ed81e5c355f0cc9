#include "serve/serving_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/diagnostic.h"
#include "base/scalar.h"

namespace scalecalc {
namespace {

/// How one chip sees a replica's sequences: those of its attention-data rank and of the pipeline stage's turn.
double on_a_rank(double sequences, const ServeLayout& layout) {
  if (sequences <= 0) return 0;
  const double split = layout.scheme == ServeScheme::kGathered ? to_double(layout.tp) : 1;
  return std::ceil(sequences / (to_double(layout.attention_dp * layout.pp) * split));
}

}  // namespace

template <class R>
ServingCost<R>::ServingCost(const ServeBasis<R>& basis, const ServeLayout& layout, const Slice& slice,
                            const Placement& placement)
    : layout_(layout), terms_(step_terms(basis, layout, slice, placement)) {}

template <class R>
ServeTime<R> ServingCost<R>::step(const ServeStep& step) const {
  const double sequences = on_a_rank(step.decode_sequences, layout_);
  const double prompts = on_a_rank(step.prefill_sequences, layout_);
  StepRows<R> rows;
  rows.sequences = R(sequences);
  rows.decode = R(sequences * step.tokens_each);
  rows.context = R(step.context);
  rows.prompts = R(prompts);
  rows.prefill = R(prompts * step.prefill_tokens);
  rows.cached = R(step.cached);
  rows.logits = R(sequences * step.tokens_each + prompts * (step.all_logits ? step.prefill_tokens : 1));
  return time_of(terms_, rows);
}

template <class R>
ServeTime<R> ServingCost<R>::decode_step(double batch, double context, double new_tokens) const {
  return step({.decode_sequences = batch, .tokens_each = new_tokens, .context = context});
}

template <class R>
ServeTime<R> ServingCost<R>::prefill(double tokens, double cached, double sequences) const {
  return step({.prefill_sequences = sequences, .prefill_tokens = tokens, .cached = cached});
}

template <class R>
ServeTime<R> ServingCost<R>::mixed_step(double batch, double context, double chunk, double cached) const {
  return step({.decode_sequences = batch,
               .context = context,
               .prefill_sequences = 1,
               .prefill_tokens = chunk,
               .cached = cached});
}

template <class R>
SecondsOf<R> ServingCost<R>::prefill_occupancy(double tokens, double cached) const {
  const double at_once = to_double(layout_.attention_dp * layout_.pp) *
                         (layout_.scheme == ServeScheme::kGathered ? to_double(layout_.tp) : 1);
  return prefill(tokens, cached, at_once).total() / R(at_once);
}

/// [SERVE-STEADY] Each step q = n S / G tokens of prompts arrive on a rank, n of its sequences generating G tokens
/// each. They are taken in lumps of c tokens, r = q / c a step: beside the sequences that decode, if r < 1; otherwise
/// every step takes one, and each sequence decodes in every r-th.
template <class R>
SteadyTimes<R> ServingCost<R>::steady(double batch, const ServeLoad& load) const {
  const double n = on_a_rank(batch, layout_);
  const double arriving = n * load.prompt / load.generate;
  const double lump = std::max(std::min(load.prompt, load.chunk), std::min(load.chunk, arriving));
  const double rate = lump > 0 ? arriving / lump : 0;
  const double each = std::min(lump, load.prompt);
  const auto rows = [&](double sequences, double prompts) {
    return StepRows<R>{.decode = R(sequences),
                       .sequences = R(sequences),
                       .context = R(load.context),
                       .prefill = R(prompts * each),
                       .prompts = R(prompts),
                       .cached = R(load.cached + (load.prompt - each) / 2),
                       .logits = R(sequences + prompts)};
  };
  const double prompts = each > 0 ? lump / each : 0;
  const double chunks = each > 0 ? std::ceil(load.prompt / each) : 0;
  if (rate < 1) {
    const SecondsOf<R> alone = time_of(terms_, rows(n, 0)).total();
    if (rate <= 0) return {.tpot = alone, .ttft = alone};
    const SecondsOf<R> mixed = time_of(terms_, rows(n, prompts)).total();
    return {.tpot = alone + (mixed - alone) * R(rate), .ttft = mixed * R(chunks)};
  }
  const SecondsOf<R> mixed = time_of(terms_, rows(n / rate, prompts)).total();
  return {.tpot = mixed * R(rate), .ttft = mixed * R(chunks)};
}

template <class R>
SecondsOf<R> ServingCost<R>::floor(double batch, double context) const {
  BytesOf<R> bytes(R(0.0));
  const double sequences = on_a_rank(batch, layout_);
  for (const DenseTerm<R>& t : terms_.dense) bytes += t.weight_bytes * t.layers;
  for (const ExpertTerm<R>& t : terms_.experts) {
    bytes += t.weight_bytes * t.layers *
             R(experts_touched(t.experts, t.top_k, sequences * terms_.sharing) * t.here / t.experts);
  }
  for (const CacheTerm<R>& t : terms_.caches) {
    const double reach = t.reach == Reach::kAll ? context : std::min(context, value_of(t.span));
    bytes += t.token_bytes * t.layers * R(sequences * reach / value_of(t.context_ways));
  }
  return bytes / terms_.peak_bandwidth;
}

template class ServingCost<double>;
template class ServingCost<Dual>;
template class ServingCost<Traced>;
template class ServingCost<Interval>;

std::vector<Placement> placed(const HardwareSpec& hw, const Slice& slice, const ServeLayout& layout) {
  const Degrees degrees{layout.tp, layout.cp, layout.attention_dp, layout.dp, layout.pp};
  std::vector<Placement> out = placements(hw, slice, degrees, false);
  std::erase_if(out, [&](const Placement& p) {
    Group inner, outer;
    return !fold({p.of(MeshDim::kTp)}, layout.tp_x, inner, outer) ||
           !fold({p.of(MeshDim::kTp), p.of(MeshDim::kCp), p.of(MeshDim::kFsdp)}, layout.etp, inner, outer);
  });
  return out;
}

Placement best_placement(const ServeBasis<double>& basis, const ServeLayout& layout, const Slice& slice) {
  constexpr double kSequences = 64;
  std::vector<Placement> all = placed(*basis.system.hw, slice, layout);
  if (all.empty()) {
    throw UserError(fmt::format("{} cannot be placed on {}", describe(layout), slice.name()),
                    "degrees must divide the machine's axes or domains");
  }
  if (all.size() == 1) return all.front();
  const auto time = [&](const Placement& p) {
    return ServingCost<double>(basis, layout, slice, p).decode_step(kSequences, 1).total().value();
  };
  double least = time(all.front());
  std::size_t best = 0;
  for (std::size_t i = 1; i < all.size(); ++i) {
    const double other = time(all[i]);
    if (other >= least) continue;
    least = other;
    best = i;
  }
  return all[best];
}

std::vector<std::pair<std::string, std::string>> described_placement(const HardwareSpec& hw, const Slice& slice,
                                                                     const Placement& placement) {
  static constexpr std::array<std::pair<MeshDim, const char*>, kMeshDims> kNames{{{MeshDim::kTp, "tp"},
                                                                                  {MeshDim::kCp, "cp"},
                                                                                  {MeshDim::kFsdp, "attention_dp"},
                                                                                  {MeshDim::kPp, "pp"},
                                                                                  {MeshDim::kDp, "dp"}}};
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& [dim, name] : kNames) {
    const Group& group = placement.of(dim);
    if (group.size() > 1) out.emplace_back(name, describe(hw, slice, group));
  }
  return out;
}

ServingCost<double> serving_cost(const ServeBasis<double>& basis, const ServeLayout& layout, const Slice& slice) {
  return {basis, layout, slice, best_placement(basis, layout, slice)};
}

ServingCost<double> serving_cost(const ServingSystem& system, const ServeLayout& layout, const Slice& slice) {
  return serving_cost(ServeBasis<double>({}, system), layout, slice);
}

}  // namespace scalecalc
