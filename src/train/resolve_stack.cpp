// What the software of a question brings: coefficients, memory, runtime, its kernel of attention.
#include <algorithm>

#include "model/usual_stack.h"
#include "spec/load_stack.h"
#include "train/resolve.h"

namespace scalecalc {

Efficiency efficiency_asked_for(const TrainQuestion& question, const HardwareSpec& hw, const ModelSpec& model) {
  if (question.ideal) return ideal_efficiency(hw.efficiency);
  const std::string asked = stack_asked(question.stack).name;
  if (!asked.empty() || question.fine_tune) return efficiency_under(hw, asked);  // adapters: as the family trains
  const std::int64_t longest = question.documents ? question.documents->largest() : 0;
  return efficiency_under(hw, usual_stack(hw, model, question.seq.value_or(std::max(longest, usual_seq(model)))));
}

StackAsked stack_asked(const std::string& typed) {
  if (typed == "any") return {.name = "", .version = "", .any = true};
  const std::size_t at = typed.find('@');
  return {.name = typed.substr(0, at), .version = at == std::string::npos ? "" : typed.substr(at + 1)};
}

void run_under_stack(const Catalog& catalog, const std::string& stack, std::string_view month, ResolvedQuestion& out) {
  Workload& w = out.workload;
  w.memory = stack_memory(catalog, stack);
  settle_memory(w.memory, month);
  w.runtime = stack_runtime(catalog, stack);
  settle_runtime(w.runtime, out.hw.architecture, month, out.hw.name);
  w.dropout = w.memory.drops_out && !out.model.mlp.gated;
  if (w.memory.reserve) out.efficiency.memory_reserve = *w.memory.reserve;
}

void run_kernel(const KernelChoice& kernel, bool ideal, ResolvedQuestion& out) {
  out.workload.attention = kernel.fused() ? AttentionKernel::kFlash : AttentionKernel::kUnfused;
  out.workload.kernel = kernel.name;
  out.kernel = kernel;
  if (!ideal) use_kernel(kernel, out.hw, out.efficiency);
}

}  // namespace scalecalc
