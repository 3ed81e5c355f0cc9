#include "validate/row_question.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/accounting.h"
#include "unit/validate/measured.h"
#include "validate/training_validation.h"

namespace scalecalc {
namespace {

RowQuestion question(const Measurement& row) { return row_question(row, Catalog(), {}, false); }

std::string refusal(const Measurement& row) {
  try {
    question(row);
  } catch (const NotPredicted& why) {
    return why.reason();
  }
  return "";
}

TEST(RowQuestion, PinsWhatTheRowSays) {
  const RowQuestion q = question(test::measurement());
  EXPECT_EQ(q.asked.fix.dp, 4);
  EXPECT_EQ(q.asked.fix.fsdp, 1);
  EXPECT_EQ(q.asked.fix.tp, 2);
  EXPECT_EQ(q.asked.fix.sp, 1);
  EXPECT_EQ(q.asked.fix.cp, 1) << "not said beside the data ways, so one";
  EXPECT_EQ(q.asked.fix.micro_batch_seqs, 1);
  EXPECT_EQ(q.asked.fix.remat, Remat::kNone);
  EXPECT_TRUE(q.chosen.empty());
  EXPECT_EQ(q.resolved.slices.front().chips, 8);
}

TEST(RowQuestion, LeavesOpenWhatTheRowDoesNotSay) {
  const RowQuestion q = question(test::measurement("  parallel: {dp: 4, tp: 2, pp: 1}\n"));
  EXPECT_EQ(q.chosen, (std::vector<std::string>{"zero", "sp", "micro_batch_seqs", "remat"}));
}

TEST(RowQuestion, DataWaysOfShardedWeightsAreSplit) {
  const RowQuestion q = question(test::measurement("  parallel: {dp: 8, fsdp: 4, zero_stage: 3}\n"));
  EXPECT_EQ(q.asked.fix.dp, 2);
  EXPECT_EQ(q.asked.fix.fsdp, 4);
  const RowQuestion all = question(test::measurement("  parallel: {dp: 8, zero_stage: 3}\n"));
  EXPECT_EQ(all.asked.fix.dp, 1);
  EXPECT_EQ(all.asked.fix.fsdp, 8);
}

/// ZeRO-1 within groups: a chip keeps and updates as much more as its group is smaller.
TEST(RowQuestion, OptimizerStateLiesOnGroupsOfRanks) {
  const auto ask = [](const std::string& group) {
    std::string text = test::row_text("  parallel: {dp: 32, zero_stage: 1" + group + "}\n  recompute: none\n");
    text.replace(text.find("chips: 8"), 8, "chips: 32");
    RowQuestion q = question(test::measurements(text).front());
    return evaluate(q).plan;
  };
  const Plan all = ask("");
  const Plan eight = ask(", zero_group: 8");
  EXPECT_EQ(eight.layout.dp, 4);
  EXPECT_EQ(eight.layout.fsdp, 8);
  EXPECT_EQ(eight.layout.zero, 1);
  EXPECT_NEAR(eight.memory.optimizer.value(), 4 * all.memory.optimizer.value(), 1e-9 * eight.memory.optimizer.value());
  EXPECT_EQ(eight.memory.weights.value(), all.memory.weights.value());
  EXPECT_EQ(eight.memory.gradients.value(), all.memory.gradients.value());
  EXPECT_NEAR(eight.time.optimizer.value(), 4 * all.time.optimizer.value(), 1e-9 * eight.time.optimizer.value());
  const Plan whole = ask(", zero_group: 32");
  EXPECT_EQ(whole.layout, all.layout) << "a group of all ranks is none";
  EXPECT_EQ(refusal(test::measurement("  parallel: {dp: 8, zero_stage: 1, zero_group: 3}\n")),
            "the degrees do not multiply to the chips");
}

TEST(RowQuestion, WhatLiesWithTheHostIsPinned) {
  EXPECT_EQ(question(test::measurement("  offload: optimizer\n")).asked.fix.offload, kOffloadOptimizer);
  EXPECT_EQ(question(test::measurement()).asked.fix.offload, 0);
}

TEST(RowQuestion, WeightsWithoutAnFp32CopyKeepTheirMomentsAlone) {
  const RowQuestion q = question(test::measurement("  master_weights: false\n"));
  EXPECT_EQ(q.resolved.workload.optimizer.state_bytes, 8) << "two moments of four bytes";
  EXPECT_EQ(question(test::measurement()).resolved.workload.optimizer.state_bytes, 12);
}

TEST(RowQuestion, SchedulesInAVAreNotOthers) {
  for (const char* schedule : {"v-half", "v-min", "zbv"}) {
    const std::string degrees = fmt::format("  parallel: {{dp: 2, pp: 4, vpp: 2, schedule: {}}}\n", schedule);
    EXPECT_EQ(refusal(test::measurement(degrees)), "the schedule is not modelled") << schedule;
  }
}

TEST(RowQuestion, CoresOfAChipAreNotChips) {
  const RowQuestion q = question(test::measurement("  parallel: {dp: 4, tp: 4, pp: 1, zero_stage: 1}\n"));
  EXPECT_EQ(q.asked.fix.tp, 2);
  EXPECT_EQ(q.asked.fix.dp, 4);
  EXPECT_EQ(refusal(test::measurement("  parallel: {dp: 3, tp: 1, pp: 1}\n")),
            "the degrees do not multiply to the chips");
}

/// [EXPERT-LOAD] By the power law of the chip, i^-0.6. Of 64 experts a rank each, two of which a token goes to, the
/// fullest has 64 / sum of i^-0.6 for i to 64 = 64 / 11.286 = 5.67 times the mean; the sum by Euler and Maclaurin,
/// zeta(0.6) + 64^0.4 / 0.4 + 64^-0.6 / 2 = -1.9527 + 13.195 + 0.0412 = 11.284.
TEST(RowQuestion, ANaturalRoutersExpertsAreAsUnevenlyChosenAsTheChipSays) {
  Measurement row = test::measurement();
  row.shape->experts = 64;
  row.shape->top_k = 2;
  row.shape->expert_ffn = 1024;
  EXPECT_EQ(question(row).resolved.workload.expert_load, nullptr) << "nothing is said of it";
  row.asked.expert_load = kNaturalLoad;
  const RowQuestion natural = question(row);
  ASSERT_NE(natural.resolved.workload.expert_load, nullptr);
  EXPECT_NEAR(natural.resolved.workload.expert_load->fullest(64), 64 / 11.284, 0.02);
  EXPECT_DOUBLE_EQ(natural.resolved.workload.expert_load->fullest(1), 1) << "one rank has all";
}

/// Whatever the stack's file says of when it had it.
TEST(RowQuestion, WhatRanIsNotRefused) {
  Measurement row =
      test::measurement("  date: '2019-01'\n  dispatcher: deepep\n  expert_capacity: 1\n  natural_routing: true\n");
  row.shape->experts = 64;
  row.shape->top_k = 2;
  row.shape->expert_ffn = 1024;
  row.stack = "megatron";
  const RowQuestion q = question(row);
  EXPECT_EQ(q.resolved.workload.runtime.dispatch, ExpertDispatch::kDeepEp);
  EXPECT_EQ(q.resolved.workload.expert_load, nullptr) << "experts of a fixed capacity multiply as much";
}

TEST(RowQuestion, RecipesOfAReleaseFillInWhatARunDoesNotSay) {
  const std::string experts =
      "  model: mixtral-8x7b\n  precision: mxfp8\n  framework: nemo\n  parallel: {dp: 8, tp: 1, pp: 1, ep: 8}\n";
  const auto ask = [&](const std::string& more) {
    std::string text = test::row_text(experts + more);
    for (const char* line : {"  model: tiny-1b\n", "  chip: h100-sxm\n"})
      text.erase(text.find(line), std::string(line).size());
    const std::size_t shape = text.find("  model_shape:");
    text.erase(shape, text.find('\n', shape) + 1 - shape);
    std::vector<Measurement> rows = test::measurements(text + "  chip: b200\n");
    name_stacks(rows, Catalog());
    return question(rows.front());
  };
  EXPECT_EQ(ask("  date: 2026-08\n").resolved.workload.graphs, GraphCapture::kStep);
  EXPECT_TRUE(ask("  date: 2026-08\n").asked.fix.ep_overlap.value());
  EXPECT_EQ(ask("  date: 2026-05\n").resolved.workload.graphs, GraphCapture::kNone) << "an earlier release";
  EXPECT_EQ(ask("  date: 2026-08\n  graphs: layer\n").resolved.workload.graphs, GraphCapture::kLayer)
      << "what the run says comes first";
  EXPECT_FALSE(ask("  date: 2026-08\n  graphs: layer\n").asked.fix.ep_overlap.value());
}

/// Megatron-LM reduced gradients after the backward until Core 0.4; what a run says of itself comes first.
TEST(RowQuestion, OldSoftwareOverlapsNoGradients) {
  const auto ask = [](const std::string& more) {
    std::vector<Measurement> rows{test::measurement("  framework: megatron-lm\n" + more)};
    name_stacks(rows, Catalog());
    return question(rows.front()).resolved.workload.hides_gradients();
  };
  EXPECT_FALSE(ask("  date: 2022-05\n"));
  EXPECT_TRUE(ask("  date: 2024-07\n"));
  EXPECT_FALSE(ask("  date: 2024-07\n  dp_overlap: none\n"));
  EXPECT_TRUE(ask("")) << "no date";
}

TEST(RowQuestion, PrecisionsGoByTheirFirstWord) {
  for (const auto& [text, word] : {std::pair{"mxfp8", "fp8"},
                                   {"fp8-te (amp_fp8)", "fp8"},
                                   {"bf16", "bf16"},
                                   {"bf16 autocast, fp32 optimizer", "bf16"},
                                   {"nvfp4", "nvfp4"}}) {
    Measurement row = test::measurement();
    row.precision = text;
    EXPECT_EQ(precision_word(row), word);
  }
}

TEST(RowQuestion, ScalesComeFromWhereThePrecisionSays) {
  for (const auto& [text, scaling] : {std::pair{"fp8-cs", std::optional(Scaling::kCurrent)},
                                      {"fp8-tensorwise", Scaling::kCurrent},
                                      {"fp8-hybrid", Scaling::kDelayed},
                                      {"fp8-rowwise", Scaling::kRow},
                                      {"mxfp8", Scaling::kBlock},
                                      {"fp8", std::nullopt},
                                      {"bf16", std::nullopt}}) {
    Measurement row = test::measurement();
    row.precision = text;
    EXPECT_EQ(question(row).resolved.workload.precision.scaling, scaling) << text;
  }
}

TEST(RowQuestion, AdaptersAreAskedForAsTheRowSays) {
  const RowQuestion q =
      question(test::measurement("  workload: lora\n  adapters: {rank: 8, targets: [q, v], base: nf4, experts: true}\n"
                                 "  parallel: {dp: 4, tp: 2, pp: 1}\n"));
  EXPECT_EQ(q.resolved.workload.fine_tune,
            (FineTune{.rank = 8, .targets = kLoraQ | kLoraV, .experts = false, .base = BaseFormat::kNf4}))
      << "the model has no experts";
}

TEST(RowQuestion, WhatTheEngineCannotExpressIsRefusedWithItsReason) {
  Measurement row = test::measurement();
  row.workload = "lora";
  EXPECT_EQ(refusal(row), "which adapters trained is not known");
  row = test::measurement();
  row.precision = "nvfp4";
  EXPECT_EQ(refusal(row), "train refuses the question");
  row = test::measurement();
  row.chip = "h100-sxx";
  EXPECT_EQ(refusal(row), "the chip is not known");
  row = test::measurement();
  row.chips = row.layout.dp.emplace(12);
  row.layout.tp = 1;
  EXPECT_EQ(refusal(row), "train refuses the question") << "no machine of that size is built";
  row = test::measurement();
  row.chip = "a100-80g";
  row.precision = "fp8";
  EXPECT_EQ(refusal(row), "train refuses the question");
  row = test::measurement();
  row.shape->unread = {"hyper_connections"};
  EXPECT_EQ(refusal(row), "the architecture is not modelled");
  row = test::measurement();
  row.shape.reset();
  EXPECT_EQ(refusal(row), "the model is not known");
}

TEST(RowQuestion, RematOfSomeLayersIsDealtToTheStages) {
  Measurement row = test::measurement("  parallel: {dp: 4, tp: 1, pp: 2, zero_stage: 1}\n");
  row.recompute = "full on 6 of 8 layers";
  EXPECT_EQ(question(row).asked.fix.remat, Remat::kFull);
  EXPECT_EQ(question(row).asked.fix.remat_layers, 3);
  row.recompute = "full on 1 layer per virtual stage (1 of 8 layers)";
  EXPECT_EQ(question(row).asked.fix.remat_layers, 1) << "at least one";
  row.recompute = "selective: every 2nd layer";
  EXPECT_EQ(question(row).asked.fix.remat_layers, 2);
  row.recompute = "full";
  EXPECT_EQ(question(row).asked.fix.remat_layers, 0);
  row.recompute = "full on 9 of 8 layers";
  EXPECT_EQ(refusal(row), "remat of chosen modules is not modelled");
}

TEST(RowQuestion, ChosenModulesRunTheirOperationsAgain) {
  Measurement row = test::measurement();
  row.recompute = "selective: core_attn";
  EXPECT_EQ(question(row).asked.fix.remat, Remat::kSelective);
  EXPECT_EQ(question(row).resolved.workload.memory.selective, std::vector<std::string>{"attention"});
  row.recompute = "selective: mla_up_proj, moe_act";
  EXPECT_EQ(question(row).resolved.workload.memory.selective,
            (std::vector<std::string>{"query up-projection", "key/value up-projection", "mlp activation"}));
  row.recompute = "selective: mla_up_proj, nonesuch";
  EXPECT_EQ(refusal(row), "remat of chosen modules is not modelled");
  row.recompute = "selective+offload";
  EXPECT_EQ(question(row).asked.fix.remat, Remat::kFull) << "but for the few tensors that go to the host";
  EXPECT_EQ(question(row).asked.fix.offload, kOffloadActivations);
  EXPECT_EQ(question(row).asked.fix.offload_layers, 0) << "of all layers";
}

TEST(RowQuestion, MemoryIsTheStacks) {
  Measurement row = test::measurement();
  EXPECT_EQ(question(row).resolved.workload.memory.stack, "") << "no framework, no stack";
  row.stack = "torchtitan";
  const RowQuestion q = question(row);
  EXPECT_EQ(q.resolved.workload.memory.stack, "torchtitan");
  EXPECT_TRUE(q.resolved.workload.memory.sharded_master);
  EXPECT_EQ(q.resolved.efficiency.memory_reserve.value, q.resolved.workload.memory.reserve->value);
  row.asked.fused_loss = true;
  EXPECT_EQ(question(row).asked.fix.loss, LossKind::kFused);
  row.asked.fix.loss = LossKind::kChunked;
  EXPECT_EQ(question(row).resolved.workload.memory.logit_bytes, kFusedLogitBytes) << "of each chunk";
  row.asked.dropout = true;
  EXPECT_TRUE(question(row).resolved.workload.dropout);
  EXPECT_FALSE(question(row).resolved.workload.memory.fp8_activation_inputs);
  EXPECT_TRUE(
      question(test::measurement("  fp8_activation_inputs: true\n")).resolved.workload.memory.fp8_activation_inputs);
}

/// Megatron-LM refuses it of any other (core/transformer/transformer_config.py).
TEST(RowQuestion, ActivationInputsInEightBitsAreOfGatedMlps) {
  std::string text = test::row_text("  fp8_activation_inputs: true\n");
  EXPECT_NO_THROW(question(test::measurements(text).front()));
  text.replace(text.find("gated_mlp: true"), std::string_view("gated_mlp: true").size(), "gated_mlp: false");
  EXPECT_THROW(question(test::measurements(text).front()), NotPredicted);
}

TEST(RowQuestion, ALossInChunksIsSaid) {
  EXPECT_EQ(question(test::measurement()).asked.fix.loss, LossKind::kWhole);
  EXPECT_EQ(question(test::measurement("  chunked_loss: true\n")).asked.fix.loss, LossKind::kChunked);
}

/// torch.compile takes the loss with it unless the row says that it did not, and keeps what it makes of the layers.
TEST(RowQuestion, CompiledLayersKeepLess) {
  Measurement row = test::measurement("  compile: true\n");
  row.stack = "torchtitan";
  const auto memory = [&] { return question(row).resolved.workload.memory; };
  EXPECT_EQ(question(row).asked.fix.loss, LossKind::kFused);
  EXPECT_EQ(memory().selective, memory().compiled_selective);
  row.asked.fused_loss = false;
  EXPECT_EQ(question(row).asked.fix.loss, LossKind::kWhole);
  EXPECT_EQ(memory().selective, memory().compiled_selective);
  row.asked.compiled = false;
  EXPECT_NE(memory().selective, memory().compiled_selective);
}

/// What autograd keeps between kernels it does not keep where there is one; what a library changed holds by the month.
TEST(RowQuestion, RulesOfEagerCodeAreNotOfCompiled) {
  Measurement row = test::measurement("  date: '2024-01'\n");
  row.stack = "litgpt";
  const auto memory = [&] { return question(row).resolved.workload.memory; };
  EXPECT_EQ(memory().norm_input_bytes, 4);
  EXPECT_EQ(memory().gate_copies, 1);
  EXPECT_TRUE(memory().packed_inputs);
  row.asked.compiled = true;
  EXPECT_EQ(memory().norm_input_bytes + memory().norm_result_bytes + memory().gate_copies, 0);
  row.asked.compiled = false;
  row.date = "2023-09";
  EXPECT_EQ(memory().norm_input_bytes, 0) << "norms of that month did not widen";
  row.date = "2024-08";
  EXPECT_FALSE(memory().packed_inputs);
}

TEST(RowQuestion, SchedulesGoByTheirNames) {
  Measurement row = test::measurement("  parallel: {dp: 4, tp: 1, pp: 2, zero_stage: 1}\n");
  EXPECT_EQ(question(row).asked.fix.schedule, Schedule::k1F1B) << "the default where nothing is said";
  for (const auto& [text, schedule] : {std::pair{"zb-1p", Schedule::kZeroBubble},
                                       {"DualPipe", Schedule::kDualPipe},
                                       {"interleaved", Schedule::kInterleaved}}) {
    row.layout.schedule = text;
    EXPECT_EQ(question(row).asked.fix.schedule, schedule) << text;
  }
  row.layout.schedule = "zb-2p";
  EXPECT_EQ(refusal(row), "the schedule is not modelled");
}

TEST(RowQuestion, ContextRanksExchangeAsTheRowSays) {
  Measurement row = test::measurement("  parallel: {dp: 1, tp: 2, cp: 4, pp: 1, zero_stage: 1}\n");
  EXPECT_EQ(question(row).asked.fix.cp_comm, std::nullopt);
  row.layout.cp_comm = "ulysses";
  EXPECT_EQ(question(row).asked.fix.cp_comm, CpComm::kUlysses);
  row.layout.cp_comm = "pigeon";
  EXPECT_EQ(refusal(row), "the exchange between context ranks is not modelled");
}

TEST(RowQuestion, TakesTheCoefficientsOfItsStackWhereTheChipHasThem) {
  const std::vector<std::string> set{"hw.efficiency.stacks.nanotron.source=test",
                                     "hw.efficiency.stacks.nanotron.hbm.value=0.5"};
  std::vector<Measurement> rows{test::measurement("  framework: nanotron\n"), test::measurement("  framework: mine\n")};
  name_stacks(rows, Catalog());
  const RowQuestion own = row_question(rows[0], Catalog(), set, false);
  EXPECT_EQ(own.basis, StackBasis::kChip);
  EXPECT_DOUBLE_EQ(own.resolved.efficiency.hbm.value, 0.5);
  const RowQuestion other = row_question(rows[1], Catalog(), set, false);
  EXPECT_EQ(rows[1].stack, "") << "software that the catalog does not know";
  EXPECT_EQ(other.basis, StackBasis::kDefault) << "the usual stack's, which are not its own";
  EXPECT_EQ(other.resolved.efficiency.stack, "megatron");
}

TEST(RowQuestion, SourcesNameTheStackOfRowsThatNameNoFramework) {
  std::vector<Measurement> rows{
      test::measurement("  source_ref: NVIDIA/dgxc-benchmarking@85380ff:llama3.1/README.md\n"),
      test::measurement("  framework: Composer + PyTorch FSDP\n"), test::measurement()};
  name_stacks(rows, Catalog());
  EXPECT_EQ(rows[0].stack, "nemo");
  EXPECT_EQ(rows[1].stack, "composer");
  EXPECT_EQ(rows[2].stack, "");
}

TEST(RowQuestion, RunsOlderThanFlashAttentionWroteTheirScores) {
  const auto kernel = [](const std::string& more) {
    return question(test::measurement(more)).resolved.workload.attention;
  };
  EXPECT_EQ(kernel("  date: \"2021-04\"\n"), AttentionKernel::kUnfused);
  EXPECT_EQ(kernel("  date: \"2023-03\"\n"), AttentionKernel::kUnfused);
  EXPECT_EQ(kernel("  date: \"2023-04\"\n"), AttentionKernel::kFlash) << "flash-attn 1.0.2 ran on Hopper";
  EXPECT_EQ(kernel("  date: \"2021\"\n"), AttentionKernel::kUnfused);
  EXPECT_EQ(kernel("  date: \"~2021-04\"\n  attention: flash\n"), AttentionKernel::kFlash) << "the row says so";
  EXPECT_EQ(kernel(""), AttentionKernel::kFlash);
}

TEST(RowQuestion, RunsHaveTheKernelOfTheirStackAndDate) {
  std::vector<Measurement> rows{test::measurement("  framework: composer\n  date: \"2024-05\"\n"),
                                test::measurement("  framework: composer\n  date: \"2024-05\"\n  attention: fa3\n"),
                                test::measurement("  framework: composer\n  attention: fa33\n")};
  name_stacks(rows, Catalog());
  const RowQuestion then = question(rows[0]);
  const RowQuestion stated = question(rows[1]);
  EXPECT_EQ(then.resolved.kernel.name, "flash-attention-2");
  EXPECT_EQ(stated.resolved.kernel.name, "flash-attention-3");
  const HardwareSpec& hw = then.resolved.hw;
  const double times = efficiency_under(hw, "composer").attention_forward.value / hw.efficiency.attention_forward.value;
  EXPECT_NEAR(then.resolved.efficiency.attention_forward.value, 0.354 * times, 1e-9);
  EXPECT_NEAR(stated.resolved.efficiency.attention_forward.value, 0.662 * times, 1e-9);
  EXPECT_EQ(refusal(rows[2]), "train refuses the question");
}

TEST(RowQuestion, SwitchDomainsAreFilledEvenly) {
  Measurement row = test::measurement("  parallel: {dp: 128, tp: 2, pp: 1, zero_stage: 1}\n");
  row.chip = "gb200";
  row.chips = 256;
  EXPECT_EQ(question(row).resolved.slices.front().per_domain, 64);
  row.chips = 64;
  row.layout.dp = 32;
  EXPECT_EQ(question(row).resolved.slices.front().per_domain, 64);
  row.chips = 144;
  row.layout.dp = 72;
  EXPECT_EQ(question(row).resolved.slices.front().per_domain, 72);
}

TEST(RowQuestion, ASiteMayHaveANetworkOfItsOwn) {
  Measurement row = test::measurement();
  row.asked.node_bandwidth = 40e9;
  row.chips_per_node = 8;
  EXPECT_DOUBLE_EQ(question(row).resolved.hw.network[1].switched.bandwidth_per_chip.value(), 50e9) << "one node";
  row.chips = 16;
  row.layout.dp = 8;
  EXPECT_DOUBLE_EQ(question(row).resolved.hw.network[1].switched.bandwidth_per_chip.value(), 5e9);
  EXPECT_DOUBLE_EQ(question(row).resolved.hw.network[0].switched.bandwidth_per_chip.value(), 450e9);
}

TEST(RowQuestion, ToriBeyondOneAreSlices) {
  Measurement row = test::measurement("  parallel: {dp: 512, fsdp: 256, zero_stage: 3}\n");
  row.chip = "tpu-v5e";
  row.chips = 512;
  row.scaleup_domain = 256;
  EXPECT_EQ(question(row).resolved.slices.front().slices, 2);
}

TEST(ModelOfRow, CountsTheParametersOfTheShape) {
  Measurement row = test::measurement();
  // Per layer: q and o 2 D^2, k and v 2 D 512, three matrices of the MLP, two norms; embedding and head; final norm.
  const double d = 2048;
  const double layer = 2 * d * d + 2 * d * 512 + 3 * d * 8192 + 2 * d;
  EXPECT_EQ(count_parameters(model_of(row, Catalog())).total, 8 * layer + 2 * 32000 * d + d);
  row.shape->tied_embeddings = true;
  EXPECT_EQ(count_parameters(model_of(row, Catalog())).total, 8 * layer + 32000 * d + d);
}

TEST(ModelOfRow, ExpertsWindowsAndLatentsStandInTheirLayers) {
  Measurement row = test::measurement();
  row.shape->experts = 8;
  row.shape->top_k = 2;
  row.shape->expert_ffn = 1024;
  row.shape->dense_layers = 2;
  row.shape->window = 128;
  row.shape->window_every = 2;
  row.mtp_layers = 1;
  const ModelSpec model = model_of(row, Catalog());
  const auto kind = [&](std::size_t layer) { return model.kinds[model.layer_kind[layer]]; };
  EXPECT_EQ(kind(0).mixer, MixerKind::kSliding);
  EXPECT_EQ(kind(1).mixer, MixerKind::kFull);
  EXPECT_EQ(kind(1).ffn, FfnKind::kDense);
  EXPECT_EQ(kind(2).ffn, FfnKind::kMoe);
  EXPECT_EQ(model.mtp_layers, 1);
}

}  // namespace
}  // namespace scalecalc
