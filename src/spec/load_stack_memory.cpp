// Reads which tensors a stack keeps and what memory it reserves.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "spec/months.h"
#include "spec/stack_memory.h"

namespace scalecalc {
namespace {

constexpr Range kBytesEach{0, 64};

/// Operations of the list that selective remat may name.
const std::vector<std::string>& operations() {
  static const std::vector<std::string> kAll{"norm output",
                                             "attention",
                                             "query projection",
                                             "query up-projection",
                                             "key/value projection",
                                             "key/value up-projection",
                                             "output gate",
                                             "output gate projection",
                                             "mlp norm",
                                             "mlp gate projection",
                                             "mlp up projection",
                                             "mlp activation",
                                             "router",
                                             "expert dispatch and combine",
                                             "expert gate projection",
                                             "expert up projection",
                                             "expert down projection"};
  return kAll;
}

void check_operations(const ConfigNode& where, const char* key, const std::vector<std::string>& names,
                      Problems& problems) {
  for (const std::string& name : names) {
    if (std::find(operations().begin(), operations().end(), name) != operations().end()) continue;
    problems.add(where.span, fmt::format("unknown operation {} in memory.{}", in_quotes(name), key),
                 did_you_mean(nearest(name, operations())));
  }
}

Coefficient coefficient(const ConfigNode& node, const std::string& what, UnitKind kind, Range range,
                        const std::string& source, Problems& problems) {
  Fields fields(node, what, problems);
  Coefficient out;
  out.value = fields.quantity("value", kind, range);
  out.error = fields.optional_quantity("error", UnitKind::kFraction, {0, 1}).value_or(0);
  out.source = fields.optional_text("source").value_or(source);
  fields.finish();
  return out;
}

}  // namespace

void settle_memory(StackMemory& rules, std::string_view month) {
  if (before(month, rules.norms_widened_since)) rules.norm_input_bytes = rules.norm_result_bytes = 0;
  rules.packed_inputs = before(month, rules.packed_inputs_until);
}

StackMemory read_stack_memory(const ConfigNode& node, const std::string& stack, Problems& problems) {
  Fields fields(node, "memory", problems);
  StackMemory out;
  out.stack = stack;
  out.source = fields.text("source");
  out.sharded_master = fields.flag("sharded_master", out.sharded_master);
  const auto by_precision = [&](const char* key, std::map<std::string, double>& into) {
    const ConfigNode* const bytes = fields.node(key);
    if (bytes == nullptr) return;
    Fields by(*bytes, fmt::format("memory.{}", key), problems);
    for (const char* precision : {"bf16", "fp16", "fp8", "nvfp4", "int8", "tf32", "fp32"}) {
      if (const auto value = by.optional_quantity(precision, UnitKind::kNumber, kBytesEach)) {
        into.emplace(precision, *value);
      }
    }
    by.finish();
  };
  by_precision("gradient_bytes", out.gradient_bytes);
  by_precision("gradient_buckets", out.gradient_buckets);
  by_precision("cached_weights", out.cached_weights);
  const auto number = [&](const char* key, double& value) {
    value = fields.optional_quantity(key, UnitKind::kNumber, kBytesEach).value_or(value);
  };
  number("update_bytes", out.update_bytes);
  number("shard_update_bytes", out.shard_update_bytes);
  number("logit_bytes", out.logit_bytes);
  number("gate_copies", out.gate_copies);
  number("norm_input_bytes", out.norm_input_bytes);
  number("norm_result_bytes", out.norm_result_bytes);
  number("layer_share", out.layer_share);
  number("gathered_layers", out.gathered_layers);
  number("reduced_layers", out.reduced_layers);
  out.chunks_run_again = fields.flag("chunks_run_again", out.chunks_run_again);
  out.keeps_expert_outputs = fields.flag("keeps_expert_outputs", out.keeps_expert_outputs);
  out.keeps_gathered = fields.flag("keeps_gathered", out.keeps_gathered);
  out.quantized_inputs = fields.flag("quantized_inputs", out.quantized_inputs);
  out.drops_out = fields.flag("drops_out", out.drops_out);
  out.fused_projection = fields.flag("fused_projection", out.fused_projection);
  out.repeats_keys = fields.flag("repeats_keys", out.repeats_keys);
  out.adapter_dropout = fields.flag("adapter_dropout", out.adapter_dropout);
  out.pads_adapters = fields.flag("pads_adapters", out.pads_adapters);
  out.norms_widened_since = optional_date(fields, "norms_widened_since");
  out.packed_inputs_until = optional_date(fields, "packed_inputs_until");
  out.regathers_in_pipeline = fields.flag("regathers_in_pipeline", out.regathers_in_pipeline);
  const auto operations = [&](const char* key, std::vector<std::string>& into) {
    into = fields.text_list(key);
    if (const ConfigNode* where = fields.node(key)) check_operations(*where, key, into, problems);
  };
  operations("selective", out.selective);
  operations("compiled_selective", out.compiled_selective);
  if (const ConfigNode* part = fields.node("fragmentation")) {
    out.fragmentation = coefficient(*part, "memory.fragmentation", UnitKind::kFraction, {0, 1}, out.source, problems);
  }
  if (const ConfigNode* part = fields.node("reserve")) {
    out.reserve = coefficient(*part, "memory.reserve", UnitKind::kBytes, {0, 1e12}, out.source, problems);
  }
  out.error = fields.optional_quantity("error", UnitKind::kFraction, {0, 1}).value_or(out.error);
  fields.finish();
  return out;
}

}  // namespace scalecalc
