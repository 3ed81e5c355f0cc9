// Evaluates the rules for serving, for `scalecalc bounds --for serving`. Scaling book, chapter 7, "All About
// Transformer Inference", and chapter 8, "Serving LLaMA 3-70B on TPUs".
#include "bounds/bounds_serving.h"

#include <algorithm>

#include "base/scalar.h"
#include "model/kv_cache.h"

namespace scalecalc {
namespace {

// What serving has to hold: scaling book, chapter 7 "What about memory?" and chapter 8 "Thinking about throughput".

constexpr BoundGroup kMemoryGroup = BoundGroup::kServingMemory;

/// How many chips hold `bytes`: the ratio, the whole chips and the slice, under `name`_exact, `name`, slice_`name`.
void chips_to_hold(const ServingInputs& in, BoundList& list, const BytesOf<Traced>& bytes, const std::string& what,
                   const std::string& words) {
  if (!in.capacity) return;
  const Traced exact = list.add(
      kMemoryGroup,
      {"chips_for_" + what + "_exact", "bytes / HBM", "chips", "HBM of so many chips holds " + words, "book ch. 8"},
      bytes / *in.capacity);
  const Traced whole = list.add(
      kMemoryGroup, {"chips_for_" + what, "ceil(bytes / HBM)", "chips", "the same in whole chips", "book ch. 8"},
      ceil(exact));
  const std::string name = "slice_for_" + what;
  if (const auto slice = in.slice_for(whole, name.c_str())) {
    list.add(kMemoryGroup,
             {name, "next power of two that is built", "chips", "the smallest slice of that", "book ch. 8"}, *slice);
  } else {
    list.leave_out(name, "more than one slice");
  }
}

void weight_rules(const ServingInputs& in, BoundList& list) {
  list.add(kMemoryGroup, {"weight_bytes", "P b_w", "", "weights of the model", "book ch. 7, What about memory?"},
           in.weights);
  if (const ModelSpec* model = in.base().model(); model != nullptr && !in.base().question().parameters) {
    const ParameterCount count = count_parameters(*model);
    list.add(kMemoryGroup,
             {"parameters_without_norms", "P - norms", "parameters",
              "what the book counts: its L (3 D F + 2 D (N + K) H) + 2 D V leaves out the norms", "book ch. 4 and 7"},
             Reader<Traced>{}.input(count.total - count.norms, "P without norms", model->source));
  }
  chips_to_hold(in, list, in.weights, "weights", "the weights");
}

void cache_memory_rules(const ServingInputs& in, BoundList& list) {
  if (!in.kv_per_token) {
    list.leave_out("sizes of the KV cache", "a model with dimensions, or --kv-bytes-per-token");
    return;
  }
  list.add(
      kMemoryGroup,
      {"kv_bytes_per_token", "2 L K H b_kv", "bytes", "keys and values of one token in all layers", "book ch. 4 and 7"},
      *in.kv_per_token);
  const ModelSpec* model = in.base().model();
  if (model != nullptr && !model->attention.mla && model->attention.kv_heads > 0) {
    const auto heads = [&](std::int64_t count, const char* symbol) {
      return Reader<Traced>{}.input(static_cast<double>(count), symbol, model->source);
    };
    list.add(kMemoryGroup,
             {"gqa_reduction", "N / K", "times",
              "how much smaller the cache is than with a key and value for each head", "book ch. 7, Tricks"},
             heads(model->attention.heads, "N") / heads(model->attention.kv_heads, "K"));
  }
  if (!in.kv_per_sequence) {
    list.leave_out("sequences that fit", "--context, or --prompt and --generate");
    return;
  }
  list.add(kMemoryGroup, {"kv_bytes_per_sequence", "S 2 L K H b_kv", "", "KV cache of one sequence", "book ch. 7"},
           *in.kv_per_sequence);
  list.add(kMemoryGroup,
           {"sequences_outweighing_weights", "floor(P b_w / KV) + 1", "sequences",
            "from so many sequences on the KV cache is larger than the weights", "book ch. 7, What about memory?"},
           floor(in.weights / *in.kv_per_sequence) + Traced(1.0));
}

/// What is left on the chips once the weights are there.
void room_rules(const ServingInputs& in, BoundList& list) {
  if (!in.capacity) return list.leave_out("what fits", "hbm.capacity, which " + in.hw().name + " does not publish");
  if (!in.chips) return;
  const BytesOf<Traced> all =
      list.add(kMemoryGroup, {"total_hbm", "n HBM", "", "memory of all chips", "book ch. 7"}, *in.capacity * *in.chips);
  const bool fit = in.weights.value().value() <= all.value().value();
  const BytesOf<Traced> free =
      list.add(kMemoryGroup,
               {"free_hbm", "n HBM - P b_w", "", "memory left for KV caches", "book ch. 8, Thinking about throughput"},
               all - in.weights, fit);
  list.add(kMemoryGroup, {"free_hbm_per_chip", "HBM - P b_w / n", "", "the same on each chip", "book ch. 7"},
           *in.capacity - in.weights / *in.chips, fit);
  if (!in.kv_per_sequence) return;
  const Traced most = max(Traced(0.0), floor(free / *in.kv_per_sequence));
  std::optional<bool> holds;
  if (in.batch) holds = in.batch->value() <= most.value();
  list.add(kMemoryGroup,
           {"max_batch", "floor((n HBM - P b_w) / KV)", "sequences", "at most so many KV caches fit beside the weights",
            "book ch. 8, Thinking about throughput"},
           most, holds);
}

void batch_rules(const ServingInputs& in, BoundList& list) {
  if (!in.batch) return;
  std::optional<BytesOf<Traced>> activations;
  if (in.base().shape) {
    const LayerShape& shape = *in.base().shape;
    activations = list.add(kMemoryGroup,
                           {"decode_activation_bytes", "B F b_a", "", "the widest activation of a decode step",
                            "book ch. 7, What about memory?"},
                           *in.batch * shape.width * in.activation_element);
  }
  if (!in.kv_per_sequence) return;
  const BytesOf<Traced> held = in.weights + *in.batch * *in.kv_per_sequence;
  chips_to_hold(in, list, held, "batch", "the weights and the KV cache of the batch");
  if (!activations || !in.capacity) return;
  list.add(kMemoryGroup,
           {"chips_for_batch_and_activations_exact", "(P b_w + B KV + B F b_a) / HBM", "chips",
            "the same with the widest activation", "book ch. 7 and 8"},
           (held + *activations) / *in.capacity);
}

void serving_memory_rules(const ServingInputs& in, BoundList& list) {
  weight_rules(in, list);
  cache_memory_rules(in, list);
  room_rules(in, list);
  batch_rules(in, list);
  if (in.prompt && in.base().model() != nullptr) {
    const ModelSpec& model = *in.base().model();
    const Traced width = Reader<Traced>{}.input(static_cast<double>(model.d_model), "D", model.source);
    list.add(kMemoryGroup,
             {"prefill_activation_bytes", "T D b_a", "", "one activation of the whole prompt",
              "book ch. 7, What about memory?"},
             *in.prompt * width * in.activation_element);
  }
}

// Generating tokens: scaling book, chapter 7 "Theoretical estimates for LLM latency and throughput" and chapter 8.

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
           in.weights_read / (in.hbm * *in.chips));
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
  if (in.base().chips) enough = in.weights_read.value().value() <= (limit * in.hbm * *in.base().chips).value().value();
  const Traced exact = list.add(kDecodeGroup,
                                {"chips_for_latency_exact", "P b_w / (limit W_hbm)", "chips",
                                 "so many chips read all weights within the limit", "book ch. 7"},
                                in.weights_read / (limit * in.hbm), enough);
  list.add(kDecodeGroup,
           {"chips_for_latency", "ceil(P b_w / (limit W_hbm))", "chips", "the same in whole chips", "book ch. 7"},
           ceil(exact));
  if (!in.chips || !in.kv_per_sequence) return;
  const SecondsOf<Traced> cache =
      named(*in.kv_per_sequence / (in.hbm * *in.chips), "KV time per sequence", "book ch. 7");
  const SecondsOf<Traced> math =
      named(in.forward_flops() / (in.compute * *in.chips), "FLOPs time per sequence", "book ch. 7");
  const SecondsOf<Traced> load = named(in.weights_read / (in.hbm * *in.chips), "latency_floor", "book ch. 7");
  const Traced most = max(Traced(0.0), floor(min(limit / (cache + math), (limit - load) / cache)));
  std::optional<bool> holds;
  if (in.batch) holds = in.batch->value() <= most.value();
  list.add(kDecodeGroup,
           {"max_batch_for_latency", "floor(min(limit / (t_KV + t_FLOPs), (limit - t_weights) / t_KV))", "sequences",
            "at most so many sequences keep the step within the limit", "book ch. 7, general form"},
           most, holds);
}

/// Of the chip, and of a model only the share of its experts that a token visits.
void critical_batch_rules(const ServingInputs& in, BoundList& list) {
  std::optional<bool> holds;
  const Traced critical = in.critical_batch();
  if (in.batch) holds = in.batch->value() > critical.value();
  const bool moe = in.base().model() != nullptr && in.base().model()->moe;
  list.add(kDecodeGroup,
           {"critical_batch", moe ? "C b_w / (2 W_hbm) x E / k" : "C b_w / (2 W_hbm)", "sequences",
            "generating is compute-bound in the matmuls with more sequences at once", "book ch. 7, Linear operations"},
           critical, holds);
}

void decode_rules(const ServingInputs& in, BoundList& list) {
  critical_batch_rules(in, list);
  floors(in, list);
  plateaus(in, list);
  latency_rules(in, list);
}

// Reading prompts, and what shortens either phase: scaling book, chapter 7 "Designing an Effective Inference Engine",
// "Prefix caching" and Appendix D, chapter 8 "What about prefill?".

void chunk_rule(const ServingInputs& in, BoundList& list) {
  if (!in.batch) return;
  list.add(BoundGroup::kServingTricks,
           {"free_chunk_tokens", "floor(B_crit) - B", "tokens",
            "so many tokens of a prompt ride free in a decode step, which reads the weights anyway",
            "follows from book ch. 7, general form of the step"},
           max(Traced(0.0), floor(in.critical_batch()) - *in.batch));
}

/// 1 + a + a^2 + ... + a^g: the tokens kept before the first rejection, and the one the large model adds.
Traced expected_tokens(const Traced& accept, std::int64_t drafted) {
  Traced sum(1.0);
  for (std::int64_t i = 0; i < drafted; ++i) sum = Traced(1.0) + accept * sum;
  return sum;
}

/// Time of a draft step in steps of the large model. Both read their weights and little else.
Traced draft_cost(const ServingInputs& in, const BoundSpeculation& s) {
  if (s.cost) return kReader.input(*s.cost, "draft cost", "--speculative");
  return kReader.input(s.draft_parameters.value_or(0), "draft parameters", "--speculative") / in.base().parameters;
}

void speculation_rules(const ServingInputs& in, BoundList& list) {
  if (!in.job().speculation) return;
  constexpr BoundGroup kGroup = BoundGroup::kServingTricks;
  const BoundSpeculation& s = *in.job().speculation;
  const Traced accept = kReader.input(s.accept, "a", "--speculative");
  const Traced drafted = kReader.input(static_cast<double>(s.drafted), "g", "--speculative");
  const Traced tokens = list.add(kGroup,
                                 {"speculative_tokens_per_step", "(1 - a^(g+1)) / (1 - a)", "tokens",
                                  "expected of one step of the large model", "arXiv:2211.17192, equation 1"},
                                 expected_tokens(accept, s.drafted));
  const Traced most = in.critical_batch() / (drafted + Traced(1.0));
  std::optional<bool> holds;
  if (in.batch) holds = in.batch->value() < most.value();
  if (s.cost || s.draft_parameters) {
    list.add(kGroup,
             {"speculative_speedup", "tokens per step / (1 + g x draft cost)", "",
              "of a step that stays bandwidth-bound: see the limit below", "arXiv:2211.17192, theorem 3.8"},
             tokens / (Traced(1.0) + drafted * draft_cost(in, s)), holds);
  } else {
    list.leave_out("the speed-up of speculation", "cost= or draft= in --speculative");
  }
  list.add(kGroup,
           {"speculative_batch_limit", "B_crit / (g + 1)", "sequences",
            "with fewer sequences checking the drafted tokens costs no time", "book ch. 7, Appendix D"},
           most, holds);
}

void prefill_rules(const ServingInputs& in, BoundList& list) {
  constexpr BoundGroup kGroup = BoundGroup::kPrefill;
  std::optional<bool> holds;
  const Traced critical = in.critical_batch();
  if (in.prompt) holds = in.prompt->value() > critical.value();
  list.add(kGroup,
           {"critical_prompt", "as critical_batch", "tokens", "a longer prompt is compute-bound in the matmuls",
            "book ch. 7"},
           critical, holds);
  if (in.prefill_time) {
    list.add(kGroup,
             {"prefill_time", "max(2 P_act T / (n C MFU), P b_w / (n W_hbm))", "", "reading one prompt",
              "book ch. 7; ch. 8, What about prefill?"},
             *in.prefill_time);
  } else {
    list.leave_out("prefill", "--prompt");
  }
  if (const auto left = in.prompt_left()) {
    list.add(kGroup,
             {"prefill_compute_left", "(prompt - cached) / prompt", "", "share of the prompt not in the prefix cache",
              "book ch. 7, Prefix caching"},
             *left);
  }
}

void serving_trick_rules(const ServingInputs& in, BoundList& list) {
  chunk_rule(in, list);
  speculation_rules(in, list);
}

// Spreading a model over chips when it serves: scaling book, chapter 7 "Distributing Inference Over Multiple
// Accelerators" and question 7, chapter 8 "Sharding on a TPU v5e 4x8".

constexpr BoundGroup kShardingGroup = BoundGroup::kServingSharding;
/// Y: as pinned, or all chips.
std::optional<Traced> tensor_degree(const ServingInputs& in) {
  const auto tp = in.base().question().fix.tp;
  return tp ? std::optional(kReader.input(static_cast<double>(*tp), "Y", "--fix tp")) : in.chips;
}

/// What activations travel over: one axis of the torus; a chip's link into its switch, or of a group of more chips than
/// a switch joins the network card of the node (book ch. 12).
struct ServingChannel {
  BytesPerSecondOf<Traced> rate;
  std::string symbol;
  std::string byte;
};

ServingChannel channel(const ServingInputs& in) {
  const BoundInputs& base = in.base();
  if (base.is_torus()) return {base.axis(), "W_ici", "crosses one wrapped axis"};
  const auto degree = tensor_degree(in);
  const bool inside = !degree || degree->value() <= static_cast<double>(base.node_size());
  if (inside || !base.has_outer_network()) return {base.scale_up(), "W_gpu", "enters its switch"};
  return {base.node_egress(), "W_node", "leaves its node"};
}

std::optional<bool> below(const std::optional<Traced>& value, const Traced& limit) {
  return value ? std::optional(value->value() < limit.value()) : std::nullopt;
}

void prefill_limit(const ServingInputs& in, const LayerShape& shape, const ServingChannel& via, BoundList& list) {
  const FlopsPerByteOf<Traced> alpha =
      list.add(kShardingGroup,
               {"serving_link_intensity", "alpha = C / " + via.symbol, "FLOPs per byte",
                "FLOPs a chip does while one byte " + via.byte, "book ch. 5, 7 and 12"},
               in.compute / via.rate);
  const Traced axes = kReader.input(static_cast<double>(in.base().tensor_axes()), "M_Y", "--my");
  // Two activations of b_a bytes against two matmuls: F / alpha at two bytes.
  const FlopsPerByteOf<Traced> per_byte = FlopsOf<Traced>(Traced(2.0) * shape.width) / in.activation_element;
  const Traced limit = axes * (per_byte / alpha);
  list.add(kShardingGroup,
           {"prefill_tp_limit", "M_Y F / alpha x 2 / b_a", "chips",
            "prefill is compute-bound with fewer chips in tensor parallelism", "book ch. 7, Prefill"},
           limit, below(tensor_degree(in), limit));
}

/// One matmul of the MLP in decode, activations gathered once: what each of the three costs.
void decode_limit(const ServingInputs& in, const LayerShape& shape, const ServingChannel& via, BoundList& list) {
  const Traced& batch = *in.batch;
  const auto degree = tensor_degree(in);
  const Traced ratio = named(in.hbm / via.rate, "beta", "book ch. 7: W_hbm / " + via.symbol);
  const Traced limit = shape.total_width * (in.weight_element / in.activation_element) / (batch * ratio);
  list.add(
      kShardingGroup,
      {"decode_tp_limit", "F " + via.symbol + " / (B W_hbm) x b_w / b_a", "chips",
       fmt::format("with fewer chips in tensor parallelism weights take longer to load than activations to travel{}",
                   in.base().is_torus() ? " over one axis" : ""),
       "book ch. 7, Generation"},
      limit, below(degree, limit));
  if (!degree) return;
  const SecondsOf<Traced> link = list.add(kShardingGroup,
                                          {"matmul_link_time", "b_a B D / " + via.symbol, "",
                                           "activations of one MLP matmul over the network", "book ch. 7 and 8"},
                                          batch * shape.d_model * in.activation_element / via.rate);
  const SecondsOf<Traced> load = list.add(
      kShardingGroup, {"matmul_hbm_time", "b_w D F / (Y W_hbm)", "", "its weights out of HBM", "book ch. 7 and 8"},
      shape.d_model * shape.total_width * in.weight_element / (in.hbm * *degree));
  const FlopsOf<Traced> flops(Traced(2.0) * batch * shape.d_model * shape.width);
  const SecondsOf<Traced> math =
      list.add(kShardingGroup, {"matmul_compute_time", "2 B D F / (Y C)", "", "its FLOPs", "book ch. 7 and 8"},
               flops / (in.compute * *degree));
  list.add(kShardingGroup,
           {"matmul_time", "max of the three", "", "the longest of the three is loading the weights", "book ch. 8"},
           max(link, max(load, math)), load.value().value() > std::max(link.value().value(), math.value().value()));
}

/// The KV cache has no dimension of the weights to be split by, beyond the KV heads; a latent has none.
void cache_rules(const ServingInputs& in, BoundList& list) {
  const ModelSpec* model = in.base().model();
  const auto degree = tensor_degree(in);
  if (model == nullptr || !degree) return;
  std::int64_t heads = 0;
  for (const LayerCache& kind : kv_cache(*model).kinds) {
    if (kind.token_elements > 0) heads = heads == 0 ? kind.ways : std::min(heads, kind.ways);
  }
  if (heads == 0) return;
  const Traced over_heads = list.add(
      kShardingGroup,
      {"kv_shards_over_heads", "min(Y, K)", "ways", "the KV cache is split over its heads so far", "book ch. 7"},
      min(*degree, kReader.input(static_cast<double>(heads), "K", model->source)));
  const Traced rest = ceil(*degree / over_heads);
  std::optional<bool> holds;
  if (in.batch) holds = in.batch->value() >= rest.value();
  list.add(
      kShardingGroup,
      {"kv_shards_over_batch", "ceil(Y / min(Y, K))", "ways",
       "and over sequences for the rest, with two all-to-alls per attention layer: so many at least", "book ch. 7"},
      rest, holds);
}

/// Weights that stay where they are, sharded over both their dimensions, against sharding over F alone.
void two_dimensional(const ServingInputs& in, const LayerShape& shape, const ServingChannel& via, BoundList& list) {
  const Traced axes = kReader.input(static_cast<double>(in.base().axes()), "axes", "axes of the torus");
  const Traced threshold = Traced(2.0) * axes * axes * shape.total_width / shape.d_model;
  const bool known = in.chips.has_value();
  list.add(kShardingGroup,
           {"two_d_threshold", "2 axes^2 F / D", "chips",
            "on more chips weights sharded over both dimensions communicate less", "book ch. 7, question 7"},
           threshold, known ? std::optional(in.chips->value() > threshold.value()) : std::nullopt);
  if (!known || !in.batch) return;
  const Traced& n = *in.chips;
  const Traced& batch = *in.batch;
  const Traced x =
      list.add(kShardingGroup, {"two_d_x", "sqrt(n D / (2 F))", "ways", "best sharding of D", "book ch. 7, question 7"},
               sqrt(n * shape.d_model / (Traced(2.0) * shape.total_width)));
  const Traced yz =
      list.add(kShardingGroup, {"two_d_yz", "n / X", "ways", "best sharding of F", "book ch. 7, question 7"}, n / x);
  const FlopsOf<Traced> flops(Traced(4.0) * batch * shape.d_model * shape.width);
  list.add(
      kShardingGroup,
      {"two_d_compute_time", "4 B D F / (n C)", "", "FLOPs of the two matmuls of an MLP", "book ch. 7, question 7"},
      flops / (in.compute * n));
  const BytesOf<Traced> input = batch * shape.d_model / x * in.activation_element;
  const BytesOf<Traced> hidden = Traced(2.0) * batch * shape.width / yz * in.activation_element;
  const SecondsOf<Traced> both = list.add(kShardingGroup,
                                          {"two_d_time", "(b_a B D / X + 2 b_a B F / YZ) / W_ici", "",
                                           "their communication, sharded so", "book ch. 7, question 7"},
                                          (input + hidden) / via.rate);
  const SecondsOf<Traced> one = Traced(2.0) * batch * shape.d_model * in.activation_element / (via.rate * axes);
  list.add(kShardingGroup,
           {"one_d_time", "2 b_a B D / (axes W_ici)", "",
            "sharded over F alone, on all axes, communication takes longer", "book ch. 7, question 7"},
           one, one.value().value() > both.value().value());
}

void serving_sharding_rules(const ServingInputs& in, BoundList& list) {
  cache_rules(in, list);
  if (!in.base().shape) return list.leave_out("tensor parallelism in serving", "a model with feed-forward layers");
  if (!in.base().has_network()) {
    return list.leave_out("tensor parallelism in serving",
                          "a network between chips with a published rate: " + in.hw().name + " has none");
  }
  const LayerShape& shape = *in.base().shape;
  const ServingChannel via = channel(in);
  prefill_limit(in, shape, via, list);
  if (in.batch) decode_limit(in, shape, via, list);
  if (in.base().is_torus()) two_dimensional(in, shape, via, list);
}

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
  if (!in.chips || !in.base().sized()) return;
  list.add(kGroup, {"total_flops_per_s", "n C", "", "matmul rate of all chips", "book ch. 7"}, in.compute * *in.chips);
  list.add(kGroup, {"total_hbm_bytes_per_s", "n W_hbm", "", "memory bandwidth of all chips", "book ch. 7"},
           in.hbm * *in.chips);
}

}  // namespace

void serving_bounds(const BoundInputs& base, BoundList& list, const Stop& stop) {
  if (!base.hw().publishes("hbm.bandwidth")) {
    return list.leave_out("serving", "hbm.bandwidth, which " + base.hw().name + " does not publish");
  }
  const ServingInputs in(base, list);
  machine_rules(in, list);
  if (!base.sized()) return critical_batch_rules(in, list);
  serving_memory_rules(in, list);
  decode_rules(in, list);
  prefill_rules(in, list);
  serving_sharding_rules(in, list);
  serving_trick_rules(in, list);
  serving_points(in, list, stop);
}

}  // namespace scalecalc
