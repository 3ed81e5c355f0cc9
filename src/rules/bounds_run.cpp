// The run as a whole: scaling book, chapter 6, Counting parameters and FLOPs; MFU of a finished run as in chapter 4,
// Question 7.
#include <fmt/format.h>

#include "base/scalar.h"
#include "base/units.h"
#include "rules/bound_rules.h"
#include "rules/formulas.h"

namespace scalecalc {
namespace {

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
    const auto [usd, source] = price();
    if (!usd) {
      return list_.assume({"no price is published for this chip: cost is left out", "--price", "hardware file"});
    }
    list_.add(BoundGroup::kRun,
              {"cost", "chip-hours x price", "", "of the chips alone", "book ch. 6, Counting parameters and FLOPs"},
              Quantity<kUsdDim, Traced>(hours * kReader.input(*usd, "USD per chip-hour", source)));
  }

  std::pair<std::optional<double>, std::string> price() {
    if (in_.question().training.price) return {in_.question().training.price, "--price"};
    if (in_.hw().prices.empty()) return {std::nullopt, ""};
    const Price& first = in_.hw().prices.front();
    list_.assume({fmt::format("{:g} USD per chip-hour ({} {}, {})", first.usd_per_chip_hour, first.cloud, first.terms,
                              first.date),
                  "--price", first.source});
    return {first.usd_per_chip_hour, first.source};
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

}  // namespace

void run_bounds(const BoundInputs& in, BoundList& list) { RunRules(in, list).run(); }

}  // namespace scalecalc
