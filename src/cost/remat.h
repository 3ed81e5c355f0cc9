// What a remat policy means for one operation. Policies as the frameworks offer them: Megatron-LM --recompute-modules,
// MaxText remat_policy, torchtitan selective activation checkpointing; Korthikanti et al. 2022, arXiv:2205.05198
// section 5.
#pragma once

#include <algorithm>

#include "cost/kept_tensors.h"
#include "cost/layout.h"
#include "cost/workload.h"
#include "model/ops.h"

namespace scalecalc {

inline bool in_mlp(Part part) { return part == Part::kMlp || part == Part::kExperts || part == Part::kRouter; }

/// What selective remat, and every policy beyond it, runs again.
template <class R>
bool comes_back_cheaply(const Op<R>& op) {
  return op.kind == OpKind::kVector || op.keep == Keep::kWithoutRemat;
}

/// Whether the operation's scores lie in HBM.
template <class R>
bool writes_scores(AttentionKernel kernel, const Op<R>& op) {
  return kernel == AttentionKernel::kUnfused && value_of(op.heads) > 0;
}

/// Whether the scores stay until the backward pass. Selective remat came up for them: with unfused kernels it treats
/// them alone (arXiv:2205.05198 section 5).
inline bool scores_stay(Remat remat) { return remat == Remat::kNone || remat == Remat::kMlp; }

/// What selective remat runs again: with unfused kernels the scores, else what the stack's rules name, or whatever
/// comes back cheaply.
template <class R>
bool selective_runs_again(const Op<R>& op, const Workload& workload) {
  if (workload.attention == AttentionKernel::kUnfused) return writes_scores(workload.attention, op);
  const std::vector<std::string>& named = workload.memory.selective;
  if (named.empty()) return comes_back_cheaply(op);
  return std::find(named.begin(), named.end(), op.name) != named.end();
}

/// Whether the backward pass runs the operation again.
template <class R>
bool runs_again(Remat remat, const Op<R>& op, const Workload& workload = {}) {
  switch (remat) {
    case Remat::kNone: return false;
    case Remat::kSelective: return selective_runs_again(op, workload);
    case Remat::kAttention: return comes_back_cheaply(op) || op.part == Part::kAttention;
    case Remat::kMlp: return comes_back_cheaply(op) || in_mlp(op.part);
    case Remat::kFull: break;
  }
  return true;
}

/// Whether what selective remat leaves of the operation stays until the backward pass.
template <class R>
bool selective_stays(const Op<R>& op, const Workload& workload) {
  if (workload.attention == AttentionKernel::kUnfused) return true;
  return workload.memory.selective.empty() ? op.keep == Keep::kSelective : !selective_runs_again(op, workload);
}

/// Whether what the operation keeps stays until the backward pass.
template <class R>
bool stays(Remat remat, const Op<R>& op, const Workload& workload = {}) {
  if (!software_keeps(op, workload.memory)) return false;
  if (op.keep == Keep::kNever || op.keep == Keep::kAlways) return op.keep == Keep::kAlways;
  switch (remat) {
    case Remat::kNone: return true;
    case Remat::kSelective: return selective_stays(op, workload);
    case Remat::kAttention: return op.keep == Keep::kSelective && op.part != Part::kAttention;
    case Remat::kMlp: return op.keep == Keep::kSelective && !in_mlp(op.part);
    case Remat::kFull: break;
  }
  return false;
}

}  // namespace scalecalc
