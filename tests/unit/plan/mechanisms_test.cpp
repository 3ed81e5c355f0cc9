#include "plan/mechanisms.h"

#include <gtest/gtest.h>

#include <set>

namespace scalecalc {
namespace {

using Names = std::vector<std::string_view>;

TEST(Mechanisms, OneChipUsesNone) {
  EXPECT_TRUE(mechanisms_of({}).empty());
  EXPECT_EQ(complexity({}), 0);
}

TEST(Mechanisms, EverydayShardingAndRematCountNothing) {
  EXPECT_EQ(mechanisms_of({.fsdp = 64, .zero = 3, .remat = Remat::kSelective}), Names{"data"});
  EXPECT_EQ(mechanisms_of({.dp = 8, .tp = 8, .sp = true, .zero = 1, .remat = Remat::kFull}), (Names{"data", "tensor"}));
}

TEST(Mechanisms, EachIsCountedByItsWeight) {
  const Layout dualpipe{.dp = 16, .pp = 16, .ep = 16, .zero = 1, .schedule = Schedule::kDualPipe};
  EXPECT_EQ(mechanisms_of(dualpipe), (Names{"data", "expert", "pipeline", "dualpipe"}));
  EXPECT_EQ(complexity(dualpipe), 1 + 1 + 1 + 3);
  const Layout offloaded{.fsdp = 8,
                         .cp = 2,
                         .zero = 3,
                         .remat = Remat::kFull,
                         .remat_layers = 4,
                         .cp_comm = CpComm::kRing,
                         .offload = kOffloadAll};
  EXPECT_EQ(complexity(offloaded), 1 + 1 + 1 + 1 + 3) << "data, context, ring, some layers, three parts offloaded";
}

TEST(Mechanisms, ALossCountsIfItHasAPrice) {
  EXPECT_TRUE(mechanisms_of({.loss = LossKind::kFused}).empty());
  EXPECT_EQ(mechanisms_of({.loss = LossKind::kChunked}), Names{"chunked loss"});
}

TEST(Mechanisms, ChosenStagesAreOneMore) {
  const Layout usual{.pp = 4, .schedule = Schedule::k1F1B};
  Layout chosen = usual;
  chosen.split = {8, 6};
  EXPECT_EQ(mechanisms_of(chosen), (Names{"pipeline", "chosen stages"}));
  EXPECT_EQ(complexity(chosen), complexity(usual) + 1);
}

TEST(Mechanisms, NamesAreDistinct) {
  std::set<std::string_view> names;
  for (const Mechanism& m : mechanisms()) EXPECT_TRUE(names.insert(m.name).second) << m.name;
}

}  // namespace
}  // namespace scalecalc
