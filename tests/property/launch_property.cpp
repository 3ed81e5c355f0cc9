// Launch files of random plans, for every framework: what is written reads back as the same layout, its degrees
// multiply to the chips, and every plan is either written or refused with a reason.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdlib>
#include <iostream>
#include <map>

#include "launch/serving.h"
#include "launch/training.h"
#include "plan/dimensions.h"
#include "property/cases.h"
#include "property/random_plan.h"

namespace scalecalc {
namespace {

std::shared_ptr<const StackRelease> release_of(const std::string& stack) {
  static const Catalog kCatalog;
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
  int written = 0;
  const bool held = rc::check("what is written is read", [&] {
    const LaunchFramework& engine = launch_framework(*rc::gen::element<std::string_view>("vllm", "sglang", "trtllm"));
    const ModelSpec model = *rc::gen::arbitrary<bool>() ? test::dense_model() : test::moe_model();
    const HardwareSpec hw = test::switched_chip();
    const ServeLayout layout = random_server(engine, model.moe.has_value());
    ServingSystem system{.model = &model, .hw = &hw};
    system.chunk_tokens = 4096;
    const std::int64_t node_chips = *rc::gen::element<std::int64_t>(4, 8);
    ServeQuestion question;
    question.longest = 4096;
    const ServingLaunch subject{.layout = layout,
                                .model = model,
                                .system = system,
                                .sequences = *rc::gen::element(0.5, 7.0, 64.0),
                                .question = question,
                                .node_chips = node_chips};
    std::vector<LaunchArgument> arguments;
    try {
      arguments = serving_arguments(engine, subject);
    } catch (const UserError& error) {
      RC_ASSERT(error.diagnostics().front().message.find(engine.title) == 0U);
      return;
    }
    ++written;
    const std::string text = launch_file(engine, arguments, serving_terms(subject), {});
    const LaunchText read = read_launch_text(text, "file");
    RC_ASSERT(&framework_of(read, text, "file") == &engine);
    const ImportedServing back = import_serving(engine, read.settings, &model);
    if (!back.reading.unread.empty()) RC_FAIL(back.reading.unread.front().key + "\n" + text);
    for (const ServeDimension& d : kServeDimensionTable) {
      if (const auto pin = back.pins.*d.pin) RC_ASSERT(*pin == d.value(layout));
    }
    RC_ASSERT(*back.pins.tp * *back.pins.pp * *back.pins.cp * *back.pins.attention_dp * *back.pins.dp ==
              layout.chips());
  });
  EXPECT_TRUE(held);
  if (!test::all_cases()) return;
  EXPECT_GT(written, 50);  // most are not refused
}

std::vector<const LaunchFramework*> training_frameworks() {
  std::vector<const LaunchFramework*> out;
  for (const LaunchFramework& framework : launch_frameworks()) {
    if (framework.job == LaunchJob::kTraining) out.push_back(&framework);
  }
  return out;
}

/// Plans of one framework or of any, and how many were written of each.
bool reads_back(const std::vector<const LaunchFramework*>& frameworks, std::map<std::string_view, int>& written,
                int& adapters) {
  return rc::check("what is written is read", [&] {
    const LaunchFramework& framework = **rc::gen::elementOf(frameworks);
    const auto release = release_of(std::string(framework.stack));
    test::PlanCase c;
    const auto layers = *rc::gen::inRange<std::int64_t>(2, 9);
    c.model = *rc::gen::arbitrary<bool>() ? test::dense_model(layers) : test::moe_model(layers);
    c.hw = *rc::gen::arbitrary<bool>() ? test::torus_chip() : test::switched_chip();
    c.hw.efficiency = test::imperfect();
    c.hw.hbm_capacity = Bytes(*rc::gen::element(2e9, 8e9, 32e9));
    c.request = test::request(c.model, c.hw, *rc::gen::element<std::int64_t>(8, 16));
    c.request.workload =
        test::workload(*rc::gen::element<std::int64_t>(1024, 4096), *rc::gen::element(16.0, 48.0, 64.0));
    if (*rc::gen::inRange(0, 4) == 0) {
      c.hw.architecture = *rc::gen::element<std::string>("", "hopper", "blackwell");
      c.request.workload.precision = precision_of("fp8");
      c.request.workload.precision.scaling = *rc::gen::element<std::optional<Scaling>>(
          std::nullopt, Scaling::kDelayed, Scaling::kCurrent, Scaling::kRow, Scaling::kBlock);
    }
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
    if (says_adapters(framework) && *rc::gen::inRange(0, 3) == 0) {
      const auto bits = *rc::gen::inRange<int>(1, 128);
      c.request.workload.fine_tune = FineTune{
          .rank = *rc::gen::element<std::int64_t>(1, 8, 64),
          .targets = static_cast<std::uint8_t>(bits),
          .experts = *rc::gen::inRange(0, 4) == 0,
          .base = *rc::gen::element<std::optional<BaseFormat>>(std::nullopt, BaseFormat::kNf4, BaseFormat::kInt8)};
      c.model = test::dense_model(layers);  // adapters of experts have no names
    }
    if (framework.stack.empty()) {  // of which little is left that it says
      c.request.stack = release_of("maxtext");
      c.request.fix = {};
      c.request.fix.pp = c.request.fix.cp = c.request.fix.ep = 1;
      c.request.fix.offload = 0;
      c.request.fix.loss = LossKind::kWhole;
      c.request.fix.remat = Remat::kFull;
    }
    const std::string family =
        *rc::gen::element<std::string>("", "llama", "phi3", "glm4", "olmo2", "exaone", "internlm2", "qwen", "rwkv7");
    const std::vector<Plan> plans = plan(c.request).plans;
    for (const Plan& p : plans) {
      const LaunchedModel names{.model_type = family};
      const TrainingLaunch subject{p.layout, c.model, c.request.workload, c.hw, p.slice, p.placement, names};
      std::vector<LaunchArgument> arguments;
      try {
        arguments = training_arguments(framework, subject, release.get());
      } catch (const UserError& error) {
        RC_ASSERT(error.diagnostics().size() == 1U);
        RC_ASSERT(error.diagnostics().front().message.find(framework.title) == 0U);
        continue;
      }
      ++written[framework.name];
      if (c.request.workload.fine_tune) ++adapters;
      const std::string text = launch_file(framework, arguments, training_terms(subject), {"a comment"});
      const LaunchText read = read_launch_text(text, "file");
      RC_ASSERT(&framework_of(read, text, "file") == &framework);
      const ImportedLayout back =
          import_training(framework, read.settings, &c.model, &c.request.workload.runtime, p.layout.chips(), 1, family);
      RC_ASSERT(back.reading.open.empty());
      RC_ASSERT(back.tune == c.request.workload.fine_tune);
      if (c.request.workload.precision.compute == DType::kFp8) {
        RC_ASSERT(back.reading.terms.word("precision") == "fp8");
        RC_ASSERT(back.reading.terms.word("scaling") == name_of(c.request.workload.scaling()));
      }
      if (!back.reading.unread.empty()) RC_FAIL(back.reading.unread.front().key + "\n" + text);
      const LayoutFilter& pins = back.pins;
      RC_ASSERT(*pins.dp * *pins.fsdp * *pins.tp * *pins.cp * *pins.pp == p.layout.chips());
      RC_ASSERT(*pins.dp * *pins.fsdp * *pins.micro_batch_seqs * *pins.grad_accum == p.layout.batch_seqs());
      for (const LayoutDimension& d : layout_dimensions()) {
        if (const auto pin = d.pin(pins)) RC_ASSERT(*pin == d.value(p.layout));
      }
    }
  });
}

/// Questions over all frameworks; with SCALECALC_EVERY_FRAMEWORK=1 and RC_PARAMS="max_success=500" at least 300 files
/// of each, since not every plan can be said by every framework.
TEST(LaunchRoundTrip, AFileReadsBackAsItsPlan) {
  std::map<std::string_view, int> written;
  const bool of_each = std::getenv("SCALECALC_EVERY_FRAMEWORK") != nullptr;
  int adapters = 0;
  EXPECT_TRUE(of_each || reads_back(training_frameworks(), written, adapters));
  int all = 0;
  // A hundred questions over all may leave a framework out, and its adapters: such a one is asked alone.
  for (const LaunchFramework* framework : training_frameworks()) {
    const bool left_out = written[framework->name] == 0 || (says_adapters(*framework) && adapters <= 5);
    const bool alone = !of_each && test::all_cases() && left_out;
    EXPECT_TRUE(!alone || reads_back({framework}, written, adapters)) << framework->name;
  }
  for (const LaunchFramework* framework : training_frameworks()) {
    EXPECT_TRUE(!of_each || reads_back({framework}, written, adapters)) << framework->name;
    // Most of what is asked must not be refused.
    EXPECT_GE(written[framework->name], of_each ? 300 : test::all_cases() ? 1 : 0) << framework->name;
    all += written[framework->name];
  }
  EXPECT_GT(all, test::all_cases() ? 100 : 10);
  EXPECT_GT(adapters, test::all_cases() ? 5 : -1);
}

}  // namespace
}  // namespace scalecalc
