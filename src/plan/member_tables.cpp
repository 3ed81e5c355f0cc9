// Computes once what all layouts of a member share: memory by part and the ends of its shardings.
#include "plan/member_tables.h"

#include <algorithm>
#include <limits>

#include "cost/stage_parameters.h"

namespace scalecalc {

void MemberTables::clear() {
  state_.clear();
  uses_.clear();
  ends_.clear();
  gathers_.clear();
  for (std::vector<StageBytes>& kept : kept_) kept.clear();
}

void MemberTables::add(const StepInput<double>& in, const PhaseTotals& slowest, const GatherTimes& gathers) {
  stages_ = in.stages->size();
  // Gathered weights lengthen the passes that may hide an end: whatever they hide, it is no less.
  constexpr double kAll = std::numeric_limits<double>::infinity();
  const bool gathered = in.layout.zero == 3;
  gathers_.push_back(gathers);
  memory_of_state(in, uses_);
  const std::span<const MemoryUse<double>> uses = std::span(uses_).last(stages_);
  for (std::size_t s = 0; s < stages_; ++s) {
    const StageShape& stage = (*in.stages)[s];
    state_.push_back(state_bytes(in, stage, uses[s]));
    const double forward = gathered ? kAll : forward_of(slowest, stage);
    const double backward = gathered ? kAll : backward_of(slowest, stage);
    ends_.push_back(stage_end_bound(in, stage, dense_parameters(*in.model, *in.network, stage),
                                    expert_parameters(*in.model, *in.network, stage), forward, backward));
  }
}

bool MemberTables::activations_fit(std::size_t sharding, double capacity, double reserve) const {
  const StageBytes& stage = pass_[total(sharding, pass_, reserve).stage];
  return !(capacity < stage.activations + stage.logits + reserve);
}

double MemberTables::least(std::size_t sharding, std::uint8_t offload, double reserve) const {
  constexpr double kRounding = 1 - 1e-12;
  double out = 0;
  for (std::size_t s = 0; s < stages_; ++s) {
    out = std::max(out, with_state(sharding, s, pass_[s]).total_without(offload, reserve));
  }
  return kRounding * out;
}

StageBytes MemberTables::with_state(std::size_t sharding, std::size_t stage, const StageBytes& pass) const {
  StageBytes out = state_[sharding * stages_ + stage];
  out.activations = pass.activations;
  out.activations_away = pass.activations_away;
  out.logits = pass.logits;
  return out;
}

void MemberTables::fill(const StepInput<double>& in, std::vector<StageBytes>& out) {
  out.clear();
  for (const StageShape& stage : *in.stages) out.push_back(pass_bytes(in, stage));
}

MemberTables::Fullest MemberTables::total(std::size_t sharding, const std::vector<StageBytes>& pass,
                                          double reserve) const {
  Fullest out;
  for (std::size_t s = 0; s < stages_; ++s) {
    const double bytes = with_state(sharding, s, pass[s]).total(reserve);
    if (bytes > out.bytes) out = {s, bytes};
  }
  return out;
}

}  // namespace scalecalc
