// Scaling book, chapter 5 ("How to Parallelize a Transformer for Training") and chapter 6 ("Training LLaMA 3 on TPUs").
#include "train/rules.h"

#include <fmt/format.h>

#include "base/units.h"
#include "model/accounting.h"

namespace scalecalc {
namespace {

constexpr double kSecondsPerYear = 365.0 * 86400;

class Rules {
 public:
  explicit Rules(const ResolvedQuestion& q) : q_(q) {}

  ExplainSection run() {
    inputs();
    section_.title = "Rules of thumb (scaling book, chapters 5 and 6): two matmuls per layer, ideal rates";
    communication();
    whole_run();
    return std::move(section_);
  }

 private:
  using Rate = FlopsPerSecondOf<Traced>;
  using Bandwidth = BytesPerSecondOf<Traced>;

  void inputs() {
    const Reader<Traced> reader;
    const std::size_t dtype = static_cast<std::size_t>(q_.workload.precision.compute);
    rate_ = read(reader, *q_.hw.matmul_peak[dtype], "C", q_.hw.compute_source);
    const Tier& tier = q_.hw.network.front();
    const bool torus = tier.kind == TierKind::kTorus;
    axes_ = torus ? static_cast<double>(tier.torus.pod.size()) : 1;
    // The book's W_ici: both directions of one wrapped axis. Under switches the bandwidth of one chip beyond its node.
    const BytesPerSecond w = torus ? tier.torus.link_bandwidth * 2.0
                                   : q_.hw.network[q_.hw.network.size() > 1 ? 1 : 0].switched.bandwidth_per_chip;
    bandwidth_ = read(reader, w, "W", tier.source);
    batch_ = reader.input(q_.workload.batch_seqs * static_cast<double>(q_.workload.seq), "B", "workload");
    chips_ = reader.input(static_cast<double>(q_.slices.front().chips), "n", "--chips");
    d_ff_ = reader.input(static_cast<double>(q_.model.mlp.d_ff), "F", q_.model.source);
    tokens_ = reader.input(q_.workload.tokens, "D_tokens", "workload");
    const double exact = count_parameters(q_.model).active;
    const bool moe = q_.model.moe.has_value();
    const double stated = moe ? q_.model.official.active : q_.model.official.stated;
    stated_ = stated > 0;
    parameters_ = reader.input(stated_ ? stated : exact, "N", stated_ ? "as the vendor states it" : "counted");
    exact_ = exact;
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
    const Traced per_chip = named(batch_ / chips_, "tokens per chip", "book ch. 5: B / n");
    step(per_chip);
    const auto alpha = named(rate_ / bandwidth_, "alpha", "book ch. 5: C / W, FLOPs per byte of one axis");
    step(alpha);
    const Reader<Traced> reader;
    const Traced all_axes = reader.input(axes_, "M_X", "axes of the torus; 1 under switches");
    const Traced limit = named(alpha.value() / all_axes, "FSDP limit, tokens per chip",
                               "book ch. 5: alpha / M_X with every axis used for FSDP");
    step(limit);
    const double axes_x = axes_ > 1 ? axes_ - 1 : 1;
    const Traced x_opt = named(sqrt(Traced(axes_x) * batch_ / d_ff_ * chips_), "X_opt",
                               "book ch. 5: sqrt((B/F)(M_X/M_Y) n), M_X axes for FSDP and one for TP");
    step(x_opt);
    step(named(chips_ / x_opt, "Y_opt", "book ch. 5: n / X_opt"));
    const Traced mixed = named(alpha.value() * alpha.value() / (Traced(axes_x) * d_ff_),
                               "FSDP x TP limit, tokens per chip", "book ch. 5: alpha^2 / (M_X M_Y F)");
    step(mixed);
    const double b = per_chip.value();
    if (x_opt.value() > chips_.value()) {
      section_.remarks.push_back(
          fmt::format("X_opt is beyond {} chips: at this batch FSDP alone communicates least", chips_.value()));
    }
    section_.remarks.push_back(fmt::format("pure FSDP is {}: {:.0f} tokens per chip against a limit of {:.0f}",
                                           b > limit.value() ? "compute-bound" : "communication-bound", b,
                                           limit.value()));
    section_.remarks.push_back(fmt::format("mixed FSDP x TP is {}: {:.0f} tokens per chip against a limit of {:.0f}",
                                           b > mixed.value() ? "compute-bound" : "communication-bound", b,
                                           mixed.value()));
    if (q_.model.moe) {
      section_.remarks.emplace_back("experts raise the FSDP limits by experts / top_k (book ch. 12)");
    }
  }

  void whole_run() {
    const FlopsOf<Traced> flops(Traced(6.0) * parameters_ * tokens_);
    const FlopsOf<Traced> total = named(flops, "training FLOPs", "book ch. 4: 6 N D_tokens");
    step(total);
    const SecondsOf<Traced> one = named(total / rate_, "time on one chip at peak", "book ch. 6");
    step(one);
    const Traced years =
        named(one.value() / Traced(kSecondsPerYear), "chip-years at peak", "book ch. 6: years of 365 days");
    step(years);
    const SecondsOf<Traced> at40 = named(total / (rate_ * (chips_ * Traced(0.4))), "time at 40 % MFU", "book ch. 6");
    step(at40);
    section_.remarks.push_back(fmt::format(
        "{:.0f} chip-years; {:.1f} days on {} chips at 40 % MFU, with N = {} as {}; {} parameters by our count{}",
        years.value(), at40.value().value() / 86400, group_thousands(q_.slices.front().chips),
        format_quantity(parameters_.value(), UnitKind::kCount), stated_ ? "stated" : "counted",
        format_quantity(exact_, UnitKind::kCount, 5),
        q_.model.moe
            ? fmt::format(" active, {} in all", format_quantity(count_parameters(q_.model).total, UnitKind::kCount, 5))
            : ""));
  }

  const ResolvedQuestion& q_;
  ExplainSection section_;
  Rate rate_;
  Bandwidth bandwidth_;
  Traced batch_, chips_, d_ff_, tokens_, parameters_;
  double axes_ = 1;
  double exact_ = 0;
  bool stated_ = false;
};

}  // namespace

ExplainSection rules_of_thumb(const ResolvedQuestion& question) { return Rules(question).run(); }

}  // namespace scalecalc
