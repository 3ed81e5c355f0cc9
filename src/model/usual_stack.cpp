// Assumes the software and the sequence length for a model when the user names none.
#include "model/usual_stack.h"

#include <algorithm>

#include "model/accounting.h"

namespace scalecalc {

std::int64_t usual_seq(const ModelSpec& model) {
  constexpr std::int64_t kLongest = 8192;
  return model.training.seq.value_or(std::min(model.max_seq, kLongest));
}

std::string usual_stack(const HardwareSpec& hw, const ModelSpec& model, std::int64_t seq) {
  if (model.moe || hw.small_model_stack.empty()) return hw.efficiency.stack;
  const double chip = kSmallShare * hw.hbm_capacity.value();
  constexpr double kBf16 = 2;
  const double states = kStateBytes * count_parameters(model).total;
  const double inputs = kBf16 * static_cast<double>(seq * model.layers() * model.d_model);
  const bool small = states <= chip * static_cast<double>(hw.chips_per_host) && inputs <= chip;
  return small ? hw.small_model_stack : hw.efficiency.stack;
}

}  // namespace scalecalc
