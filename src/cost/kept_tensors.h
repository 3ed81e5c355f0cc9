// What software keeps of an operation until the backward pass, where stacks differ (StackMemory). Sources: the stacks'
// files; what autograd saves, pytorch tools/autograd/derivatives.yaml.
#pragma once

#include <algorithm>

#include "cost/workload.h"
#include "model/ops.h"

namespace scalecalc {

/// Whether the software keeps anything of it.
template <class R>
bool software_keeps(const Op<R>& op, const StackMemory& rules) {
  switch (op.kept_by) {
    case KeptBy::kAll: break;
    case KeptBy::kViews: return rules.fused_projection && value_of(op.repeats) <= 1;
    case KeptBy::kPadding: return rules.pads_adapters;
  }
  return true;
}

/// Of an element of a matmul's input, `each` being one copy: what a weight gradient reads, of adapters behind dropout a
/// copy and its mask for each; what a matmul with packed weights keeps though they do not train; an unfused gate's
/// tensors.
template <class R>
double input_bytes(const Op<R>& op, const Workload& workload, double each) {
  const StackMemory& rules = workload.memory;
  const bool dropped = rules.adapter_dropout && op.adapters > 0;
  const bool packed =
      rules.packed_inputs && op.frozen && workload.fine_tune && workload.fine_tune->base == BaseFormat::kNf4;
  double out = 0;
  if (!op.unread) out = dropped ? op.adapters * (each + 1) : each;
  if (packed && (op.unread || dropped)) out += each;
  if (op.input == KeptInput::kGated) out += rules.gate_copies * each;
  return out;
}

/// Whether what a projection leaves is what the activation of an MLP reads.
template <class R>
bool is_activated(const Op<R>& op) {
  const bool matmul = op.kind == OpKind::kMatmul || op.kind == OpKind::kGroupedMatmul;
  return matmul && (op.tp == TpRule::kColumn || op.tp == TpRule::kExpert) &&
         (op.part == Part::kMlp || op.part == Part::kExperts);
}

/// Of an element kept, `activation` being one in the stream's format.
template <class R>
double kept_bytes_each(const Op<R>& op, const Workload& workload, double activation) {
  const double mask = workload.dropout && op.masked ? 1 : 0;
  if (op.input == KeptInput::kNo && workload.memory.fp8_activation_inputs && is_activated(op)) activation = 1;
  if (op.input == KeptInput::kNo) {
    return activation + mask + (workload.memory.adapter_dropout ? op.adapters * (activation + 1) : 0);
  }
  const double read = bytes_per_element(workload.precision.compute);
  const bool quantized = workload.memory.quantized_inputs && read < activation;
  return input_bytes(op, workload, quantized ? read : activation) + mask;
}

/// Of an element that an RMS norm reads, in code that computes in fp32, beyond the stream's own; where a policy runs
/// the norm again the stream alone is there.
template <class R>
double widened_bytes(const Op<R>& op, const StackMemory& rules, double activation) {
  if (!op.rms_input || rules.norm_input_bytes <= 0) return 0;
  return std::max(0.0, rules.norm_input_bytes - activation) + (op.frozen ? 0 : rules.norm_result_bytes);
}

}  // namespace scalecalc
