// No model of the catalog decodes faster than it can read.
#include <gtest/gtest.h>

#include "config/catalog.h"
#include "serve/serving_cost.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

TEST(ServeFloor, NoModelOfTheCatalogIsFasterThanItsReads) {
  const Catalog catalog;
  const HardwareSpec hw = test::shipped_chip("h200");
  for (const std::string& name : catalog.names(CatalogKind::kModel)) {
    const ModelSpec model = test::shipped_model(name);
    const ServingSystem system{.model = &model, .hw = &hw, .efficiency = ideal_efficiency(hw.efficiency)};
    const ServingCost<double> cost = serving_cost(system, {}, slices_of(hw, 1, 1).front());
    for (const double batch : {1.0, 64.0}) {
      for (const double context : {1.0, 5000.0, 20000.0}) {
        const double step = cost.decode_step(batch, context).total().value();
        EXPECT_GE(step, cost.floor(batch, context).value() * (1 - 1e-9)) << name << ' ' << batch << ' ' << context;
      }
    }
  }
}

}  // namespace
}  // namespace scalecalc
