#include "design/design.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "config/yaml_writer.h"
#include "spec/load.h"
#include "support/errors.h"
#include "support/scratch.h"

namespace scalecalc {
namespace {

constexpr double kDay = 86400;

DesignQuestion asking(std::int64_t chips, double days) {
  DesignQuestion q;
  q.machine.hardware = "h100-sxm";
  q.machine.chips = chips;
  q.deadline_s = days * kDay;
  q.law = load_law(Catalog().load(CatalogKind::kLaw, "chinchilla"));
  return q;
}

/// A grid small enough to search all of it.
std::vector<DesignedModel> all_shapes(const DesignQuestion& q, const ShapeRanges& ranges) {
  std::vector<DesignedModel> out;
  for (const DesignShape& shape : shapes(ranges, padded_vocab(q.vocab), q.experts)) out.push_back(designed(q, shape));
  return out;
}

TEST(ShapeRanges, AreTheMiddleHalf) {
  std::vector<ModelSpec> models(5);
  const std::vector<std::int64_t> widths{100, 200, 300, 400, 1000};
  for (std::size_t i = 0; i < models.size(); ++i) {
    models[i].d_model = widths[i];
    models[i].layer_kind.assign(10, 0);
    models[i].mlp = {.d_ff = widths[i] * static_cast<std::int64_t>(i + 1), .gated = true};
    models[i].attention = {.heads = 8, .kv_heads = i == 0 ? 2 : 4, .head_dim = 64};
  }
  models[4].moe = MoeSpec{.experts = 8, .top_k = 2, .d_ff = 1500};
  const ShapeRanges h = shape_ranges_of(models);
  EXPECT_EQ(h.aspect.low, 20);
  EXPECT_EQ(h.aspect.median, 30);
  EXPECT_EQ(h.aspect.high, 40);
  EXPECT_EQ(h.ff_ratio.models, 4U);
  EXPECT_EQ(h.ff_ratio.median, 2.5);
  EXPECT_EQ(h.expert_ratio.median, 3);
  EXPECT_EQ(h.kv_heads, 4);
  EXPECT_EQ(h.head_dim, 64);
}

TEST(Shapes, DivideIntoTilesAndGroupsAndAreDistinct) {
  const ShapeRanges ranges = shape_ranges_of(Catalog());
  for (const auto& experts : {std::optional<ExpertChoice>{}, std::optional(ExpertChoice{64, 6})}) {
    std::set<std::array<std::int64_t, 3>> seen;
    for (const DesignShape& s : shapes(ranges, padded_vocab(128000), experts)) {
      EXPECT_EQ(s.heads * s.head_dim, s.d_model);
      EXPECT_EQ(s.heads % s.kv_heads, 0);
      EXPECT_EQ(s.d_model % 256, 0);
      EXPECT_EQ(s.d_ff % 128, 0);
      EXPECT_EQ(s.vocab % 1024, 0);
      const double aspect = static_cast<double>(s.d_model) / static_cast<double>(s.layers);
      EXPECT_GE(aspect, ranges.aspect.low);
      EXPECT_LE(aspect, ranges.aspect.high);
      EXPECT_TRUE(seen.insert({s.d_model, s.layers, s.d_ff}).second);
    }
    EXPECT_GT(seen.size(), 500U);
  }
}

TEST(Shapes, APublishedShapeIsInTheGrid) {
  const std::vector<DesignShape> all = shapes(shape_ranges_of(Catalog()), 128256, std::nullopt);
  const auto is_llama3_70b = [](const DesignShape& s) {
    return s.d_model == 8192 && s.layers == 80 && s.d_ff == 28672 && s.heads == 64 && s.kv_heads == 8;
  };
  EXPECT_TRUE(std::any_of(all.begin(), all.end(), is_llama3_70b));
}

TEST(Shapes, WaysAreTheLargestPowersOfTwo) {
  const DesignShape s{
      .d_model = 8192, .layers = 80, .heads = 64, .kv_heads = 8, .head_dim = 128, .d_ff = 28672, .vocab = 131072};
  EXPECT_EQ(tensor_ways(s), 32);  // 28,672 are 224 tiles: 32 x 7
  EXPECT_EQ(pipeline_ways(s), 16);
}

// Every shape of the grid by itself: none that meets the limits is larger than the answer, and the answer's shapes are
// the largest that do.
TEST(Design, NoLargerShapeOfTheGridDoes) {
  const Catalog catalog;
  for (const bool moe : {false, true}) {
    DesignQuestion q = asking(8, 2);
    if (moe) q.experts = ExpertChoice{8, 2};
    const DesignAnswer found = answer(q, catalog);
    ASSERT_EQ(found.models.size(), q.top);
    std::vector<double> meets;
    const double least = found.models.back().model.parameters.total;
    for (const DesignedModel& model : all_shapes(q, found.ranges)) {
      // Three times the size is nine times the FLOPs: no MFU makes up for that.
      if (model.parameters.total < least || model.parameters.total > 3 * least) continue;
      if (judge(q, model, catalog).verdict == DesignVerdict::kMeets) meets.push_back(model.parameters.total);
    }
    std::sort(meets.rbegin(), meets.rend());
    ASSERT_GE(meets.size(), found.models.size());
    for (std::size_t i = 0; i < found.models.size(); ++i) {
      EXPECT_EQ(meets[i], found.models[i].model.parameters.total) << moe << ' ' << i;
      EXPECT_LE(found.models[i].plan.figures.run->time_s, *q.deadline_s);
    }
  }
}

TEST(Design, TrainOnTheFileGivesTheSameNumbers) {
  const Catalog catalog;
  for (const bool moe : {false, true}) {
    DesignQuestion q = asking(64, 10);
    q.top = 1;
    if (moe) q.experts = ExpertChoice{16, 2};
    const TrainedDesign best = answer(q, catalog).models.at(0);
    const test::Scratch scratch;
    const std::string file = scratch.put("model.yaml", write_yaml(best.document));
    const TrainAnswer again = answer(TrainQuestion{.model = file, .hardware = "h100-sxm", .chips = 64}, catalog);
    ASSERT_FALSE(again.plans.empty());
    const RankedPlan& plan = again.plans.front();
    EXPECT_EQ(plan.plan.layout, best.plan.plan.layout);
    EXPECT_EQ(plan.plan.step_s, best.plan.plan.step_s);
    EXPECT_EQ(plan.figures.mfu, best.plan.figures.mfu);
    EXPECT_EQ(plan.figures.run->time_s, best.plan.figures.run->time_s);
    EXPECT_EQ(plan.figures.run->cost_usd, best.plan.figures.run->cost_usd);
    EXPECT_EQ(count_parameters(again.model).total, best.model.parameters.total);
  }
}

TEST(Design, MoreTimeMoneyAndChipsGiveNoSmallerModel) {
  const Catalog catalog;
  const auto largest = [&](const DesignQuestion& q) {
    const DesignAnswer found = answer(q, catalog);
    return found.models.empty() ? 0 : found.models.front().model.parameters.total;
  };
  double last = 0;
  for (const double days : {5.0, 10.0, 20.0, 40.0}) {
    DesignQuestion q = asking(64, days);
    q.top = 1;
    const double size = largest(q);
    EXPECT_GE(size, last);
    last = size;
  }
  DesignQuestion q = asking(64, 40);
  q.top = 1;
  for (const double usd : {100e3, 50e3, 25e3}) {
    q.budget_usd = usd;
    const double size = largest(q);
    EXPECT_LE(size, last);
    EXPECT_GT(size, 0);
    last = size;
  }
}

TEST(Design, NearestMissesAreLargerAndSayWhy) {
  const DesignQuestion q = asking(64, 10);
  const DesignAnswer found = answer(q, Catalog());
  ASSERT_FALSE(found.misses.empty());
  for (const MissedDesign& m : found.misses) {
    EXPECT_GE(m.model.parameters.total, found.models.front().model.parameters.total);
    EXPECT_NE(m.verdict, DesignVerdict::kMeets);
  }
}

TEST(Design, NothingDoesInASecond) {
  DesignQuestion q = asking(8, 1 / kDay);
  const DesignAnswer found = answer(q, Catalog());
  EXPECT_TRUE(found.models.empty());
  ASSERT_FALSE(found.misses.empty());
  EXPECT_EQ(found.misses.front().verdict, DesignVerdict::kTooLong);
  EXPECT_GT(found.misses.front().over, 1);
}

}  // namespace
}  // namespace scalecalc
