// Evaluates the rules for training: rates against each other, degrees together, the run as a whole, and what the
// groups share.
#include <fmt/format.h>

#include <algorithm>

#include "base/scalar.h"
#include "base/units.h"
#include "bounds/bound_inputs.h"
#include "bounds/formulas.h"

namespace scalecalc {
namespace {

// Scaling book, chapter 5, the algorithms of each section and the table of its takeaways; chapter 12 for the rates
// behind switches. One layer of two matmuls, averaged over the chips: pipeline stages work side by side.

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

namespace {

// Degrees together: sequences against data ranks (ch. 5 and 6), layouts of chapter 12's examples, pipeline stages.

class DegreeRules {
 public:
  DegreeRules(const BoundInputs& in, BoundList& list) : in_(in), list_(list), fix_(in.question().fix) {}

  void run() {
    sequences();
    if (in_.chips) degrees();
    pipeline();
  }

 private:
  /// Ranks that hold the same weights, sequence sharding among them: as given, or what the chips leave.
  std::int64_t data_degree() const {
    if (fix_.dp || fix_.fsdp || fix_.cp) return fix_.dp.value_or(1) * fix_.fsdp.value_or(1) * fix_.cp.value_or(1);
    return static_cast<std::int64_t>(in_.chips->value()) / in_.model_degree();
  }

  void sequences() {
    if (!in_.batch || !in_.seq) return list_.leave_out("sequences of a batch", "--batch-tokens and --seq");
    const Traced count = *in_.batch / *in_.seq;
    std::optional<bool> holds;
    if (in_.chips) {
      const std::int64_t ranks = data_degree() / fix_.cp.value_or(1);
      holds = static_cast<double>(ranks) <= count.value();
      if (!*holds) {
        list_.conclude(fmt::format("The batch has {} sequences: {} data ranks need sequence (context) sharding.",
                                   format_quantity(count.value(), UnitKind::kNumber, 6), group_thousands(ranks)));
      }
    }
    list_.add(BoundGroup::kData,
              {"sequences_per_batch", "B / T", "sequences", "most data ranks without sharding sequences",
               "book ch. 5, Question 3"},
              count, holds);
  }

  void degrees() {
    const char* source = "book ch. 12, Examples";
    const auto degree = [](std::int64_t value, const char* name) {
      return value == 1 ? Traced(1.0) : kReader.input(static_cast<double>(value), name, "--fix");
    };
    const Traced copy =
        degree(in_.tensor_degree(), "tp") * degree(in_.pipeline_degree(), "pp") * degree(in_.expert_degree(), "ep");
    const Traced known = list_.add(BoundGroup::kPipeline,
                                   {"model_parallel_degree", "tp pp ep", "chips",
                                    "chips of one copy of the model, experts on chips of their own", source},
                                   copy);
    const bool given = fix_.dp || fix_.fsdp || fix_.cp;
    const Traced data = given ? degree(fix_.dp.value_or(1), "dp") * degree(fix_.fsdp.value_or(1), "fsdp") *
                                    degree(fix_.cp.value_or(1), "cp")
                              : *in_.chips / known;
    const Traced ranks = list_.add(
        BoundGroup::kPipeline,
        {"data_parallel_degree", given ? "dp fsdp cp" : "n / (tp pp ep)", "ranks", "copies of the model", source},
        data);
    const Traced product = known * ranks;
    const bool all = product.value() == in_.chips->value();
    const bool folded = product.value() / static_cast<double>(in_.expert_degree()) == in_.chips->value();
    list_.add(BoundGroup::kPipeline,
              {"degrees_product", "dp fsdp cp tp pp ep", "chips",
               "is the number of chips, with experts on chips of their own or laid over the data ranks", source},
              product, all || folded);
    if (ranks.value() > 1) {
      list_.add(
          BoundGroup::kPipeline,
          {"dp_bandwidth_factor", "dp / (dp - 1)", "times", "what few data ranks gain over the volume of many", source},
          ranks / (ranks - Traced(1.0)));
    }
  }

  void pipeline() {
    if (in_.pipeline_degree() < 2) return;
    if (!fix_.microbatches) return list_.leave_out("pipeline bubble and transfers", "--fix ga=N, the microbatches");
    const char* source = "book ch. 12, Pipeline Parallelism";
    const Traced stages = kReader.input(static_cast<double>(in_.pipeline_degree()), "n_stages", "--fix pp");
    const Traced micro = kReader.input(static_cast<double>(*fix_.microbatches), "n_MB", "--fix ga");
    list_.add(BoundGroup::kPipeline,
              {"pp_bubble", "(n_stages - 1) / (n_MB + n_stages - 1)", "of the step",
               "idle share of a plain schedule without interleaving", "arXiv:2104.04473 s. 2.2"},
              (stages - Traced(1.0)) / (micro + stages - Traced(1.0)));
    if (!in_.batch || !in_.chips || !in_.shape || !in_.has_network()) {
      return list_.leave_out("pipeline transfers", "a network, a catalog model, --chips and --batch-tokens");
    }
    const Traced ranks = kReader.input(static_cast<double>(data_degree()), "X", "data ranks");
    const BytesOf<Traced> sent =
        named(in_.activation_bytes() * (*in_.batch / ranks * in_.shape->d_model), "activations of a data rank", source);
    const auto rate = in_.is_torus() ? in_.link() : in_.has_outer_network() ? in_.node_egress() : in_.scale_up();
    const auto hop =
        list_.add(BoundGroup::kPipeline,
                  {"pp_hop_time", "b_a B D / (X W n_MB)", "", "one microbatch from a stage to the next", source},
                  sent / (rate * micro));
    const auto total =
        list_.add(BoundGroup::kPipeline,
                  {"pp_transfer_time", "hop (n_MB + n_stages - 2)", "", "all hops of a forward pass", source},
                  hop * (micro + stages - Traced(2.0)));
    list_.add(BoundGroup::kPipeline,
              {"pp_transfer_time_per_layer", "that / L", "", "against the other communication of a layer", source},
              total / in_.shape->layers);
  }

  const BoundInputs& in_;
  BoundList& list_;
  const BoundDegrees& fix_;
};

/// Pipeline, and the degrees together.
void degree_bounds(const BoundInputs& in, BoundList& list) { DegreeRules(in, list).run(); }

// The run as a whole: scaling book, chapter 6, Counting parameters and FLOPs; MFU of a finished run as in chapter 4,
// Question 7.

class RunRules {
 public:
  RunRules(const BoundInputs& in, BoundList& list) : in_(in), list_(list) {}

  void run() {
    if (in_.tokens) {
      flops_ = rule("training_flops", "6 P_act tokens", "of the whole run", "",
                    rules::training_flops(in_.active_parameters, *in_.tokens));
      const SecondsOf<Traced> alone = flops_ / in_.peak();
      rule("chip_years", "training FLOPs / C", "one chip at its peak", "years of 365 days",
           alone.value() / Traced(kSecondsPerYear));
    } else {
      list_.leave_out("the training run", "--tokens");
    }
    if (in_.chips) steps();
    measured();
  }

 private:
  template <class T>
  T rule(const char* name, const char* symbol, const char* says, const char* unit, const T& value) {
    return list_.add(BoundGroup::kRun, {name, symbol, unit, says, "book ch. 6, Counting parameters and FLOPs"}, value);
  }

  void steps() {
    const Traced mfu = assumed_mfu(in_);
    if (in_.batch) {
      const auto step = rules::training_flops(in_.active_parameters, *in_.batch);
      rule("step_time", "6 P_act B / (n C MFU)", "one step at that MFU", "",
           rules::run_time(step, *in_.chips, in_.peak(), mfu));
    }
    if (in_.batch && in_.tokens) rule("steps", "tokens / B", "of the run", "steps", *in_.tokens / *in_.batch);
    if (in_.tokens) whole(mfu);
  }

  void whole(const Traced& mfu) {
    const SecondsOf<Traced> time = rule("run_time", "training FLOPs / (n C MFU)", "the run at that MFU", "",
                                        rules::run_time(flops_, *in_.chips, in_.peak(), mfu));
    rule("run_days", "run time / 86400", "the same in days", "days", time.value() / Traced(kSecondsPerDay));
    const Traced hours = rule("chip_hours", "n x run time / 3600", "what a cloud bills", "chip-hours",
                              *in_.chips * time.value() / Traced(kSecondsPerHour));
    const PaidPrice paid = paid_price(in_.hw(), in_.question().training.price);
    if (paid.assumed) list_.assume(*paid.assumed);
    if (!paid.usd_per_chip_hour) return;
    list_.add(
        BoundGroup::kRun,
        {"cost", "chip-hours x price", "", "of the chips alone", "book ch. 6, Counting parameters and FLOPs"},
        Quantity<kUsdDim, Traced>(hours * kReader.input(*paid.usd_per_chip_hour, "USD per chip-hour", paid.source)));
  }

  void measured() {
    const std::optional<double> hours = in_.question().training.gpu_hours;
    if (!hours) return;
    if (!in_.tokens) return list_.leave_out("MFU of the finished run", "--tokens");
    const char* source = "book ch. 4, Question 7";
    const SecondsOf<Traced> taken(kReader.input(*hours, "chip_hours", "--gpu-hours") * Traced(kSecondsPerHour));
    const FlopsOf<Traced> available = list_.add(
        BoundGroup::kRun,
        {"available_flops", "chip-hours x 3600 C", "", "what the chips of the finished run could have done", source},
        in_.peak() * taken);
    list_.add(BoundGroup::kRun,
              {"measured_mfu", "6 P_act tokens / available", "of peak",
               "MFU of the finished run, attention not counted", source},
              flops_ / available);
  }

  const BoundInputs& in_;
  BoundList& list_;
  FlopsOf<Traced> flops_;
};

void run_bounds(const BoundInputs& in, BoundList& list) { RunRules(in, list).run(); }

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

/// Rates against each other.
void machine_bounds(const BoundInputs& in, BoundList& list) {
  in.is_torus() ? torus_rates(in, list) : switched_rates(in, list);
  against(in, list);
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

void training_bounds(const BoundInputs& in, BoundList& list) {
  const bool timed = in.sized() && (in.chips || in.batch) && (in.tokens || (in.chips && in.batch));
  if (timed && !in.question().training.mfu) {
    list.assume(Assumption{"MFU of 40 % in days and step times", "--mfu", "book ch. 6"}.is(assumed_mfu(in).value()));
  }
  if (in.has_network()) machine_bounds(in, list);
  if (in.sized()) model_bounds(in, list);
  if (in.has_network()) {
    in.is_torus() ? torus_bounds(in, list) : switched_bounds(in, list);
  } else {
    list.leave_out("data, tensor and mixed parallelism",
                   fmt::format("a network between chips, which {} {}", in.hw().name,
                               in.hw().publishes("network") ? "does not have" : "does not publish"));
  }
  degree_bounds(in, list);
  if (!in.sized()) return;
  memory_bounds(in, list);
  run_bounds(in, list);
}

}  // namespace scalecalc
