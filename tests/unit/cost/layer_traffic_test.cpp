// What a layer's context and expert ranks send, by hand: one sequence of 2,048 tokens, 16 heads of 64, 4 KV heads.
#include <gtest/gtest.h>

#include "cost/layer_cost.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

LayerCost<double> traffic_of(const ModelSpec& model, const InnerDegrees& inner, std::size_t kind = 0) {
  const Reader<double> reader;
  const HardwareSpec hw = test::switched_chip();
  const ChipRates<double> chip = read_chip(reader, hw, hw.efficiency, DType::kBf16);
  return network_cost(reader, model, read_model(reader, model), chip, test::workload(), inner).kinds[kind];
}

/// A quarter of queries and outputs, 2 x 1,024 elements a token over the tensor ranks, and of keys and values, 512,
/// which are copied where ranks are more than KV heads.
TEST(UlyssesTraffic, TurnsQueriesOutputsKeysAndValues) {
  const ModelSpec model = test::dense_model(1);
  struct Case {
    std::int64_t tp, cp;
    double width;
  };
  for (const Case& c : {Case{1, 4, 2048 + 512}, Case{1, 8, 2048 + 2 * 512}, Case{2, 4, 1024 + 2 * 256},
                        Case{8, 2, 256 + 2 * 128}, Case{8, 4, 256 + 4 * 128}}) {
    const LayerCost<double> cost =
        traffic_of(model, {.tp = c.tp, .cp = c.cp, .sp = c.tp > 1, .cp_comm = CpComm::kUlysses});
    const double bytes = 2048 / static_cast<double>(c.cp) * c.width * 2 / 4;
    EXPECT_DOUBLE_EQ(cost.cp_bytes.value(), bytes) << c.tp << ' ' << c.cp;
    EXPECT_DOUBLE_EQ(cost.cp_buffer.value(), 4 * bytes);
    EXPECT_EQ(cost.forward.cp_all_to_alls, 4);
    EXPECT_EQ(cost.backward.cp_all_to_alls, 4);
    EXPECT_EQ(cost.recompute[static_cast<std::size_t>(Remat::kFull)].cp_all_to_alls, 4);
    EXPECT_EQ(cost.recompute[static_cast<std::size_t>(Remat::kAttention)].cp_all_to_alls, 4);
    EXPECT_EQ(cost.recompute[static_cast<std::size_t>(Remat::kMlp)].cp_all_to_alls, 0);
  }
}

TEST(RingTraffic, PassesAPieceOn) {
  const LayerCost<double> cost = traffic_of(test::dense_model(1), {.cp = 4, .cp_comm = CpComm::kRing});
  EXPECT_DOUBLE_EQ(cost.cp_bytes.value(), 2048.0 / 4 * 512 * 2);
  EXPECT_DOUBLE_EQ(cost.cp_buffer.value(), 2 * cost.cp_bytes.value());
  EXPECT_EQ(cost.forward.cp_sends, 3);
  EXPECT_EQ(cost.backward.cp_sends, 6);
}

/// Tensor ranks that share every expert gather the tokens and scatter the sums; with expert ranks it is the copies that
/// they got.
TEST(ExpertTensorTraffic, GathersTokensOrTheirCopies) {
  const ModelSpec model = test::moe_model();
  const auto again = [](const LayerCost<double>& cost, Remat remat) {
    return cost.recompute[static_cast<std::size_t>(remat)];
  };
  const LayerCost<double> apart = traffic_of(model, {.tp = 4, .sp = true}, 1);
  EXPECT_EQ(apart.forward.etp_gathers, 0);
  EXPECT_EQ(apart.etp_bytes.value(), 0);
  const LayerCost<double> together = traffic_of(model, {.tp = 4, .etp = 4, .sp = true}, 1);
  EXPECT_EQ(together.etp_bytes.value(), 2048 * 1024 * 2);
  EXPECT_EQ(together.forward.etp_gathers, 2);
  EXPECT_EQ(together.backward.etp_gathers, 2);
  EXPECT_EQ(again(together, Remat::kFull).etp_gathers, 2);
  EXPECT_EQ(again(together, Remat::kMlp).etp_gathers, 2);
  EXPECT_EQ(again(together, Remat::kAttention).etp_gathers, 0);
  const LayerCost<double> both = traffic_of(model, {.tp = 4, .ep = 2, .etp = 4, .sp = true}, 1);
  EXPECT_EQ(both.etp_bytes.value(), 2048 * 2 * 1024 * 2) << "two choices of a token";
  EXPECT_EQ(both.forward.ep_bytes.value(), 2048 * 2 * 1024 * (2 + 2) / 4);
  EXPECT_EQ(both.forward.ep_all_to_alls, 2);
  EXPECT_EQ(again(both, Remat::kFull).ep_all_to_alls, 2);
  EXPECT_EQ(again(both, Remat::kFull).ep_bytes.value(), both.forward.ep_bytes.value());
  EXPECT_EQ(again(both, Remat::kAttention).ep_all_to_alls, 0);
}

/// 2,048 tokens of 1,024 elements of 2 bytes. Four tensor ranks send a quarter each, or all of it each where the stack
/// does not cut it, unless the sequence is cut anyway.
TEST(PipelineTraffic, TensorRanksSendTheirPartOrAll) {
  const Reader<double> reader;
  const HardwareSpec hw = test::switched_chip();
  const ChipRates<double> chip = read_chip(reader, hw, hw.efficiency, DType::kBf16);
  const ModelSpec model = test::dense_model(1);
  const auto sent = [&](const InnerDegrees& inner, bool cut) {
    Workload workload = test::workload();
    workload.runtime.shards_sends = cut;
    return network_cost(reader, model, read_model(reader, model), chip, workload, inner).boundary.value();
  };
  const double whole = 2048.0 * 1024 * 2;
  EXPECT_DOUBLE_EQ(sent({.tp = 4}, true), whole / 4);
  EXPECT_DOUBLE_EQ(sent({.tp = 4}, false), whole);
  EXPECT_DOUBLE_EQ(sent({.tp = 4, .sp = true}, false), whole / 4);
  EXPECT_DOUBLE_EQ(sent({}, false), whole);
}

/// Three matmuls of 2,048 x 2 rows of 1,024 by 1,024 each on a chip of 100 TFLOP/s: 3 x 2 x 4,096 x 1,024^2 / 1e14 =
/// 257.698 us forward; a backward has twice the FLOPs, and full remat the forward again.
TEST(ExpertWork, IsThatOfTheirMatmuls) {
  const ModelSpec model = test::moe_model();
  const LayerCost<double> cost = traffic_of(model, {}, 1);
  const double forward = 3 * 2 * 4096.0 * 1024 * 1024 / 100e12;
  EXPECT_NEAR(cost.forward.experts.value(), forward, 1e-3 * forward);
  EXPECT_NEAR(cost.backward.experts.value(), 2 * forward, 1e-3 * forward);
  EXPECT_EQ(cost.recompute[static_cast<std::size_t>(Remat::kFull)].experts.value(), cost.forward.experts.value());
  EXPECT_EQ(traffic_of(model, {}, 0).forward.experts.value(), 0) << "a dense layer";
}

/// 2,048 tokens and a vocabulary of 32,000: whole in the stack's bytes, fused in 2, chunks an eighth and an fp32
/// gradient.
TEST(Logits, AreWholeFusedOrInChunks) {
  const Reader<double> reader;
  const HardwareSpec hw = test::switched_chip();
  const ChipRates<double> chip = read_chip(reader, hw, hw.efficiency, DType::kBf16);
  ModelSpec model = test::dense_model(1);
  Workload work = test::workload();
  work.memory.logit_bytes = 10;
  const auto logits = [&](std::int64_t tp) {
    return network_cost(reader, model, read_model(reader, model), chip, work, {.tp = tp, .sp = tp > 1}).logits;
  };
  const double each = 2048.0 * 32000;
  EXPECT_EQ(logits(1)[0].value(), each * 10);
  EXPECT_EQ(logits(4)[0].value(), each * 10 / 4);
  EXPECT_EQ(logits(1)[1].value(), each * kFusedLogitBytes);
  EXPECT_EQ(logits(1)[2].value(), each * 10 / kLossChunks + 2048 * 1024 * 4);
  work.memory.logit_bytes = 1;
  EXPECT_EQ(logits(1)[1].value(), each) << "never more than whole";
}

/// What runs again of a layer without attention gathers nothing for it.
TEST(TensorTraffic, ALayerWithoutAttentionGathersForItsMlpAlone) {
  ModelSpec model = test::dense_model(1);
  model.kinds = {{MixerKind::kNone, FfnKind::kDense}, {MixerKind::kFull, FfnKind::kDense}};
  model.layer_kind = {0, 1};
  const auto again = [&](std::size_t kind, Remat remat) {
    return traffic_of(model, {.tp = 4, .sp = true}, kind).recompute[static_cast<std::size_t>(remat)].tp_gathers;
  };
  EXPECT_EQ(again(0, Remat::kAttention), 0);
  EXPECT_EQ(again(0, Remat::kFull), 2);
  EXPECT_EQ(again(1, Remat::kAttention), 2);
  EXPECT_EQ(again(1, Remat::kMlp), 2);
  EXPECT_EQ(again(1, Remat::kFull), 4);
}

/// Eight experts of three matrices of 1,024 x 1,024 over two expert ranks of four tensor ranks each.
TEST(ExpertTensorTraffic, ExpertsAreDividedByBothDegrees) {
  const ModelSpec model = test::moe_model();
  EXPECT_EQ(traffic_of(model, {.tp = 4, .ep = 2, .etp = 4, .sp = true}, 1).expert_parameters,
            8 * 3 * 1024.0 * 1024 / 8);
  EXPECT_EQ(traffic_of(model, {.tp = 4, .ep = 2, .sp = true}, 1).expert_parameters, 8 * 3 * 1024.0 * 1024 / 2);
}

/// A tower's layer ends in two sums as the model's own.
TEST(TensorTraffic, TowersSumTwiceALayer) {
  ModelSpec model = test::dense_model(1);
  TowerSpec& tower = model.towers.emplace_back();
  tower.network = test::dense_model(5);
  tower.network.vocab = 0;
  tower.tokens = 1000;
  tower.positions = 1000;
  tower.per_token = 1;
  const Reader<double> reader;
  const HardwareSpec hw = test::switched_chip();
  const ChipRates<double> chip = read_chip(reader, hw, hw.efficiency, DType::kBf16);
  const NetworkCost<double> cost =
      network_cost(reader, model, read_model(reader, model), chip, test::workload(), {.tp = 4});
  bool met = false;
  for (const TowerCost<double>& part : cost.towers) {
    if (part.count != 5) continue;
    met = true;
    EXPECT_EQ(part.layer.forward.tp_reduces, 2);
    EXPECT_EQ(part.layer.backward.tp_reduces, 2);
  }
  EXPECT_TRUE(met);
}

}  // namespace
}  // namespace scalecalc
