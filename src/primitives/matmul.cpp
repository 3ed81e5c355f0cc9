#include "primitives/matmul.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/diagnostic.h"
#include "base/scalar.h"
#include "base/text.h"
#include "base/units.h"
#include "primitives/named_rates.h"

namespace scalecalc {
namespace {

ArrayShare share_of(const MatmulProblem& problem, const ShardedArray& array, std::string role, const HardwareSpec* hw,
                    const MatmulQuestion& question) {
  const ShardingTables& tables = problem.tables;
  ArrayShare out;
  out.name = array.name;
  out.role = std::move(role);
  out.notation = tables.notation(array);
  out.dtype = array.dtype;
  for (const std::size_t dim : array.dims) out.shape.push_back(tables.dims[dim].size);
  out.local_shape = tables.local_shape(array, array.layout);
  out.bytes = named(tables.bytes(array), "bytes of " + array.name, "one copy");
  out.local_bytes = named(tables.local_bytes(array, array.layout), "bytes of " + array.name + " on a chip",
                          "book ch. 3: each axis that cuts it divides it");
  const Traced chips = kReader.input(static_cast<double>(tables.mesh.chips()), "chips", "--mesh");
  out.total_bytes = named(out.local_bytes * chips, "bytes of " + array.name + " on all chips", "copies counted");
  out.replicas = out.total_bytes / out.bytes;
  out.fraction = out.local_bytes / out.bytes;
  if (hw != nullptr) {
    out.load_time = named(out.local_bytes / hbm_rate(question, *hw), "time to read " + array.name, "book ch. 1");
  }
  return out;
}

void arrays_of(const MatmulQuestion& question, const HardwareSpec* hw, MatmulAnswer& found) {
  const MatmulProblem& problem = found.problem;
  for (const ShardedArray& operand : problem.operands) {
    found.arrays.push_back(share_of(problem, operand, "operand", hw, question));
  }
  for (std::size_t p = 0; p < problem.products.size(); ++p) {
    const bool last = p + 1 == problem.products.size();
    if (!last && !problem.products[p].written) continue;  // it lies as each strategy leaves it
    ShardedArray result = problem.products[p].result;
    if (last && !found.strategies.empty()) result.layout = found.strategies.front().plan.products.back().result;
    found.arrays.push_back(share_of(problem, result, last ? "result" : "intermediate", hw, question));
  }
}

void note_space(MatmulAnswer& found, const HardwareSpec& hw) {
  if (found.strategies.empty()) return;
  const Strategy& best = found.strategies.front();
  if (value_of(best.time) < value_of(best.memory_time)) {
    found.notes.push_back(
        fmt::format("The best strategy's time counts matmuls and collectives. Reading and writing its parts in HBM "
                    "takes longer, {}: "
                    "the matmul is bound by memory.",
                    format_quantity(value_of(best.memory_time), UnitKind::kSeconds)));
  }
  if (value_of(hw.hbm_capacity) < value_of(best.memory)) {
    found.notes.push_back(fmt::format("The best strategy's arrays take {} on each chip, which has {}.",
                                      format_quantity(value_of(best.memory), UnitKind::kBytes),
                                      format_quantity(value_of(hw.hbm_capacity), UnitKind::kBytes)));
  }
}

/// Loops that do not divide over an axis are not cut over it.
void note_uneven(MatmulAnswer& found) {
  const ShardingTables& tables = found.problem.tables;
  std::vector<std::string> uneven;
  for (const Dimension& dim : tables.dims) {
    for (const MeshAxis& axis : tables.mesh.axes) {
      if (dim.size % axis.size != 0)
        uneven.push_back(
            fmt::format("{} = {} over {} = {}", dim.name, group_thousands(dim.size), axis.name, axis.size));
    }
  }
  if (!uneven.empty()) {
    found.notes.push_back(
        fmt::format("Strategies that would cut a dimension unevenly are left out: {}.", join_and(uneven)));
  }
}

void measured_times(const MatmulQuestion& question, MatmulAnswer& found) {
  const SecondsOf<Traced>& best = found.strategies.front().time;
  for (const double seconds : question.measured_s) {
    MeasuredMatmul out;
    out.time =
        read(kReader, Seconds(seconds), fmt::format("measured time {}", found.measured.size() + 1), "--measured");
    out.roofline_fraction = best / out.time;
    if (!found.measured.empty()) {
      out.speedup_over_first = found.measured.front().time / out.time;
      out.speedup_over_previous = found.measured.back().time / out.time;
    }
    found.measured.push_back(std::move(out));
  }
}

void multiply(const MatmulQuestion& question, const HardwareSpec& hw, MatmulAnswer& found) {
  const Efficiency efficiency = question.calibrated ? hw.efficiency : ideal_efficiency(hw.efficiency);
  const MeshNetwork network(hw, efficiency, found.problem.tables.mesh, question.placement);
  found.mesh = network.description();
  found.rates = matmul_rates(question, found.problem, hw);
  for (std::size_t p = 0; p < found.problem.products.size(); ++p) found.products.push_back(case_of(found.problem, p));
  found.strategies = strategies_of(question, found.problem, *found.rates, hw, network);
  if (found.strategies.empty()) {
    const Product& last = found.problem.products.back();
    throw UserError(fmt::format("no strategy leads to {}", found.problem.tables.notation(last.result)),
                    last.result.layout.partial != 0
                        ? "partial sums remain only where an axis can cut a contracted dimension"
                        : "with --ring only collectives over all axes are considered");
  }
  compare_strategies(question, network, found);
  found.assumptions.insert(found.assumptions.end(), network.assumptions().begin(), network.assumptions().end());
  note_space(found, hw);
  note_uneven(found);
  measured_times(question, found);
}

}  // namespace

BytesPerSecondOf<Traced> hbm_rate(const MatmulQuestion& question, const HardwareSpec& hw) {
  const BytesPerSecondOf<Traced> peak = NamedRates(hw).hbm();
  if (!question.calibrated) return peak;
  return peak * kReader.input(hw.efficiency.hbm.value, "efficiency.hbm", hw.efficiency.hbm.source);
}

MatmulRates matmul_rates(const MatmulQuestion& question, const MatmulProblem& problem, const HardwareSpec& hw) {
  const NamedRates rates(hw);
  MatmulRates out;
  out.compute_dtype = problem.operands.front().dtype;
  for (const ShardedArray& operand : problem.operands) {
    if (bytes_per_element(out.compute_dtype) < bytes_per_element(operand.dtype)) out.compute_dtype = operand.dtype;
  }
  out.compute_dtype = question.compute.value_or(out.compute_dtype);
  out.compute = rates.matmul(out.compute_dtype);
  if (question.calibrated) {
    const Coefficient& reached = hw.efficiency.matmul[static_cast<std::size_t>(out.compute_dtype)];
    out.compute =
        out.compute *
        kReader.input(reached.value, fmt::format("efficiency.matmul.{}", name_of(out.compute_dtype)), reached.source);
  }
  out.hbm = hbm_rate(question, hw);
  out.network = rates.is_torus() ? rates.ici() : rates.scale_up();
  if (question.calibrated) {
    const Coefficient& reached = hw.efficiency.link_scale_up;
    out.network = out.network * kReader.input(reached.value, "efficiency.link.scale_up", reached.source);
  }
  out.network_name = rates.is_torus() ? "both directions of one torus axis" : "a chip inside its node";
  out.alpha = named(out.compute / out.network, "alpha", "book ch. 3, question 4: FLOPs in the time of one byte");
  return out;
}

MatmulAnswer answer(const MatmulQuestion& question, const HardwareSpec* hw) {
  MatmulAnswer found;
  found.problem = understand(question.input);
  found.assumptions = found.problem.assumptions;
  if (found.problem.products.empty()) {
    if (!question.measured_s.empty()) {
      throw UserError("--measured: nothing is multiplied", "an expression with a product: \"A[I, J] * B[J, K]\"");
    }
  } else if (hw == nullptr) {
    throw UserError("--hw is missing: on which hardware?", "a catalog name such as tpu-v5p, or a YAML file");
  } else {
    multiply(question, *hw, found);
  }
  arrays_of(question, hw, found);
  if (hw != nullptr) {
    found.assumptions.push_back(
        question.calibrated ? Assumption{"rates with the hardware file's efficiencies", "--efficiency ideal",
                                         "efficiency of " + hw->name}
                            : Assumption{"full rates, the book's rooflines", "--efficiency calibrated", "book ch. 1"});
  }
  return found;
}

}  // namespace scalecalc
