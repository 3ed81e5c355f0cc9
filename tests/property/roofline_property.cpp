// Properties of rooflines over random operations: bounds lie in order, more work never takes less time, sharing
// divides, a critical size is where both times meet, and two ways to say one operation are one operation.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "roofline/roofline.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

double any_size(int most_bits = 16) {
  return static_cast<double>(*rc::gen::inRange<std::int64_t>(1, std::int64_t{1} << *rc::gen::inRange(1, most_bits)));
}

DType any_type() { return *rc::gen::element(DType::kFp32, DType::kBf16, DType::kFp8, DType::kInt8, DType::kInt4); }

OperandTypes any_types() { return {any_type(), any_type(), any_type(), *rc::gen::element(DType::kBf16, DType::kFp8)}; }

Matmul any_matmul() {
  Matmul out{.rows = any_size(), .contraction = any_size(), .columns = any_size()};
  out.matrices = *rc::gen::element(1.0, 3.0);
  out.per_row_weights = out.matrices == 1 && *rc::gen::arbitrary<bool>();
  out.pad = *rc::gen::element(1.0, 128.0);
  if (!out.per_row_weights && *rc::gen::arbitrary<bool>()) out.tile = MatmulTile{any_size(9), any_size(9), any_size(9)};
  return out;
}

Attention any_attention() {
  const double kv_heads = any_size(4);
  Attention out{
      .sequences = any_size(6), .heads = kv_heads * any_size(4), .kv_heads = kv_heads, .head_dim = any_size(8)};
  out.query = any_size();
  out.kv = out.query + any_size() - 1;
  out.causal = *rc::gen::arbitrary<bool>();
  out.backward = *rc::gen::arbitrary<bool>();
  return out;
}

Operation any_operation() {
  switch (*rc::gen::inRange(0, 5)) {
    case 0: return any_matmul();
    case 1: return any_attention();
    case 2: return Elementwise{any_size(30), any_size(3), any_size(4)};
    case 3: return DotProduct{any_size(30)};
    default: return GivenWork{any_size(40), any_size(40)};
  }
}

HardwareSpec any_chip(bool calibrated) {
  HardwareSpec hw = test::torus_chip();
  hw.hbm_bandwidth = BytesPerSecond(*rc::gen::element(1e10, 1e12, 1e14));
  if (calibrated) {
    for (Coefficient& c : hw.efficiency.matmul) c = {0.8, 0, "test"};
    hw.efficiency.matmul_half_dim = {*rc::gen::element(0.0, 64.0), 0, "test"};
    hw.efficiency.hbm = {0.7, 0, "test"};
    hw.efficiency.vector = {0.5, 0, "test"};
    hw.efficiency.attention_forward = {0.6, 0, "test"};
    hw.efficiency.kernel_overhead = {*rc::gen::element(0.0, 1e-6), 0, "test"};
  }
  return hw;
}

bool near(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)); }

RC_GTEST_PROP(RooflineProperty, BoundsLieInOrder, ()) {
  RooflineQuestion q{.operations = {any_operation()}, .types = any_types()};
  q.calibrated = *rc::gen::arbitrary<bool>();
  const RooflineAnswer found = answer(q, any_chip(q.calibrated));
  const RooflinePoint& p = found.points.front();
  const double sum = value_of(p.compute_time) + value_of(p.memory_time) + value_of(p.overhead);
  RC_ASSERT(value_of(p.time) > 0);
  RC_ASSERT(value_of(p.time) <= value_of(p.upper_time));
  RC_ASSERT(near(value_of(p.upper_time), sum));
  RC_ASSERT(value_of(p.upper_time) <= 2 * value_of(p.time) * (1 + 1e-12));
  RC_ASSERT(p.fraction_of_peak->value() <= 1 + 1e-12);
  RC_ASSERT(near(value_of(p.attained) * value_of(p.time), value_of(p.work.flops)));
  RC_ASSERT(value_of(p.work.run) >= value_of(p.work.flops));
  RC_ASSERT(reevaluate(p.time.value()) == value_of(p.time));
}

RC_GTEST_PROP(RooflineProperty, MoreRowsNeverTakeLessTime, ()) {
  Matmul m = any_matmul();
  RooflineQuestion q{.operations = {m}, .types = any_types()};
  q.calibrated = *rc::gen::arbitrary<bool>();
  m.rows += any_size();
  q.operations.emplace_back(m);
  const RooflineAnswer found = answer(q, any_chip(q.calibrated));
  RC_ASSERT(value_of(found.points[0].time) <= value_of(found.points[1].time) * (1 + 1e-12));
  RC_ASSERT(value_of(found.points[0].bytes) <= value_of(found.points[1].bytes));
}

RC_GTEST_PROP(RooflineProperty, ChipsShareEvenly, ()) {
  RooflineQuestion q{.operations = {any_operation()}, .types = any_types()};
  const HardwareSpec hw = any_chip(false);
  const RooflinePoint one = answer(q, hw).points.front();
  q.sharing.chips = *rc::gen::inRange<std::int64_t>(2, 1000);
  const RooflinePoint many = answer(q, hw).points.front();
  RC_ASSERT(near(value_of(many.time) * static_cast<double>(q.sharing.chips), value_of(one.time)));
  RC_ASSERT(many.bound_by == one.bound_by);
}

RC_GTEST_PROP(RooflineProperty, TheCriticalBatchPartsMemoryFromCompute, ()) {
  Matmul m = any_matmul();
  m.tile.reset();
  RooflineQuestion q{.operations = {m}, .types = any_types()};
  q.calibrated = *rc::gen::arbitrary<bool>();
  const HardwareSpec hw = any_chip(q.calibrated);
  const Critical critical = *answer(q, hw).critical_batch;
  RC_ASSERT(critical.value.has_value() == critical.reason.empty());
  RC_PRE(critical.value.has_value());
  m.rows = critical.value->value();
  q.operations = {m};
  const RooflinePoint at = answer(q, hw).points.front();
  RC_ASSERT(near(value_of(at.compute_time), value_of(at.memory_time)));
  m.rows *= 1.5;
  q.operations = {m};
  const RooflinePoint above = answer(q, hw).points.front();
  RC_ASSERT(value_of(above.compute_time) > value_of(above.memory_time));
}

RC_GTEST_PROP(RooflineProperty, AMatmulIsAContraction, ()) {
  const Matmul m{.rows = any_size(), .contraction = any_size(), .columns = any_size()};
  RooflineQuestion q{.operations = {m}, .types = any_types()};
  q.calibrated = *rc::gen::arbitrary<bool>();
  const HardwareSpec hw = any_chip(q.calibrated);
  const RooflinePoint first = answer(q, hw).points.front();
  q.operations = {Contraction{"bd,df->bf",
                              {{"b", m.rows, true, false, true},
                               {"d", m.contraction, true, true, false},
                               {"f", m.columns, false, true, true}}}};
  const RooflinePoint second = answer(q, hw).points.front();
  RC_ASSERT(near(value_of(first.time), value_of(second.time)));
  RC_ASSERT(near(value_of(first.bytes), value_of(second.bytes)));
}

RC_GTEST_PROP(RooflineProperty, OperandsMayChangePlaces, ()) {
  // [B,D] x [D,F] and its transpose [F,D] x [D,B].
  const Matmul m{.rows = any_size(), .contraction = any_size(), .columns = any_size()};
  const OperandTypes types = any_types();
  const OperandTypes swapped{types.weight, types.input, types.result, types.compute};
  const HardwareSpec hw = any_chip(false);
  const RooflinePoint a = answer({.operations = {m}, .types = types}, hw).points.front();
  const Matmul transpose{.rows = m.columns, .contraction = m.contraction, .columns = m.rows};
  const RooflinePoint b = answer({.operations = {transpose}, .types = swapped}, hw).points.front();
  RC_ASSERT(near(value_of(a.time), value_of(b.time)));
}

}  // namespace
}  // namespace scalecalc
