#include "spec/stack_runtime.h"

namespace scalecalc {

StackRuntime read_stack_runtime(const ConfigNode& node, Problems& problems) {
  Fields fields(node, "runtime", problems);
  StackRuntime out;
  out.source = fields.text("source");
  if (const auto split = fields.optional_word("stages", {"even", "balanced"})) {
    out.stages = static_cast<StageSplit>(*split);
  }
  out.gradient_overlap_since = fields.optional_text("gradient_overlap_since").value_or("");
  if (const ConfigNode* bytes = fields.node("reduced_bytes")) {
    Fields by(*bytes, "runtime.reduced_bytes", problems);
    for (const char* precision : {"bf16", "fp16", "fp8", "nvfp4", "int8", "tf32", "fp32"}) {
      const auto value = by.optional_quantity(precision, UnitKind::kNumber, {0.5, 8});
      if (value) out.reduced_bytes.emplace(precision, *value);
    }
    by.finish();
  }
  out.compiled = fields.flag("compiled", false);
  out.quantized_gathers = fields.flag("quantized_gathers", false);
  fields.finish();
  return out;
}

}  // namespace scalecalc
