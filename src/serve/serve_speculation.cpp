#include "serve/serve_speculation.h"

#include <cmath>

#include "base/divisors.h"
#include "model/sharding.h"

namespace scalecalc {
namespace {

ServingSystem with_model(ServingSystem system, const ModelSpec& model) {
  system.model = &model;
  return system;
}

}  // namespace

double speculated_tokens(double accept, double drafted) {
  return accept >= 1 ? drafted + 1 : (1 - std::pow(accept, drafted + 1)) / (1 - accept);
}

Speculator::Speculator(const SpeculationAsked& asked, const ServingSystem& system, const ModelSpec& draft)
    : asked_(asked), system_(with_model(system, draft)), basis_(Reader<double>{}, system_) {}

/// As many tensor ranks of the target's group as divide the draft; the rest of the group are its replicas.
ServeLayout Speculator::draft_layout(const ServeLayout& layout) const {
  ServeLayout out;
  for (const std::int64_t tp : divisors(layout.tp)) {
    if (undivided_heads(*system_.model, tp).empty() && undivided_widths(*system_.model, tp).empty()) out.tp = tp;
  }
  out.etp = out.tp;
  out.dp = layout.chips() / out.tp;
  if (!system_.model->moe) return out;
  out.attention_dp = layout.group() / out.tp;
  out.dp = layout.chips() / layout.group();
  out.ep = layout.ep;
  out.etp = layout.etp;
  return out;
}

const ServingCost<double>& Speculator::cost(const ServeLayout& layout, const Slice& slice) const {
  const auto found = known_.find(layout);
  if (found != known_.end()) return found->second;
  return known_.emplace(layout, serving_cost(basis_, draft_layout(layout), slice)).first->second;
}

double Speculator::bytes(const ServeLayout& layout) const {
  return ServeMemory(basis_, draft_layout(layout)).parts(0, 1).weights;
}

SpeculationFigures Speculator::figures(const ServeLayout& layout, const Slice& slice, const ServingCost<double>& target,
                                       double batch, double context) const {
  const double drafted = static_cast<double>(asked_.drafted);
  const ServeLayout draft = draft_layout(layout);
  const double share = batch * static_cast<double>(layout.dp) / static_cast<double>(draft.dp);
  SpeculationFigures out;
  out.tokens_per_step = speculated_tokens(asked_.accept, drafted);
  out.draft_s = drafted * cost(layout, slice).decode_step(share, context).total().value();
  out.verify_s = target.decode_step(batch, context, drafted + 1).total().value();
  out.plain_tpot_s = target.decode_step(batch, context).total().value();
  return out;
}

void Speculator::find_break_even(SpeculationFigures& figures_out, const ServeLayout& layout, const Slice& slice,
                                 const ServingCost<double>& target, double most, double context) const {
  double paid = 0;
  for (double batch = 1; batch <= most; batch *= 2) {
    const SpeculationFigures f = figures(layout, slice, target, batch, context);
    if ((f.draft_s + f.verify_s) / f.tokens_per_step >= f.plain_tpot_s) {
      figures_out.break_even_batch = paid;
      return;
    }
    paid = batch;
  }
}

}  // namespace scalecalc
