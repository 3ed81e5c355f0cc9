// What serving has to hold: scaling book, chapter 7 "What about memory?" and chapter 8 "Thinking about throughput".
#include "rules/bounds_serving.h"

namespace scalecalc {
namespace {

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

}  // namespace

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

}  // namespace scalecalc
