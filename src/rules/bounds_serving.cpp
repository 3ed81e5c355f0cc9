// Scaling book, chapter 7, "All About Transformer Inference", and chapter 8, "Serving LLaMA 3-70B on TPUs".
#include "rules/bounds_serving.h"

namespace scalecalc {
namespace {

void machine_rules(const ServingInputs& in, BoundList& list) {
  constexpr BoundGroup kGroup = BoundGroup::kMachine;
  list.add(kGroup,
           {"forward_flops_per_token", "2 P_act", "FLOPs", "matmul work of one token, read or generated",
            "book ch. 4 and 7"},
           in.forward_flops());
  if (in.price) {
    list.add(kGroup, {"flops_per_usd", "3600 C / price per hour", "FLOPs per USD", "at the chip's peak", "book ch. 8"},
             in.compute / *in.price);
  }
  if (!in.chips) return;
  list.add(kGroup, {"total_flops_per_s", "n C", "", "matmul rate of all chips", "book ch. 7"}, in.compute * *in.chips);
  list.add(kGroup, {"total_hbm_bytes_per_s", "n W_hbm", "", "memory bandwidth of all chips", "book ch. 7"},
           in.hbm * *in.chips);
}

}  // namespace

void serving_bounds(const BoundInputs& base, BoundList& list) {
  if (!base.hw().publishes("hbm.bandwidth")) {
    return list.leave_out("serving", "hbm.bandwidth, which " + base.hw().name + " does not publish");
  }
  const ServingInputs in(base, list);
  machine_rules(in, list);
  serving_memory_rules(in, list);
  decode_rules(in, list);
  prefill_rules(in, list);
  serving_sharding_rules(in, list);
  serving_trick_rules(in, list);
  serving_points(in, list);
}

}  // namespace scalecalc
