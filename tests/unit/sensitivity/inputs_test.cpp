#include "sensitivity/inputs.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/fixtures.h"

namespace scalecalc {
namespace {

struct PlannedInputs {
  explicit PlannedInputs(HardwareSpec chip, std::int64_t chips = 64) : hw(std::move(chip)) {
    request = test::request(model, hw, chips);
    plan = scalecalc::plan(request).plans.at(0);
  }
  const SensitiveInput* find(std::string_view name) {
    all = inputs_of(request, plan);
    const auto found = std::find_if(all.begin(), all.end(), [&](const SensitiveInput& i) { return i.name == name; });
    return found == all.end() ? nullptr : &*found;
  }

  ModelSpec model = test::dense_model();
  HardwareSpec hw;
  PlanRequest request;
  Plan plan;
  std::vector<SensitiveInput> all;
};

TEST(SensitiveInputs, AreNamedAsSetTakesThem) {
  PlannedInputs p(test::torus_chip());
  const SensitiveInput* hbm = p.find("hw.hbm.bandwidth");
  ASSERT_NE(hbm, nullptr);
  EXPECT_EQ(hbm->kind, InputKind::kRate);
  EXPECT_EQ(hbm->value, p.hw.hbm_bandwidth.value());
  ASSERT_NE(p.find("model.mlp.d_ff"), nullptr);
  EXPECT_EQ(p.find("model.mlp.d_ff")->value, 4096);
  EXPECT_EQ(p.find("tp"), nullptr);
  EXPECT_EQ(p.find("batch")->tokens, 1);
}

TEST(SensitiveInputs, AnOversubscribedTierIsNamedByItsPorts) {
  HardwareSpec chip = test::switched_chip();
  Tier& node = chip.network.front();
  node.switched.oversubscription = 2;
  PlannedInputs p(chip, 8);
  p.plan = scalecalc::plan([&] {
             PlanRequest request = p.request;
             request.fix.tp = 8;
             return request;
           }())
               .plans.at(0);
  const SensitiveInput* rate = p.find("hw.network." + node.name + ".bandwidth_per_chip");
  ASSERT_NE(rate, nullptr);
  EXPECT_EQ(rate->value, node.switched.bandwidth_per_chip.value());
  const SensitiveInput* share = p.find("hw.network." + node.name + ".oversubscription");
  ASSERT_NE(share, nullptr);
  EXPECT_EQ(share->kind, InputKind::kCoefficient);
  EXPECT_EQ(share->least, 1);
  EXPECT_NE(p.find("hw.network." + node.name + ".latency"), nullptr);
}

TEST(SensitiveInputs, SharesEndAtOne) {
  HardwareSpec chip = test::torus_chip();
  chip.efficiency.hbm = {0.9, 0.1, "test"};
  chip.efficiency.moe_imbalance = {1.1, 0.1, "test"};
  PlannedInputs p(chip);
  EXPECT_EQ(p.find("efficiency.hbm")->most, 1);
}

}  // namespace
}  // namespace scalecalc
