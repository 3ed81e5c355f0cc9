// The training side: rates against each other, and what the groups share.
#include "rules/bound_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/scalar.h"
#include "base/units.h"
#include "rules/formulas.h"

namespace scalecalc {
namespace {

/// The formats a chip computes in besides the one asked for, of those it publishes.
std::vector<DType> other_formats(const BoundInputs& in) {
  std::vector<DType> out;
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    const DType dtype = static_cast<DType>(i);
    if (in.hw().matmul_peak[i] && dtype != in.question().compute) out.push_back(dtype);
  }
  return out;
}

void torus_rates(const BoundInputs& in, BoundList& list) {
  list.add(BoundGroup::kMachine,
           {"ici_intensity", "alpha_ici = C / W_ici", "FLOPs per byte",
            "FLOPs a chip does while a byte crosses one axis of the torus", "book ch. 5, Data Parallelism"},
           in.axis_intensity());
  for (const DType other : other_formats(in)) {
    list.add(BoundGroup::kMachine,
             {fmt::format("ici_intensity_in_{}", name_of(other)), "C / W_ici", "FLOPs per byte",
              fmt::format("the same, computing in {}", name_of(other)), "book ch. 5, Tensor Parallelism"},
             in.compute(other) / in.axis());
  }
  if (!in.has_outer_network()) return;
  list.add(BoundGroup::kMachine,
           {"dcn_intensity", "alpha_dcn = C / W_dcn", "FLOPs per byte",
            "FLOPs a chip does while a byte of its share leaves the slice", "book ch. 5, Scaling Across Pods"},
           in.compute() / in.scale_out());
}

void switched_rates(const BoundInputs& in, BoundList& list) {
  list.add(BoundGroup::kMachine,
           {"scale_up_intensity", "alpha_gpu = C / W_gpu", "FLOPs per byte",
            "FLOPs a chip does while it sends a byte inside its node", "book ch. 12, Data Parallelism"},
           in.compute() / in.scale_up());
  if (!in.has_outer_network()) return;
  list.add(BoundGroup::kMachine,
           {"scale_out_intensity", "alpha_node = C / W_node", "FLOPs per byte",
            "FLOPs a chip does while its node sends a byte to other nodes", "book ch. 12, Data Parallelism"},
           in.compute() / in.node_egress());
}

/// The rates of --versus beside this machine's.
void against(const BoundInputs& in, BoundList& list) {
  if (!in.question().versus) return;
  const BoundRates other(*in.question().versus, in.question().compute, in.question().ideal);
  const std::string than = other.hw().name;
  const auto gain = [&](const char* name, const char* symbol, const std::string& says, const Traced& value) {
    list.add(BoundGroup::kMachine, {name, symbol, "times", says, "book ch. 12, Quiz 5"}, value);
  };
  gain("compute_gain", "C / C'", "FLOP/s of a chip against " + than, in.compute() / other.compute());
  gain("tensor_intensity_gain", "alpha / alpha'", "how many times smaller the tensor-parallel limit is than on " + than,
       in.tensor_intensity(1) / other.tensor_intensity(1));
  const auto data = [](const BoundRates& r) {
    if (!r.is_torus()) return r.collective_intensity().value();
    return r.axis_intensity().value() / Traced(static_cast<double>(r.chip().axes()));
  };
  gain("data_intensity_gain", "alpha / alpha'",
       "how many times more tokens a chip needs for data parallelism than on " + than, data(in) / data(other));
}

void model_bounds(const BoundInputs& in, BoundList& list) {
  list.add(BoundGroup::kModel, {"parameters", "P", "parameters", "weights of the model", "book ch. 4"}, in.parameters);
  if (in.active_parameters.node() != in.parameters.node()) {
    list.add(BoundGroup::kModel,
             {"active_parameters", "P_act", "parameters", "weights that one token uses", "book ch. 4"},
             in.active_parameters);
  }
  const FlopsOf<Traced> each =
      list.add(BoundGroup::kModel,
               {"flops_per_token", "6 P_act", "", "training FLOPs of one token, forward and backward", "book ch. 4"},
               rules::training_flops(in.active_parameters, Traced(1.0)));
  list.add(BoundGroup::kModel,
           {"token_time", "6 P_act / C", "", "time of one chip for a token, at its peak", "book ch. 6"},
           each / in.compute());
  const Traced forward = kReader.input(2, "forward", "book ch. 4: FLOPs per parameter and token");
  const Traced base = kReader.input(6, "training", "book ch. 4: FLOPs per parameter and token");
  const Traced again = list.add(BoundGroup::kModel,
                                {"block_remat_flops", "6 + 2", "FLOPs per parameter and token",
                                 "training FLOPs when only the inputs of blocks are kept and their forward runs twice",
                                 "book ch. 4, Gradient checkpointing"},
                                base + forward);
  list.add(BoundGroup::kModel,
           {"block_remat_overhead", "8 / 6", "times", "FLOPs of that against keeping everything",
            "book ch. 4, Gradient checkpointing"},
           again / base);
}

}  // namespace

std::int64_t copy_chips(const BoundInputs& in) {
  if (!in.question().nodes_spanned) return in.model_degree();
  return *in.question().nodes_spanned * in.chip().node_size();
}

BytesPerSecondOf<Traced> reduction_rate(const BoundInputs& in, std::int64_t inner, std::int64_t axes) {
  const Traced copies =
      inner > 1 ? kReader.input(static_cast<double>(inner), "copy", "chips of one copy of the model") : Traced(1.0);
  if (in.is_torus()) {
    const Traced m =
        axes > 1 ? kReader.input(static_cast<double>(axes), "M_X", "axes for data parallelism") : Traced(1.0);
    return in.axis() * (copies * m);
  }
  const double node = in.node_size();
  const double local = std::min(static_cast<double>(inner), node);
  const bool one_node = in.chips && in.chips->value() <= node;
  BytesPerSecondOf<Traced> inside =
      local > 1 ? in.scale_up() * kReader.input(local, "copy_in_node", "chips of one copy in a node") : in.scale_up();
  if (one_node || !in.has_outer_network()) return inside;
  const double spanned = std::max(1.0, static_cast<double>(inner) / node);
  const BytesPerSecondOf<Traced> beyond =
      spanned > 1 ? in.node_egress() * kReader.input(spanned, "nodes_spanned", "nodes of one copy") : in.node_egress();
  return named(min(inside, beyond), "W_collective", "book ch. 12: the slower of node and network");
}

std::string tokens_text(double tokens) {
  constexpr double kPrefixFrom = 1e5;
  if (tokens < kPrefixFrom) return format_quantity(tokens, UnitKind::kNumber);
  std::string text = format_quantity(tokens, UnitKind::kCount);
  std::erase(text, ' ');
  return text;
}

Traced assumed_mfu(const BoundInputs& in) {
  const std::optional<double> given = in.question().training.mfu;
  return kReader.input(given.value_or(0.4), "MFU", given ? "--mfu" : "book ch. 6: 40 %, assumed");
}

void machine_bounds(const BoundInputs& in, BoundList& list) {
  in.is_torus() ? torus_rates(in, list) : switched_rates(in, list);
  against(in, list);
}

void training_bounds(const BoundInputs& in, BoundList& list) {
  const bool timed = (in.chips || in.batch) && (in.tokens || (in.chips && in.batch));
  if (timed && !in.question().training.mfu) list.assume({"MFU of 40 % in days and step times", "--mfu", "book ch. 6"});
  if (in.has_network()) machine_bounds(in, list);
  model_bounds(in, list);
  if (in.has_network()) {
    in.is_torus() ? torus_bounds(in, list) : switched_bounds(in, list);
  } else {
    list.leave_out("data, tensor and mixed parallelism",
                   fmt::format("a network between chips, which {} {}", in.hw().name,
                               in.hw().publishes("network") ? "does not have" : "does not publish"));
  }
  degree_bounds(in, list);
  memory_bounds(in, list);
  run_bounds(in, list);
}

// Scaling book, chapter 5, the algorithms of each section and the table of its takeaways; chapter 12 for the rates
// behind switches. One layer of two matmuls, averaged over the chips: pipeline stages work side by side.

namespace {

class Passes {
 public:
  Passes(const BoundInputs& in, BoundList& list) : in_(in), list_(list), layer_(*in.shape) {
    const Traced share(in.slices() == 1 ? Traced(1.0)
                                        : kReader.input(static_cast<double>(in.slices()), "slices", "--slices"));
    chips_ = *in.chips / share;
    batch_ = *in.batch / share;
  }

  void data_alone() {
    const std::int64_t axes = in_.is_torus() ? in_.data_axes_alone() : 0;
    const BytesPerSecondOf<Traced> rate = reduction_rate(in_, 1, axes);
    add("dp_forward", forward(), nothing(), rate, nothing(), {});
    add("dp_backward", backward(), matrices(Traced(4.0), in_.gradient_bytes()), rate, nothing(), {});
    add("fsdp_forward", forward(), gathered(), rate, nothing(), {});
    add("fsdp_backward", backward(), gathered() + matrices(Traced(2.0), in_.gradient_bytes()), rate, nothing(), {});
  }

  void with_tensor(std::int64_t degree) {
    const Traced y = kReader.input(static_cast<double>(degree), "Y", "tp");
    const Traced x = named(chips_ / y, "X", "n / Y");
    const BytesPerSecondOf<Traced> tensor_rate = rate_of_activations(degree);
    const BytesOf<Traced> two = activations(Traced(2.0), x);
    add("tp_forward", forward(), nothing(), tensor_rate, two, tensor_rate);
    add("tp_backward", backward(), nothing(), tensor_rate, two, tensor_rate,
        "the gathered input of the forward pass is kept");
    const auto axes = in_.is_torus() ? in_.data_axes_beside() : std::optional<std::int64_t>(0);
    if (!axes) return;
    const std::int64_t inner = degree * in_.pipeline_degree() * in_.expert_degree();
    const BytesPerSecondOf<Traced> rate = reduction_rate(in_, inner, *axes);
    const Traced copy = kReader.input(static_cast<double>(inner), "copy", "chips of one copy of the model");
    const BytesOf<Traced> weights = gathered();
    const BytesOf<Traced> both = weights + matrices(Traced(2.0), in_.gradient_bytes());
    copy_ = copy;
    add("fsdp_tp_forward", forward(), weights, rate, two, tensor_rate);
    add("fsdp_tp_backward", backward(), both, rate, activations(Traced(3.0), x), tensor_rate,
        "dOut and In gathered, dIn scattered: 6 B D / X in bf16, as the book's algorithm");
    add("fsdp_tp_backward_input_kept", backward(), both, rate, two, tensor_rate,
        "In kept from the forward pass: 4 B D / X");
    add("fsdp_tp_backward_as_printed", backward(), both, rate, activations(Traced(4.0), x), tensor_rate,
        "8 B D / X as the book's table prints it; its own algorithm sends 6");
  }

  void between_slices() {
    const Traced slices = kReader.input(static_cast<double>(in_.slices()), "slices", "--slices");
    copy_ = chips_;
    add("dcn_backward", backward(), matrices(Traced(4.0), in_.gradient_bytes()), in_.scale_out() * chips_, nothing(),
        {}, "gradients reduced over the data-center network");
  }

 private:
  using Rate = BytesPerSecondOf<Traced>;

  static BytesOf<Traced> nothing() { return BytesOf<Traced>(Traced(0.0)); }

  FlopsOf<Traced> flops(const Traced& per_element) const {
    return FlopsOf<Traced>(per_element * batch_ * layer_.d_model * layer_.width / chips_);
  }
  FlopsOf<Traced> forward() const { return flops(Traced(4.0)); }
  FlopsOf<Traced> backward() const { return flops(Traced(8.0)); }

  /// `times` arrays of the size of one weight matrix.
  BytesOf<Traced> matrices(const Traced& times, const BytesOf<Traced>& each) const {
    return each * (times * layer_.d_model * layer_.total_width);
  }
  BytesOf<Traced> gathered() const { return matrices(Traced(2.0), in_.weight_bytes()); }
  /// `times` arrays of the tokens of one data rank, d_model wide.
  BytesOf<Traced> activations(const Traced& times, const Traced& x) const {
    return in_.activation_bytes() * (times * batch_ * layer_.d_model / x);
  }

  Rate rate_of_activations(std::int64_t degree) const {
    if (in_.is_torus()) return in_.axis() * kReader.input(static_cast<double>(in_.tensor_axes()), "M_Y", "--my");
    const bool inside = static_cast<double>(degree) <= in_.node_size() || !in_.has_outer_network();
    return inside ? in_.scale_up() : in_.node_egress();
  }

  /// `data` is the whole array, of which a copy of the model divides what one chip moves; `rate` is the copy's.
  void add(const char* name, const FlopsOf<Traced>& work, const BytesOf<Traced>& data, const Rate& rate,
           const BytesOf<Traced>& tensor, const std::optional<Rate>& tensor_rate, const char* note = "") {
    LayerPass pass{.name = name, .note = note};
    const std::string prefix = std::string(name) + " ";
    pass.flops = named(work, "FLOPs", "book ch. 5", name);
    pass.bytes = named(data / copy_ + tensor, "bytes", "book ch. 5", name);
    pass.math_time = named(work / in_.compute(), "T_math", "book ch. 5", name);
    pass.data_time = named(data / rate, "T_data", "book ch. 5", name);
    pass.tensor_time =
        tensor_rate ? named(tensor / *tensor_rate, "T_tensor", "book ch. 5", name) : SecondsOf<Traced>(Traced(0.0));
    pass.comms_time = named(max(pass.data_time, pass.tensor_time), "T_comms", "book ch. 5: they overlap", name);
    pass.time =
        named(max(pass.math_time, pass.comms_time), "time", "book ch. 5: communication under computation", name);
    pass.compute_bound = pass.comms_time < pass.math_time;
    list_.add(std::move(pass));
  }

  const BoundInputs& in_;
  BoundList& list_;
  const LayerShape& layer_;
  Traced chips_, batch_;
  Traced copy_{1.0};
};

}  // namespace

void layer_passes(const BoundInputs& in, std::optional<std::int64_t> tensor_degree, BoundList& list) {
  if (!in.shape) return list.leave_out("times of one layer", "a model whose d_model and d_ff are known");
  if (!in.tokens_per_chip) return list.leave_out("times of one layer", in.missing_for_tokens_per_chip());
  Passes passes(in, list);
  passes.data_alone();
  const std::int64_t degree = in.question().fix.tp.value_or(tensor_degree.value_or(1));
  if (degree > 1) {
    passes.with_tensor(degree);
  } else {
    list.leave_out("layer times with tensor parallelism", "--fix tp=N");
  }
  if (in.slices() > 1) passes.between_slices();
}

}  // namespace scalecalc
