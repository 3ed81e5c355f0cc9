// Sharded matmuls over 1,000 random legal shardings (100 runs of ten): what every strategy must respect.
//
// The bound on communication. Under a strategy's layouts a chip holds a box of an operand and needs another box for its
// part of the matmul: what lies in the second and not in the first must be received. An operand of partial sums is held
// by nobody in full: every element needed must be received at least once, as the sum of what others have. The same
// holds for the result: elements that the chip does not compute, or computes only in part, arrive at least once each.
// The sum over the arrays bounds what the chip receives, whatever the collectives; divided by what all its links bring
// in, it bounds their time.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>

#include "matmul/matmul.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

using Coordinates = std::vector<std::int64_t>;

struct AskedMatmul {
  HardwareSpec hw;
  MatmulQuestion question;
};

/// Puts each axis on one of the dimensions or on none, in random order; one may become a partial sum.
std::string random_array(const std::string& name, const std::string& dims, const std::string& axes,
                         bool may_be_partial) {
  std::vector<std::string> cut(dims.size());
  std::string partial;
  std::string order = axes;
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[*rc::gen::inRange<std::size_t>(0, i)]);
  for (const char axis : order) {
    const std::size_t place = *rc::gen::inRange<std::size_t>(0, dims.size() + 2);
    if (place < dims.size()) cut[place] += axis;
    if (place == dims.size() && may_be_partial) partial += axis;
  }
  std::string out = name + "[";
  for (std::size_t d = 0; d < dims.size(); ++d) {
    out += (d > 0 ? ", " : "") + std::string(1, dims[d]) + (cut[d].empty() ? "" : "_" + cut[d]);
  }
  return out + "]" + (partial.empty() ? "" : "{U_" + partial + "}");
}

AskedMatmul random_matmul() {
  AskedMatmul out;
  const bool torus = *rc::gen::arbitrary<bool>();
  out.hw = torus ? test::torus_chip() : test::switched_chip();
  for (Tier& tier : out.hw.network) tier.switched.in_network_reduction = *rc::gen::arbitrary<bool>();
  if (torus) out.question.placement.wraparound = *rc::gen::arbitrary<bool>();
  out.question.placement.convention =
      *rc::gen::element(CollectiveConvention::kBook, CollectiveConvention::kFirstOrder, CollectiveConvention::kExact);
  MatmulInput& input = out.question.input;
  std::string axes;
  std::int64_t chips = 1;
  const std::size_t count = *rc::gen::inRange<std::size_t>(1, 4);
  for (std::size_t a = 0; a < count; ++a) {
    // Behind switches sizes must fill nodes of 8.
    const std::int64_t size = torus ? *rc::gen::element<std::int64_t>(2, 3, 4) : *rc::gen::element<std::int64_t>(2, 4);
    axes += "XYZ"[a];
    input.mesh.axes.push_back({std::string(1, axes.back()), size, {size}});
    chips *= size;
  }
  const bool batch = *rc::gen::weightedElement<bool>({{3, false}, {1, true}});
  const std::string e = batch ? "E" : "";
  const std::string left = random_array("A", e + "IJ", axes, *rc::gen::weightedElement<bool>({{4, false}, {1, true}}));
  const std::string right = random_array("B", e + "JK", axes, false);
  const std::string result = random_array("C", e + "IK", axes, false);
  input.expression = left + " * " + right;
  if (*rc::gen::weightedElement<bool>({{1, false}, {3, true}}) || batch) input.expression += " -> " + result;
  for (const char* dim : {"E", "I", "J", "K"}) {
    if (dim[0] == 'E' && !batch) continue;
    input.sizes.push_back({dim, chips * *rc::gen::element<std::int64_t>(1, 3, 64), false});
  }
  return out;
}

/// Indices of a dimension that a chip holds.
struct MatmulRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

MatmulRange part(const Mesh& mesh, const AxisList& axes, std::int64_t size, const Coordinates& chip) {
  std::int64_t index = 0;
  for (const std::uint8_t axis : axes) index = index * mesh.axes[axis].size + chip[axis];
  const std::int64_t width = size / mesh.ways(axes);
  return {index * width, (index + 1) * width};
}

/// Elements of the box that `chip` has under `to`, and of its intersection with that of `holder` under `from`.
struct Boxes {
  double wanted = 1;
  double held = 1;
};
Boxes boxes(const ShardingTables& tables, const ShardedArray& array, const Sharding& from, const Coordinates& holder,
            const Sharding& to, const Coordinates& chip) {
  Boxes out;
  for (std::size_t d = 0; d < array.dims.size(); ++d) {
    const std::int64_t size = tables.dims[array.dims[d]].size;
    const MatmulRange a = part(tables.mesh, from.cut[d], size, holder);
    const MatmulRange b = part(tables.mesh, to.cut[d], size, chip);
    out.wanted *= static_cast<double>(b.end - b.begin);
    out.held *= static_cast<double>(std::max<std::int64_t>(0, std::min(a.end, b.end) - std::max(a.begin, b.begin)));
  }
  return out;
}

double must_receive(const ShardingTables& tables, const ShardedArray& array, const Sharding& from, const Sharding& to,
                    const Coordinates& chip) {
  const Boxes found = boxes(tables, array, from, chip, to, chip);
  const bool adds_up = (from.partial & ~to.partial) != 0;
  return (found.wanted - (adds_up ? 0 : found.held)) * bytes_per_element(array.dtype);
}

std::vector<Coordinates> all_chips(const Mesh& mesh) {
  std::vector<Coordinates> out{{}};
  for (const MeshAxis& axis : mesh.axes) {
    std::vector<Coordinates> longer;
    for (const Coordinates& chip : out) {
      for (std::int64_t i = 0; i < axis.size; ++i) {
        longer.push_back(chip);
        longer.back().push_back(i);
      }
    }
    out = std::move(longer);
  }
  return out;
}

double bound_of(const MatmulProblem& problem, const ProductPlan& plan) {
  const ShardingTables& tables = problem.tables;
  double most = 0;
  for (const Coordinates& chip : all_chips(tables.mesh)) {
    const double own = must_receive(tables, problem.left_of(0), plan.left_given, plan.left, chip) +
                       must_receive(tables, problem.right_of(0), plan.right_given, plan.right, chip) +
                       must_receive(tables, problem.products[0].result, plan.produced, plan.result, chip);
    most = std::max(most, own);
  }
  return most;
}

double received(const Strategy& strategy) {
  return std::accumulate(strategy.collectives.begin(), strategy.collectives.end(), 0.0,
                         [](double sum, const CollectiveUse& use) { return sum + value_of(use.received); });
}

/// What all links of a torus chip bring in.
double inbound(const AskedMatmul& asked) {
  const double link = value_of(asked.hw.network.front().torus.link_bandwidth);
  const double directions = *asked.question.placement.wraparound ? 2 : 1;
  return link * directions * static_cast<double>(asked.question.input.mesh.axes.size());
}

constexpr double kRounding = 1e-9;

RC_GTEST_PROP(ShardedMatmul, NoStrategyBeatsTheBound, ()) {
  for (int i = 0; i < 10; ++i) {
    const AskedMatmul asked = random_matmul();
    const MatmulAnswer found = answer(asked.question, &asked.hw);
    RC_ASSERT(!found.strategies.empty());
    for (const Strategy& s : found.strategies) {
      const double bound = bound_of(found.problem, s.plan.products.front());
      RC_LOG() << asked.question.input.expression << ": " << s.name << ", bound " << bound << "\n";
      RC_ASSERT(received(s) >= bound * (1 - kRounding));
      if (asked.hw.is_torus()) RC_ASSERT(value_of(s.communication_time) >= bound / inbound(asked) * (1 - kRounding));
    }
  }
}

RC_GTEST_PROP(ShardedMatmul, WorkIsNeverLostAndTheBestIsBest, ()) {
  for (int i = 0; i < 10; ++i) {
    const AskedMatmul asked = random_matmul();
    const MatmulAnswer found = answer(asked.question, &asked.hw);
    const double chips = static_cast<double>(asked.question.input.mesh.chips());
    const double flops = value_of(product_flops(found.problem, 0));
    const Strategy& best = found.strategies.front();
    for (const Strategy& s : found.strategies) {
      RC_ASSERT(value_of(s.flops_per_chip) * chips >= flops * (1 - kRounding));
      RC_ASSERT(value_of(s.redundancy) >= 1 - kRounding);
      RC_ASSERT(value_of(best.time) <= value_of(s.time) * (1 + kRounding));
      RC_ASSERT(value_of(s.time) == std::max(value_of(s.compute_time), value_of(s.communication_time)));
      RC_ASSERT(value_of(s.upper_time) <= 2 * value_of(s.time) * (1 + kRounding));
      const std::vector<Sharding>& asked_for = found.problem.products.front().asked;
      RC_ASSERT(std::find(asked_for.begin(), asked_for.end(), s.plan.products.front().result) != asked_for.end());
    }
  }
}

/// Chips that differ from `chip` in the coordinates of `axes` only.
std::vector<Coordinates> group_of(const Mesh& mesh, const Coordinates& chip, AxisMask axes) {
  std::vector<Coordinates> out;
  for (const Coordinates& other : all_chips(mesh)) {
    bool member = true;
    for (std::size_t a = 0; a < other.size(); ++a) member = member && ((axes >> a & 1U) != 0 || other[a] == chip[a]);
    if (member) out.push_back(other);
  }
  return out;
}

/// What a chip ends a step with lies with the members of its group (for sums: with every combination of the axes summed
/// over), and a slice keeps what was there.
void check_step(const ShardingTables& tables, const ShardedArray& array, const ReshardStep& step) {
  const AxisMask summed = step.from.partial & ~step.to.partial;
  RC_ASSERT((summed & ~step.axes) == 0U);
  for (const Coordinates& chip : all_chips(tables.mesh)) {
    const AxisMask reach = step.kind == StepKind::kSlice ? 0 : step.axes;
    double found = 0;
    double wanted = 0;
    for (const Coordinates& member : group_of(tables.mesh, chip, reach)) {
      const Boxes shared = boxes(tables, array, step.from, member, step.to, chip);
      found += shared.held;
      wanted = shared.wanted;
    }
    // Each element comes once from every summand; copies do not occur inside a group.
    const double summands = static_cast<double>(tables.mesh.ways(tables.mesh.list(summed)));
    RC_ASSERT(found == wanted * summands);
  }
}

RC_GTEST_PROP(ShardedMatmul, EveryStepFindsItsDataInItsGroup, ()) {
  for (int i = 0; i < 3; ++i) {
    const AskedMatmul asked = random_matmul();
    const MatmulAnswer found = answer(asked.question, &asked.hw);
    const MatmulProblem& problem = found.problem;
    for (const Strategy& s : found.strategies) {
      const ProductPlan& plan = s.plan.products.front();
      for (const ReshardStep& step : plan.to_left.steps) check_step(problem.tables, problem.left_of(0), step);
      for (const ReshardStep& step : plan.to_right.steps) check_step(problem.tables, problem.right_of(0), step);
      for (const ReshardStep& step : plan.to_result.steps) check_step(problem.tables, problem.products[0].result, step);
    }
  }
}

/// What is written is what is read.
RC_GTEST_PROP(ShardedMatmul, NotationIsReadAsItIsWritten, ()) {
  const AskedMatmul asked = random_matmul();
  MatmulInput input = asked.question.input;
  const MatmulProblem first = understand(input);
  input.expression = first.tables.notation(first.operands[0]) + " * " + first.tables.notation(first.operands[1]);
  const Product& product = first.products[0];
  if (product.written) input.expression += " -> " + first.tables.notation(product.result);
  const MatmulProblem again = understand(input);
  RC_ASSERT(again.operands[0].layout == first.operands[0].layout);
  RC_ASSERT(again.operands[1].layout == first.operands[1].layout);
  RC_ASSERT(again.products[0].asked == product.asked);
}

RC_GTEST_PROP(ShardedMatmul, AnyTextIsReadOrRefused, ()) {
  const std::string signs = "AIJ_XU{}[],:*->  b1\xc2\xb7";
  const auto text = *rc::gen::container<std::string>(rc::gen::elementOf(signs));
  try {
    const NotedExpression found = parse_notation(text);
    RC_ASSERT(found.results.size() + 1 == found.operands.size());
  } catch (const UserError& error) {
    RC_ASSERT(error.diagnostics().size() == 1U);
    RC_ASSERT(!render(error.diagnostics().front()).empty());
  }
}

/// More bandwidth or a faster chip never hurts the best strategy.
RC_GTEST_PROP(ShardedMatmul, FasterHardwareIsNotSlower, ()) {
  const AskedMatmul asked = random_matmul();
  AskedMatmul faster = asked;
  for (Tier& tier : faster.hw.network) {
    tier.torus.link_bandwidth = tier.torus.link_bandwidth * 2.0;
    tier.switched.bandwidth_per_chip = tier.switched.bandwidth_per_chip * 2.0;
  }
  const double before = value_of(answer(asked.question, &asked.hw).strategies.front().time);
  const double after = value_of(answer(faster.question, &faster.hw).strategies.front().time);
  RC_ASSERT(after <= before * (1 + kRounding));
  RC_ASSERT(after >= before / 2 * (1 - kRounding));
}

}  // namespace
}  // namespace scalecalc
