#include "train/obstacles.h"

#include <gtest/gtest.h>

#include "plan/dimensions.h"
#include "plan/enumerate.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

using Ways = std::vector<std::optional<std::int64_t>>;

/// Memory is not looked at.
bool any_layout(const PlanRequest& request) {
  SearchStats stats;
  const Space space(request, stats);
  bool any = false;
  for (const Family& family : space.families()) {
    space.members(family, stats, [&](const Branch& branch) {
      any |= branch.layout.pp <= request.model->layers() && !space.shardings(branch, stats).empty();
    });
  }
  return any;
}

TEST(Obstacles, EveryContradictionOfZeroDpAndFsdpIsSaid) {
  const ModelSpec model = test::dense_model(4);
  const HardwareSpec hw = test::switched_chip();
  std::size_t illegal = 0;
  for (const auto& zero : Ways{std::nullopt, 0, 1, 2, 3}) {
    for (const auto& dp : Ways{std::nullopt, 1, 2, 8, 16}) {
      for (const auto& fsdp : Ways{std::nullopt, 1, 2, 8}) {
        for (const auto& cp : Ways{std::nullopt, 1, 2}) {
          for (const auto& tp : Ways{std::nullopt, 1, 2}) {
            PlanRequest request = test::request(model, hw, 8);
            request.fix = {.dp = dp, .fsdp = fsdp, .tp = tp, .cp = cp, .zero = zero};
            const std::vector<std::string> found = obstacles(request);
            EXPECT_EQ(found.empty(), any_layout(request))
                << pins_text(request.fix) << (found.empty() ? "" : ": " + found.front());
            if (!found.empty()) ++illegal;
          }
        }
      }
    }
  }
  EXPECT_GT(illegal, 100U);
}

TEST(Obstacles, OfShardedExpertsThatDoNotFold) {
  const ModelSpec model = test::moe_model(4);  // 8 experts
  const HardwareSpec hw = test::switched_chip();
  PlanRequest request = test::request(model, hw, 8);
  request.fix = {.dp = 4, .fsdp = 2, .tp = 1, .cp = 1, .pp = 1, .ep = 8};
  request.fix.zero = 3;
  EXPECT_FALSE(any_layout(request));
  EXPECT_EQ(obstacles(request), std::vector<std::string>{"zero 3 keeps a group of experts inside its shards: ep 8 does "
                                                         "not fold over fsdp 2 x cp 1"});
}

TEST(Obstacles, SayHowZero3IsSpelled) {
  const ModelSpec model = test::dense_model(4);
  const HardwareSpec hw = test::switched_chip();
  PlanRequest request = test::request(model, hw, 8);
  request.fix = {.dp = 8, .zero = 3};
  EXPECT_EQ(obstacles(request),
            std::vector<std::string>{"zero 3 shards weights over fsdp x cp ranks, and dp 8 counts whole copies: ZeRO-3 "
                                     "over 8 ranks is fsdp=8"});
}

}  // namespace
}  // namespace scalecalc
