// Attention kernels by date: files, and which one a run has. Expected figures are those of configs/kernels.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "config/yaml_reader.h"
#include "spec/kernel_spec.h"
#include "spec/load.h"
#include "spec/load_stack.h"
#include "support/errors.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

using test::shipped_chip;

const Catalog& with_memory() {
  static const Catalog kCatalog({}, std::make_shared<Remembered>());
  return kCatalog;
}

KernelChoice choice(const std::string& chip, const std::string& stack, const std::string& date,
                    const std::string& stated = "") {
  return choose_kernel(with_memory(), shipped_chip(chip),
                       {.stack = stack, .framework = "", .date = date, .stated = stated});
}

std::string kernel_problem(const std::string& build) {
  return test::problems_of([&] {
    load_kernel(
        read_yaml("schema: scalecalc-kernel/1\nname: k\ntitle: K\nsource: s\ncounts: unmasked\nchips:\n" + build,
                  "k.yaml"),
        Catalog());
  });
}

std::string use_problem(const std::string& use) {
  return test::problems_of(
      [&] { load_kernel_uses(read_yaml("attention_kernels:\n  - {" + use + "}\n", "s.yaml"), Catalog()); });
}

/// `expected` stands in what is reported.
void expect_said(const std::string& problem, const std::string& expected) {
  EXPECT_NE(problem.find(expected), std::string::npos) << problem;
}

TEST(LoadKernel, SaysWhatIsWrongAndWhere) {
  const std::string since = "    since: {value: \"2024-05\", source: s}\n";
  EXPECT_EQ(kernel_problem("  - of: [hopper, gaudi2]\n" + since), "");
  expect_said(kernel_problem("  - of: [hoper]\n" + since), "k.yaml:7:10");
  expect_said(kernel_problem("  - of: [hoper]\n" + since), "did you mean 'hopper'");
  expect_said(kernel_problem("  - of: [hopper]\n    since: {value: \"2024-13\", source: s}\n"),
              "'value' is '2024-13'; it must be a month such as 2024-05");
  expect_said(kernel_problem("  - of: [hopper]\n"), "either 'since' or 'never'");
  expect_said(kernel_problem("  - of: [hopper]\n" + since + "    never: {source: s}\n"), "either 'since' or 'never'");
  expect_said(kernel_problem("  - of: [hopper]\n" + since + "    foward: none\n"), "did you mean 'forward'");
  expect_said(kernel_problem("  - of: [hopper]\n" + since + "    forward: {value: 0.5, source: s}\n"),
              "has no 'error'");
  expect_said(kernel_problem("  - of: [hopper]\n" + since + "    forward: {value: 1.5, error: 5%, source: s}\n"),
              "k.yaml:9");
}

TEST(LoadKernel, UsesNameKernelsAndChipsThatExist) {
  const std::string rest = "since: \"2024-05\", source: s";
  EXPECT_EQ(use_problem("for: [hopper], kernel: fa2, " + rest), "") << "by an alias";
  EXPECT_EQ(use_problem("for: [hopper], kernel: none, " + rest), "");
  expect_said(use_problem("for: [hopper], kernel: flash-atention-2, " + rest), "did you mean 'flash-attention-2'");
  expect_said(use_problem("for: [hopper], kernel: flash-atention-2, " + rest), "s.yaml:2");
  expect_said(use_problem("for: [h2000], kernel: cudnn, " + rest), "'h2000' is no chip of the catalog");
  expect_said(use_problem("for: [hopper], kernel: cudnn, since: \"May 2024\", source: s"), "must be a month");
  expect_said(use_problem("for: [hopper], kernel: cudnn, opt: flag, " + rest), "unknown key 'opt'");
  const auto heads = [&](const std::string& of) {
    return use_problem("for: [hopper], kernel: cudnn, heads: {" + of + "}, " + rest);
  };
  EXPECT_EQ(heads("up_to: 128"), "");
  EXPECT_EQ(heads("up_to: 256, equal: true"), "");
  EXPECT_EQ(heads("keys: 192, values: 128"), "");
  expect_said(heads("keys: 192"), "'heads' says either 'keys' and 'values'");
  expect_said(heads("keys: 192, values: 128, up_to: 128"), "'heads' says either 'keys' and 'values'");
  expect_said(heads("upto: 128"), "did you mean 'up_to'");
}

TEST(ChooseKernel, AStacksNewestOfTheDate) {
  EXPECT_EQ(choice("h100-sxm", "megatron", "2023-07").name, "unfused") << "before Transformer Engine 0.11";
  EXPECT_EQ(choice("h100-sxm", "megatron", "2023-08").name, "flash-attention-2");
  EXPECT_EQ(choice("h100-sxm", "megatron", "2023-12").name, "flash-attention-2");
  const KernelChoice cudnn = choice("h100-sxm", "megatron", "2024-05");
  EXPECT_EQ(cudnn.name, "cudnn");
  EXPECT_EQ(cudnn.build->version, "9.1");
  EXPECT_EQ(cudnn.why, "megatron on hopper since 2024-01");
  EXPECT_FALSE(choice("h100-sxm", "megatron", "2024-01").build->forward) << "8.9 has no published figures";
  EXPECT_EQ(choice("h100-sxm", "megatron", "").build->version, "9.19") << "without a date the newest";
  EXPECT_EQ(choice("b200", "torchtitan", "2025-06").name, "cudnn");
  EXPECT_EQ(choice("tpu-v5p", "maxtext", "2024-03").name, "pallas-flash");
  EXPECT_EQ(choice("tpu-v5p", "maxtext", "2024-04").name, "splash");
}

/// Transformer Engine on sm100: cuDNN trains heads up to 128, those of MLA from 2.5 and of 256 from 2.18 on; flash-attn
/// takes what is as wide in values as in keys, and nothing the rest.
TEST(ChooseKernel, HeadsAreServedByWhatTakesThem) {
  const auto of = [](const char* chip, const char* stack, const char* date, HeadWidths heads) {
    return choose_kernel(with_memory(), shipped_chip(chip),
                         {.stack = stack, .framework = "", .date = date, .stated = "", .heads = heads});
  };
  for (const char* stack : {"megatron", "nemo"}) {
    EXPECT_EQ(of("b200", stack, "2025-07", {128, 128}).name, "cudnn");
    EXPECT_EQ(of("b200", stack, "2025-07", {64, 64}).name, "cudnn");
    const KernelChoice mla = of("gb200-nvl72", stack, "2025-07", {192, 128});
    EXPECT_EQ(mla.name, "unfused");
    expect_said(mla.why, "on blackwell since 2025-05, nothing fused for heads of 192 and 128");
    EXPECT_EQ(of("gb200-nvl72", stack, "2025-09", {192, 128}).name, "cudnn");
    EXPECT_EQ(of("gb200-nvl72", stack, "", {192, 128}).name, "cudnn");
    EXPECT_EQ(of("gb200-nvl72", stack, "", {192, 192}).name, "flash-attention-2") << "Nemotron-4 340B";
    EXPECT_EQ(of("b200", stack, "2026-07", {256, 256}).name, "flash-attention-2");
    EXPECT_EQ(of("b200", stack, "2026-08", {256, 256}).name, "cudnn");
    EXPECT_EQ(of("h100-sxm", stack, "2025-07", {192, 128}).name, "cudnn") << "Hopper takes up to 256";
  }
  EXPECT_EQ(choice("gb200-nvl72", "nemo", "2025-07", "cudnn").name, "cudnn") << "as stated, whatever the heads";
}

TEST(ChooseKernel, WhatARunMustAskForCountsWhenItDoes) {
  EXPECT_EQ(choice("h100-sxm", "megatron", "2024-12").name, "cudnn");
  EXPECT_EQ(choice("h100-sxm", "megatron", "2024-12", "flash").name, "flash-attention-3");
  EXPECT_EQ(choice("h100-sxm", "megatron", "2024-09", "flash").name, "cudnn")
      << "Transformer Engine 1.11 is of 2024-10";
  EXPECT_EQ(choice("a100-80g", "deepspeed", "2024-01").name, "unfused");
  EXPECT_EQ(choice("a100-80g", "deepspeed", "2024-01", "flash").name, "flash-attention-2");
}

TEST(ChooseKernel, AFrameworkMayHaveItsOwn) {
  const KernelQuestion neox{.stack = "megatron", .framework = "GPT-NeoX", .date = "2024-06", .stated = ""};
  EXPECT_EQ(choose_kernel(with_memory(), shipped_chip("a100-80g"), neox).name, "unfused");
  EXPECT_EQ(choice("a100-80g", "megatron", "2024-06").name, "flash-attention-2");
}

TEST(ChooseKernel, UnfusedOnlyWhereThatIsKnown) {
  EXPECT_EQ(choice("v100", "megatron", "").name, "unfused");
  EXPECT_EQ(choice("v100", "hai-llm", "2022-12").name, "unfused") << "PyTorch 2.0 is of 2023-03";
  EXPECT_EQ(choice("v100", "torchtitan", "").name, "memory-efficient");
  EXPECT_EQ(choice("h800", "hai-llm", "2024-12").name, "flash") << "fused, nobody knows by what";
  EXPECT_EQ(choice("h800", "", "2022-06").name, "unfused") << "FlashAttention came to Hopper in 2023-04";
  EXPECT_EQ(choice("ascend-910b", "", "2022-05").name, "unfused") << "before any";
  EXPECT_EQ(choice("ascend-910b", "", "").name, "flash");
  EXPECT_FALSE(choice("h800", "hai-llm", "2024-12").build);
}

TEST(ChooseKernel, AStatedOneMustRunThere) {
  EXPECT_EQ(choice("h100-sxm", "composer", "2024-05", "fa3").name, "flash-attention-3") << "of a beta, by an alias";
  EXPECT_EQ(choice("h100-sxm", "megatron", "", "unfused").name, "unfused");
  expect_said(test::problems_of([] { choice("a100-80g", "megatron", "", "flash-attention-3"); }),
              "FlashAttention-3 does not run on a100-80g");
  expect_said(test::problems_of([] { choice("a100-80g", "megatron", "", "flash-atention-2"); }),
              "did you mean 'flash-attention-2'");
}

TEST(ChooseKernel, ALaterDateNeverHasAnOlderOne) {
  std::vector<std::string> months{""};
  for (int year = 2019; year <= 2026; ++year) {
    for (int month = 1; month <= 12; ++month) months.push_back(fmt::format("{}-{:02}", year, month));
  }
  std::rotate(months.begin(), months.begin() + 1, months.end());  // no date at all is the last
  for (const char* chip : {"v100", "a100-80g", "h100-sxm", "b200", "mi300x", "mi355x", "tpu-v5p", "trainium1"}) {
    const HardwareSpec hw = shipped_chip(chip);
    for (const std::string& stack : with_memory().names(CatalogKind::kStack)) {
      for (const char* stated : {"", "flash"}) {
        std::string newest;
        for (const std::string& month : months) {
          const KernelChoice kernel =
              choose_kernel(with_memory(), hw, {.stack = stack, .framework = "", .date = month, .stated = stated});
          const std::size_t at = kernel.why.find(" since ");
          const std::string since = at == std::string::npos ? "" : kernel.why.substr(at + 7, 7);
          EXPECT_GE(since, newest) << chip << " " << stack << " " << month;
          newest = since;
          if (month.empty()) continue;
          EXPECT_LE(since, month);
          EXPECT_LE(kernel.build ? kernel.build->since : "", month);
        }
      }
    }
  }
}

TEST(UseKernel, ARunOfMay2024OnH100HasFlashAttention2) {
  const HardwareSpec hw = shipped_chip("h100-sxm");
  Efficiency e = hw.efficiency;
  use_kernel(choice("h100-sxm", "composer", "2024-05"), hw, e);
  EXPECT_DOUBLE_EQ(e.attention_forward.value, 0.354);
  EXPECT_DOUBLE_EQ(e.attention_forward.error, std::hypot(0.06, 0.3)) << "steps differ from benchmarks";
  EXPECT_DOUBLE_EQ(e.attention_backward.value, 0.333);
  EXPECT_DOUBLE_EQ(e.attention_half_context.value, (201 + 2.5 * 274) / 3.5);
  EXPECT_DOUBLE_EQ(e.attention_half_head_dim.value, 18);
  expect_said(e.attention_forward.source, "FlashAttention-2 on h100-sxm: arXiv:2407.08608 figure 5");
  EXPECT_DOUBLE_EQ(e.scan_forward.value, hw.efficiency.attention_forward.value) << "recurrences have their own kernels";
  EXPECT_DOUBLE_EQ(e.scan_backward.value, hw.efficiency.attention_backward.value);
}

TEST(UseKernel, WhatWasFittedForTheStackMultipliesIt) {
  const HardwareSpec hw = shipped_chip("h100-sxm");
  Efficiency e = hw.efficiency;
  e.attention_forward = {hw.efficiency.attention_forward.value * 0.5, 0.11, "fitted to ten runs"};
  use_kernel(choice("h100-sxm", "composer", "2024-05"), hw, e);
  EXPECT_NEAR(e.attention_forward.value, 0.177, 1e-12);
  EXPECT_DOUBLE_EQ(e.attention_forward.error, 0.11);
  expect_said(e.attention_forward.source, "times 0.5: fitted to ten runs");
  EXPECT_DOUBLE_EQ(e.attention_backward.value, 0.333);
}

TEST(UseKernel, WhatItHasNoFigureForStays) {
  const HardwareSpec hw = shipped_chip("mi300x");
  Efficiency e = hw.efficiency;
  use_kernel(choice("mi300x", "torchtitan", "2025-01"), hw, e);  // AOTriton: no backward
  EXPECT_DOUBLE_EQ(e.attention_forward.value, 0.248);
  EXPECT_DOUBLE_EQ(e.attention_backward.value, hw.efficiency.attention_backward.value);
  const double chips = hw.efficiency.attention_half_context.value;
  EXPECT_DOUBLE_EQ(e.attention_half_context.value, (506 + 2.5 * chips) / 3.5);
}

TEST(UseKernel, WhatIsTypedStays) {
  ConfigNode document = Catalog().load(CatalogKind::kHardware, "a100-80g");
  apply_sets({"hw.efficiency.attention_forward.value=0.25"}, {{"hw", &document}});
  const HardwareSpec hw = load_hardware(document, Catalog());
  Efficiency e = efficiency_under(hw, "");
  use_kernel(choose_kernel(Catalog(), hw, {.stack = "megatron", .framework = "", .date = "", .stated = ""}), hw, e);
  EXPECT_DOUBLE_EQ(e.attention_forward.value, 0.25);
}

TEST(ShippedKernels, RunWhereStacksUseThem) {
  const Catalog& catalog = with_memory();
  const std::vector<KernelSpec> kernels = load_kernels(catalog);
  EXPECT_GE(kernels.size(), 14U);
  std::size_t uses = 0;
  for (const std::string& stack : catalog.names(CatalogKind::kStack)) {
    for (const KernelUse& use : load_kernel_uses(catalog.load(CatalogKind::kStack, stack), catalog)) {
      ++uses;
      if (use.kernel.empty()) continue;
      const auto kernel =
          std::find_if(kernels.begin(), kernels.end(), [&](const KernelSpec& k) { return k.name == use.kernel; });
      for (const std::string& place : use.chips) {
        HardwareSpec hw;
        hw.name = hw.architecture = place;
        EXPECT_NE(kernel->build(hw, ""), nullptr) << stack << ": " << use.kernel << " on " << place;
      }
    }
  }
  EXPECT_GE(uses, 40U);
}

}  // namespace
}  // namespace scalecalc
