// Evaluates the rules for data, tensor, expert and mixed parallelism, for `scalecalc bounds`. Scaling book, chapter 5:
// data, tensor and mixed parallelism on a torus, and slices joined by the data-center network; then chapter 12, the
// same behind switches.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/scalar.h"
#include "base/units.h"
#include "bounds/bound_inputs.h"
#include "bounds/formulas.h"

namespace scalecalc {
namespace {

Traced axes_input(std::int64_t axes, const char* symbol, bool given, const char* flag) {
  return kReader.input(static_cast<double>(axes), symbol, given ? flag : "axes of the torus");
}

class TorusRules {
 public:
  TorusRules(const BoundInputs& in, BoundList& list)
      : in_(in),
        list_(list),
        alpha_(in.axis_intensity()),
        sparsity_(in.shape ? in.shape->sparsity : Traced(1.0)),
        data_axes_(axes_input(in.data_axes_alone(), "M_X", in.question().data_axes.has_value(), "--mx")),
        tensor_axes_(axes_input(in.tensor_axes(), "M_Y", in.question().tensor_axes.has_value(), "--my")) {}

  void run() {
    data();
    tensor();
    mixed();
    several_slices();
    headroom();
    if (in_.shape && in_.shape->experts) {
      list_.leave_out("expert parallelism", "a network of switches: the book has no rule for a torus");
    }
    layer_passes(in_, split_tensor_degree_, list_);
  }

 private:
  /// alpha / M for one number of axes, judged against the tokens of a chip.
  Traced data_rule(const std::string& name, const Traced& scale, const Traced& axes, const std::string& says) {
    const Traced limit = rules::data_limit(alpha_, scale, axes, sparsity_);
    const char* symbol = in_.shape && in_.shape->experts ? "(E/k) alpha_ici / M_X" : "alpha_ici / M_X";
    return list_.add(BoundGroup::kData, {name, symbol, "tokens per chip", says, "book ch. 5, Data Parallelism, FSDP"},
                     limit, in_.more_tokens_than(limit));
  }

  void data() {
    if (in_.tokens_per_chip) {
      list_.add(BoundGroup::kData,
                {"tokens_per_chip", "B / n", "tokens", "what every limit per chip is held against", "book ch. 5"},
                *in_.tokens_per_chip);
    } else {
      list_.leave_out("whether the limits are kept", in_.missing_for_tokens_per_chip());
    }
    limit_ = data_rule("fsdp_limit", in_.fsdp_scale(), data_axes_,
                       fmt::format("FSDP over all chips and {} axes is compute-bound with more tokens on each chip",
                                   in_.data_axes_alone()));
    data_rule("dp_limit", in_.gradient_scale(), data_axes_,
              "the same for plain data parallelism, which reduces gradients");
    for (std::int64_t axes = 1; axes <= in_.axes(); ++axes) {
      all_axes_limit_ =
          data_rule(fmt::format("fsdp_limit_{}_{}", axes, axes == 1 ? "axis" : "axes"), in_.fsdp_scale(),
                    kReader.input(static_cast<double>(axes), "M_X", "axes of the torus"),
                    fmt::format("FSDP over {} of the torus", axes == 1 ? "one axis" : fmt::format("{} axes", axes)));
    }
    data_batches();
  }

  void data_batches() {
    const TorusTier& torus = in_.hw().network.front().torus;
    std::optional<Traced> pod;  // some files do not publish it
    if (torus.max_chips > 0) {
      pod = kReader.input(static_cast<double>(torus.max_chips), "pod", in_.hw().network.front().source);
      list_.add(BoundGroup::kData,
                {"fsdp_pod_batch", "limit x pod", "tokens", "batch that keeps a whole pod compute-bound under FSDP",
                 "book ch. 5, Data Parallelism"},
                limit_ * *pod);
    }
    if (in_.chips) {
      const Traced least = limit_ * *in_.chips;
      std::optional<bool> holds;
      if (in_.batch) holds = least < *in_.batch;
      list_.add(BoundGroup::kData,
                {"fsdp_min_batch", "limit x n", "tokens", "FSDP over all chips is compute-bound with a larger batch",
                 "book ch. 5"},
                least, holds);
    }
    if (!in_.batch) return list_.leave_out("the most chips FSDP can use", "--batch-tokens");
    const Traced most = list_.add(BoundGroup::kData,
                                  {"fsdp_most_chips", "B / limit", "chips",
                                   "chips over which FSDP stays compute-bound with this batch", "book ch. 5, FSDP"},
                                  *in_.batch / limit_);
    if (pod) {
      list_.add(BoundGroup::kData,
                {"fsdp_most_pods", "B / (limit x pod)", "pods", "the same in whole pods", "book ch. 5"}, most / *pod);
    }
    if (in_.tokens) {
      const auto time = rules::run_time(rules::training_flops(in_.active_parameters, *in_.tokens), most, in_.peak(),
                                        assumed_mfu(in_));
      list_.add(BoundGroup::kData,
                {"fsdp_most_chips_days", "6 P tokens / (chips C MFU)", "days", "the run on that many chips",
                 "book ch. 5, FSDP"},
                time.value() / Traced(kSecondsPerDay));
    }
  }

  void tensor() {
    if (!in_.shape) return list_.leave_out("tensor and mixed parallelism", "a model whose d_ff is known");
    const Traced limit = rules::tensor_limit(alpha_, in_.activation_scale(), tensor_axes_, in_.shape->width);
    std::optional<bool> holds;
    if (in_.question().fix.tp) holds = static_cast<double>(in_.tensor_degree()) < limit.value();
    const char* source = "book ch. 5, Tensor Parallelism";
    list_.add(BoundGroup::kTensor,
              {"tp_limit", "M_Y F / alpha_ici", "chips",
               fmt::format("tensor parallelism over {} is compute-bound over fewer chips, whatever the batch",
                           in_.tensor_axes() == 1 ? "one axis" : fmt::format("{} axes", in_.tensor_axes())),
               source},
              limit, holds);
    for (std::size_t i = 0; i < kDTypeCount; ++i) {
      const DType other = static_cast<DType>(i);
      if (!in_.hw().matmul_peak[i] || other == in_.question().compute) continue;
      const Traced scale = kReader.input(bytes_per_element(other) / 2, "b_a / 2", std::string(name_of(other)));
      list_.add(BoundGroup::kTensor,
                {fmt::format("tp_limit_in_{}", name_of(other)), "M_Y F / alpha_ici (2 / b_a)", "chips",
                 fmt::format("the same with everything in {}", name_of(other)), source},
                rules::tensor_limit(in_.compute(other) / in_.axis(), scale, tensor_axes_, in_.shape->width));
    }
    double power = 1;
    while (power * 2 <= limit.value()) power *= 2;
    list_.add(BoundGroup::kTensor,
              {"tp_power_of_two", "2^i <= limit", "chips", "the power of two below the limit", source},
              kReader.input(power, "power of two below the limit", "tp_limit"));
  }

  void mixed() {
    if (!in_.shape) return;
    const auto beside = in_.data_axes_beside();
    if (!beside) {
      return list_.leave_out("FSDP with tensor parallelism",
                             fmt::format("an axis for each: M_X and M_Y share {}", in_.axes()));
    }
    const rules::MixedSplit<Traced> split{
        .alpha = alpha_,
        .weight_scale = in_.fsdp_scale(),
        .activation_scale = in_.activation_scale(),
        .data_axes = axes_input(*beside, "M_X", in_.question().data_axes.has_value(), "--mx"),
        .tensor_axes = tensor_axes_,
        .width = in_.shape->width,
        .sparsity = sparsity_};
    const char* source = "book ch. 5, Combining FSDP and Tensor Parallelism";
    mixed_limit_ = list_.add(BoundGroup::kMixed,
                             {"mixed_limit", "alpha_ici^2 / (M_X M_Y F)", "tokens per chip",
                              fmt::format("FSDP over {} axes with tensor parallelism over {} is compute-bound at the "
                                          "best split with more tokens on each chip",
                                          *beside, in_.tensor_axes()),
                              source},
                             rules::mixed_limit(split), in_.more_tokens_than(rules::mixed_limit(split)));
    const Traced in_turn = Traced(4.0) * *mixed_limit_;
    list_.add(BoundGroup::kMixed,
              {"mixed_limit_in_turn", "4 alpha_ici^2 / (M_X M_Y F)", "tokens per chip",
               "the same if the two exchanges take turns (first edition of the book)", source},
              in_turn, in_.more_tokens_than(in_turn));
    list_.add(BoundGroup::kMixed,
              {"mixed_gain_over_fsdp", "FSDP limit / mixed limit", "times",
               "how many times smaller the batch may be than for FSDP over all axes", source},
              all_axes_limit_ / *mixed_limit_);
    if (in_.batch) {
      const Traced most = list_.add(
          BoundGroup::kMixed,
          {"mixed_most_chips", "B M_X M_Y F / alpha_ici^2", "chips",
           "chips over which FSDP with tensor parallelism stays compute-bound with this batch, at the best split",
           source},
          *in_.batch / *mixed_limit_);
      const std::int64_t pod = in_.hw().network.front().torus.max_chips;
      if (pod > 0) {
        list_.add(BoundGroup::kMixed,
                  {"mixed_most_pods", "B / (limit x pod)", "pods", "the same in whole pods", source},
                  most / kReader.input(static_cast<double>(pod), "pod", in_.hw().network.front().source));
      }
    }
    if (!in_.chips) return list_.leave_out("the best FSDP x TP split", in_.missing_for_tokens_per_chip());
    const Traced least = *mixed_limit_ * *in_.chips;
    std::optional<bool> holds;
    if (in_.batch) holds = least < *in_.batch;
    list_.add(BoundGroup::kMixed,
              {"mixed_min_batch", "limit x n", "tokens", "the best split is compute-bound with a larger batch", source},
              least, holds);
    if (!in_.batch) return list_.leave_out("the best FSDP x TP split", "--batch-tokens");
    best_split(split);
  }

  /// A slice's share of a quantity of all slices.
  Traced per_slice(const Traced& whole, const char* name) const {
    if (in_.slices() == 1) return whole;
    return named(whole / kReader.input(static_cast<double>(in_.slices()), "slices", "--slices"), name, "of one slice");
  }

  void best_split(const rules::MixedSplit<Traced>& split) {
    const char* source = "book ch. 5, Combining FSDP and Tensor Parallelism";
    const Traced chips = per_slice(*in_.chips, "n_slice");
    const Traced batch = per_slice(*in_.batch, "B_slice");
    const Traced x = rules::optimal_data_ranks(split, batch, chips);
    const Traced x_opt = list_.add(BoundGroup::kMixed,
                                   {"mixed_optimal_fsdp", "X_opt = sqrt((B/F) (M_X/M_Y) n)", "chips",
                                    "FSDP ranks at which weights and activations take equally long", source},
                                   x, !(chips < x));
    const Traced y_opt = list_.add(
        BoundGroup::kMixed,
        {"mixed_optimal_tp", "Y_opt = n / X_opt", "chips", "tensor-parallel ranks beside them", source}, chips / x_opt);
    list_.add(BoundGroup::kMixed,
              {"mixed_math_over_comms", "sqrt(B F M_X M_Y / n) / alpha_ici", "times",
               "computing against communication at that split", source},
              rules::mixed_math_over_comms(split, *in_.tokens_per_chip),
              in_.more_tokens_than(rules::mixed_limit(split)));
    const auto weights = split.weight_scale * in_.shape->total_width / (y_opt * split.data_axes);
    const auto activations = split.activation_scale * batch / (x_opt * split.tensor_axes);
    const Traced math = batch * in_.shape->width / chips;
    const Traced ratio = math / (split.alpha.value() * max(weights, activations));
    list_.add(BoundGroup::kMixed,
              {"mixed_math_over_comms_at_optimum", "T_math / max(T_fsdp, T_tp)", "times",
               "the same from the two times, for the check", source},
              ratio, Traced(1.0) < ratio);
    feasible(split, batch, chips);
  }

  /// The power of two for tensor parallelism, dividing chips and F, whose slower exchange is the fastest.
  void feasible(const rules::MixedSplit<Traced>& split, const Traced& batch, const Traced& chips) {
    const auto n = static_cast<std::int64_t>(chips.value());
    const auto all_to_all = [&](std::int64_t tp) {
      const double y = static_cast<double>(tp);
      const double weights =
          split.weight_scale.value() * in_.shape->total_width.value() / (y * split.data_axes.value());
      const double activations =
          split.activation_scale.value() * batch.value() * y / (chips.value() * split.tensor_axes.value());
      return std::max(weights, activations);
    };
    const auto d_ff = static_cast<std::int64_t>(in_.shape->expert_d_ff.value_or(in_.shape->width).value());
    std::int64_t best = 1;
    for (std::int64_t tp = 2; n % tp == 0 && d_ff % tp == 0; tp *= 2) {
      if (all_to_all(tp) < all_to_all(best)) best = tp;
    }
    split_tensor_degree_ = best;
    const char* source = "book ch. 5, Combining FSDP and Tensor Parallelism";
    const Traced tp = list_.add(BoundGroup::kMixed,
                                {"mixed_feasible_tp", "2^i near Y_opt", "chips",
                                 "power of two that divides the chips and F and communicates least", source},
                                kReader.input(static_cast<double>(best), "power of two", "search"));
    const Traced fsdp = list_.add(
        BoundGroup::kMixed,
        {"mixed_feasible_fsdp", "n / that", "chips", "FSDP ranks (sequence sharding among them) beside it", source},
        chips / tp);
    const double math = batch.value() * in_.shape->width.value() / chips.value();
    const double ratio = math / (split.alpha.value().value() * all_to_all(best));
    if (best > 1) {
      list_.add(BoundGroup::kMixed,
                {"mixed_feasible_math_over_comms", "T_math / max(T_fsdp, T_tp)", "times",
                 "computing against communication at that split, in the pass that is bound first", source},
                kReader.input(ratio, "at that split", "search"), ratio > 1);
    }
    conclude(best, fsdp.value(), ratio > 1);
  }

  /// The best split need not be a whole number of chips, or divide them: the verdict is of the one that does.
  void conclude(std::int64_t tp, double fsdp, bool computes) {
    const double tokens = in_.tokens_per_chip->value();
    const auto word = [](bool compute) { return compute ? "compute-bound" : "communication-bound"; };
    list_.conclude(fmt::format("FSDP alone is {}: {} tokens on each chip, and it needs {}.",
                               word(limit_.value() < tokens), tokens_text(tokens), tokens_text(limit_.value())));
    const std::string needs = tokens_text(mixed_limit_->value());
    if (tp == 1) {
      list_.conclude(
          "Tensor parallelism gains nothing: no power of two that divides the chips and F communicates less.");
    } else if (computes == (mixed_limit_->value() < tokens)) {
      list_.conclude(
          fmt::format("FSDP with tensor parallelism is {}: it needs {}; fsdp {:.0f} x tp {} communicates least.",
                      word(computes), needs, fsdp, tp));
    } else {
      list_.conclude(
          fmt::format("FSDP with tensor parallelism is {} at fsdp {:.0f} x tp {}, which communicates least of "
                      "what divides the chips; between powers of two it would need {}.",
                      word(computes), fsdp, tp, needs));
    }
  }

  void several_slices() {
    if (!in_.has_outer_network()) return;
    const FlopsPerByteOf<Traced> alpha = named(in_.compute() / in_.scale_out(), "alpha_dcn", "book ch. 5: C / W_dcn");
    const Traced limit = rules::data_limit(alpha, in_.gradient_scale(), Traced(1.0), sparsity_);
    std::optional<bool> holds;
    std::optional<Traced> tokens;
    if (in_.batch && in_.slices() > 1) tokens = per_slice(*in_.batch, "tokens_per_slice");
    if (tokens) holds = limit < *tokens;
    const char* source = "book ch. 5, Scaling Across Pods";
    const Traced known = list_.add(
        BoundGroup::kMultiSlice,
        {"dcn_limit", "alpha_dcn = C / W_dcn", "tokens per slice",
         "data parallelism over the data-center network is compute-bound with more tokens in each slice", source},
        limit, holds);
    if (!tokens) return;
    list_.add(BoundGroup::kMultiSlice,
              {"tokens_per_slice", "B / slices", "tokens", "what that limit is held against", source}, *tokens);
    list_.conclude(fmt::format("Between slices it is {}: {} tokens in each, and it needs {}.",
                               *holds ? "compute-bound" : "communication-bound", tokens_text(tokens->value()),
                               tokens_text(known.value())));
    slice_room_ = *tokens / known;
  }

  /// The batch against everything that limits it at once.
  void headroom() {
    if (!in_.tokens_per_chip) return;
    const Traced inside = *in_.tokens_per_chip / (mixed_limit_ ? min(limit_, *mixed_limit_) : limit_);
    const Traced room = slice_room_ ? min(inside, *slice_room_) : inside;
    list_.add(slice_room_ ? BoundGroup::kMultiSlice : BoundGroup::kMixed,
              {"batch_headroom", "batch / needed", "times",
               fmt::format("the batch against what {} {}", mixed_limit_ ? "FSDP or the best split" : "FSDP",
                           slice_room_ ? "and the network between slices need" : "needs"),
               "book ch. 5 and 6"},
              room, Traced(1.0) < room);
  }

  const BoundInputs& in_;
  BoundList& list_;
  FlopsPerByteOf<Traced> alpha_;
  Traced sparsity_;
  Traced data_axes_, tensor_axes_;
  Traced limit_;           ///< of FSDP over M_X axes
  Traced all_axes_limit_;  ///< and over all of them
  std::optional<Traced> mixed_limit_;
  std::optional<Traced> slice_room_;  ///< tokens of a slice over what the network between slices needs
  std::optional<std::int64_t> split_tensor_degree_;
};

}  // namespace

void torus_bounds(const BoundInputs& in, BoundList& list) { TorusRules(in, list).run(); }

// Scaling book, chapter 12, "Rooflines for LLM Scaling on GPUs": data, tensor and expert parallelism behind switches.

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
    list_.add(BoundGroup::kTensor,
              {"tp_limit_over_nodes", "min(F W_gpu / C, node + F W_node / C)", "chips",
               "over any number of nodes, whose network and that inside them both keep up: a gather over M nodes sends "
               "(M-1)/M, so F > alpha_node (Y - node) whatever M is",
               source},
              min(limit, two));
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
