// Computes the figures of a plan that people compare by: MFU, tokens per second, memory by part. FLOPs conventions,
// read from the frameworks' own accounting code: Megatron-LM num_floating_point_operations (causal halving since March
// 2025, full attention before), MaxText calculate_tflops_training_per_device (causal since April 2025), torchtitan
// get_dense_model_nparams_and_flops (full attention). PaLM appendix B, arXiv:2204.02311, defines MFU.
#include "train/figures.h"

#include <algorithm>
#include <numeric>

#include "cost/remat.h"
#include "cost/stage_parameters.h"
#include "model/accounting.h"
#include "model/packing.h"
#include "plan/plan_costs.h"
#include "train/run_class.h"
#include "train/run_terms.h"

namespace scalecalc {
namespace {

/// Parts that only some stacks have come last, where they are.
std::vector<std::pair<std::string, double>> parts(const MemoryUse<double>& m) {
  std::vector<std::pair<std::string, double>> out{
      {"weights", m.weights.value()},         {"gradients", m.gradients.value()}, {"optimizer", m.optimizer.value()},
      {"activations", m.activations.value()}, {"logits", m.logits.value()},       {"buffers", m.buffers.value()},
      {"reserve", m.reserve.value()}};
  for (const auto& [name, bytes] : {std::pair{"update", m.update}, std::pair{"allocator", m.allocator}}) {
    if (bytes.value() > 0) out.emplace_back(name, bytes.value());
  }
  return out;
}

/// Communication that outlasts the work it could hide under binds the step in the roofline's sense; otherwise the
/// largest cause does.
std::string bound_by(const StepTime<double>& time, double step) {
  static constexpr const char* kTraffic[] = {"tp", "fsdp", "cp", "ep", "offload"};
  const auto worst = std::max_element(time.spilled.begin(), time.spilled.end());
  if (*worst > 0.01 * step) return std::string(kTraffic[worst - time.spilled.begin()]) + " communication";
  const auto all = causes_of(time);
  const auto largest =
      std::max_element(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  std::string name = largest->first;
  if (const auto suffix = name.find("_exposed"); suffix != std::string::npos) {
    name = name.substr(0, suffix) + " communication";
  }
  return name == "hbm" ? "HBM bandwidth" : name;
}

class PlanArithmetic {
 public:
  PlanArithmetic(const ResolvedQuestion& question, const PlanRequest& request, const Plan& plan)
      : q_(question), request_(request), plan_(plan), chips_(static_cast<double>(plan.slice.chips)) {
    tokens_ = plan.batch_seqs * static_cast<double>(q_.workload.seq);
    peak_ = q_.hw.matmul_peak[static_cast<std::size_t>(q_.workload.precision.compute)]->value();
  }

  PlanFigures compared() {
    PlanFigures out;
    out.mfu = mfu_of(all_flops().model_causal());
    band(out);
    out.bound_by = bound_by(plan_.time, plan_.step_s);
    out.time_s = causes_of(plan_.time);
    out.memory_bytes = parts(plan_.memory);
    return out;
  }

  PlanFigures run() {
    PlanFigures out = compared();
    out.tokens_per_s = tokens_ / plan_.step_s;
    out.tokens_per_s_per_chip = out.tokens_per_s / chips_;
    utilization(out);
    memory(out);
    places(out);
    const Layout& l = plan_.layout;
    for (const ChunkShape& chunk : deal(q_.model, l.pp, l.vpp, q_.workload.runtime.stages, l.split)) {
      out.chunk_layers.push_back(chunk.layers);
    }
    const MechanismSet used = used_by(plan_.layout);
    const MechanismSet unmeasured = unmeasured_in(plan_.layout, request_.measured);
    for (std::size_t i = 0; i < q_.evidence.size(); ++i) {
      if ((used >> i & 1) == 0) continue;
      out.evidence.push_back(q_.evidence[i]);
      out.evidence.back().measured = (unmeasured >> i & 1) == 0;
    }
    if (q_.workload.tokens) out.run = run_figures(run_input(q_, plan_, out.mfu));
    return out;
  }

 private:
  double mfu_of(double flops_per_token) const { return flops_per_token * tokens_ / (plan_.step_s * chips_ * peak_); }

  TrainingFlops all_flops() const {
    return training_flops(q_.model, static_cast<double>(q_.workload.seq), true, q_.workload.fine_tune,
                          q_.workload.documents);
  }

  void utilization(PlanFigures& out) const {
    const double seq = static_cast<double>(q_.workload.seq);
    const TrainingFlops all = all_flops();
    const TrainingFlops main = training_flops(q_.model, seq, false);
    out.tflops_per_chip = out.mfu * peak_ / 1e12;
    out.hfu = out.mfu + mfu_of(recomputed_flops(seq));
    const auto add = [&](const char* name, const char* counts, double flops) {
      out.conventions.push_back({name, counts, mfu_of(flops) * peak_ / 1e12, mfu_of(flops)});
    };
    if (q_.workload.fine_tune) {
      add("4n", "4 x frozen + 6 x adapter parameters used by a token, without the input embedding; no attention scores",
          all.six_n);
      add("4n-causal", "the same + causal attention: the MFU of this answer", all.model_causal());
      add("4n-full", "the same + full attention", all.model_full());
      add("6n", "6 x active parameters without the input embedding, as if all of them trained", main.six_n);
      return;
    }
    add("6n", "6 x active parameters without the input embedding; no attention scores", main.six_n);
    add("megatron", "Megatron-LM since March 2025: 6N without router, + causal attention (windows ignored), + MTP",
        all.six_n - all.router + all.attention_full / 2 + all.scan);
    add("megatron-2024", "Megatron-LM before March 2025: the same with full attention",
        all.six_n - all.router + all.attention_full + all.scan);
    add("maxtext", "MaxText since April 2025: 6N with router, + causal attention, without MTP", main.model_causal());
    add("torchtitan", "torchtitan (and PaLM): 6N + full attention", main.model_full());
  }

  /// Per token: the matmuls, attention scores and recurrences that the remat policy runs again. Flash attention's own
  /// recomputation is not counted, as in the frameworks' HFU.
  double recomputed_flops(double seq) const {
    const Layout& layout = plan_.layout;
    if (layout.remat == Remat::kNone) return 0;
    const ModelOps<double> ops = read_model(Reader<double>{}, q_.model, q_.workload.fine_tune);
    double out = 0;
    for (const StageShape& stage : partition(q_.model, layout, q_.workload.runtime.stages)) {
      for (std::size_t k = 0; k < ops.kinds.size(); ++k) {
        const double layers = static_cast<double>(treated_layers(layout, stage, k)) / stage.parts;
        if (layers > 0) out += layers * static_cast<double>(stage.count) * repeated_flops(ops.kinds[k], seq);
      }
    }
    const double modules = static_cast<double>(q_.model.mtp_layers);
    return modules > 0 ? out + modules * repeated_flops(ops.kinds[q_.model.mtp_kind], seq) : out;
  }

  double repeated_flops(const std::vector<Op<double>>& layer, double seq) const {
    double out = 0;
    for (const Op<double>& op : layer) {
      if (!runs_again(plan_.layout.remat, op, q_.workload)) continue;
      out += op.matmul_flops().value() + op.recurrence;
      if (op.kind != OpKind::kAttention) continue;
      out += attention_flops(op, mean_context(op.reach, op.span, seq, q_.workload.documents)).value();
    }
    return out;
  }

  void band(PlanFigures& out) const {
    PlanRequest request = request_;
    const auto step_at = [&](Efficiency corner) {
      request.efficiency = std::move(corner);
      return read_plan(Reader<double>{}, request, plan_).time.total().value();
    };
    const bool doubted = unmeasured_in(plan_.layout, request_.measured) != 0;
    const RunClass of = run_class(q_.model, q_.workload.seq, plan_.slice.chips);
    const StepBand band = step_band({step_at(fastest(request_.efficiency)), step_at(slowest(request_.efficiency))},
                                    plan_.step_s, request_.efficiency.model_error[static_cast<std::size_t>(of)]);
    out.step_low_s = band.low * (doubted ? 1 - kUnmeasuredBand : 1);
    out.step_high_s = band.high * (doubted ? 1 + kUnmeasuredBand : 1);
  }

  void memory(PlanFigures& out) const {
    const StackMemory& rules = q_.workload.memory;
    out.memory_band = memory_band(rules, plan_.memory.total().value());
    out.memory_verdict = memory_verdict(q_.hw, rules, plan_.memory);
    const PlanCosts<double> costs(Reader<double>{}, request_, plan_);
    const std::vector<StageShape> stages = all_stages(q_.model, plan_.layout, q_.workload.runtime.stages);
    const std::vector<MemoryUse<double>> held = memory_by_stage(costs.input(), stages);
    for (std::size_t s = 0; s < stages.size(); ++s) {
      out.memory_by_stage.push_back(
          {std::accumulate(stages[s].layers.begin(), stages[s].layers.end(), std::int64_t{0}), parts(held[s])});
    }
  }

  void places(PlanFigures& out) const {
    static constexpr const char* kNames[] = {"tp", "cp", "fsdp", "dp", "pp"};
    for (std::size_t d = 0; d < kMeshDims; ++d) {
      const Group& group = plan_.placement.dims[d];
      if (group.size() > 1) out.placement.push_back(placed_group(kNames[d], q_.hw, plan_.slice, group));
    }
    if (plan_.layout.ep > 1) {
      out.placement.push_back(placed_group("ep", q_.hw, plan_.slice, expert_group(plan_.placement, plan_.layout)));
    }
    if (!plan_.placement.order.empty()) out.placement.push_back({"order", std::string(plan_.placement.order)});
  }

  const ResolvedQuestion& q_;
  const PlanRequest& request_;
  const Plan& plan_;
  double chips_ = 0;
  double tokens_ = 0;
  double peak_ = 0;
};

}  // namespace

std::vector<std::pair<std::string, double>> causes_of(const StepTime<double>& t) {
  return {{"compute", t.compute.value()},      {"hbm", t.hbm.value()},
          {"tp_exposed", t.tp.value()},        {"fsdp_exposed", t.fsdp.value()},
          {"dp_exposed", t.dp.value()},        {"cp_exposed", t.cp.value()},
          {"ep_exposed", t.ep.value()},        {"pp_exposed", t.pp.value()},
          {"offload_exposed", t.host.value()}, {"bubble", t.bubble.value()},
          {"optimizer", t.optimizer.value()},  {"overhead", t.overhead.value()}};
}

PlanFigures figures(const ResolvedQuestion& question, const PlanRequest& request, const Plan& plan) {
  return PlanArithmetic(question, request, plan).run();
}

PlanFigures compared_figures(const ResolvedQuestion& question, const PlanRequest& request, const Plan& plan) {
  return PlanArithmetic(question, request, plan).compared();
}

RankedPlan ranked(const ResolvedQuestion& question, const PlanRequest& request, Plan plan) {
  PlanFigures numbers = figures(question, request, plan);
  return {std::move(plan), std::move(numbers)};
}

}  // namespace scalecalc
