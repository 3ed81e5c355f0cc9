// Scaling book, chapter 12, "Rooflines for LLM Scaling on GPUs": data, tensor and expert parallelism behind switches.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/scalar.h"
#include "base/units.h"
#include "rules/bound_rules.h"
#include "rules/formulas.h"

namespace scalecalc {
namespace {

class SwitchedRules {
 public:
  SwitchedRules(const BoundInputs& in, BoundList& list)
      : in_(in), list_(list), sparsity_(in.shape ? in.shape->sparsity : Traced(1.0)) {}

  void run() {
    data();
    tensor();
    experts();
    layer_passes(in_, std::nullopt, list_);
  }

 private:
  Traced data_rule(const char* name, const char* symbol, const std::string& says, const Traced& limit) {
    return list_.add(BoundGroup::kData, {name, symbol, "tokens per chip", says, "book ch. 12, Data Parallelism"}, limit,
                     in_.more_tokens_than(limit));
  }

  Traced limit_of(const FlopsPerByteOf<Traced>& alpha, const Traced& scale) const {
    return rules::data_limit(alpha, scale, Traced(1.0), sparsity_);
  }

  void data() {
    if (in_.tokens_per_chip) {
      list_.add(BoundGroup::kData,
                {"tokens_per_chip", "B / n", "tokens", "what every limit per chip is held against", "book ch. 12"},
                *in_.tokens_per_chip);
    } else {
      list_.leave_out("whether the limits are kept", in_.missing_for_tokens_per_chip());
    }
    const bool experts = in_.shape && in_.shape->experts;
    const auto in_node = named(in_.compute() / in_.scale_up(), "alpha_gpu", "book ch. 12: C / W_gpu");
    node_limit_ = data_rule("dp_limit_in_node", experts ? "(E/k) C / W_gpu" : "C / W_gpu",
                            "data parallelism inside one node is compute-bound with more tokens on each chip",
                            limit_of(in_node, in_.gradient_scale()));
    if (!in_.has_outer_network()) {
      limit_ = node_limit_;
      return conclude();
    }
    const FlopsPerByteOf<Traced> alpha = in_.collective_intensity();
    const char* symbol = experts ? "(E/k) C / W" : "C / W";
    limit_ = data_rule("dp_limit", symbol,
                       "data parallelism and ZeRO over nodes are compute-bound with more tokens on each chip",
                       limit_of(alpha, in_.gradient_scale()));
    data_rule("fsdp_limit", symbol, "the same for FSDP (ZeRO-3), which moves weights as well",
              limit_of(alpha, in_.fsdp_scale()));
    if (in_.hw().network[1].switched.in_network_reduction) {
      data_rule("dp_limit_reduced_in_network", "C / (2 W)",
                "plain data parallelism where switches add up the gradients", limit_ / Traced(2.0));
    }
    if (in_.chips) over_these_chips();
    conclude();
    const BoundDegrees& fix = in_.question().fix;
    if (fix.tp || fix.pp || fix.ep || in_.question().nodes_spanned) inside_model_parallelism();
  }

  void over_these_chips() {
    const double nodes = std::ceil(in_.chips->value() / in_.node_size());
    if (nodes > 1) {
      const Traced x = kReader.input(nodes, "X", "nodes of --chips");
      const auto alpha = named(in_.compute() / in_.node_egress(), "alpha_node", "book ch. 12: C / W_node");
      data_rule("dp_limit_on_these_nodes", "C / W_node (X-1)/X",
                fmt::format("what the network between {} nodes asks for with its exact volume; dp_limit_in_node holds "
                            "beside it",
                            group_thousands(std::llround(nodes))),
                limit_of(alpha, in_.gradient_scale()) * ((x - Traced(1.0)) / x));
    }
    const Traced least = limit_ * *in_.chips;
    std::optional<bool> holds;
    if (in_.batch) holds = least < *in_.batch;
    list_.add(BoundGroup::kData,
              {"dp_min_batch", "limit x n", "tokens",
               "data parallelism over all chips is compute-bound with a larger batch", "book ch. 12, Data Parallelism"},
              least, holds);
  }

  void inside_model_parallelism() {
    const std::int64_t copy = copy_chips(in_);
    const char* source = "book ch. 12, reductions sharded over an inner axis";
    const BytesPerSecondOf<Traced> rate = list_.add(
        BoundGroup::kData,
        {"reduction_bandwidth", "nodes spanned x W_node", "",
         fmt::format("what data parallelism gets around copies of the model of {} chips", group_thousands(copy)),
         source},
        reduction_rate(in_, copy, 0));
    const Traced limit = limit_of(in_.compute() / rate, in_.gradient_scale());
    const auto holds = in_.more_tokens_than(limit);
    const Traced known =
        list_.add(BoundGroup::kData,
                  {"dp_limit_with_model_parallelism", "C / (nodes spanned x W_node)", "tokens per chip",
                   "data parallelism around those copies is compute-bound with more tokens on each chip", source},
                  limit, holds);
    if (!holds) return;
    list_.conclude(fmt::format("Around copies of the model of {} chips it is {}: it needs {}.", group_thousands(copy),
                               *holds ? "compute-bound" : "communication-bound", tokens_text(known.value())));
  }

  void conclude() {
    if (!in_.tokens_per_chip) return;
    const bool one_node = in_.chips->value() <= in_.node_size();
    const Traced& limit = one_node ? node_limit_ : limit_;
    list_.conclude(fmt::format("Data parallelism alone is {}: {} tokens on each chip, and it needs {}.",
                               *in_.more_tokens_than(limit) ? "compute-bound" : "communication-bound",
                               tokens_text(in_.tokens_per_chip->value()), tokens_text(limit.value())));
  }

  void tensor() {
    if (!in_.shape) return list_.leave_out("tensor parallelism", "a model whose d_ff is known");
    const auto alpha = named(in_.compute() / in_.scale_up(), "alpha_gpu", "book ch. 12: C / W_gpu");
    const Traced limit = rules::tensor_limit(alpha, in_.activation_scale(), Traced(1.0), in_.shape->width);
    const char* source = "book ch. 12, Tensor Parallelism";
    const std::optional<std::int64_t> tp = in_.question().fix.tp;
    std::optional<bool> holds;
    if (tp && static_cast<double>(*tp) <= in_.node_size()) holds = static_cast<double>(*tp) < limit.value();
    list_.add(BoundGroup::kTensor,
              {"tp_limit", "F W_gpu / C", "chips",
               "tensor parallelism inside a node is compute-bound over fewer chips, whatever the batch", source},
              limit, holds);
    double power = 1;
    while (power * 2 <= std::min(limit.value(), in_.node_size())) power *= 2;
    list_.add(
        BoundGroup::kTensor,
        {"tp_power_of_two", "2^i <= limit, node", "chips", "the power of two below the limit, in one node", source},
        kReader.input(power, "power of two below the limit", "tp_limit"));
    if (!in_.has_outer_network()) return;
    const auto beyond = named(in_.compute() / in_.node_egress(), "alpha_node", "book ch. 12: C / W_node");
    const Traced node = kReader.input(in_.node_size(), "node", in_.hw().network.front().source);
    const Traced two = node + rules::tensor_limit(beyond, in_.activation_scale(), Traced(1.0), in_.shape->width);
    holds.reset();
    if (tp && static_cast<double>(*tp) > in_.node_size()) holds = static_cast<double>(*tp) < two.value();
    list_.add(BoundGroup::kTensor,
              {"tp_limit_two_nodes", "node + F W_node / C", "chips",
               "the same over two nodes: F > alpha_node (Y - node)", source},
              two, holds);
  }

  void experts() {
    if (!in_.shape || !in_.shape->experts || !in_.has_outer_network()) return;
    const LayerShape& layer = *in_.shape;
    const char* source = "book ch. 12, Expert Parallelism";
    list_.add(BoundGroup::kExpert,
              {"expert_sparsity", "E / k", "times", "how much more data parallelism has to move than a dense layer",
               "book ch. 12, MoE models"},
              layer.sparsity);
    const auto alpha = named(in_.compute() / in_.node_egress(), "alpha_node", "book ch. 12: C / W_node");
    const Traced scaled = in_.activation_scale() * alpha.value();
    const Traced node = kReader.input(in_.node_size(), "node", in_.hw().network.front().source);
    const Traced wide = node * scaled;
    list_.add(BoundGroup::kExpert,
              {"ep_wide_min_d_ff", "node alpha_node", "wide",
               "experts can lie on any number of nodes if they are wider", source},
              wide, wide < *layer.expert_d_ff);
    const double degree = in_.question().fix.ep ? static_cast<double>(in_.expert_degree()) : 2 * in_.node_size();
    if (degree <= in_.node_size()) return;
    const Traced z = kReader.input(degree, "Z", in_.question().fix.ep ? "--fix ep" : "two nodes");
    const Traced narrow = scaled * (z - node) / *layer.top_k;
    list_.add(BoundGroup::kExpert,
              {"ep_narrow_min_d_ff", "alpha_node (Z - node) / k", "wide",
               fmt::format("experts can lie on {:.0f} chips if they are wider (for k > Z / node)", degree), source},
              narrow, narrow < *layer.expert_d_ff);
    if (in_.question().fix.ep && in_.tokens_per_chip) expert_times(z, node);
  }

  void expert_times(const Traced& z, const Traced& node) {
    const LayerShape& layer = *in_.shape;
    const char* source = "book ch. 12, Expert Parallelism";
    const Traced tokens = *in_.tokens_per_chip;
    const FlopsOf<Traced> flops(Traced(4.0) * tokens * layer.width * layer.d_model);
    const auto math = list_.add(
        BoundGroup::kExpert, {"ep_math_time", "4 B k D F / (n C)", "", "forward matmuls of a layer's experts", source},
        flops / in_.compute());
    const BytesOf<Traced> bytes = in_.activation_bytes() * (Traced(2.0) * tokens * layer.d_model * (z - node));
    const Traced ragged = min(node * *layer.top_k / z, Traced(1.0));
    const SecondsOf<Traced> sent = bytes / in_.node_egress() * ragged;
    list_.add(BoundGroup::kExpert,
              {"ep_comms_time", "4 B D (Z - node) / (n W_node) min(node k / Z, 1)", "",
               "both all-to-alls of the layer; compute-bound if shorter than the matmuls", source},
              sent, sent < math);
  }

  const BoundInputs& in_;
  BoundList& list_;
  Traced sparsity_;
  Traced node_limit_;  ///< tokens per chip, inside one node
  Traced limit_;       ///< and over several
};

}  // namespace

void switched_bounds(const BoundInputs& in, BoundList& list) { SwitchedRules(in, list).run(); }

}  // namespace scalecalc
