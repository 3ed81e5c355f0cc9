#include "calibrate/serve_slots.h"

namespace scalecalc {

const std::vector<ServeSlot>& serve_slots() {
  using S = ServingEfficiency;
  // Fractions of rates differ between kernels by a tenth or two (GEMMs, attention and all-reduces measured on A100,
  // H100, H200, B200 and L40S); what engines spend beside their kernels differs several times.
  static const std::vector<ServeSlot> kSlots{
      {"weight_read", &S::weight_read, 0.2, 0.97, 0.1},
      {"kv_read", &S::kv_read, 0.2, 0.97, 0.15},
      {"expert_read", &S::expert_read, 0.1, 1, 0.25},
      {"dequantise", &S::dequantise, 0.3, 1, 0.15},
      {"matmul", &S::matmul, 0.3, 1.6, 0.12},
      {"layer_overhead", &S::layer_overhead, 1e-6, 5e-3, 0.6},
      {"step_overhead", &S::step_overhead, 1e-5, 0.1, 0.6},
      {"sequence_overhead", &S::sequence_overhead, 1e-8, 1e-3, 0.6},
      {"collective_factor", &S::collective_factor, 0.1, 10, 0.3},
  };
  return kSlots;
}

}  // namespace scalecalc
