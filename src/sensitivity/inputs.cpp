// Lists every input that the formulas of a plan's step read, with value, unit and source.
#include "sensitivity/inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace scalecalc {
namespace {

constexpr std::string_view kEfficiency = "efficiency.";

/// Inputs below a node, each once, in the order of the formulas.
void collect_inputs(const TracePtr& node, std::unordered_set<const TraceNode*>& seen, std::vector<TracePtr>& out) {
  if (!seen.insert(node.get()).second) return;
  for (const TracePtr& arg : node->args) collect_inputs(arg, seen, out);
  if (node->op != TraceNode::Op::kInput) return;
  const bool known = std::any_of(out.begin(), out.end(), [&](const TracePtr& x) { return x->name == node->name; });
  if (!known) out.push_back(node);
}

InputKind kind_of(const TraceNode& input) {
  if (input.unit == kFlopDim - kSecondDim || input.unit == kByteDim - kSecondDim) return InputKind::kRate;
  if (input.unit == kSecondDim) return InputKind::kTime;
  const bool factor = input.name.starts_with(kEfficiency) || input.name.starts_with("hw.");
  return factor ? InputKind::kCoefficient : InputKind::kModel;
}

/// Where a model file has what the op lists call by these names.
std::string_view block_of(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 13> kPaths{
      {{"d_ff", "mlp.d_ff"},
       {"heads", "attention.heads"},
       {"kv_heads", "attention.kv_heads"},
       {"head_dim", "attention.head_dim"},
       {"v_head_dim", "attention.v_head_dim"},
       {"window", "attention.window"},
       {"experts", "moe.experts"},
       {"top_k", "moe.top_k"},
       {"expert d_ff", "moe.d_ff"},
       {"shared d_ff", "moe.shared_d_ff"},
       {"latent", "moe.latent"},
       {"local heads", "attention.local.heads"},
       {"local kv_heads", "attention.local.kv_heads"}}};
  const auto found = std::find_if(kPaths.begin(), kPaths.end(), [&](const auto& path) { return path.first == name; });
  return found == kPaths.end() ? name : found->second;
}

std::string model_name(std::string_view name) {
  if (name == "seq") return "seq";
  if (name.starts_with("local ") && block_of(name) == name)
    return fmt::format("model.attention.local.{}", name.substr(6));
  return fmt::format("model.{}", block_of(name));
}

/// A share of a peak or of what may hide ends at 1; a factor that begins at 1 does not fall below it.
void bound(SensitiveInput& input) {
  if (input.kind != InputKind::kCoefficient) return;
  const std::string& name = input.read_as.front();
  const bool factor =
      name == "efficiency.moe_imbalance" || name == "efficiency.in_network_gain" || name.ends_with(".oversubscription");
  if (factor) {
    input.least = 1;
  } else if (input.value <= 1) {
    input.most = 1;
  }
}

}  // namespace

std::vector<SensitiveInput> inputs_of(const PlanRequest& request, const Plan& plan) {
  const SecondsOf<Traced> step = read_plan(Reader<Traced>{}, request, plan).time.total();
  std::unordered_set<const TraceNode*> seen;
  std::vector<TracePtr> found;
  collect_inputs(step.value().node(), seen, found);
  std::vector<SensitiveInput> out;
  for (const TracePtr& node : found) {
    if (node->source == "layout" || node->value == 0) continue;
    SensitiveInput input{.name = node->name,
                         .read_as = {node->name},
                         .kind = kind_of(*node),
                         .value = node->value,
                         .unit = node->unit,
                         .source = node->source};
    if (input.kind == InputKind::kModel) input.name = model_name(node->name);
    if (node->name == "seq") input.tokens = 1;
    bound(input);
    out.push_back(std::move(input));
  }
  const std::string& source = request.model->source;
  out.push_back({.name = "model.layers",
                 .read_as = {"layers"},
                 .kind = InputKind::kModel,
                 .value = static_cast<double>(request.model->layers()),
                 .source = source});
  out.push_back({.name = "batch",
                 .read_as = {"grad_accum"},
                 .kind = InputKind::kModel,
                 .value = plan.batch_seqs * static_cast<double>(request.workload.seq),
                 .source = "tokens of a step, by its microbatches",
                 .tokens = 1});
  return out;
}

}  // namespace scalecalc
