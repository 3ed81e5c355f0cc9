// The shipped chips against their data sheets, typed a second time in tests/data/datasheets.yaml, and against the
// names by which measurements call them.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "base/io.h"
#include "config/yaml_reader.h"
#include "spec/load.h"

namespace scalecalc {
namespace {

constexpr double kTolerance = 0.03;

std::string data(const std::string& name) { return std::string(SCALECALC_SOURCE_DIR) + "/tests/data/" + name; }

HardwareSpec loaded_chip(const std::string& name) {
  const Catalog catalog;
  return load_hardware(catalog.load(CatalogKind::kHardware, name), catalog, Unpublished::kAllowed);
}

bool of_the_book(const std::string& name) { return name.starts_with("book/"); }

/// All links of the innermost tier of one chip, one direction.
double scale_up(const HardwareSpec& hw) {
  if (hw.network.empty()) return 0;
  const Tier& tier = hw.network.front();
  switch (tier.kind) {
    case TierKind::kTorus: return 2 * static_cast<double>(tier.torus.dimensions()) * tier.torus.link_bandwidth.value();
    case TierKind::kMesh:
      return static_cast<double>(tier.switched.chips - 1) * tier.switched.bandwidth_per_chip.value();
    case TierKind::kSwitched: return tier.switched.bandwidth_per_chip.value();
  }
  return 0;
}

ConfigNode datasheets() { return read_yaml(read_text_file(data("datasheets.yaml")), "datasheets.yaml"); }

double number(const ConfigNode& node, std::string_view key) {
  const ConfigNode* found = node.find(key);
  return found == nullptr ? 0 : std::stod(found->text);
}

/// What the figures of a loaded chip differ in from the sheet's, by more than the tolerance; empty if in nothing.
std::string differences(const HardwareSpec& hw, const ConfigNode& sheet) {
  std::ostringstream out;
  const auto compare = [&](const std::string& what, double found, double expected) {
    if (std::abs(found - expected) > kTolerance * expected) {
      out << hw.name << " " << what << ": " << found << ", the data sheet has " << expected << "\n";
    }
  };
  for (const ConfigNode::Entry& rate : sheet.find("matmul")->entries) {
    const auto at = std::find(kDTypeNames.begin(), kDTypeNames.end(), rate.key);
    const auto& peak = hw.matmul_peak[static_cast<std::size_t>(at - kDTypeNames.begin())];
    compare("matmul " + rate.key, peak ? peak->value() : 0, std::stod(rate.value.text));
  }
  compare("memory", hw.hbm_label.value(), number(sheet, "memory"));
  const double usable = number(sheet, "usable");
  compare("usable memory", hw.hbm_capacity.value(), usable > 0 ? usable : hw.hbm_capacity.value());
  compare("memory bandwidth", hw.hbm_bandwidth.value(), number(sheet, "memory_bandwidth"));
  if (const double links = number(sheet, "scale_up"); links > 0) compare("scale-up bandwidth", scale_up(hw), links);
  compare("power", hw.tdp ? hw.tdp->value() : 0, number(sheet, "tdp"));
  return out.str();
}

TEST(Datasheets, EveryChipIsWithinItsSheet) {
  std::set<std::string> compared;
  const ConfigNode sheets = datasheets();
  for (const ConfigNode::Entry& chip : sheets.find("chips")->entries) {
    EXPECT_EQ(differences(loaded_chip(chip.key), chip.value), "");
    compared.insert(chip.key);
  }
  for (const std::string& name : Catalog().names(CatalogKind::kHardware)) {
    if (of_the_book(name)) continue;  // those are rounded on purpose
    EXPECT_TRUE(compared.contains(name)) << name << " has no data sheet in tests/data/datasheets.yaml";
  }
}

TEST(Datasheets, ATenthMoreIsSeen) {
  const ConfigNode sheets = datasheets();
  for (const ConfigNode::Entry& chip : sheets.find("chips")->entries) {
    HardwareSpec rate = loaded_chip(chip.key);
    for (auto& peak : rate.matmul_peak) {
      if (peak) peak = *peak * 1.1;
    }
    const bool has_rates = !chip.value.find("matmul")->entries.empty();  // those of all formats may be unpublished
    EXPECT_EQ(differences(rate, chip.value) != "", has_rates) << chip.key;
    if (number(chip.value, "memory_bandwidth") == 0) continue;
    HardwareSpec memory = loaded_chip(chip.key);
    memory.hbm_bandwidth = memory.hbm_bandwidth * 0.9;
    EXPECT_NE(differences(memory, chip.value), "") << chip.key;
  }
}

TEST(CatalogNames, EveryNameOfTheReferencesAndMeasurementsFindsItsChip) {
  std::istringstream ids(read_text_file(data("hardware_ids.txt")));
  int found = 0;
  for (std::string id; std::getline(ids, id);) {
    if (id.empty() || id.front() == '#') continue;
    ++found;
    EXPECT_NO_THROW(loaded_chip(id)) << id;
  }
  EXPECT_GT(found, 100);
}

TEST(CatalogNames, BoardVariantsAreFilesOfTheirOwn) {
  EXPECT_NE(loaded_chip("H100-SXM-80GB").name, loaded_chip("h100-96g-hbm2e").name);
  EXPECT_NE(loaded_chip("A100-SXM-40GB").name, loaded_chip("A100-SXM-80GB").name);
  EXPECT_NE(loaded_chip("v100-sxm-16g").name, loaded_chip("v100-sxm-32g").name);
  EXPECT_NE(loaded_chip("A100-PCIe-80GB").name, loaded_chip("A100-SXM-80GB").name);
  EXPECT_NE(loaded_chip("MI250X-1GCD-64GB").name, loaded_chip("mi250x").name);
  EXPECT_EQ(loaded_chip("GB200-NVL72").name, loaded_chip("gb200").name);
}

TEST(Catalog, FilesThatDeclareAGapAreTheKnownOnes) {
  std::set<std::string> with_gaps;
  for (const std::string& name : Catalog().names(CatalogKind::kHardware)) {
    const HardwareSpec hw = loaded_chip(name);
    if (!hw.unpublished.empty() || hw.network.empty()) with_gaps.insert(name);
  }
  EXPECT_EQ(with_gaps, (std::set<std::string>{
                           "apple-m2-ultra",  "apple-m3-ultra", "apple-m4-max", "apple-m5-max",     "apple-m5-pro",
                           "ascend-950dt",    "ascend-950pr",   "book/h800",    "book/tpu-v2",      "book/v100",
                           "crescent-island", "epyc-9965",      "grace-72",     "inferentia1",      "mi430x",
                           "mi440x",          "mi455x",         "rtx-pro-4500", "rtx-pro-5000-72g", "sambanova-sn40l",
                           "sambanova-sn50",  "tpu-8i",         "tpu-8t",       "vera-88",          "xeon-6980p"}));
}

}  // namespace
}  // namespace scalecalc
