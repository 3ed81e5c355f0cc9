#include "compare/serve_comparison.h"

#include <gtest/gtest.h>

#include "base/diagnostic.h"

namespace scalecalc {
namespace {

ServeCompareQuestion serve_question(std::vector<SystemAsked> systems) {
  ServeCompareQuestion out;
  out.serve.model = "llama3-8b";
  out.serve.prompt = 1024;
  out.serve.generate = 128;
  out.serve.chips = 4;
  out.serve.objective = ServeObjective::kCost;
  out.systems = std::move(systems);
  return out;
}

TEST(CompareServing, ItsPointIsTheBestThatServeFinds) {
  const Catalog catalog;
  ServeCompareQuestion q = serve_question({{.hardware = "h100-sxm"}, {.hardware = "tpu-v6e"}});
  q.serve.slo_tpot = 0.02;
  const ServeComparison found = compare_serving(q, catalog);
  for (const ComparedService& row : found.systems) {
    ServeQuestion own = q.serve;
    own.hardware = {row.hardware};
    const ServeAnswer answer = serve_answer(own, catalog);
    ASSERT_TRUE(row.answered()) << row.reason;
    EXPECT_EQ(row.best().batch, answer.best->batch);
    EXPECT_NEAR(*row.usd / *answer.best->usd_per_million_output, 1, 1e-12);
    EXPECT_NEAR(service_costs(row).usd->value().value() / *row.usd, 1, 1e-12);
    EXPECT_LE(row.best().tpot_s, 0.02);
  }
}

TEST(CompareServing, AtTheBreakEvenPriceATokenCostsTheSame) {
  const Catalog catalog;
  ServeCompareQuestion q = serve_question({{.hardware = "h100-sxm"}, {.hardware = "tpu-v6e"}});
  const ServeComparison found = compare_serving(q, catalog);
  q.systems[1].price =
      break_even_price(*service_costs(found.systems[0]).usd, service_costs(found.systems[1]).chip_hours)
          .value()
          .value();
  const ServeComparison again = compare_serving(q, catalog);
  EXPECT_NEAR(*again.systems[1].usd / *again.systems[0].usd, 1, 1e-12);
}

TEST(CompareServing, WhatMissesTheLimitsStaysWithItsReason) {
  ServeCompareQuestion q = serve_question({{.hardware = "h100-sxm"}, {.hardware = "t4"}});
  q.serve.slo_tpot = 0.01;
  const ServeComparison found = compare_serving(q, Catalog());
  EXPECT_TRUE(found.systems[0].answered());
  EXPECT_EQ(found.systems[1].status, ComparedStatus::kTooSlow);
  EXPECT_NE(found.systems[1].reason.find("--slo-tpot 10 ms"), std::string::npos) << found.systems[1].reason;
}

TEST(CompareServing, WhatEverySystemRefusesIsAWrongQuestion) {
  ServeCompareQuestion q = serve_question({{.hardware = "h100-sxm"}});
  q.serve.model = "llama3-9b";
  EXPECT_THROW(compare_serving(q, Catalog()), UserError);
}

}  // namespace
}  // namespace scalecalc
