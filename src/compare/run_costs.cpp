#include "compare/run_costs.h"

#include <fmt/format.h>

#include <cmath>

#include "base/units.h"
#include "plan/request.h"

namespace scalecalc {
namespace {

/// Two figures that differ by rounding alone.
bool equal(double a, double b) { return std::abs(a - b) <= 1e-9 * std::abs(b); }

SecondsOf<Traced> step_of(const TrainComparison& comparison, const ComparedRun& row, bool explain) {
  if (explain) {
    const PlanRequest request = request_of(comparison.question.train, row.sized->machine);
    const PlanReading<Traced> reading = read_plan(Reader<Traced>{}, request, row.sized->plan.plan);
    return named(reading.time.total(), "step time", "sum of its causes", row.label);
  }
  return SecondsOf<Traced>(Traced::leaf(row.sized->plan.plan.step_s, "step time", "docs/model.md, [STEP]", kSecondDim));
}

class Costs {
 public:
  Costs(const TrainComparison& comparison, const ComparedRun& row, bool explain)
      : row_(row), run_(row.run()), plan_(row.sized->plan.plan), hw_(row.sized->machine.hw) {
    out_.step = step_of(comparison, row, explain);
    batch_ = plan_.batch_seqs * static_cast<double>(row.sized->machine.workload.seq);
  }

  RunCosts run() {
    time();
    chip_hours();
    if (row_.price) usd();
    if (run_.energy_j) energy();
    return std::move(out_);
  }

 private:
  static Traced input(double value, std::string_view name, std::string_view source, Dim unit = {}) {
    return Traced::leaf(value, name, source, unit);
  }

  void time() {
    const Traced steps = input(run_.tokens, "tokens of the run", "--tokens, or as trained") /
                         input(batch_, "tokens of a step", "--batch-tokens, or as trained");
    const SecondsOf<Traced> busy = out_.step * steps.with_name(row_.label + " steps", "tokens / batch");
    if (equal(busy.value().value(), run_.time_s)) {
      out_.time = named(busy, "time to finish", "steps x step time, book ch. 6", row_.label);
      return;
    }
    const Traced goodput = input(busy.value().value() / run_.time_s, "share of the time that makes progress",
                                 "train --explain of the same plan");
    out_.time = named(busy / goodput, "time to finish", "steps x step time / goodput", row_.label);
  }

  void chip_hours() {
    const double paid = run_.chip_hours * kSecondsPerHour / run_.time_s;
    const double used = static_cast<double>(plan_.slice.chips);
    const Traced chips = equal(paid, used) ? input(used, "chips", "layout")
                                           : input(paid, "chips, spares included", "train --explain of the same plan");
    out_.chip_hours =
        (chips * out_.time.value() / Traced(kSecondsPerHour)).with_name(row_.label + " chip-hours", "chips x hours");
  }

  void usd() {
    const UsdOf price(input(row_.price->usd_per_chip_hour, row_.label + " price of a chip-hour",
                            row_.price->source.empty() ? "--price" : row_.price->source, kUsdDim));
    out_.usd = named(price * out_.chip_hours, "cost", "chip-hours x price, book ch. 6", row_.label);
    flops_per_usd(price);
  }

  void flops_per_usd(const UsdOf& price) {
    const DType format = row_.sized->machine.workload.precision.compute;
    const FlopsPerSecondOf<Traced> peak =
        read(Reader<Traced>{}, *hw_.matmul_peak[static_cast<std::size_t>(format)],
             fmt::format("hw.compute.matmul.{}", name_of(format)), hw_.compute_source);
    const SecondsOf<Traced> hour((Traced(kSecondsPerHour)));
    out_.peak_per_usd =
        named(peak * hour / price, "peak FLOPs per dollar", "peak x hour / price, book ch. 8", row_.label);
    const Traced mfu = input(row_.sized->plan.figures.mfu, "MFU", "docs/model.md, Figures");
    out_.delivered_per_usd =
        named(*out_.peak_per_usd * mfu, "model FLOPs per dollar", "peak FLOPs per dollar x MFU", row_.label);
  }

  void energy() {
    const double chip_seconds = run_.chip_hours * kSecondsPerHour;
    const Quantity<kJouleDim - kSecondDim, Traced> draw(
        input(*run_.energy_j / chip_seconds, "mean draw of a chip", hw_.tdp_source, kJouleDim - kSecondDim));
    const SecondsOf<Traced> busy(out_.chip_hours * Traced(kSecondsPerHour));
    out_.energy = named(draw * busy, "energy", "chip-seconds x mean draw", row_.label);
  }

  const ComparedRun& row_;
  const RunFigures& run_;
  const Plan& plan_;
  const HardwareSpec& hw_;
  double batch_ = 0;
  RunCosts out_;
};

}  // namespace

RunCosts run_costs(const TrainComparison& comparison, const ComparedRun& row, bool explain) {
  return Costs(comparison, row, explain).run();
}

UsdOf break_even_price(const UsdOf& usd, const Traced& chip_hours) { return usd / chip_hours; }

Traced tokens_for_equal_usd(const Traced& tokens, const UsdOf& other_usd, const UsdOf& usd) {
  return tokens * (other_usd / usd);
}

}  // namespace scalecalc
