// The rates that sensitivity moves: --set takes each of them, on every chip, by the name that answers print.
#include "sensitivity/rates.h"

#include <gtest/gtest.h>

#include "spec/load.h"

namespace scalecalc {
namespace {

std::vector<DType> formats_of(const HardwareSpec& hw) {
  std::vector<DType> out;
  for (std::size_t d = 0; d < hw.matmul_peak.size(); ++d) {
    if (hw.matmul_peak[d]) out.push_back(static_cast<DType>(d));
  }
  return out;
}

TEST(HardwareRates, EachCanBeSetOnEveryChip) {
  const Catalog catalog;
  for (const std::string& name : catalog.names(CatalogKind::kHardware)) {
    const ConfigNode file = catalog.load(CatalogKind::kHardware, name);
    const HardwareSpec hw = load_hardware(file, catalog, Unpublished::kAllowed);
    for (const HardwareRate& rate : hardware_rates(hw, formats_of(hw), true, true)) {
      if (rate.value == 0) continue;  // unpublished
      const std::string set = rate.set_to(1.25);
      ASSERT_TRUE(set.starts_with("hw.")) << set;
      const std::size_t equals = set.find('=');
      ConfigNode changed = file;
      apply_override(changed, set.substr(3, equals - 3), set.substr(equals + 1), "--set " + set);
      HardwareSpec expected = hw;
      rate.scale(expected, rate.factor(1.25));
      HardwareSpec loaded;
      ASSERT_NO_THROW(loaded = load_hardware(changed, catalog, Unpublished::kAllowed)) << name << ' ' << set;
      const std::vector<HardwareRate> there = hardware_rates(loaded, formats_of(loaded), true, true);
      const std::vector<HardwareRate> wanted = hardware_rates(expected, formats_of(expected), true, true);
      ASSERT_EQ(there.size(), wanted.size()) << name << ' ' << set;
      for (std::size_t i = 0; i < there.size(); ++i) {
        EXPECT_NEAR(there[i].value, wanted[i].value, 1e-12 * wanted[i].value) << name << ' ' << set;
      }
    }
  }
}

}  // namespace
}  // namespace scalecalc
