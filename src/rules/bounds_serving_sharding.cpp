// Spreading a model over chips when it serves: scaling book, chapter 7 "Distributing Inference Over Multiple
// Accelerators" and question 7, chapter 8 "Sharding on a TPU v5e 4x8".
#include <algorithm>

#include "base/scalar.h"
#include "model/kv_cache.h"
#include "rules/bounds_serving.h"

namespace scalecalc {
namespace {

constexpr BoundGroup kShardingGroup = BoundGroup::kServingSharding;
/// Y: as pinned, or all chips.
std::optional<Traced> tensor_degree(const ServingInputs& in) {
  const auto tp = in.base().question().fix.tp;
  return tp ? std::optional(kReader.input(static_cast<double>(*tp), "Y", "--fix tp")) : in.chips;
}

/// What activations travel over: one axis of the torus; a chip's link into its switch, or of a group of more chips than
/// a switch joins the network card of the node (book ch. 12).
struct Channel {
  BytesPerSecondOf<Traced> rate;
  std::string symbol;
  std::string byte;
};

Channel channel(const ServingInputs& in) {
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

void prefill_limit(const ServingInputs& in, const LayerShape& shape, const Channel& via, BoundList& list) {
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
void decode_limit(const ServingInputs& in, const LayerShape& shape, const Channel& via, BoundList& list) {
  const Traced& batch = *in.batch;
  const auto degree = tensor_degree(in);
  const Traced ratio = named(in.hbm / via.rate, "beta", "book ch. 7: W_hbm / " + via.symbol);
  const Traced limit = shape.total_width * (in.weight_element / in.activation_element) / (batch * ratio);
  list.add(kShardingGroup,
           {"decode_tp_limit", "F " + via.symbol + " / (B W_hbm) x b_w / b_a", "chips",
            "with fewer chips in tensor parallelism weights take longer to load than activations to travel",
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
void two_dimensional(const ServingInputs& in, const LayerShape& shape, const Channel& via, BoundList& list) {
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

}  // namespace

void serving_sharding_rules(const ServingInputs& in, BoundList& list) {
  cache_rules(in, list);
  if (!in.base().shape) return list.leave_out("tensor parallelism in serving", "a model with feed-forward layers");
  if (!in.base().has_network()) {
    return list.leave_out("tensor parallelism in serving",
                          "a network between chips with a published rate: " + in.hw().name + " has none");
  }
  const LayerShape& shape = *in.base().shape;
  const Channel via = channel(in);
  prefill_limit(in, shape, via, list);
  if (in.batch) decode_limit(in, shape, via, list);
  if (in.base().is_torus()) two_dimensional(in, shape, via, list);
}

}  // namespace scalecalc
