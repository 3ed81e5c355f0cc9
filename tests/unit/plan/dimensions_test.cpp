#include "plan/dimensions.h"

#include <gtest/gtest.h>

#include <set>

namespace scalecalc {
namespace {

TEST(LayoutDimensions, NamesAreUnique) {
  std::set<std::string_view> names;
  std::set<std::string_view> keys;
  for (const LayoutDimension& d : pin_dimensions()) {
    EXPECT_TRUE(names.insert(d.name).second) << d.name;
    EXPECT_TRUE(keys.insert(d.json_key).second) << d.json_key;
    EXPECT_EQ(find_dimension(d.name), &d);
    EXPECT_EQ(find_dimension(d.json_key), &d);
  }
  EXPECT_EQ(find_dimension("tpp"), nullptr);
}

TEST(LayoutDimensions, EachPinsItsOwnFieldAlone) {
  for (const LayoutDimension& d : pin_dimensions()) {
    LayoutFilter filter;
    d.set_pin(filter, d.most);
    for (const LayoutDimension& other : pin_dimensions()) {
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
            "dp=2,fsdp=1,tp=8,sp=1,cp=1,pp=4,vpp=2,split=default,ep=1,etp=1,ep_overlap=0,zero=1,remat=full,"
            "cp_comm=all-gather,offload=none,schedule=interleaved,mb=3,ga=4,loss=whole");
  EXPECT_FALSE(pins_of(Layout{}).schedule.has_value());  // no schedule is no pin
}

TEST(LayoutDimensions, EveryWordIsReadAsItIsWritten) {
  for (const LayoutDimension& d : layout_dimensions()) {
    if (d.kind != DimensionKind::kWord) continue;
    for (std::int64_t value = d.least; value <= d.last_word; ++value) {
      EXPECT_EQ(value_of_word(d, value_text(d, value)), value) << value_text(d, value);
    }
  }
}

TEST(LayoutDimensions, ASplitNamesTheLayersOfItsEnds) {
  const LayoutDimension& split = *find_dimension("split");
  const auto read = [&](std::string_view text) {
    LayoutFilter out;
    split.set_pin(out, value_of_word(split, text));
    EXPECT_EQ(pins_text(out), "split=" + std::string(text));
    return *out.split;
  };
  EXPECT_EQ(read("default"), ChunkEnds{});
  EXPECT_EQ(read("8:6"), (ChunkEnds{8, 6}));
  EXPECT_EQ(read("0:0"), (ChunkEnds{0, 0}));
  EXPECT_EQ(read("100000:100000"), (ChunkEnds{100'000, 100'000}));
  for (const char* text : {"", "8", "8:", ":6", "-1:6", "8:6:4", "8:6x", "100001:1", "even"}) {
    EXPECT_FALSE(value_of_word(split, text)) << text;
  }
}

TEST(LayoutDimensions, APolicyMeansAllLayersUnlessItSaysHowMany) {
  const LayoutDimension& remat = *find_dimension("remat");
  const auto pins = [&](std::string_view text) {
    LayoutFilter out;
    remat.set_pin(out, value_of_word(remat, text));
    EXPECT_EQ(pins_text(out), "remat=" + std::string(text));
    return out;
  };
  EXPECT_EQ(pins("full").remat, Remat::kFull);
  EXPECT_EQ(pins("full").remat_layers, 0);
  EXPECT_EQ(pins("selective:12").remat, Remat::kSelective);
  EXPECT_EQ(pins("selective:12").remat_layers, 12);
  EXPECT_EQ(pins("mlp:auto").remat, Remat::kMlp);
  EXPECT_FALSE(pins("mlp:auto").remat_layers.has_value());
  EXPECT_EQ(remat.word(remat.value({.remat = Remat::kAttention, .remat_layers = 3})), "attention:3");
  for (const char* text : {"full:0", "full:-1", "full:", "full:1.5", "full:8x", "full:100001", "none:4", "none:auto",
                           "most", "8", "", "zero:3"}) {
    EXPECT_FALSE(value_of_word(remat, text)) << text;
  }
}

TEST(LayoutDimensions, OffloadMeansActivationsOfAllLayersUnlessItSaysHowMany) {
  const LayoutDimension& offload = *find_dimension("offload");
  const auto pins = [&](std::string_view text) {
    LayoutFilter out;
    offload.set_pin(out, value_of_word(offload, text));
    EXPECT_EQ(pins_text(out), "offload=" + std::string(text));
    return out;
  };
  EXPECT_EQ(pins("activations").offload_layers, 0);
  EXPECT_EQ(pins("none").offload, 0);
  EXPECT_EQ(pins("optimizer+activations:20").offload, kOffloadOptimizer | kOffloadActivations);
  EXPECT_EQ(pins("optimizer+activations:20").offload_layers, 20);
  EXPECT_FALSE(pins("activations:auto").offload_layers.has_value());
  Layout layout{.offload = kOffloadActivations, .offload_layers = 7};
  EXPECT_EQ(value_text(offload, offload.value(layout)), "activations:7");
  EXPECT_EQ(pins_of(layout).offload_layers, 7);
  offload.set_value(layout, *value_of_word(offload, "optimizer+activations:3"));
  EXPECT_EQ(layout.offload_layers, 3);
  for (const char* text : {"activations:0", "optimizer:4", "none:auto", "activations:100001", "activations:"}) {
    EXPECT_FALSE(value_of_word(offload, text)) << text;
  }
}

TEST(LayoutDimensions, PinnedChipsNeedEveryDegree) {
  EXPECT_EQ(pinned_chips({.dp = 2, .fsdp = 3, .tp = 4, .cp = 1, .pp = 5}), 120);
  EXPECT_FALSE(pinned_chips({.dp = 2, .fsdp = 3, .tp = 4, .cp = 1}));
  EXPECT_EQ(pinned_chips({.dp = kMostWays, .fsdp = kMostWays, .tp = kMostWays, .cp = kMostWays, .pp = kMostWays}),
            kMostWays);
}

}  // namespace
}  // namespace scalecalc
