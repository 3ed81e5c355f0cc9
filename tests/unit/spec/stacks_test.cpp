// Coefficients per chip and software stack.
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "config/yaml_reader.h"
#include "config/yaml_writer.h"
#include "spec/load.h"
#include "spec/load_stack.h"

namespace scalecalc {
namespace {

HardwareSpec chip_with(const std::vector<std::string>& sets) {
  const Catalog catalog;
  ConfigNode document = catalog.load(CatalogKind::kHardware, "h800");
  apply_sets(sets, {{"hw", &document}});
  return load_hardware(document, catalog);
}

const std::vector<std::string> kAcme{"hw.efficiency.stacks.acme.source=our runs",
                                     "hw.efficiency.stacks.acme.hbm.value=0.5",
                                     "hw.efficiency.stacks.acme.hbm.error=7%"};

std::vector<std::string> acme_and(std::initializer_list<std::string> more) {
  std::vector<std::string> out = kAcme;
  out.insert(out.end(), more);
  return out;
}

TEST(Stacks, WhatAStackDoesNotSayIsTheChips) {
  const HardwareSpec hw = chip_with(kAcme);
  const Efficiency& acme = efficiency_under(hw, "acme");
  EXPECT_DOUBLE_EQ(acme.hbm.value, 0.5);
  EXPECT_DOUBLE_EQ(acme.hbm.error, 0.07);
  EXPECT_EQ(acme.hbm.source, "our runs");
  EXPECT_EQ(acme.stack, "acme");
  EXPECT_EQ(acme.link_scale_up.value, hw.efficiency.link_scale_up.value);
  EXPECT_EQ(acme.confidence.find("hbm of this chip under acme (our runs); the rest: "), 0U) << acme.confidence;
  EXPECT_NE(hw.efficiency.hbm.value, 0.5) << "kernels alone are not the stack's";
}

TEST(Stacks, TheFamilysUsualOneComesFirst) {
  const HardwareSpec hw = chip_with({});
  EXPECT_EQ(hw.stacks.front().name, "megatron");
  EXPECT_EQ(efficiency_under(hw, "").stack, "megatron");
  EXPECT_EQ(efficiency_under(hw, "megatron-lm").stack, "megatron") << "by one of its frameworks";
  EXPECT_EQ(efficiency_under(chip_with(kAcme), "").stack, "megatron");
}

TEST(Stacks, AUsualStackMayBeMeasured) {
  const HardwareSpec hw =
      chip_with({"hw.efficiency.stacks.megatron.source=our runs", "hw.efficiency.stacks.megatron.hbm.value=0.5"});
  EXPECT_EQ(hw.stacks.front().basis, StackBasis::kChip);
  EXPECT_DOUBLE_EQ(efficiency_under(hw, "").hbm.value, 0.5);
}

TEST(Stacks, WhatIsTypedOfTheChipHoldsUnderEveryStack) {
  const HardwareSpec hw = chip_with(acme_and({"hw.efficiency.hbm.value=0.6", "hw.efficiency.hbm.source=typed",
                                              "hw.efficiency.vector.value=0.3", "hw.efficiency.vector.source=typed"}));
  EXPECT_DOUBLE_EQ(efficiency_under(hw, "acme").hbm.value, 0.6);
  EXPECT_DOUBLE_EQ(efficiency_under(hw, "acme").vector.value, 0.3);
}

TEST(Stacks, AModelsErrorIsByClassOfRun) {
  const HardwareSpec hw =
      chip_with(acme_and({"hw.efficiency.model_error.moe=20%", "hw.efficiency.stacks.acme.model_error.dense=12%"}));
  const auto of = [&](const Efficiency& e, RunClass which) { return e.model_error[static_cast<std::size_t>(which)]; };
  EXPECT_DOUBLE_EQ(of(efficiency_under(hw, "acme"), RunClass::kDense), 0.12);
  EXPECT_DOUBLE_EQ(of(efficiency_under(hw, "acme"), RunClass::kMoe), 0.2) << "typed of the chip, it holds under all";
  EXPECT_DOUBLE_EQ(of(hw.efficiency, RunClass::kDense), 0);
  EXPECT_THROW(chip_with({"hw.efficiency.model_error.dens=12%"}), UserError);
  EXPECT_THROW(chip_with({"hw.efficiency.model_error.dense=120%"}), UserError);
}

/// A configuration directory whose NVIDIA family has factors for one stack.
TEST(Stacks, AFamilysFactorsMultiplyTheChipsCoefficients) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / ("scalecalc_stacks_" + std::to_string(::getpid()));
  fs::create_directories(folder / "efficiency");
  const Catalog shipped;
  ConfigNode family = shipped.load(CatalogKind::kEfficiency, "nvidia");
  apply_override(family, "stacks.acme.source", "runs of another chip", "--set");
  apply_override(family, "stacks.acme.hbm.times", "0.5", "--set");
  apply_override(family, "stacks.acme.matmul.bf16.times", "100", "--set");
  std::ofstream(folder / "efficiency/nvidia.yaml") << write_yaml(family);
  const Catalog catalog({folder.string()});
  const HardwareSpec hw = load_hardware(catalog.load(CatalogKind::kHardware, "h800"), catalog);
  const Efficiency& acme = efficiency_under(hw, "acme");
  EXPECT_DOUBLE_EQ(acme.hbm.value, hw.efficiency.hbm.value / 2);
  EXPECT_EQ(acme.hbm.source, "runs of another chip");
  EXPECT_DOUBLE_EQ(acme.matmul[static_cast<std::size_t>(DType::kBf16)].value, 1) << "kept within its range";
  EXPECT_NE(acme.confidence.find("by factors of the nvidia family under acme"), std::string::npos) << acme.confidence;
  ConfigNode document = catalog.load(CatalogKind::kHardware, "h800");
  apply_sets({"hw.efficiency.stacks.acme.source=ours", "hw.efficiency.stacks.acme.hbm.value=0.3"}, {{"hw", &document}});
  const HardwareSpec own = load_hardware(document, catalog);
  EXPECT_DOUBLE_EQ(efficiency_under(own, "acme").hbm.value, 0.3) << "the chip's own set wins";
  EXPECT_EQ(own.stacks.size(), hw.stacks.size());
  fs::remove_all(folder);
}

TEST(Stacks, SourcesNameTheirSoftware) {
  const std::vector<StackSpec> stacks{
      {.name = "nemo", .title = "", .frameworks = {"megatron-bridge"}, .publications = {"dgx-recipes"}, .recipes = {}},
      {.name = "megatron", .title = "", .frameworks = {"megatron-lm"}, .publications = {}, .recipes = {}}};
  EXPECT_EQ(stack_of_source(stacks, "NVIDIA/Megatron-LM@f2e5:README.md"), "megatron");
  EXPECT_EQ(stack_of_source(stacks, "Megatron-Bridge summary, Megatron core"), "nemo") << "the longest";
  EXPECT_EQ(stack_of_source(stacks, "dgx-recipes:nemo_megatron/README"), "nemo") << "parts of words are no names";
  EXPECT_EQ(stack_of_source(stacks, "dgx-recipes:megatron/README"), "megatron") << "a name comes before a publication";
  EXPECT_EQ(stack_of_source(stacks, "arXiv:2204.02311 section 4.1"), std::nullopt);
}

TEST(Stacks, AnUnknownOneNamesThoseThereAre) {
  const HardwareSpec hw = chip_with(kAcme);
  try {
    efficiency_under(hw, "acne");
    FAIL();
  } catch (const UserError& error) {
    const Diagnostic& found = error.diagnostics().front();
    EXPECT_EQ(found.message, "h800 has no coefficients under the software stack 'acne'");
    EXPECT_EQ(found.hint.find("did you mean 'acme'? it has: megatron, "), 0U) << found.hint;
  }
}

/// A set of a serving engine says nothing of training.
TEST(Stacks, EnginesDoNotTrain) {
  const std::vector<std::string> serving{"hw.efficiency.stacks.vllm.source=test",
                                         "hw.efficiency.stacks.vllm.serving.weight_read.value=0.5"};
  EXPECT_THROW(efficiency_under(chip_with(serving), "vllm"), UserError);
}

TEST(Stacks, AFaultInsideOneIsReported) {
  EXPECT_THROW(chip_with({"hw.efficiency.stacks.acme.hbm.value=0.5"}), UserError) << "no source";
  EXPECT_THROW(chip_with(acme_and({"hw.efficiency.stacks.acme.hmb.value=0.5"})), UserError);
  EXPECT_THROW(chip_with({"hw.efficiency.stacks=acme"}), UserError);
}

TEST(Stacks, RecipesSayWhatAReleaseSwitchesOn) {
  const auto stack = [](const std::string& recipe) {
    return load_stack(
        read_yaml("schema: scalecalc-stack/1\nname: acme\ntitle: Acme\nrecipes:\n  - {" + recipe + "}\n", "acme.yaml"));
  };
  const StackSpec found = stack("since: 2026-06, precision: mxfp8, graphs: step, expert_overlap: true, source: them");
  ASSERT_EQ(found.recipes.size(), 1U);
  EXPECT_EQ(found.recipes.front().since, "2026-06");
  EXPECT_TRUE(found.recipes.front().step_graph);
  EXPECT_TRUE(found.recipes.front().expert_overlap);
  EXPECT_THROW(stack("since: 2026-06, precision: mxfp8, graphs: some, source: them"), UserError);
  EXPECT_THROW(stack("since: 2026-06, precision: mxfp8, graphs: step"), UserError) << "no source";
}

TEST(Stacks, SayHowTheyRunAStep) {
  const auto runtime = [](const std::string& block) {
    return load_stack(read_yaml("schema: scalecalc-stack/1\nname: acme\ntitle: Acme\n" + block, "acme.yaml")).runtime;
  };
  const StackRuntime none = runtime("");
  EXPECT_EQ(none.stages, StageSplit::kEven);
  EXPECT_FALSE(none.quantized_gathers);
  EXPECT_TRUE(none.gradient_overlap_since.empty());
  const StackRuntime all = runtime(
      "runtime: {source: them, stages: balanced, quantized_gathers: true, gradient_overlap_since: '2023-12', "
      "tensor_overlap_since: '2021-09', sharded_sends_since: '2021-04', expert_gathers_wait_on: [tpu], "
      "scatters_wait_on: [tpu-v4], "
      "reduced_bytes: {bf16: 2}}\n");
  EXPECT_EQ(all.stages, StageSplit::kBalanced);
  EXPECT_TRUE(all.quantized_gathers);
  EXPECT_EQ(all.gradient_overlap_since, "2023-12");
  EXPECT_EQ(all.tensor_overlap_since, "2021-09");
  EXPECT_EQ(all.sharded_sends_since, "2021-04");
  EXPECT_EQ(all.expert_gathers_wait_on, std::vector<std::string>{"tpu"});
  EXPECT_EQ(all.scatters_wait_on, std::vector<std::string>{"tpu-v4"});
  EXPECT_EQ(all.reduced_bytes.at("bf16"), 2);
  EXPECT_THROW(runtime("runtime: {stages: balanced}\n"), UserError) << "no source";
  EXPECT_THROW(runtime("runtime: {source: them, stages: odd}\n"), UserError);
}

TEST(Stacks, FrameworksBelongToThem) {
  const Catalog catalog;
  EXPECT_EQ(stack_of_framework(catalog, "megatron-bridge"), "nemo");
  EXPECT_EQ(stack_of_framework(catalog, "Megatron-LM"), "megatron");
  EXPECT_EQ(stack_of_framework(catalog, "nobody-knows"), std::nullopt);
  EXPECT_EQ(stack_of_framework(catalog, "./stacks/megatron.yaml"), std::nullopt);
  for (const std::string& name : catalog.names(CatalogKind::kStack)) {
    EXPECT_EQ(load_stack(catalog.load(CatalogKind::kStack, name)).name, name);
  }
}

}  // namespace
}  // namespace scalecalc
