// Launch files of random plans, for every framework: what is written reads back as the same layout, its degrees
// multiply to the chips, and every plan is either written or refused with a reason.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "launch/serving.h"
#include "launch/training.h"
#include "plan/dimensions.h"
#include "property/cases.h"
#include "property/random_plan.h"

namespace scalecalc {
namespace {

std::shared_ptr<const StackRelease> release_for(const LaunchFramework& framework) {
  static const Catalog kCatalog;
  const std::string stack(framework.stack);
  if (stack.empty()) return nullptr;
  const std::size_t at = stack.find('@');
  return stack_release(kCatalog, stack.substr(0, at), at == std::string::npos ? "" : stack.substr(at + 1));
}

/// Degrees of an engine that fold: expert ranks over the ranks of a stage.
ServeLayout random_server(const LaunchFramework& engine, bool moe) {
  ServeLayout out;
  const auto some = [] { return *rc::gen::element<std::int64_t>(1, 2, 4, 8); };
  out.tp = some();
  out.pp = *rc::gen::element<std::int64_t>(1, 2);
  out.dp = some();
  const bool adp = moe && *rc::gen::arbitrary<bool>();
  if (adp) out.attention_dp = *rc::gen::element<std::int64_t>(2, 4);
  if (adp && engine.name == "trtllm") out.tp = 1;
  if (engine.name == "vllm") out.cp = *rc::gen::element<std::int64_t>(1, 1, 2);
  out.ep = 1;
  if (moe && *rc::gen::arbitrary<bool>()) {
    out.ep = engine.name == "vllm" ? out.group() : *rc::gen::element<std::int64_t>(1, out.group());
  }
  out.etp = moe ? out.group() / out.ep : 1;
  if (out.ep > 1 && engine.name != "trtllm") out.ep_overlap = *rc::gen::arbitrary<bool>();
  return out;
}

TEST(LaunchServers, AFileReadsBackAsItsLayout) {
  const bool held = rc::check("what is written is read", [] {
    const LaunchFramework& engine = launch_framework(*rc::gen::element<std::string_view>("vllm", "sglang", "trtllm"));
    const ModelSpec model = *rc::gen::arbitrary<bool>() ? test::dense_model() : test::moe_model();
    const HardwareSpec hw = test::switched_chip();
    const ServeLayout layout = random_server(engine, model.moe.has_value());
    ServingSystem system{.model = &model, .hw = &hw};
    system.chunk_tokens = 4096;
    const ServingLaunch subject{layout, model, system, *rc::gen::element(0.5, 7.0, 64.0), 4096, {}, false, 8};
    const std::vector<LaunchArgument> arguments = serving_arguments(engine, subject);
    const std::string text = launch_file(engine, arguments, serving_terms(subject), {});
    const LaunchText read = read_launch_text(text, "file");
    RC_ASSERT(&framework_of(read, text, "file") == &engine);
    const ImportedServing back = import_serving(engine, read.settings, &model);
    RC_ASSERT(back.reading.unread.empty());
    for (const ServeDimension& d : kServeDimensionTable) {
      if (const auto pin = back.pins.*d.pin) RC_ASSERT(*pin == d.value(layout));
    }
    RC_ASSERT(*back.pins.tp * *back.pins.pp * *back.pins.cp * *back.pins.attention_dp * *back.pins.dp ==
              layout.chips());
  });
  EXPECT_TRUE(held);
}

std::vector<const LaunchFramework*> training_frameworks() {
  std::vector<const LaunchFramework*> out;
  for (const LaunchFramework& framework : launch_frameworks()) {
    if (framework.job == LaunchJob::kTraining) out.push_back(&framework);
  }
  return out;
}

class LaunchRoundTrip : public testing::TestWithParam<const LaunchFramework*> {};

TEST_P(LaunchRoundTrip, AFileReadsBackAsItsPlan) {
  const LaunchFramework& framework = *GetParam();
  const auto release = release_for(framework);
  int written = 0;
  int asked = 0;
  std::map<std::string, int> why;
  const bool held = rc::check("what is written is read", [&] {
    test::PlanCase c;
    const auto layers = *rc::gen::inRange<std::int64_t>(2, 9);
    c.model = *rc::gen::arbitrary<bool>() ? test::dense_model(layers) : test::moe_model(layers);
    c.hw = *rc::gen::arbitrary<bool>() ? test::torus_chip() : test::switched_chip();
    c.hw.efficiency = test::imperfect();
    c.hw.hbm_capacity = Bytes(*rc::gen::element(2e9, 8e9, 32e9));
    c.request = test::request(c.model, c.hw, *rc::gen::element<std::int64_t>(8, 16));
    c.request.workload =
        test::workload(*rc::gen::element<std::int64_t>(1024, 4096), *rc::gen::element(16.0, 48.0, 64.0));
    c.request.variants = true;
    c.request.top = 12;
    c.request.threads = 1;
    // What is fastest alone would hardly ever have a pipeline.
    const auto some = [](std::optional<std::int64_t>& pin) {
      if (*rc::gen::inRange(0, 3) == 0) pin = *rc::gen::element<std::int64_t>(1, 2, 4);
    };
    some(c.request.fix.pp);
    some(c.request.fix.tp);
    some(c.request.fix.cp);
    some(c.request.fix.ep);
    if (*rc::gen::inRange(0, 3) == 0) c.request.fix.zero = *rc::gen::inRange(0, 4);
    if (*rc::gen::inRange(0, 3) == 0)
      c.request.fix.remat = *rc::gen::element(Remat::kNone, Remat::kSelective, Remat::kFull);
    if (*rc::gen::inRange(0, 4) == 0) c.request.fix.vpp = 2;
    c.request.stack = *rc::gen::inRange(0, 4) == 0 ? nullptr : release;
    const std::vector<Plan> plans = plan(c.request).plans;
    for (int i = 0; i < 12 && !plans.empty(); ++i) {
      const Plan& p = plans[static_cast<std::size_t>(i) % plans.size()];
      const TrainingLaunch subject{p.layout, c.model, c.request.workload, c.hw, p.slice, p.placement};
      ++asked;
      std::vector<LaunchArgument> arguments;
      try {
        arguments = training_arguments(framework, subject, release.get());
      } catch (const UserError& error) {
        RC_ASSERT(error.diagnostics().size() == 1U);
        RC_ASSERT(error.diagnostics().front().message.find(framework.title) == 0U);
        if (std::getenv("LAUNCH_DEBUG")) ++why[error.diagnostics().front().message.substr(0, 170)];
        continue;
      }
      ++written;
      const std::string text = launch_file(framework, arguments, training_terms(subject), {"a comment"});
      const LaunchText read = read_launch_text(text, "file");
      RC_ASSERT(&framework_of(read, text, "file") == &framework);
      const ImportedLayout back = import_training(framework, read.settings, &c.model, &c.request.workload.runtime,
                                                  p.layout.chips(), devices_per_chip(c.hw));
      RC_ASSERT(back.reading.open.empty());
      if (!back.reading.unread.empty()) RC_FAIL(back.reading.unread.front().key + "\n" + text);
      const LayoutFilter& pins = back.pins;
      RC_ASSERT(*pins.dp * *pins.fsdp * *pins.tp * *pins.cp * *pins.pp == p.layout.chips());
      RC_ASSERT(*pins.dp * *pins.fsdp * *pins.micro_batch_seqs * *pins.grad_accum == p.layout.batch_seqs());
      for (const LayoutDimension& d : layout_dimensions()) {
        if (const auto pin = d.pin(pins)) RC_ASSERT(*pin == d.value(p.layout));
      }
    }
  });
  EXPECT_TRUE(held);
  fmt::print("{}: {} of {} written\n", framework.name, written, asked);
  for (const auto& [text, n] : why) fmt::print("   {} {}\n", n, text);
  EXPECT_GT(written, test::all_cases() ? 20 : 0);
}

INSTANTIATE_TEST_SUITE_P(Frameworks, LaunchRoundTrip, testing::ValuesIn(training_frameworks()), [](const auto& info) {
  std::string name(info.param->name);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace scalecalc
