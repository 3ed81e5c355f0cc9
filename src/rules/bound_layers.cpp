// Scaling book, chapter 5, the algorithms of each section and the table of its takeaways; chapter 12 for the rates
// behind switches. One layer of two matmuls, averaged over the chips: pipeline stages work side by side.
#include "base/scalar.h"
#include "rules/bound_rules.h"

namespace scalecalc {
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
