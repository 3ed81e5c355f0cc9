#include "plan/member_tables.h"

#include <limits>

#include "cost/stage_parameters.h"

namespace scalecalc {

void MemberTables::clear() {
  state_.clear();
  ends_.clear();
  gathers_.clear();
}

void MemberTables::add(const StepInput<double>& in, const PhaseTotals& slowest) {
  const std::size_t kinds = in.network->kinds.size();
  stages_ = in.stages->size();
  // Gathered weights lengthen the passes that may hide an end: whatever they hide, it is no less.
  constexpr double kAll = std::numeric_limits<double>::infinity();
  const bool gathers = in.layout.zero == 3;
  gathers_.push_back(gathers && in.channels->shard.size > 1 ? gather_times(in) : GatherTimes{});
  for (const StageShape& stage : *in.stages) {
    state_.push_back(state_bytes(in, stage));
    const double forward = gathers ? kAll : forward_of(slowest, stage, kinds);
    const double backward = gathers ? kAll : backward_of(slowest, stage, kinds);
    ends_.push_back(stage_end_bound(in, stage, dense_parameters(*in.model, *in.network, stage),
                                    expert_parameters(*in.model, *in.network, stage), forward, backward));
  }
}

bool MemberTables::activations_fit(std::size_t sharding, double capacity, double reserve) const {
  const StageBytes& stage = pass_[total(sharding, pass_, reserve).stage];
  return !(capacity < stage.activations + stage.logits + reserve);
}

void MemberTables::fill(const StepInput<double>& in, std::vector<StageBytes>& out) {
  out.clear();
  for (const StageShape& stage : *in.stages) out.push_back(pass_bytes(in, stage));
}

MemberTables::Fullest MemberTables::total(std::size_t sharding, const std::vector<StageBytes>& pass,
                                          double reserve) const {
  Fullest out;
  for (std::size_t s = 0; s < stages_; ++s) {
    const StageBytes& state = state_[sharding * stages_ + s];
    StageBytes both = state;
    both.activations = pass[s].activations;
    both.logits = pass[s].logits;
    const double bytes = both.total(reserve);
    if (bytes > out.bytes) out = {s, bytes};
  }
  return out;
}

}  // namespace scalecalc
