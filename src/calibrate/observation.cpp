// Predicts a measured step, kernel or collective from coefficients, for the regression that fits them.
#include "calibrate/observation.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "plan/plan_costs.h"

namespace scalecalc {

StepObservation::StepObservation(const Measurement& measurement, const Catalog& catalog, const Stop& stop)
    : row(measurement), question(row_question(measurement, catalog, {}, false)) {
  group = row.group;
  doubtful = !row.doubt.empty();
  base = question.resolved.efficiency;
  measured = measured_step(row, question.resolved);
  Evaluated found = evaluate(question, stop);
  plan = std::move(found.plan);
  fits = found.fits && found.assumed.empty();
  request_ = request_of(question);
  stretch_ = row.batch_seqs / plan.batch_seqs;
}

double StepObservation::seconds(const Efficiency& efficiency) const {
  const Reader<double> reader;
  return step_time(reader, PlanCosts<double>(reader, request_, efficiency, plan).input()).total().value() * stretch_;
}

namespace {

class KernelObservation final : public Observation {
 public:
  KernelObservation(RooflineQuestion question, std::shared_ptr<const HardwareSpec> hw)
      : question_(std::move(question)), hw_(std::move(hw)) {}
  double seconds(const Efficiency& efficiency) const override {
    HardwareSpec hw = *hw_;
    hw.efficiency = efficiency;
    return value_of(answer(question_, hw).points.front().time);
  }

 private:
  RooflineQuestion question_;
  std::shared_ptr<const HardwareSpec> hw_;
};

/// Ranks of a host lie beside each other, those of the next a host's chips away.
CollectiveGroup group_of(const TimedCollective& timed, const HardwareSpec& hw) {
  const std::int64_t of_host = timed.ranks / timed.nodes;
  return switched_group(
      hw, {{.size = of_host, .stride = 1}, {.size = timed.nodes, .stride = std::max(of_host, hw.chips_per_host)}});
}

class CollectiveObservation final : public Observation {
 public:
  CollectiveObservation(const TimedCollective& timed, std::shared_ptr<const HardwareSpec> hw)
      : timed_(timed), hw_(std::move(hw)), place_(group_of(timed_, *hw_)) {}
  double seconds(const Efficiency& efficiency) const override {
    const CollectiveRequest request{.op = timed_.op,
                                    .bytes = read(kReader, Bytes(timed_.bytes), "V", "measured"),
                                    .convention = CollectiveConvention::kExact};
    return value_of(collective_time(collective_network(*hw_, efficiency), place_, request).time);
  }

 private:
  TimedCollective timed_;
  std::shared_ptr<const HardwareSpec> hw_;
  CollectiveGroup place_;
};

}  // namespace

std::unique_ptr<Observation> kernel_observation(const KernelMeasurement& row, std::shared_ptr<const HardwareSpec> hw) {
  const Efficiency base = hw->efficiency;
  std::unique_ptr<Observation> out;
  try {
    if (const auto* timed = std::get_if<TimedCollective>(&row.work)) {
      out = std::make_unique<CollectiveObservation>(*timed, std::move(hw));
    } else {
      out = std::make_unique<KernelObservation>(std::get<RooflineQuestion>(row.work), std::move(hw));
    }
    out->seconds(base);
  } catch (const UserError& error) {
    const Diagnostic& why = error.diagnostics().front();
    throw UserError({{row.where, why.message, why.hint}});
  }
  out->group = row.group;
  out->alone = true;
  out->base = base;
  out->measured = row.seconds;
  return out;
}

std::vector<KernelMeasurement> large_messages(const std::vector<KernelMeasurement>& rows) {
  constexpr double kPlateau = 0.8;
  using Test = std::tuple<std::string, CollectiveOp, std::int64_t>;
  const auto test_of = [](const KernelMeasurement& row, const TimedCollective& timed) {
    return Test(row.group, timed.op, timed.ranks);
  };
  std::map<Test, double> most;
  for (const KernelMeasurement& row : rows) {
    const auto* timed = std::get_if<TimedCollective>(&row.work);
    if (timed != nullptr) most[test_of(row, *timed)] = std::max(most[test_of(row, *timed)], timed->bus_rate);
  }
  std::vector<KernelMeasurement> out;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(out), [&](const KernelMeasurement& row) {
    const auto* timed = std::get_if<TimedCollective>(&row.work);
    return timed == nullptr || timed->bus_rate >= kPlateau * most.at(test_of(row, *timed));
  });
  return out;
}

}  // namespace scalecalc
