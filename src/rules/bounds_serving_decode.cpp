// Generating tokens: scaling book, chapter 7 "Theoretical estimates for LLM latency and throughput" and chapter 8.
#include "rules/bounds_serving.h"

namespace scalecalc {
namespace {

constexpr BoundGroup kDecodeGroup = BoundGroup::kDecode;

/// Steps that do not depend on the batch.
void floors(const ServingInputs& in, BoundList& list) {
  if (in.capacity) {
    const SecondsOf<Traced> full = list.add(
        kDecodeGroup, {"hbm_full_step", "HBM / W_hbm", "", "a decode step that reads all of a full chip", "book ch. 8"},
        *in.capacity / in.hbm);
    if (in.generate) {
      list.add(kDecodeGroup,
               {"hbm_full_answer", "generate HBM / W_hbm", "", "a whole answer at such steps", "book ch. 8"},
               *in.generate * full);
    }
  }
  if (!in.chips) return;
  list.add(kDecodeGroup,
           {"latency_floor", "P b_w / (n W_hbm)", "", "no step is shorter: every weight is read",
            "book ch. 7, Theoretical estimates"},
           in.weights / (in.hbm * *in.chips));
  if (!in.base().shape) return;
  const LayerShape& shape = *in.base().shape;
  const bool gated = shape.gated;
  const Traced layer = list.add(kDecodeGroup,
                                {"mlp_layer_parameters", gated ? "3 D F" : "2 D F", "parameters",
                                 "weights of the MLP of one layer", "book ch. 4"},
                                Traced(gated ? 3.0 : 2.0) * shape.d_model * shape.total_width);
  list.add(kDecodeGroup,
           {"mlp_layer_floor", "b_w x layer / (n W_hbm)", "", "reading the MLP of one layer", "book ch. 7, Appendix A"},
           layer * in.weight_element / (in.hbm * *in.chips));
}

/// The KV cache of a sequence is its own, so its traffic grows with the batch as FLOPs do, and throughput levels off.
void plateaus(const ServingInputs& in, BoundList& list) {
  const FlopsOf<Traced> flops = in.forward_flops();
  if (in.kv_per_token && in.uniform) {
    std::optional<bool> holds;
    const Traced crossover = flops * in.hbm / (in.compute * *in.kv_per_token);
    if (in.context) holds = in.context->value() > crossover.value();
    list.add(kDecodeGroup,
             {"kv_over_flops_context", "2 P_act W_hbm / (C KV per token)", "tokens",
              "longer sequences spend more time reading their KV cache than computing", "book ch. 8"},
             crossover, holds);
  }
  if (!in.chips || !in.kv_per_sequence) return;
  const PerSecondTraced cache_alone = in.hbm * *in.chips / *in.kv_per_sequence;
  list.add(kDecodeGroup,
           {"kv_throughput_plateau", "n W_hbm / KV", "tokens/s",
            "throughput of ever larger batches, as far as the KV cache lets it", "book ch. 7"},
           cache_alone);
  const SecondsOf<Traced> token = *in.kv_per_sequence / (in.hbm * *in.chips) + flops / (in.compute * *in.chips);
  list.add(kDecodeGroup,
           {"throughput_plateau", "n / (KV / W_hbm + 2 P_act / C)", "tokens/s", "the same with the FLOPs",
            "book ch. 7, general form"},
           Traced(1.0) / token);
  list.add(kDecodeGroup,
           {"throughput_plateau_per_chip", "1 / (KV / W_hbm + 2 P_act / C)", "tokens/s per chip", "of one chip",
            "book ch. 7, general form"},
           Traced(1.0) / token / *in.chips);
}

/// What a limit on the step's time asks for.
void latency_rules(const ServingInputs& in, BoundList& list) {
  if (!in.job().latency) return;
  const SecondsOf<Traced> limit = read(Reader<Traced>{}, Seconds(*in.job().latency), "limit", "--slo-tpot");
  std::optional<bool> enough;
  if (in.base().chips) enough = in.weights.value().value() <= (limit * in.hbm * *in.base().chips).value().value();
  const Traced exact = list.add(kDecodeGroup,
                                {"chips_for_latency_exact", "P b_w / (limit W_hbm)", "chips",
                                 "so many chips read all weights within the limit", "book ch. 7"},
                                in.weights / (limit * in.hbm), enough);
  list.add(kDecodeGroup,
           {"chips_for_latency", "ceil(P b_w / (limit W_hbm))", "chips", "the same in whole chips", "book ch. 7"},
           ceil(exact));
  if (!in.chips || !in.kv_per_sequence) return;
  const SecondsOf<Traced> cache =
      named(*in.kv_per_sequence / (in.hbm * *in.chips), "KV time per sequence", "book ch. 7");
  const SecondsOf<Traced> math =
      named(in.forward_flops() / (in.compute * *in.chips), "FLOPs time per sequence", "book ch. 7");
  const SecondsOf<Traced> load = named(in.weights / (in.hbm * *in.chips), "latency_floor", "book ch. 7");
  const Traced most = max(Traced(0.0), floor(min(limit / (cache + math), (limit - load) / cache)));
  std::optional<bool> holds;
  if (in.batch) holds = in.batch->value() <= most.value();
  list.add(kDecodeGroup,
           {"max_batch_for_latency", "floor(min(limit / (t_KV + t_FLOPs), (limit - t_weights) / t_KV))", "sequences",
            "at most so many sequences keep the step within the limit", "book ch. 7, general form"},
           most, holds);
}

}  // namespace

void decode_rules(const ServingInputs& in, BoundList& list) {
  std::optional<bool> holds;
  const Traced critical = in.critical_batch();
  if (in.batch) holds = in.batch->value() > critical.value();
  const bool moe = in.base().model() != nullptr && in.base().model()->moe;
  list.add(kDecodeGroup,
           {"critical_batch", moe ? "C b_w / (2 W_hbm) x E / k" : "C b_w / (2 W_hbm)", "sequences",
            "generating is compute-bound in the matmuls with more sequences at once", "book ch. 7, Linear operations"},
           critical, holds);
  floors(in, list);
  plateaus(in, list);
  latency_rules(in, list);
}

}  // namespace scalecalc
