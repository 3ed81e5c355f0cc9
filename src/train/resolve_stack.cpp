// Finds what the software of a question brings: coefficients, memory, runtime, its kernel of attention.
#include <algorithm>

#include "model/usual_stack.h"
#include "spec/load_stack.h"
#include "train/resolve.h"

namespace scalecalc {

Efficiency efficiency_asked_for(const TrainQuestion& question, const HardwareSpec& hw, const ModelSpec& model) {
  if (question.ideal) return ideal_efficiency(hw.efficiency);
  if (question.rates) return efficiency_under(hw, *question.rates);
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

HeadWidths widest_heads(const ModelSpec& model) {
  const AttentionSpec& a = model.attention;
  if (a.compressed || a.indexer) return {};
  if (a.mla) return {a.mla->qk_nope_head_dim + a.mla->qk_rope_head_dim, a.mla->v_head_dim};
  HeadWidths out{a.head_dim, a.v_head_dim > 0 ? a.v_head_dim : a.head_dim};
  if (a.local) out = {std::max(out.keys, a.local->head_dim), std::max(out.values, a.local->v_head_dim)};
  return out.keys > 0 && out.values > 0 ? out : HeadWidths{};
}

void run_kernel(const KernelChoice& kernel, bool ideal, ResolvedQuestion& out) {
  out.workload.attention = kernel.fused() ? AttentionKernel::kFlash : AttentionKernel::kUnfused;
  out.workload.kernel = kernel.name;
  out.kernel = kernel;
  if (!ideal) use_kernel(kernel, out.hw, out.efficiency);
}

void assume_unmeasured_kernels(ResolvedQuestion& out) {
  const auto assume = [&](std::string text, std::string_view key) {
    out.assumptions.push_back(Assumption{std::move(text), "", "docs/model.md"}.as(key).is("attention"));
  };
  if (out.model.has_recurrence()) {
    assume(
        "recurrences run at the rates of attention (Mamba 1, RWKV and Griffin: of vector work): no coefficient is "
        "measured for them",
        "recurrence_rates");
  }
  if (out.model.attention.indexer) {
    assume("attention to chosen tokens runs at the rate of attention to all; the indexer scores the whole sequence",
           "sparse_attention_rates");
  }
}

}  // namespace scalecalc
