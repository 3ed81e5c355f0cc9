#include "hw/hw_output.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/diagnostic.h"
#include "hw/hw.h"
#include "report/render.h"

namespace scalecalc {
namespace {

using nlohmann::ordered_json;

Output chips(std::vector<std::string> names) { return hw_output(answer({.hardware = std::move(names)}, Catalog())); }

ordered_json hw_json(const Output& output) { return ordered_json::parse(output_json(output, "1.0", false)); }

TEST(HwOutput, ThePromisedKeysStandInBaseUnits) {
  const ordered_json chip = hw_json(chips({"tpu-v5p"}))["chips"][0];
  EXPECT_EQ(chip["matmul_flops_per_s"]["bf16"], 459e12);
  EXPECT_EQ(chip["memory_bandwidth_bytes_per_s"], 2.765e12);
  EXPECT_EQ(chip["critical_intensity_dtype"], "bf16");
  for (const char* channel : {"hbm", "ici", "dcn"}) {
    const double intensity = chip["critical_intensity_flops_per_byte"][channel];
    EXPECT_DOUBLE_EQ(intensity, 459e12 / chip["bandwidth_bytes_per_s"][channel].get<double>()) << channel;
  }
  EXPECT_GT(chip["usd_per_chip_hour"], 0);
  EXPECT_FALSE(chip["sources"].empty());
}

TEST(HwOutput, TheFirstChipOverEachOther) {
  const ordered_json json = hw_json(chips({"b200", "h100-sxm", "a100-80g"}));
  ASSERT_EQ(json["ratios"].size(), 2u);
  EXPECT_EQ(json["ratios"][1]["over"], "a100-80g");
  const double b200 = json["chips"][0]["matmul_flops_per_s"]["bf16"];
  const double a100 = json["chips"][2]["matmul_flops_per_s"]["bf16"];
  EXPECT_DOUBLE_EQ(json["ratios"][1]["matmul_flops_per_s"]["bf16"], b200 / a100);
  EXPECT_FALSE(json["ratios"][1]["matmul_flops_per_s"].contains("fp8")) << "the A100 has no such rate";
}

TEST(HwOutput, SourcesAreTextForOneChipAndDataForSeveral) {
  const std::string alone = render_table(output_report(chips({"h100-sxm"}), false), {});
  EXPECT_NE(alone.find("hbm: "), std::string::npos);
  EXPECT_NE(alone.find("network tier leaf: "), std::string::npos);
  const Output two = chips({"h100-sxm", "h200"});
  EXPECT_EQ(render_table(output_report(two, false), {}).find("hbm: "), std::string::npos);
  EXPECT_FALSE(hw_json(two)["chips"][1]["sources"].empty());
}

TEST(HwListOutput, TheQuestionHoldsTheConditions) {
  const HwListQuestion question{.vendor = "google", .since = 2023, .sold = true};
  const ordered_json json = hw_json(hw_list_output(list_hardware(question, Catalog())));
  EXPECT_EQ(json["schema"], "scalecalc/hw-list/1");
  ASSERT_FALSE(json["chips"].empty());
  for (const auto& chip : json["chips"]) {
    EXPECT_EQ(chip["vendor"], "Google");
    EXPECT_GE(chip["year"], 2023);
  }
}

TEST(HwListOutput, WordsAreOfNameTitleOrVendor) {
  const auto names = [](const std::vector<std::string>& words) {
    const ordered_json json = hw_json(hw_list_output(list_hardware({.words = words}, Catalog())));
    EXPECT_EQ(json["query"]["filters"], words);
    std::vector<std::string> out;
    for (const auto& chip : json["chips"]) out.push_back(chip["name"]);
    return out;
  };
  const std::vector<std::string> hopper{"h100-96g-hbm2e", "h100-nvl", "h100-pcie", "h100-sxm"};
  EXPECT_EQ(names({"h100"}), hopper);
  EXPECT_EQ(names({"H100", "nvidia"}), hopper);
  EXPECT_EQ(names({"h100", "pcie"}), std::vector<std::string>{"h100-pcie"});
  EXPECT_EQ(names({"h100", "AMD"}), std::vector<std::string>{});
  EXPECT_THROW(list_hardware({.words = {"h1000"}}, Catalog()), UserError);
}

}  // namespace
}  // namespace scalecalc
