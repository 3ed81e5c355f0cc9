// Chooses the rates of a roofline: the hardware file's peaks, or what it says kernels and links reach of them.
#include <fmt/format.h>

#include "base/check.h"
#include "base/diagnostic.h"
#include "base/scalar.h"
#include "cost/shape_fraction.h"
#include "cost/vector_rate.h"
#include "hw/named_rates.h"
#include "roofline/roofline.h"

namespace scalecalc {
namespace {

/// A coefficient of the efficiency block; 1, which nobody needs to see, for the peak.
Traced share(const RooflineQuestion& question, const Coefficient& coefficient, const std::string& name) {
  if (!question.calibrated) return Traced(1.0);
  return kReader.input(coefficient.value, "efficiency." + name, coefficient.source, {}, coefficient.error);
}

bool computes(const Operation& operation) {
  if (const GivenWork* given = std::get_if<GivenWork>(&operation)) return given->flops > 0;
  return !std::holds_alternative<ParameterLoad>(operation);
}

/// Share of the matrix units' peak that large operations of this kind reach.
Traced compute_share(const RooflineQuestion& question, const Efficiency& e) {
  if (const Attention* attention = std::get_if<Attention>(&question.operations.front())) {
    return attention->backward ? share(question, e.attention_backward, "attention_backward")
                               : share(question, e.attention_forward, "attention_forward");
  }
  const DType dtype = question.types.compute;
  return share(question, e.matmul[static_cast<std::size_t>(dtype)], fmt::format("matmul.{}", name_of(dtype)));
}

VectorWork vector_work(const Operation& operation) {
  const bool products = std::holds_alternative<DotProduct>(operation) || std::holds_alternative<Matmul>(operation) ||
                        std::holds_alternative<Attention>(operation);
  return products ? VectorWork::kMultiplyAdds : VectorWork::kOthers;
}

/// The vector unit's rate on this work, at its ceiling.
FlopsPerSecondOf<Traced> vector_ceiling_rate(const RooflineQuestion& question, const NamedRates& chip) {
  const double share = vector_ceiling(chip.hw(), vector_work(question.operations.front()));
  if (share == 1) return chip.vector();
  return named(chip.vector() * Traced(share), "vector adds", "book ch. 12: a fused multiply-add counts as two");
}

/// What kernels reach of the published rate, but for what the work cannot have.
FlopsPerSecondOf<Traced> vector_reached(const RooflineQuestion& question, const NamedRates& chip,
                                        const FlopsPerSecondOf<Traced>& ceiling) {
  if (!question.calibrated) return ceiling;
  return min(ceiling, chip.vector() * share(question, chip.hw().efficiency.vector, "vector"));
}

/// An expression gets the name; an input or a result that has one keeps it, so that formulas show where it is from.
template <Dim D>
Quantity<D, Traced> unless_named(const Quantity<D, Traced>& x, std::string_view name, std::string_view source) {
  using Op = TraceNode::Op;
  const Op op = x.value().node()->op;
  return op == Op::kInput || op == Op::kNamed ? x : named(x, name, source);
}

BytesPerSecondOf<Traced> vmem_rate(const RooflineQuestion& question, const NamedRates& chip) {
  if (!question.vmem_multiple) {
    if (const auto rate = chip.onchip("vmem")) return *rate;
    throw UserError(fmt::format("{} gives no VMEM bandwidth", chip.hw().name),
                    "say how many times HBM it is: --vmem-multiple 22 (book ch. 2, for the TPU v5e)");
  }
  const Traced multiple = kReader.input(*question.vmem_multiple, "vmem multiple", "--vmem-multiple");
  return named(multiple * chip.hbm(), "W_vmem", "book ch. 2");
}

BytesPerSecondOf<Traced> memory_rate(const RooflineQuestion& question, const NamedRates& chip) {
  switch (question.from) {
    case OperandHome::kHbm: return chip.hbm() * share(question, chip.hw().efficiency.hbm, "hbm");
    case OperandHome::kVmem: return vmem_rate(question, chip);
    case OperandHome::kHost: return chip.pcie();
  }
  internal_error("no such memory");
}

BytesPerSecondOf<Traced> link_rate(const RooflineQuestion& question, Fabric fabric, const NamedRates& chip) {
  const Efficiency& e = chip.hw().efficiency;
  const auto near = [&] { return share(question, e.link_scale_up, "link.scale_up"); };
  switch (fabric) {
    case Fabric::kLink: return chip.link() * near();
    case Fabric::kIci: return chip.ici() * near();
    case Fabric::kScaleUp: return chip.scale_up() * near();
    case Fabric::kScaleOut: return chip.scale_out() * share(question, e.link_scale_out, "link.scale_out");
  }
  internal_error("no such fabric");
}

/// The chips that exchange. Between slices and nodes one of each takes part.
CollectiveGroup exchange_group(const RooflineQuestion& question, const HardwareSpec& hw) {
  const std::int64_t chips = question.sharing.chips;
  switch (*question.over) {
    case Fabric::kLink: return torus_group(hw, {{"chips", chips, false}});
    case Fabric::kIci: return torus_group(hw, {{"chips", chips, true}});
    case Fabric::kScaleUp: return switched_group(hw, chips);
    case Fabric::kScaleOut:
      return hw.is_torus() ? torus_group(hw, {}, chips) : switched_group(hw, chips, hw.network.front().switched.chips);
  }
  internal_error("no such fabric");
}

std::string_view name_of_memory(OperandHome home) {
  switch (home) {
    case OperandHome::kHbm: return "hbm";
    case OperandHome::kVmem: return "vmem";
    case OperandHome::kHost: return "host";
  }
  internal_error("no such memory");
}

std::string_view name_of_fabric(Fabric fabric) {
  switch (fabric) {
    case Fabric::kLink: return "link";
    case Fabric::kIci: return "ici";
    case Fabric::kScaleUp: return "scale_up";
    case Fabric::kScaleOut: return "scale_out";
  }
  internal_error("no such fabric");
}

/// The matmul that the units see on one chip.
struct Extents {
  Traced rows{1.0};
  Traced contraction{1.0};
  Traced columns{1.0};
};

Extents extents(const Matmul& m, const Sharing& sharing) {
  const Traced chips = asked(static_cast<double>(sharing.chips), "chips");
  const auto local = [&](const Traced& size, MatmulSplit split) {
    return sharing.split == split ? size / chips : size;
  };
  const Traced rows = m.per_row_weights ? Traced(1.0) : asked(m.rows, "B");
  return {local(rows, MatmulSplit::kBatch), local(asked(m.contraction, "D"), MatmulSplit::kContraction),
          local(asked(m.columns, "F"), MatmulSplit::kOutput)};
}

Extents extents(const Contraction& contraction) {
  Extents out;
  for (const ContractionIndex& index : contraction.indices) {
    const Traced size = asked(index.size, index.name);
    if (!index.in_result) {
      out.contraction = out.contraction * size;
    } else if (index.in_first != index.in_second) {
      Traced& side = index.in_first ? out.rows : out.columns;
      side = side * size;
    }
  }
  return out;
}

}  // namespace

ComputeUnit unit_of(const RooflineQuestion& question) {
  const Operation& operation = question.operations.front();
  const bool vector = std::holds_alternative<Elementwise>(operation) || std::holds_alternative<DotProduct>(operation);
  return question.unit.value_or(vector ? ComputeUnit::kVector : ComputeUnit::kMatrix);
}

RooflineRates roofline_rates(const RooflineQuestion& question, const HardwareSpec& hw) {
  const NamedRates chip(hw);
  const Operation& operation = question.operations.front();
  const bool matrix = unit_of(question) == ComputeUnit::kMatrix;
  RooflineRates out;
  if (computes(operation)) {
    out.peak = matrix ? chip.matmul(question.types.compute) : vector_ceiling_rate(question, chip);
    const FlopsPerSecondOf<Traced> reached =
        matrix ? *out.peak * compute_share(question, hw.efficiency) : vector_reached(question, chip, *out.peak);
    out.compute = unless_named(reached, "C", "hardware file's efficiency");
    out.compute_name = matrix ? fmt::format("{} matmul", name_of(question.types.compute)) : "vector";
  }
  out.memory = unless_named(memory_rate(question, chip), "W", "hardware file's efficiency");
  out.memory_name = name_of_memory(question.from);
  if (question.over) {
    out.link = unless_named(link_rate(question, *question.over, chip), "W_link", "hardware file's efficiency");
    out.link_name = name_of_fabric(*question.over);
    out.network = collective_network(hw, question.calibrated ? hw.efficiency : ideal_efficiency(hw.efficiency));
    out.group = exchange_group(question, hw);
  }
  if (!question.calibrated) return out;
  const Efficiency& e = hw.efficiency;
  out.overhead = read(kReader, Seconds(e.kernel_overhead.value), "efficiency.kernel_overhead", e.kernel_overhead.source,
                      e.kernel_overhead.error);
  const bool shaped = std::holds_alternative<Matmul>(operation) || std::holds_alternative<Contraction>(operation);
  if (matrix && shaped) out.half_dim = share(question, e.matmul_half_dim, "matmul_half_dim");
  if (matrix && std::holds_alternative<Attention>(operation)) {
    out.attention = {share(question, e.attention_half_context, "attention_half_context"),
                     share(question, e.attention_half_head_dim, "attention_half_head_dim"),
                     share(question, e.attention_head_width, "attention_head_width")};
  }
  return out;
}

Traced reached_fraction(const Operation& operation, const Sharing& sharing, const RooflineRates& rates) {
  const bool falls = rates.attention.half_context.value() != 0 || rates.attention.half_head_dim.value() != 0;
  if (const Attention* attention = std::get_if<Attention>(&operation); attention != nullptr && falls) {
    const Traced context = asked(attention->causal ? attention->kv - attention->query / 2 : attention->kv, "context");
    return named(attention_fraction(rates.attention, context, asked(attention->head_dim, "head_dim")),
                 "fraction at this context and head size", "hardware file's efficiency");
  }
  if (rates.half_dim.value() == 0) return Traced(1.0);
  const Matmul* matmul = std::get_if<Matmul>(&operation);
  const Extents e = matmul != nullptr ? extents(*matmul, sharing) : extents(std::get<Contraction>(operation));
  return named(shape_fraction(rates.half_dim, e.rows, e.columns, e.contraction), "fraction at this shape",
               "hardware file's efficiency");
}

}  // namespace scalecalc
