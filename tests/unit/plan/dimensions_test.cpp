#include "plan/dimensions.h"

#include <gtest/gtest.h>

#include <set>

namespace scalecalc {
namespace {

TEST(LayoutDimensions, NamesAreUnique) {
  std::set<std::string_view> names;
  std::set<std::string_view> keys;
  for (const LayoutDimension& d : layout_dimensions()) {
    EXPECT_TRUE(names.insert(d.name).second) << d.name;
    EXPECT_TRUE(keys.insert(d.json_key).second) << d.json_key;
    EXPECT_EQ(find_dimension(d.name), &d);
    EXPECT_EQ(find_dimension(d.json_key), &d);
  }
  EXPECT_EQ(find_dimension("tpp"), nullptr);
}

TEST(LayoutDimensions, EachPinsItsOwnFieldAlone) {
  for (const LayoutDimension& d : layout_dimensions()) {
    LayoutFilter filter;
    d.set_pin(filter, d.most);
    for (const LayoutDimension& other : layout_dimensions()) {
      EXPECT_EQ(other.pin(filter), &other == &d ? std::optional(d.most) : std::nullopt) << d.name << other.name;
    }
    d.set_pin(filter, std::nullopt);
    EXPECT_EQ(pins_text(filter), "");
  }
}

TEST(LayoutDimensions, ALayoutPinsItself) {
  const Layout layout{.dp = 2,
                      .tp = 8,
                      .pp = 4,
                      .vpp = 2,
                      .micro_batch_seqs = 3,
                      .grad_accum = 4,
                      .sp = true,
                      .zero = 1,
                      .remat = Remat::kFull,
                      .schedule = Schedule::kInterleaved};
  EXPECT_EQ(pins_text(pins_of(layout)),
            "dp=2,fsdp=1,tp=8,sp=1,cp=1,pp=4,vpp=2,ep=1,etp=1,zero=1,remat=full,remat_layers=0,"
            "cp_comm=all-gather,offload=none,schedule=interleaved,mb=3,ga=4");
  EXPECT_FALSE(pins_of(Layout{}).schedule.has_value());  // no schedule is no pin
}

}  // namespace
}  // namespace scalecalc
