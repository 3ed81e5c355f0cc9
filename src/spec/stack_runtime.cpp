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
  out.quantized_gathers = fields.flag("quantized_gathers", false);
  fields.finish();
  return out;
}

}  // namespace scalecalc
