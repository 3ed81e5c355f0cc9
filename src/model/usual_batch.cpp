#include "model/usual_batch.h"

#include <fmt/format.h>

#include <cmath>

namespace scalecalc {

double usual_batch(double active_parameters) {
  return std::exp2(std::round(std::log2(kBatchScale * std::pow(active_parameters, kBatchExponent))));
}

std::string usual_batch_source() {
  return fmt::format(
      "assumed: none is published; {:g} N^{:g} of N active parameters, to a power of two, as published runs from GPT-3 "
      "to DeepSeek-V3 had, within a factor of {:g}",
      kBatchScale, kBatchExponent, kBatchScatter);
}

}  // namespace scalecalc
