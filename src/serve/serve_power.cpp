#include "serve/serve_power.h"

#include <algorithm>

namespace scalecalc {

StepActivity serving_activity(const ServeTime<double>& decode_step, double prompts) {
  const double step = decode_step.total().value();
  const double decoding = 1 - prompts;
  StepActivity out{
      .computing = decoding * decode_step.compute.value() / step + prompts,
      .reading = decoding * (decode_step.weights + decode_step.kv + decode_step.activations).value() / step};
  out.waiting = std::max(0.0, 1 - out.computing - out.reading);
  return out;
}

double facility_watts(const HardwareSpec& hw, const PowerTerms& terms, const StepActivity& activity) {
  return chip_draw(Reader<double>{}, power_input(hw, terms, activity)).busy_total().value();
}

double prompt_share(const ServePoint& point) {
  if (point.pools) return static_cast<double>(point.pools->prefill_chips) / static_cast<double>(point.chips);
  if (point.speculation) return 0;  // a step that checks drafts is no decode step
  return std::clamp(1 - point.decode_step_s / point.tpot_s, 0.0, 1.0);
}

}  // namespace scalecalc
