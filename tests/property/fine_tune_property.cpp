// Properties of fine-tuning with adapters over random small plans: more adapter is never less, a smaller format never
// needs more, and freezing takes away, never adds.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <memory>

#include "model/accounting.h"
#include "plan/request.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

struct Case {
  ModelSpec model;
  HardwareSpec hw;
  PlanRequest request;
  Plan plan;
};

/// A random problem with adapters and a random one of its plans, whose layout is read again under other adapters.
std::unique_ptr<Case> random_case() {
  auto out = std::make_unique<Case>();
  const auto layers = *rc::gen::inRange<std::int64_t>(2, 7);
  switch (*rc::gen::inRange(0, 3)) {
    case 0: out->model = test::dense_model(layers); break;
    case 1: out->model = test::moe_model(layers); break;
    default: out->model = test::hybrid_model(7, *rc::gen::arbitrary<bool>()); break;
  }
  out->hw = *rc::gen::arbitrary<bool>() ? test::torus_chip() : test::switched_chip();
  const std::int64_t chips = *rc::gen::element<std::int64_t>(4, 8, 16);
  out->request = test::request(out->model, out->hw, chips);
  out->request.workload = test::workload(*rc::gen::element<std::int64_t>(1024, 4096), *rc::gen::element(16.0, 48.0));
  out->request.workload.fine_tune = FineTune{.rank = *rc::gen::inRange<std::int64_t>(1, 129),
                                             .targets = static_cast<std::uint8_t>(*rc::gen::inRange(1, 256)),
                                             .experts = *rc::gen::arbitrary<bool>()};
  out->request.variants = true;
  out->request.top = 40;
  std::vector<Plan> plans = plan(out->request).plans;
  RC_PRE(!plans.empty());
  out->plan = plans[*rc::gen::inRange<std::size_t>(0, plans.size())];
  return out;
}

PlanReading<double> read_with(const Case& c, const std::optional<FineTune>& tune) {
  PlanRequest request = c.request;
  request.workload.fine_tune = tune;
  return read_plan(Reader<double>{}, request, c.plan);
}

bool no_more(double a, double b) { return a <= b * (1 + 1e-12); }

RC_GTEST_PROP(FineTuning, MoreRankIsNeverLess, ()) {
  const std::unique_ptr<Case> c = random_case();
  const FineTune tune = *c->request.workload.fine_tune;
  FineTune more = tune;
  more.rank = tune.rank + *rc::gen::inRange<std::int64_t>(1, 64);
  const PlanReading<double> less = read_with(*c, tune);
  const PlanReading<double> greater = read_with(*c, more);
  RC_ASSERT(no_more(less.memory.total().value(), greater.memory.total().value()));
  // A wider adapter runs its small matmuls at a better rate, so only FLOPs, not time, grow with every rank.
  RC_ASSERT(adapter_parameters(c->model, tune) <= adapter_parameters(c->model, more));
  RC_ASSERT(training_flops(c->model, 1024, true, tune).six_n <= training_flops(c->model, 1024, true, more).six_n);
}

/// At rates that do not depend on shapes.
RC_GTEST_PROP(FineTuning, MoreRankIsNeverFasterAtTheRoofline, ()) {
  const std::unique_ptr<Case> c = random_case();
  c->request.efficiency.matmul_half_dim.value = 0;
  c->request.efficiency.grouped_half_rows.value = 0;
  const FineTune tune = *c->request.workload.fine_tune;
  FineTune more = tune;
  more.rank = tune.rank * 2;
  RC_ASSERT(no_more(read_with(*c, tune).time.total().value(), read_with(*c, more).time.total().value()));
}

RC_GTEST_PROP(FineTuning, MoreTargetsAreNeverLess, ()) {
  const std::unique_ptr<Case> c = random_case();
  const FineTune tune = *c->request.workload.fine_tune;
  FineTune more = tune;
  more.targets = static_cast<std::uint8_t>(tune.targets | *rc::gen::inRange(0, 256));
  const PlanReading<double> few = read_with(*c, tune);
  const PlanReading<double> many = read_with(*c, more);
  RC_ASSERT(no_more(few.memory.total().value(), many.memory.total().value()));
  RC_ASSERT(no_more(few.memory.activations.value(), many.memory.activations.value()));
}

/// Fewer bits keep less, move less, and take a pass of unpacking.
RC_GTEST_PROP(FineTuning, FewerBitsNeverKeepMore, ()) {
  const std::unique_ptr<Case> c = random_case();
  FineTune tune = *c->request.workload.fine_tune;
  double before = 1e300;
  for (const BaseFormat format : {BaseFormat::kBf16, BaseFormat::kFp8, BaseFormat::kNf4}) {
    tune.base = format;
    const double weights = read_with(*c, tune).memory.weights.value();
    RC_ASSERT(no_more(weights, before));
    before = weights;
  }
  tune.base = BaseFormat::kFp8;
  const PlanReading<double> fp8 = read_with(*c, tune);
  tune.base = BaseFormat::kInt8;
  RC_ASSERT(read_with(*c, tune).time.total().value() == fp8.time.total().value());
}

/// In the same layout, frozen weights have no gradients, no state, no reduction and half a backward. Adapters that are
/// small beside the model do not make up for it; kernels of theirs that cost time by themselves may.
RC_GTEST_PROP(FineTuning, SmallAdaptersTakeLessThanTheWholeModel, ()) {
  const std::unique_ptr<Case> c = random_case();
  FineTune tune = *c->request.workload.fine_tune;
  tune.rank = 1;
  c->request.efficiency.kernel_overhead.value = 0;
  c->request.efficiency.matmul_half_dim.value = 0;
  const PlanReading<double> full = read_with(*c, std::nullopt);
  const PlanReading<double> lora = read_with(*c, tune);
  RC_ASSERT(lora.memory.gradients.value() < 0.05 * full.memory.gradients.value());
  RC_ASSERT(lora.memory.optimizer.value() < 0.05 * full.memory.optimizer.value());
  RC_ASSERT(no_more(lora.memory.total().value(), full.memory.total().value()));
  RC_ASSERT(
      no_more(lora.time.dp.value() + lora.time.optimizer.value(), full.time.dp.value() + full.time.optimizer.value()));
}

RC_GTEST_PROP(FineTuning, AllReadingsAgree, ()) {
  const std::unique_ptr<Case> c = random_case();
  c->request.workload.fine_tune->base = BaseFormat::kNf4;
  const PlanReading<double> value = read_plan(Reader<double>{}, c->request, c->plan);
  const PlanReading<Traced> traced = read_plan(Reader<Traced>{}, c->request, c->plan);
  const double step = value.time.total().value();
  RC_ASSERT(std::abs(traced.time.total().value().value() - step) <= 1e-12 * step);
  const double memory = value.memory.total().value();
  RC_ASSERT(std::abs(traced.memory.total().value().value() - memory) <= 1e-12 * memory);
}

}  // namespace
}  // namespace scalecalc
