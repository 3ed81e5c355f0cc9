// Reads how a stack runs a step: its overheads, its formats of gradients and its collectives.
#include "spec/stack_runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "spec/months.h"

namespace scalecalc {
namespace {

Pieces read_pieces(Fields& runtime, const char* key) {
  Pieces out;
  const ConfigNode* node = runtime.node(key);
  if (node == nullptr) return out;
  Fields fields(*node, fmt::format("runtime.{}", key), runtime.problems());
  out.by_tensor = fields.flag("tensors", false);
  out.by_rank = fields.flag("ranks", false);
  const auto elements = [&](const char* name) {
    return fields.optional_quantity(name, UnitKind::kNumber, {1, 1e12}).value_or(0);
  };
  out.elements = elements("elements");
  out.elements_per_rank = elements("elements_per_rank");
  out.elements_since = optional_date(fields, "elements_since");
  fields.finish();
  return out;
}

std::map<std::string, double> read_bytes_by_precision(Fields& runtime, const char* key) {
  std::map<std::string, double> out;
  const ConfigNode* node = runtime.node(key);
  if (node == nullptr) return out;
  Fields by(*node, fmt::format("runtime.{}", key), runtime.problems());
  for (const char* precision : {"bf16", "fp16", "fp8", "nvfp4", "int8", "tf32", "fp32"}) {
    const auto value = by.optional_quantity(precision, UnitKind::kNumber, {0.5, 8});
    if (value) out.emplace(precision, *value);
  }
  by.finish();
  return out;
}

}  // namespace

double Pieces::collectives(double parameters, double tensors, double ranks) const {
  const double bucket = std::max(elements, elements_per_rank * ranks);
  const double most = std::max(1.0, tensors);
  if (by_rank) return std::min(most, ranks);
  if (bucket <= 0) return by_tensor ? most : 1;
  return std::clamp(std::ceil(parameters / bucket), 1.0, most);
}

void settle_runtime(StackRuntime& runtime, std::string_view architecture, std::string_view month,
                    std::string_view chip) {
  const auto& on = runtime.grouped_experts_on;
  const bool groups = on.empty() || std::find(on.begin(), on.end(), architecture) != on.end();
  runtime.launches_each_expert = !groups || before(month, runtime.grouped_experts_since);
  const bool all_to_all = runtime.deepep_since == "never" || before(month, runtime.deepep_since);
  runtime.dispatch = all_to_all ? ExpertDispatch::kAllToAll : ExpertDispatch::kDeepEp;
  runtime.current_scaling = !runtime.current_scaling_since.empty() && !before(month, runtime.current_scaling_since);
  const auto& once = runtime.one_copy_on;
  runtime.one_copy = std::find(once.begin(), once.end(), architecture) != once.end();
  runtime.hides_gradients = !before(month, runtime.gradient_overlap_since);
  runtime.hides_gathers = !before(month, runtime.gather_overlap_since);
  runtime.hides_tensor = !before(month, runtime.tensor_overlap_since);
  runtime.shards_sends = !before(month, runtime.sharded_sends_since);
  const auto names = [&](const std::vector<std::string>& of) {
    return std::any_of(of.begin(), of.end(),
                       [&](const std::string& name) { return name == architecture || name == chip; });
  };
  runtime.expert_gathers_wait = names(runtime.expert_gathers_wait_on);
  runtime.hides_scatters = !names(runtime.scatters_wait_on);
  for (Pieces* cut : {&runtime.gathers, &runtime.reductions, &runtime.updates}) {
    if (before(month, cut->elements_since)) cut->elements = 0;
  }
}

StackRuntime read_stack_runtime(const ConfigNode& node, Problems& problems) {
  Fields fields(node, "runtime", problems);
  StackRuntime out;
  out.source = fields.text("source");
  if (const auto split = fields.optional_word("stages", {"even", "balanced"})) {
    out.stages = static_cast<StageSplit>(*split);
  }
  out.gradient_overlap_since = optional_date(fields, "gradient_overlap_since");
  out.gather_overlap_since = optional_date(fields, "gather_overlap_since");
  out.tensor_overlap_since = optional_date(fields, "tensor_overlap_since");
  out.sharded_sends_since = optional_date(fields, "sharded_sends_since");
  out.expert_gathers_wait_on = fields.text_list("expert_gathers_wait_on");
  out.scatters_wait_on = fields.text_list("scatters_wait_on");
  out.reduced_bytes = read_bytes_by_precision(fields, "reduced_bytes");
  out.dispatched_bytes = read_bytes_by_precision(fields, "dispatched_bytes");
  out.compiled = fields.flag("compiled", false);
  out.grouped_experts_since = optional_date(fields, "grouped_experts_since");
  out.grouped_experts_on = fields.text_list("grouped_experts_on");
  out.one_copy_on = fields.text_list("one_copy_on");
  out.current_scaling_since = optional_date(fields, "current_scaling_since");
  out.expert_bias_apart = fields.flag("expert_bias_apart", false);
  out.deepep_since = fields.optional_text("deepep_since").value_or("");
  if (out.deepep_since != "never") out.deepep_since = optional_date(fields, "deepep_since");
  out.gathers = read_pieces(fields, "gathers");
  out.reductions = read_pieces(fields, "reductions");
  out.updates = read_pieces(fields, "updates");
  out.reduces_whole = fields.flag("reduces_whole", false);
  out.quantized_gathers = fields.flag("quantized_gathers", false);
  const auto traffic = [&](const char* key) {
    return fields.optional_quantity(key, UnitKind::kNumber, {1, 1e4}).value_or(0);
  };
  out.update_traffic = traffic("update_traffic");
  out.bucket_traffic = traffic("bucket_traffic");
  out.accumulation_traffic = traffic("accumulation_traffic");
  out.logit_traffic = traffic("logit_traffic");
  fields.finish();
  return out;
}

}  // namespace scalecalc
