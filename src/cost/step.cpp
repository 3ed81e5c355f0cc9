// Computes the time of a whole step from its phases, its pipeline and its exposed communication. Sources: overlap of
// communication with compute and its bound max(compute, communication): scaling book, chapters 1 and 5 (FSDP, tensor,
// mixed). Pipeline bubble: Huang et al. 2019 (GPipe) and Narayanan et al. 2021, arXiv:2104.04473 section 2.2. ZeRO
// stages: Rajbhandari et al. 2020, arXiv:1910.02054 section 7.
#include "cost/step.h"

#include <algorithm>
#include <array>

#include "cost/stage_end.h"

namespace scalecalc {
namespace {

std::string_view bubble_source(Schedule schedule) {
  switch (schedule) {
    case Schedule::kZeroBubble: return "SPLIT: (pp - 1)(t_f + t_b - 2 W); ZB-H1, arXiv:2401.10241 table 1";
    case Schedule::kDualPipe: return "SPLIT: (pp/2 - 1)(t_f + 2 t_b - 3 W); arXiv:2412.19437 table 2";
    default: return "(sum of stages - slowest) / vpp; arXiv:2104.04473 section 2.2";
  }
}

template <class R>
class StepBuilder {
 public:
  StepBuilder(const Reader<R>& reader, const StepInput<R>& in, const Phases<R>& phases)
      : phases_(phases),
        in_(in),
        net_(*in.network),
        layout_(in.layout),
        microbatches_(reader.input(static_cast<double>(layout_.grad_accum), "grad_accum", "layout")),
        ends_(in, microbatches_) {
    stages_ = reader.input(static_cast<double>(layout_.pp), "pp", "layout");
    chunks_ = reader.input(static_cast<double>(layout_.vpp), "vpp", "layout");
  }

  /// All but what follows the last backward pass.
  StepTime<R> build() {
    slowest_stage();
    StepTime<R> out;
    const PhaseTime<R>& stage = slowest_;
    out.compute =
        named(microbatches_ * stage.compute, "compute", "microbatches x compute-bound work of the slowest stage");
    out.hbm =
        named(microbatches_ * stage.hbm, "memory-bound work", "microbatches x HBM-bound work of the slowest stage");
    out.tp = named(microbatches_ * stage.tp, "exposed tensor-parallel communication", kOverlapRule);
    out.fsdp = named(microbatches_ * stage.fsdp, "exposed FSDP communication", kOverlapRule);
    out.cp = named(microbatches_ * stage.cp, "exposed context-parallel communication", kOverlapRule);
    out.ep = named(microbatches_ * stage.ep, "exposed expert communication", kOverlapRule);
    out.host = named(microbatches_ * stage.host, "exposed offload", kOverlapRule);
    for (std::size_t x = 0; x < kTrafficKinds; ++x) out.spilled[x] = stage.spilled[x] * value_of(microbatches_);
    pipeline(out);
    SecondsOf<R> overhead = microbatches_ * (stage.overhead + stage.idle) + in_.chip->step_overhead;
    const SecondsOf<R> lost = scale_loss(in_, microbatches_ * slowest_time_);
    if (value_of(lost) > 0) overhead += lost;
    out.overhead =
        named(overhead, "kernel, host and step overhead",
              "kernels x overhead of each, waiting for launches, the host's share of a step, loss with scale");
    return out;
  }

  /// [LAST] A step ends with the stage that is done last: microbatches x its time, then its gradients and its update.
  /// What another stage than the slowest needs longer, the bubble it cannot fill among it, is charged to the gradients.
  /// So the step does not fall when a stage slows down, whichever stage that makes the slowest (step_lower_bound rests
  /// on it).
  void ends(StepTime<R>& out) const {
    const StageEnd<R> own = stage_end(*shape_);
    out.optimizer = own.optimizer;
    const SecondsOf<R> own_end = named(own.dp + own.optimizer, "end of the slowest stage", "its gradients and update");
    SecondsOf<R> longer(R(0.0));
    for (const StageShape& stage : *in_.stages) {
      if (&stage == shape_) continue;
      const StageEnd<R> other = stage_end(stage);
      const std::string_view name = stage_name(stage);
      const PhaseTime<R> pass = stage_time(in_, phases_, stage);
      const SecondsOf<R> time = named(pass.total(), name, "one microbatch, forward and backward");
      SecondsOf<R> lead =
          named(microbatches_ * (slowest_time_ - time), name, "it is done this much before the slowest", "lead of the");
      if (layout_.pp > 1 && splits_backward(layout_.schedule)) {
        lead += out.bubble -
                named(own_bubble({time, pass.put_off}), name, bubble_source(layout_.schedule), "bubble of the");
      }
      const SecondsOf<R> end = named(other.dp + other.optimizer, name, "its gradients and update", "end of the");
      longer = max(longer, end - own_end - lead);
    }
    longer = named(longer, "stages that end later", "[LAST], docs/model.md");
    out.dp = named(own.dp + longer + ends_.tied_time(), "exposed gradient reduction",
                   "reduce-scatter and all-gather of the stage's weights; ZeRO, arXiv:1910.02054");
  }

  /// What the stage itself waits for: the exchange of a tied matrix too.
  StageEnd<R> whole_end(const StageShape& stage) const {
    StageEnd<R> out = stage_end(stage);
    if (stage.head == stage.embedding) return out;
    out.dp += ends_.tied_time();
    out.reduce += ends_.tied_time();
    return out;
  }

  StageEnd<R> stage_end(const StageShape& stage) const {
    const std::string_view label = in_.stages->size() > 1 ? stage_name(stage) : "";
    StageEnd<R> out = ends_.data_parallel(
        stage, dense_parameters(*in_.model, net_, stage), expert_parameters(*in_.model, net_, stage),
        [&](bool backward) { return layers_of(stage, backward); }, label);
    out.optimizer = ends_.optimizer(stage, dense_parameters(*in_.model, net_, stage),
                                    expert_parameters(*in_.model, net_, stage), label);
    return out;
  }

 private:
  /// "first kind of stage", as explanations call it.
  std::string_view stage_name(const StageShape& stage) const {
    static constexpr std::array<std::string_view, 5> kNames{"first kind of stage", "second kind of stage",
                                                            "third kind of stage", "fourth kind of stage",
                                                            "another kind of stage"};
    std::size_t at = 0;  // a stage that is no element of the list, as step_run's, has the last name
    while (at < in_.stages->size() && &(*in_.stages)[at] != &stage) ++at;
    return kNames[std::min(at, kNames.size() - 1)];
  }

  void slowest_stage() {
    double slowest = -1;
    forward_whole_ = phases_.forward_whole;
    for (const StageShape& stage : *in_.stages) {
      PhaseTime<R> time = stage_time(in_, phases_, stage);
      const R count(static_cast<double>(stage.count));
      all_stages_.time += named(time.total(), stage_name(stage), "one microbatch, forward and backward") * count;
      all_stages_.put_off += time.put_off * count;
      if (!phases_.kept_forward.empty()) add_offloaded_forward(stage);
      const double total = value_of(time.total());
      if (total <= slowest) continue;
      slowest = total;
      slowest_ = time;
      shape_ = &stage;
    }
    name_slowest();
  }

  void add_offloaded_forward(const StageShape& stage) {
    const auto more = [&](std::size_t k) {
      return (phases_.forward[k].total() - phases_.kept_forward[k].total()).value() * net_.depth;
    };
    forward_whole_ += SecondsOf<R>(offloaded_forward<R>(layout_, stage, net_.kinds.size(), more));
  }

  void name_slowest() {
    constexpr std::string_view kSource = "its layers, forward and backward, of one microbatch";
    constexpr std::string_view kLabel = "slowest stage's";
    slowest_.compute = named(slowest_.compute, "compute", kSource, kLabel);
    slowest_.hbm = named(slowest_.hbm, "memory-bound work", kSource, kLabel);
    slowest_.overhead = named(slowest_.overhead, "kernel overhead", kSource, kLabel);
    slowest_.idle = named(slowest_.idle, "waiting for the host", kSource, kLabel);
    slowest_.tp = named(slowest_.tp, "exposed tp", kSource, kLabel);
    slowest_.fsdp = named(slowest_.fsdp, "exposed fsdp", kSource, kLabel);
    slowest_.cp = named(slowest_.cp, "exposed cp", kSource, kLabel);
    slowest_.ep = named(slowest_.ep, "exposed ep", kSource, kLabel);
    slowest_.host = named(slowest_.host, "exposed offload", kSource, kLabel);
    slowest_.put_off = named(slowest_.put_off, "weight gradients put off", "SPLIT, docs/model.md", kLabel);
    slowest_time_ = named(slowest_.total(), "slowest stage", "one microbatch, forward and backward");
  }

  void pipeline(StepTime<R>& out) {
    if (layout_.pp == 1) return;
    all_stages_.time = named(all_stages_.time, "all stages", "one microbatch through every stage");
    const bool split = splits_backward(layout_.schedule);
    if (split) all_stages_.put_off = named(all_stages_.put_off, "all weight gradients", "of one microbatch: SPLIT");
    out.bubble = named(
        split ? own_bubble({slowest_time_, slowest_.put_off}) : bubble_time(chunks_, all_stages_.time, slowest_time_),
        "pipeline bubble", bubble_source(layout_.schedule));
    out.pp = named(exposed_sends(in_, net_.boundary, microbatches_, stages_, chunks_), "exposed pipeline communication",
                   "2 sends per microbatch and chunk; filling and draining hide none");
  }

  SecondsOf<R> own_bubble(const PassTime<R>& stage) const {
    return split_bubble(layout_.schedule, microbatches_, stages_, all_stages_, forward_whole_, stage);
  }

  /// One phase of a microbatch through a stage's layers. Gradients that are scattered in every microbatch (ZeRO-2) find
  /// only input gradients to hide under where weight gradients are put off: these fill the bubble.
  SecondsOf<R> layers_of(const StageShape& stage, bool backward) const {
    PhaseTime<R> out;
    for (std::size_t k = 0; k < net_.kinds.size(); ++k) {
      if (stage.layers[k] == 0) continue;
      if (backward) {
        add_layers(in_, phases_.backward, phases_.kept_backward, stage, k, out);
      } else {
        add_layers(in_, phases_.forward, phases_.kept_forward, stage, k, out);
      }
    }
    const bool split = backward && layout_.zero == 2 && splits_backward(layout_.schedule);
    return (split ? out.total() - out.put_off : out.total()) / R(static_cast<double>(stage.parts));
  }

  const Phases<R>& phases_;
  const StepInput<R>& in_;
  const NetworkCost<R>& net_;
  const Layout& layout_;
  R microbatches_;
  StageEnds<R> ends_;
  R stages_{1.0}, chunks_{1.0};
  PhaseTime<R> slowest_;
  SecondsOf<R> slowest_time_{R(0.0)};
  PassTime<R> all_stages_;              ///< one microbatch through every stage
  SecondsOf<R> forward_whole_{R(0.0)};  ///< of all_stages_, the forwards
  const StageShape* shape_ = nullptr;
};

}  // namespace

template <class R>
SecondsOf<R> StepTime<R>::total() const {
  return compute + hbm + tp + fsdp + dp + cp + ep + pp + host + bubble + optimizer + overhead;
}

template <class R>
StepTime<R> step_time(const Reader<R>& reader, const StepInput<R>& in, const Phases<R>& phases) {
  StepBuilder<R> builder(reader, in, phases);
  StepTime<R> out = builder.build();
  builder.ends(out);
  return out;
}

StageEnd<double> stage_end(const StepInput<double>& in, const Phases<double>& phases, const StageShape& stage) {
  return StepBuilder<double>(Reader<double>{}, in, phases).whole_end(stage);
}

#define SCALECALC_INSTANTIATE(R) \
  template struct StepTime<R>;   \
  template StepTime<R> step_time(const Reader<R>&, const StepInput<R>&, const Phases<R>&);
SCALECALC_INSTANTIATE(double)
SCALECALC_INSTANTIATE(Dual)
SCALECALC_INSTANTIATE(Traced)
#undef SCALECALC_INSTANTIATE

}  // namespace scalecalc
