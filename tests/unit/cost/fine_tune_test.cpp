// A step and its memory while adapters train beside frozen weights.
#include <gtest/gtest.h>

#include "cost/step.h"
#include "model/accounting.h"
#include "plan/request.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

constexpr FineTune kTune{.rank = 16};

struct Question {
  ModelSpec model;
  HardwareSpec hw = test::switched_chip();
  Workload workload = test::workload();

  explicit Question(ModelSpec of, const std::optional<FineTune>& tune = kTune) : model(std::move(of)) {
    workload.fine_tune = tune;
  }
  NetworkCost<double> costs(const InnerDegrees& inner = {}) const {
    const Reader<double> reader;
    const ChipRates<double> chip = read_chip(reader, hw, hw.efficiency, DType::kBf16);
    return network_cost(reader, model, read_model(reader, model, workload.fine_tune), chip, workload, inner);
  }
};

/// One plan with everything pinned, so that two workloads are compared in the same layout.
Plan pinned(const Question& question, std::int64_t chips, LayoutFilter fix) {
  PlanRequest request = test::request(question.model, question.hw, chips);
  request.workload = question.workload;
  request.fix = fix;
  request.top = 1;
  const PlanResult found = plan(request);
  EXPECT_FALSE(found.plans.empty());
  return found.plans.empty() ? Plan{} : found.plans.front();
}

LayoutFilter data_parallel(std::int64_t zero) {
  LayoutFilter fix;
  fix.dp = zero == 3 ? 1 : 8;
  fix.fsdp = zero == 3 ? 8 : 1;
  fix.tp = fix.cp = fix.pp = 1;
  fix.zero = zero;
  fix.micro_batch_seqs = 1;
  fix.remat = Remat::kNone;
  fix.remat_layers = 0;
  fix.offload = 0;
  return fix;
}

/// Adam in mixed precision: 2 bytes of weights, 4 of gradients, 12 of state; 16 a parameter beside the frozen ones.
TEST(FineTuneMemory, OnlyAdaptersHaveGradientsAndState) {
  const ModelSpec model = test::dense_model(4);
  const double trained = adapter_parameters(model, kTune);
  const double frozen = count_parameters(model).total;
  const Plan plan = pinned(Question(model), 8, data_parallel(0));
  EXPECT_DOUBLE_EQ(plan.memory.weights.value(), 2 * frozen + 2 * trained);
  EXPECT_DOUBLE_EQ(plan.memory.gradients.value(), 4 * trained);
  EXPECT_DOUBLE_EQ(plan.memory.optimizer.value(), 12 * trained);
  const Plan sharded = pinned(Question(model), 8, data_parallel(3));
  EXPECT_DOUBLE_EQ(sharded.memory.weights.value(), (2 * frozen + 2 * trained) / 8);
  EXPECT_DOUBLE_EQ(sharded.memory.optimizer.value(), 12 * trained / 8);
}

/// The layers' matrices take 4.127 bits a weight; table, head and norms stay in 16.
TEST(FineTuneMemory, PacksTheMatricesOfLayers) {
  const ModelSpec model = test::dense_model(4);
  FineTune packed = kTune;
  packed.base = BaseFormat::kNf4;
  const ParameterCount count = count_parameters(model);
  const double matrices = count.attention + count.mlp;
  const double others = count.total - matrices;
  const Plan plan = pinned(Question(model, packed), 8, data_parallel(0));
  const double bytes = matrices * (4 + 0.125 + 32.0 / 16384) / 8 + 2 * others;
  EXPECT_NEAR(plan.memory.weights.value(), bytes + 2 * adapter_parameters(model, packed), 1e-6 * bytes);
  const double largest = 1024.0 * 4096 * 2;
  EXPECT_DOUBLE_EQ(plan.memory.buffers.value(), largest) << "one matrix at a time is unpacked";
}

/// Eight bits are unpacked for a matmul of 16, which reads no others; matmuls of 8 read them, and recipes of 4 have
/// quantized them before the run.
TEST(FineTuneTime, ABaseOfEightBitsIsUnpackedForWiderMatmulsAlone) {
  const FineTune tune{.base = BaseFormat::kFp8};
  EXPECT_TRUE(is_unpacked(tune, precision_of("bf16")));
  EXPECT_FALSE(is_unpacked(tune, precision_of("fp8")));
  EXPECT_FALSE(is_unpacked(tune, precision_of("nvfp4")));
  EXPECT_TRUE(is_unpacked({.base = BaseFormat::kInt8}, precision_of("fp8")));
}

/// [CAST] Of frozen weights nothing but the product reads an operand: 2 bytes read and 1 written, 3 an element, where
/// trained ones take 4: of the inputs forward, of the outputs' gradients backward.
TEST(FineTuneTime, OperandsOfFrozenWeightsAreWrittenOnce) {
  const auto casts = [](const std::optional<FineTune>& tune, bool backward) {
    Question question(test::dense_model(1), tune);
    question.workload.precision = precision_of("fp8");
    question.workload.precision.scaling = Scaling::kBlock;
    const auto hbm = [&](double cast) {
      question.hw.efficiency.cast.value = cast;
      const LayerCost<double> layer = question.costs().kinds[0];
      return (backward ? layer.backward : layer.forward).work.hbm.value();
    };
    return hbm(1) - hbm(0);
  };
  FineTune none = kTune;
  none.targets = 0;  // every weight is frozen
  for (const bool backward : {false, true}) {
    const double trained = casts(std::nullopt, backward);
    EXPECT_GT(trained, 0);
    EXPECT_NEAR(casts(none, backward), trained * 3 / 4, trained * 1e-9) << (backward ? "backward" : "forward");
  }
}

/// Bytes a token of one layer, d_model 1,024, d_ff 4,096, 16 heads of 64 that share no keys, adapters of rank 16 on
/// queries and values: two norms' inputs, the attention's normed input, three projections of attention, its output with
/// 16 fp32 sums, gate and up, 2 x 16 values between the halves of adapters.
constexpr double kPlainKept = 2 * 2048 + 2048 + 3 * 2048 + (2048 + 64) + 2 * 8192 + 2 * 2 * 16;

ModelSpec without_groups() {
  ModelSpec model = test::dense_model(1);
  model.attention.kv_heads = model.attention.heads;
  return model;
}

double kept_by(const FineTune& tune, void (*rule)(StackMemory&)) {
  Question question(without_groups(), tune);
  rule(question.workload.memory);
  return question.costs().kinds[0].saved[0].value() / static_cast<double>(question.workload.seq);
}

constexpr FineTune kQueriesAndValues{.rank = 16, .targets = kLoraQ | kLoraV};

/// LitGPT's way: norms in fp32, rotated queries and keys beside the whole projection, dropout's mask of a byte, queries
/// and values of adapters that are written into zeros, an activation function's output beside what it reads.
TEST(FineTuneMemory, EachRuleOfAStackKeepsItsTensor) {
  const auto more = [](void (*rule)(StackMemory&)) { return kept_by(kQueriesAndValues, rule) - kPlainKept; };
  EXPECT_DOUBLE_EQ(more([](StackMemory&) {}), 0);
  EXPECT_DOUBLE_EQ(more([](StackMemory& m) { m.norm_input_bytes = 4; }), 2 * 2 * 1024.0);
  EXPECT_DOUBLE_EQ(more([](StackMemory& m) { m.norm_input_bytes = m.norm_result_bytes = 4; }), 2 * 2 * 1024.0)
      << "no weight of a norm trains";
  EXPECT_DOUBLE_EQ(more([](StackMemory& m) { m.fused_projection = true; }), 2 * 2 * 1024.0);
  EXPECT_DOUBLE_EQ(more([](StackMemory& m) { m.adapter_dropout = true; }), 1024);
  EXPECT_DOUBLE_EQ(more([](StackMemory& m) { m.pads_adapters = true; }), 2 * 2 * 1024.0);
  EXPECT_DOUBLE_EQ(more([](StackMemory& m) { m.gate_copies = 1; }), 2 * 4096.0) << "though nothing reads the product";
  EXPECT_DOUBLE_EQ(more([](StackMemory& m) { m.packed_inputs = true; }), 0) << "weights are not in 4 bits";
}

/// Two normed inputs, one of which an adapter reads anyway, and the product before the projection back; behind dropout
/// the adapter reads a copy of its own.
TEST(FineTuneMemory, MatmulsOfPackedWeightsKeptTheirInputs) {
  FineTune packed = kQueriesAndValues;
  packed.base = BaseFormat::kNf4;
  const auto kept = [&](void (*rule)(StackMemory&)) { return kept_by(packed, rule); };
  EXPECT_DOUBLE_EQ(kept([](StackMemory&) {}), kPlainKept);
  EXPECT_DOUBLE_EQ(kept([](StackMemory& m) { m.packed_inputs = true; }), kPlainKept + 2 * 1024 + 2 * 4096);
  EXPECT_DOUBLE_EQ(kept([](StackMemory& m) { m.packed_inputs = m.adapter_dropout = true; }),
                   kPlainKept + 1024 + 2 * 2 * 1024 + 2 * 4096);
}

/// Adapters of all three parts of the projection need no zeros; those of gate and up have a dropout each.
TEST(FineTuneMemory, CountsTheModulesThatDropOut) {
  const auto more = [](const FineTune& tune, void (*rule)(StackMemory&)) {
    return kept_by(tune, rule) - kept_by(tune, [](StackMemory&) {});
  };
  constexpr FineTune kAttention{.rank = 16, .targets = kLoraQ | kLoraK | kLoraV};
  constexpr FineTune kMlp{.rank = 16, .targets = kLoraGate | kLoraUp};
  EXPECT_DOUBLE_EQ(more(kAttention, [](StackMemory& m) { m.pads_adapters = true; }), 0);
  EXPECT_DOUBLE_EQ(more(kAttention, [](StackMemory& m) { m.adapter_dropout = true; }), 1024);
  EXPECT_DOUBLE_EQ(more(kMlp, [](StackMemory& m) { m.adapter_dropout = true; }), (2 * 3 - 2) * 1024);
  // Attention keeps what it gives, the projection back a copy and a mask of a byte an element.
  constexpr FineTune kBack{.rank = 16, .targets = kLoraO};
  EXPECT_DOUBLE_EQ(more(kBack, [](StackMemory& m) { m.adapter_dropout = true; }), 3 * 1024);
}

/// Megatron Bridge's division: B of a column-divided target, A of a row-divided one; the other half is on every rank.
TEST(FineTuneSharding, HalfOfAnAdapterIsDividedByTensorRanks) {
  const ModelSpec model = test::dense_model(1);
  const auto trained = [&](std::uint8_t targets, std::int64_t tp) {
    return Question(model, FineTune{.rank = 16, .targets = targets}).costs({.tp = tp}).kinds[0].dense_parameters;
  };
  const double r = 16, d = 1024, f = 4096, kv = 256;
  EXPECT_DOUBLE_EQ(trained(kLoraQ, 1), r * (d + d));
  EXPECT_DOUBLE_EQ(trained(kLoraQ, 4), r * (d + d / 4));
  EXPECT_DOUBLE_EQ(trained(kLoraV, 4), r * (d + kv / 4));
  EXPECT_DOUBLE_EQ(trained(kLoraDown, 4), r * (f / 4 + d));
}

/// r values of two bytes for each of 2,048 tokens are summed over tensor ranks: of a column-divided target in the
/// backward, of a row-divided one in the forward.
TEST(FineTuneSharding, TensorRanksSumTheValuesBetween) {
  const ModelSpec model = test::dense_model(1);
  const auto phases = [&](std::uint8_t targets) {
    return Question(model, FineTune{.rank = 16, .targets = targets}).costs({.tp = 4}).kinds[0];
  };
  const auto holds = [&](const Phase<double>& phase, double sums) {
    EXPECT_EQ(phase.tp_reduces, 2);
    EXPECT_EQ(phase.tp_inner_reduces, sums);
    EXPECT_EQ(phase.tp_inner_bytes.value(), sums * 2048 * 16 * 2);
  };
  holds(phases(kLoraQ).forward, 0);
  holds(phases(kLoraQ).backward, 1);
  holds(phases(kLoraO).forward, 1);
  holds(phases(kLoraO).backward, 0);
}

/// Under sequence sharding the input of a frozen part is not gathered again for gradients that nobody asks for.
TEST(FineTuneSharding, GathersInputsAgainForAdaptersAlone) {
  const ModelSpec model = test::dense_model(1);
  const auto gathers = [&](const std::optional<FineTune>& tune) {
    return Question(model, tune).costs({.tp = 4, .sp = true}).kinds[0].backward.tp_gathers;
  };
  EXPECT_EQ(gathers(std::nullopt), 6);
  EXPECT_EQ(gathers(FineTune{.rank = 4}), 6);
  EXPECT_EQ(gathers(FineTune{.rank = 4, .targets = kLoraQ}), 5);
  EXPECT_EQ(gathers(FineTune{.rank = 4, .targets = kLoraO | kLoraDown}), 4);
}

/// No weight gradient of a frozen matrix: its backward is as long as its forward.
TEST(FineTuneTime, FrozenMatricesHaveHalfABackward) {
  const ModelSpec model = test::dense_model(1);
  const FineTune output_only{.rank = 1, .targets = kLoraO};
  const LayerCost<double> lora = Question(model, output_only).costs().kinds[0];
  const LayerCost<double> full = Question(model, std::nullopt).costs().kinds[0];
  const double frozen_flops = full.forward.work.flops.value();
  EXPECT_GT(lora.forward.work.flops.value(), frozen_flops);
  EXPECT_LT(lora.forward.work.flops.value(), 1.01 * frozen_flops);
  EXPECT_LT(lora.backward.work.flops.value(), 0.75 * full.backward.work.flops.value());
  EXPECT_GT(full.weight_gradient.value(), 20 * lora.weight_gradient.value());
}

TEST(FineTuneTime, UnpackingCostsMemoryTraffic) {
  const ModelSpec model = test::dense_model(1);
  FineTune packed = kTune;
  packed.base = BaseFormat::kNf4;
  const LayerCost<double> plain = Question(model).costs().kinds[0];
  const LayerCost<double> unpacking = Question(model, packed).costs().kinds[0];
  const ParameterCount count = count_parameters(model);
  const double bytes = (count.attention + count.mlp) * (bits_of(BaseFormat::kNf4) / 8 + 2);
  const double rate = test::switched_chip().hbm_bandwidth.value();
  const double longer = (unpacking.forward.work.hbm - plain.forward.work.hbm).value();
  EXPECT_NEAR(longer, bytes / rate, 1e-9 * longer);
  packed.base = BaseFormat::kBf16;
  EXPECT_EQ(Question(model, packed).costs().kinds[0].forward.work.total().value(), plain.forward.work.total().value());
}

/// ZeRO-3 gathers frozen weights in the format they are kept in and scatters adapters' gradients alone.
TEST(FineTuneTime, FullShardingMovesPackedWeights) {
  const ModelSpec model = test::dense_model(4);
  FineTune packed = kTune;
  packed.base = BaseFormat::kNf4;
  Question full(model, std::nullopt);
  Question lora(model);
  Question qlora(model, packed);
  for (Question* question : {&full, &lora, &qlora}) {
    question->hw.efficiency.overlap_fsdp.value = 0;
    for (Tier& tier : question->hw.network) tier.switched.bandwidth_per_chip = tier.switched.bandwidth_per_chip / 100.0;
  }
  const double all = pinned(full, 8, data_parallel(3)).time.fsdp.value();
  const double base = pinned(lora, 8, data_parallel(3)).time.fsdp.value();
  const double packs = pinned(qlora, 8, data_parallel(3)).time.fsdp.value();
  EXPECT_NEAR(base / all, 0.5, 0.02) << "2 + 2 bytes a weight instead of 2 + 2 + 4";
  const ParameterCount count = count_parameters(model);
  const double matrices = count.attention + count.mlp;
  const double bytes = 2 * (count.total - matrices) + bits_of(BaseFormat::kNf4) / 8 * matrices;
  EXPECT_NEAR(packs / base, bytes / (2 * count.total), 0.02) << "the table and the head stay in 16 bits";
}

TEST(FineTuneTime, GradientsOfAdaptersAloneAreReduced) {
  const ModelSpec model = test::dense_model(4);
  Question full(model, std::nullopt);
  Question lora(model);
  for (Question* question : {&full, &lora}) question->hw.efficiency.overlap_dp.value = 0;
  const double trained = adapter_parameters(model, kTune) / count_parameters(model).total;
  const Plan all = pinned(full, 8, data_parallel(0));
  const Plan few = pinned(lora, 8, data_parallel(0));
  EXPECT_NEAR(few.time.optimizer.value() / all.time.optimizer.value(), trained, 1e-9);
  EXPECT_LT(few.time.dp.value(), 0.05 * all.time.dp.value());
}

/// Two layers are gathered ahead, but of the ends, whose table of 200,000 words is wider than both, one: with its norm.
TEST(FineTuneMemory, AFrozenEndIsGatheredOnce) {
  ModelSpec model = test::dense_model(4);
  model.vocab = 200'000;
  Question question(model);
  question.workload.memory.gathered_layers = 2;
  const Plan sharded = pinned(question, 8, data_parallel(3));
  EXPECT_DOUBLE_EQ(sharded.memory.buffers.value(), 2 * (200'000 * 1024.0 + 1024));
}

/// Experts that do not train are what they weigh, biases too, in two bytes.
TEST(FineTuneMemory, FrozenExpertsKeepTheirBiases) {
  ModelSpec model = test::moe_model(2);
  model.moe->expert_bias = true;
  const Question question(model);
  double parameters = 0;
  for (const Op<double>& op : layer_ops(model, model.kinds[1], read_dims(Reader<double>{}, model))) {
    if (op.kind == OpKind::kGroupedMatmul) parameters += op.parameters();
  }
  EXPECT_GT(parameters, 8 * 3 * 1024.0 * 1024) << "with biases";
  EXPECT_DOUBLE_EQ(question.costs().kinds[1].frozen_experts.value(), 2 * parameters);
  EXPECT_DOUBLE_EQ(question.costs({.ep = 4}).kinds[1].frozen_experts.value(), 2 * parameters / 4);
}

}  // namespace
}  // namespace scalecalc
