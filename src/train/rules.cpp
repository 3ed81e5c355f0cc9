// Evaluates the scaling book's rules of thumb for a plan, for `train --explain`. Scaling book, chapter 5 ("How to
// Parallelize a Transformer for Training"), chapter 6 ("Training LLaMA 3 on TPUs") and, behind switches, chapter 12;
// the formulas are those of `bounds` (bounds/formulas.h).
#include "train/rules.h"

#include <fmt/format.h>

#include "base/units.h"
#include "bounds/formulas.h"
#include "hw/named_rates.h"
#include "model/accounting.h"

namespace scalecalc {
namespace {

class Rules {
 public:
  explicit Rules(const ResolvedQuestion& q) : q_(q) {}

  ExplainSection run() {
    section_.title = "Rules of thumb (scaling book, chapters 5 and 6): two matmuls per layer, ideal rates";
    if (q_.workload.fine_tune) {
      section_.remarks.emplace_back(
          "the book's rules are for training a whole model: frozen weights have no gradients");
      return std::move(section_);
    }
    inputs();
    // One chip may stand alone or leave its network unpublished.
    if (!q_.hw.network.empty() && q_.hw.publishes("network")) communication();
    if (q_.workload.tokens) {
      whole_run();
    } else {
      section_.remarks.emplace_back("the length of the run is not known (--tokens): no total is worked out");
    }
    return std::move(section_);
  }

 private:
  using Rate = FlopsPerSecondOf<Traced>;
  using Bandwidth = BytesPerSecondOf<Traced>;

  void inputs() {
    const Reader<Traced> reader;
    const std::size_t dtype = static_cast<std::size_t>(q_.workload.precision.compute);
    rate_ = read(reader, *q_.hw.matmul_peak[dtype], "C", q_.hw.compute_source);
    batch_ = reader.input(q_.workload.batch_seqs * static_cast<double>(q_.workload.seq), "B", "workload");
    chips_ = reader.input(static_cast<double>(q_.slices.front().chips), "n", "--chips");
    tokens_ = reader.input(q_.workload.tokens.value_or(0), "D_tokens", "workload");
    shape_ = rules::layer_shape(q_.model);
    if (shape_) sparsity_ = shape_->sparsity;
    parameters_ = reader.input(count_parameters(q_.model).active, "N", "counted from the model file");
  }

  template <class T>
  void step(const T& value) {
    if constexpr (std::is_same_v<T, Traced>) {
      section_.steps.push_back(explain(value).back());
    } else {
      section_.steps.push_back(explain(value.value()).back());
    }
  }

  void communication() {
    per_chip_ = named(batch_ / chips_, "tokens per chip", "book ch. 5: B / n");
    step(per_chip_);
    q_.hw.is_torus() ? on_torus() : behind_switches();
  }

  void verdict(const char* what, const Traced& limit) {
    section_.remarks.push_back(fmt::format("{} is {}: {:.0f} tokens per chip against a limit of {:.0f}", what,
                                           limit < per_chip_ ? "compute-bound" : "communication-bound",
                                           per_chip_.value(), limit.value()));
  }

  void on_torus() {
    const Reader<Traced> reader;
    const Tier& tier = q_.hw.network.front();
    const FlopsPerByteOf<Traced> alpha =
        named(rate_ / NamedRates(q_.hw).ici(), "alpha", "book ch. 5: C / W, FLOPs per byte of one axis");
    step(alpha);
    const double axes = static_cast<double>(tier.torus.pod.size());
    const Traced limit =
        named(rules::data_limit(alpha, Traced(1.0), reader.input(axes, "M_X", "axes of the torus"), sparsity_),
              "FSDP limit, tokens per chip", "book ch. 5: alpha / M_X with every axis used for FSDP");
    step(limit);
    if (shape_) mixed(alpha, axes > 1 ? axes - 1 : 1);
    verdict("pure FSDP", limit);
    if (mixed_) verdict("mixed FSDP x TP", *mixed_);
  }

  void mixed(const FlopsPerByteOf<Traced>& alpha, double data_axes) {
    const rules::MixedSplit<Traced> split{
        .alpha = alpha, .data_axes = Traced(data_axes), .width = shape_->width, .sparsity = sparsity_};
    const Traced x_opt = named(rules::optimal_data_ranks(split, batch_, chips_), "X_opt",
                               "book ch. 5: sqrt((B/F)(M_X/M_Y) n), M_X axes for FSDP and one for TP");
    step(x_opt);
    step(named(chips_ / x_opt, "Y_opt", "book ch. 5: n / X_opt"));
    mixed_ = named(rules::mixed_limit(split), "FSDP x TP limit, tokens per chip", "book ch. 5: alpha^2 / (M_X M_Y F)");
    step(*mixed_);
    if (chips_ < x_opt) {
      section_.remarks.push_back(
          fmt::format("X_opt is beyond {} chips: at this batch FSDP alone communicates least", chips_.value()));
    }
  }

  /// A chip's bandwidth in its node, and that of the whole node into the network beyond.
  void behind_switches() {
    const Reader<Traced> reader;
    const Tier& node = q_.hw.network.front();
    const NamedRates rates(q_.hw);
    const Bandwidth inside = rates.scale_up();
    Bandwidth slower = inside;
    if (q_.hw.network.size() > 1) {
      const std::int64_t used = q_.slices.front().per_domain;
      const double chips = static_cast<double>(used > 0 ? used : node.switched.chips);
      if (chips_.value() > chips)
        slower = named(min(inside, rates.node_egress(used)), "W", "book ch. 12: the slower of node and network");
    }
    const FlopsPerByteOf<Traced> alpha = named(rate_ / slower, "alpha", "book ch. 12: C / W");
    step(alpha);
    const Traced limit = named(rules::data_limit(alpha, Traced(1.0), reader.input(1, "M", "one network"), sparsity_),
                               "FSDP limit, tokens per chip", "book ch. 12: C / W, E / k times that with experts");
    step(limit);
    if (shape_) {
      const FlopsPerByteOf<Traced> local = named(rate_ / inside, "alpha_gpu", "book ch. 12: C / W_gpu");
      step(local);
      step(named(rules::tensor_limit(local, Traced(1.0), Traced(1.0), shape_->width), "TP limit inside a node, chips",
                 "book ch. 12: F W_gpu / C"));
    }
    verdict("pure FSDP", limit);
  }

  void whole_run() {
    const FlopsOf<Traced> total =
        named(rules::training_flops(parameters_, tokens_), "training FLOPs", "book ch. 4: 6 N D_tokens");
    step(total);
    const SecondsOf<Traced> one = named(total / rate_, "time on one chip at peak", "book ch. 6");
    step(one);
    const Traced years =
        named(one.value() / Traced(kSecondsPerYear), "chip-years at peak", "book ch. 6: years of 365 days");
    step(years);
    const SecondsOf<Traced> at40 =
        named(rules::run_time(total, chips_, rate_, Traced(0.4)), "time at 40 % MFU", "book ch. 6");
    step(at40);
    section_.remarks.push_back(fmt::format(
        "{:.0f} chip-years; {:.1f} days on {} chips at 40 % MFU, with N = {} as counted{}", years.value(),
        at40.value().value() / kSecondsPerDay, group_thousands(q_.slices.front().chips),
        format_quantity(parameters_.value(), UnitKind::kCount, 5),
        q_.model.moe
            ? fmt::format(" active, {} in all", format_quantity(count_parameters(q_.model).total, UnitKind::kCount, 5))
            : ""));
  }

  const ResolvedQuestion& q_;
  ExplainSection section_;
  Rate rate_;
  Traced batch_, chips_, tokens_, parameters_, per_chip_;
  std::optional<rules::LayerShape> shape_;
  Traced sparsity_{1.0};
  std::optional<Traced> mixed_;
};

}  // namespace

ExplainSection rules_of_thumb(const ResolvedQuestion& question) { return Rules(question).run(); }

}  // namespace scalecalc
