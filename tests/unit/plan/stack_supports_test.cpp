// What each stack can launch: layouts that are often recommended and that the stack named refuses, beside the nearest
// one that it runs; and what is said of a `supports:` block that is wrong.
#include "plan/stack_supports.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "config/yaml_reader.h"
#include "plan/enumerate.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

using test::shipped_chip;
using test::shipped_model;

/// What is asked of a stack, on one model.
class Launcher {
 public:
  explicit Launcher(const std::string& model, const std::string& chip = "h100-sxm", std::int64_t seq = 8192)
      : model_(shipped_model(model)), hw_(shipped_chip(chip)), work_(test::workload(seq, 1024)) {}

  Workload& work() { return work_; }

  /// The name of the fact that refuses; empty if it runs.
  std::string refusal(const std::string& stack, const Layout& layout) const {
    const std::size_t at = stack.find('@');
    const auto release =
        stack_release(Catalog(), stack.substr(0, at), at == std::string::npos ? "" : stack.substr(at + 1));
    if (release == nullptr) return "unknown";
    const auto found = release->refusal({layout, model_, work_, hw_});
    return found ? release->facts[*found].name : "";
  }

 private:
  ModelSpec model_;
  HardwareSpec hw_;
  Workload work_;
};

TEST(StackSupports, DualPipeIsOfNoPublicStack) {
  const Launcher v3("deepseek-v3");
  const Layout dual{.dp = 64, .pp = 16, .ep = 64, .grad_accum = 240, .zero = 1, .schedule = Schedule::kDualPipe};
  for (const char* stack : {"megatron", "nemo", "maxtext", "torchtitan", "deepspeed", "megatron-deepspeed", "nanotron",
                            "neuronx", "paxml", "primus"}) {
    EXPECT_EQ(v3.refusal(stack, dual), "schedule=dualpipe") << stack;
  }
  EXPECT_EQ(v3.refusal("hai-llm", dual), "unknown");
}

/// FSDP, or one device: its layers are whole on every rank.
TEST(StackSupports, LitGptShardsAndNothingElse) {
  const Launcher llama("llama3-8b");
  const auto refused = [&](const Layout& layout) { return llama.refusal("litgpt", layout); };
  EXPECT_EQ(refused({.fsdp = 8, .zero = 3}), "");
  EXPECT_EQ(refused({.dp = 4, .fsdp = 8, .zero = 3, .remat = Remat::kFull}), "");
  EXPECT_EQ(refused({.dp = 1, .zero = 0}), "");
  EXPECT_EQ(refused({.dp = 8, .zero = 0}), "replicas-alone");
  EXPECT_EQ(refused({.dp = 8, .zero = 1}), "zero=1");
  EXPECT_EQ(refused({.fsdp = 4, .tp = 2, .zero = 3}), "no-tensor");
  EXPECT_EQ(refused({.fsdp = 4, .pp = 2, .zero = 3, .schedule = Schedule::k1F1B}), "no-pipeline");
  EXPECT_EQ(refused({.fsdp = 8, .zero = 3, .remat = Remat::kSelective}), "remat=selective");
}

TEST(StackSupports, ExpertOverlapUnderMegatronsPipelineNeedsVirtualStages) {
  const Launcher v3("deepseek-v3");
  Layout layout{.dp = 64, .pp = 16, .ep = 64, .grad_accum = 240, .zero = 1, .schedule = Schedule::k1F1B};
  layout.ep_overlap = true;
  EXPECT_EQ(v3.refusal("megatron", layout), "expert-overlap");
  layout.schedule = Schedule::kInterleaved;
  layout.vpp = 2;
  EXPECT_EQ(v3.refusal("megatron", layout), "");
  EXPECT_EQ(v3.refusal("megatron@0.13", layout), "expert-overlap") << "the overlap came with 0.14";
  for (const Remat remat : {Remat::kFull, Remat::kMlp}) {
    layout.remat = remat;
    EXPECT_EQ(v3.refusal("megatron", layout), "expert-overlap-recompute");
  }
  layout.remat = Remat::kSelective;
  EXPECT_EQ(v3.refusal("megatron", layout), "");
  layout.pp = layout.vpp = 1;
  layout.schedule = Schedule::kNone;
  layout.zero = 3;
  EXPECT_EQ(v3.refusal("megatron@0.17", layout), "expert-overlap-fsdp");
  EXPECT_EQ(v3.refusal("megatron", layout), "");
}

TEST(StackSupports, MaxTextSplitsABatchOfDeepSeeksLayersAlone) {
  Layout layout{.fsdp = 64, .ep = 8, .grad_accum = 2, .zero = 3};
  layout.ep_overlap = true;
  const Launcher v3("deepseek-v3", "tpu-v5p");
  EXPECT_EQ(v3.refusal("maxtext@2025-05", layout), "expert-overlap");
  EXPECT_EQ(v3.refusal("maxtext", layout), "");
  EXPECT_EQ(Launcher("mixtral-8x7b", "tpu-v5p").refusal("maxtext", layout), "expert-overlap");
  layout.tp = layout.etp = 2;
  EXPECT_EQ(v3.refusal("maxtext", layout), "expert-overlap-alone");
}

TEST(StackSupports, MostStacksHaveNoSecondBatchToHideExperts) {
  const Launcher mixtral("mixtral-8x7b");
  Layout layout{.dp = 64, .ep = 8, .grad_accum = 2};
  EXPECT_EQ(mixtral.refusal("nanotron", layout), "");
  layout.ep_overlap = true;
  for (const char* stack : {"deepspeed", "nanotron", "neuronx", "paxml", "composer", "torchtitan"}) {
    EXPECT_EQ(mixtral.refusal(stack, layout), "expert-overlap") << stack;
  }
}

TEST(StackSupports, MegatronSplitsUnevenlyOnlyByLayout) {
  const Launcher v3("deepseek-v3");
  const Layout odd{.dp = 64, .pp = 16, .ep = 64, .grad_accum = 240, .zero = 1, .schedule = Schedule::k1F1B};
  EXPECT_EQ(v3.refusal("megatron@0.4", odd), "equal-chunks");
  EXPECT_EQ(v3.refusal("megatron@0.13", odd), "");
  const Launcher llama("llama3.1-405b");  // 126 layers: 128 with embedding and loss
  Layout accounted{.dp = 8, .tp = 8, .pp = 16, .grad_accum = 128, .sp = true, .zero = 1, .schedule = Schedule::k1F1B};
  EXPECT_EQ(llama.refusal("megatron@0.4", accounted), "equal-chunks");
  EXPECT_EQ(llama.refusal("megatron@0.9", accounted), "");
  accounted.vpp = 8;
  accounted.schedule = Schedule::kInterleaved;
  EXPECT_EQ(llama.refusal("megatron@0.9", accounted), "equal-virtual-chunks");
  EXPECT_EQ(llama.refusal("megatron@0.11", accounted), "");
}

TEST(StackSupports, StagesAreChosenWhereTheLauncherIsTold) {
  const Launcher llama("llama3.1-8b");  // 32 layers
  Layout layout{.dp = 8, .tp = 2, .pp = 4, .grad_accum = 16, .sp = true, .zero = 1, .schedule = Schedule::k1F1B};
  layout.split = {8, 6};  // 8, 9, 9, 6
  EXPECT_EQ(llama.refusal("megatron@0.4", layout), "equal-chunks") << "first and last counts are of 0.9";
  EXPECT_EQ(llama.refusal("megatron@0.9", layout), "");
  EXPECT_EQ(llama.refusal("megatron", layout), "");
  layout.split = {8, 7};  // 8, 9, 8, 7
  EXPECT_EQ(llama.refusal("megatron@0.9", layout), "equal-chunks") << "only the ends may differ";
  EXPECT_EQ(llama.refusal("megatron@0.13", layout), "");
  EXPECT_EQ(llama.refusal("nanotron", layout), "stage-layers");
  EXPECT_EQ(llama.refusal("deepspeed", layout), "stage-layers");
  layout.schedule = Schedule::kGpipe;  // MaxText's
  EXPECT_EQ(llama.refusal("maxtext", layout), "pipelined-layers");
}

TEST(StackSupports, MegatronOffloadsLayersWithoutPipelineAndRecomputeAlone) {
  const Launcher gpt("gpt3-175b", "a100-80g", 2048);
  Layout layout{.dp = 8, .tp = 8, .micro_batch_seqs = 1, .grad_accum = 8, .sp = true, .zero = 1};
  layout.offload = kOffloadActivations;
  EXPECT_EQ(gpt.refusal("megatron", layout), "layer-offload-all");
  layout.offload_layers = 95;
  EXPECT_EQ(gpt.refusal("megatron", layout), "");
  layout.remat = Remat::kSelective;
  EXPECT_EQ(gpt.refusal("megatron", layout), "layer-offload-recompute");
  layout.remat = Remat::kNone;
  layout.pp = 2;
  layout.vpp = 8;
  layout.grad_accum = 8;
  layout.schedule = Schedule::kInterleaved;
  EXPECT_EQ(gpt.refusal("megatron", layout), "layer-offload-pipeline");
  EXPECT_EQ(gpt.refusal("megatron@0.15", layout), "offload=activations");
  layout.offload = kOffloadWeights;
  EXPECT_EQ(gpt.refusal("megatron", layout), "offload=weights");
  layout.offload = kOffloadOptimizer;
  EXPECT_EQ(gpt.refusal("megatron", layout), "");
  EXPECT_EQ(gpt.refusal("megatron@0.11", layout), "offload=optimizer");
}

/// As the performance recipes of Megatron-Bridge do for Llama 3 70B on GB200.
TEST(StackSupports, LayersAreOffloadedUnderMegatronsFsdp) {
  const Launcher llama("llama3-70b", "gb200", 64);
  Layout layout{.fsdp = 64, .zero = 3, .offload = kOffloadActivations, .offload_layers = 20};
  EXPECT_EQ(llama.refusal("megatron", layout), "");
  EXPECT_EQ(llama.refusal("nemo", layout), "");
  layout.offload = kOffloadOptimizer;
  EXPECT_EQ(llama.refusal("megatron", layout), "fsdp-with-offload");
}

TEST(StackSupports, MaxTextOffloadsTensorsOfAllLayers) {
  const Launcher gemma("gemma-2-27b", "tpu-v6e", 4096);
  Layout layout{.fsdp = 64, .zero = 3, .remat = Remat::kFull, .offload = kOffloadActivations};
  EXPECT_EQ(gemma.refusal("maxtext", layout), "");
  layout.offload_layers = 8;
  EXPECT_EQ(gemma.refusal("maxtext", layout), "offload-by-name");
}

TEST(StackSupports, LossesByRelease) {
  const Launcher llama("llama3-70b", "h100-sxm", 8192);
  const Layout fused{.fsdp = 64, .zero = 3, .loss = LossKind::kFused};
  EXPECT_EQ(llama.refusal("megatron@0.4", {.dp = 8, .tp = 8, .zero = 1, .loss = LossKind::kFused}), "loss=fused");
  EXPECT_EQ(llama.refusal("megatron", fused), "");
  EXPECT_EQ(llama.refusal("composer", fused), "");
  EXPECT_EQ(llama.refusal("torchtitan", fused), "loss=fused");
  const Layout chunked{.fsdp = 64, .zero = 3, .loss = LossKind::kChunked};
  EXPECT_EQ(llama.refusal("megatron", chunked), "loss=chunked");
  EXPECT_EQ(llama.refusal("torchtitan@0.2", chunked), "loss=chunked");
  EXPECT_EQ(llama.refusal("torchtitan", chunked), "");
  EXPECT_EQ(llama.refusal("deepspeed", chunked), "");
  EXPECT_EQ(llama.refusal("maxtext", chunked), "");
  EXPECT_EQ(llama.refusal("maxtext@2025-05", chunked), "loss=chunked");
}

TEST(StackSupports, MegatronShardsWeightsSinceItsFsdpAndNotUnderAPipeline) {
  const Launcher gpt("gpt3-175b", "a100-80g", 2048);
  Layout layout{.fsdp = 64, .grad_accum = 24, .zero = 3};
  EXPECT_EQ(gpt.refusal("megatron@0.11", layout), "zero=3");
  EXPECT_EQ(gpt.refusal("megatron", layout), "");
  layout.fsdp = 32;
  layout.pp = 2;
  layout.schedule = Schedule::k1F1B;
  EXPECT_EQ(gpt.refusal("megatron", layout), "fsdp-with-pipeline");
  layout.fsdp = 1;
  layout.dp = 32;
  layout.zero = 1;
  EXPECT_EQ(gpt.refusal("megatron", layout), "");
}

TEST(StackSupports, ContextKinds) {
  Launcher llama("llama3-70b", "h100-sxm", 131072);  // 64 heads, 8 KV heads
  Layout ring{.fsdp = 8, .cp = 8, .zero = 3, .cp_comm = CpComm::kRing};
  EXPECT_EQ(llama.refusal("deepspeed", ring), "cp_comm=ring");
  EXPECT_EQ(llama.refusal("composer", ring), "no-context");
  EXPECT_EQ(llama.refusal("megatron", ring), "");
  EXPECT_EQ(llama.refusal("torchtitan", ring), "");
  Layout ulysses = ring;
  ulysses.cp_comm = CpComm::kUlysses;
  EXPECT_EQ(llama.refusal("deepspeed", ulysses), "");
  EXPECT_EQ(llama.refusal("torchtitan", ulysses), "cp_comm=ulysses");
  EXPECT_EQ(llama.refusal("megatron", ulysses), "");
  EXPECT_EQ(llama.refusal("megatron@0.9", ulysses), "cp_comm=ulysses");
  ulysses.cp = 16;
  ulysses.fsdp = 4;
  EXPECT_EQ(llama.refusal("megatron", ulysses), "whole-kv-heads") << "8 KV heads over 16 ranks";
  Launcher tpu("llama3-70b", "tpu-v5p", 131072);
  EXPECT_EQ(tpu.refusal("maxtext@2025-05", ring), "cp_comm=ring");
  EXPECT_EQ(tpu.refusal("maxtext@2026-06", ring), "");
  EXPECT_EQ(tpu.refusal("maxtext", ulysses), "");
  EXPECT_EQ(llama.refusal("maxtext", ulysses), "ulysses-on-tpu");
}

TEST(StackSupports, DeepSpeedOffloadsCheckpointsAndPipelinesWithZeroOne) {
  const Launcher llama("llama3-70b", "h100-sxm", 131072);
  Layout layout{.fsdp = 8, .cp = 8, .zero = 3, .remat = Remat::kFull, .cp_comm = CpComm::kUlysses};
  layout.offload = kOffloadActivations;
  EXPECT_EQ(llama.refusal("deepspeed", layout), "");
  layout.remat = Remat::kNone;
  EXPECT_EQ(llama.refusal("deepspeed", layout), "offloaded-checkpoints");
  layout.remat = Remat::kSelective;
  EXPECT_EQ(llama.refusal("deepspeed", layout), "remat=selective");
  Layout pipeline{.dp = 16, .pp = 4, .grad_accum = 8, .zero = 2, .schedule = Schedule::k1F1B};
  EXPECT_EQ(llama.refusal("deepspeed", pipeline), "zero-under-pipeline");
  pipeline.zero = 1;
  EXPECT_EQ(llama.refusal("deepspeed", pipeline), "");
  pipeline.schedule = Schedule::kZeroBubble;
  EXPECT_EQ(llama.refusal("deepspeed", pipeline), "schedule=zero-bubble");
  EXPECT_EQ(llama.refusal("megatron-deepspeed", pipeline), "");
  pipeline.tp = 2;
  pipeline.sp = true;
  EXPECT_EQ(llama.refusal("megatron-deepspeed", pipeline), "zero-bubble-shards");
}

TEST(StackSupports, TorchtitanKeepsActivationsOnTheChip) {
  const Launcher llama("llama3.1-405b");
  Layout layout{.fsdp = 64, .tp = 8, .sp = true, .zero = 3};
  layout.offload = kOffloadActivations;
  EXPECT_EQ(llama.refusal("torchtitan", layout), "offload=activations");
  layout.offload = kOffloadOptimizer;
  EXPECT_EQ(llama.refusal("torchtitan", layout), "offload-together");
  layout.offload = kOffloadOptimizer | kOffloadWeights;
  EXPECT_EQ(llama.refusal("torchtitan", layout), "");
  layout.offload = 0;
  layout.remat = Remat::kFull;
  EXPECT_EQ(llama.refusal("torchtitan", layout), "");
  Layout optimizer_alone{.dp = 64, .tp = 8, .sp = true, .zero = 1};
  EXPECT_EQ(llama.refusal("torchtitan", optimizer_alone), "zero=1");
}

TEST(StackSupports, MaxTextPipelinesInACircle) {
  const Launcher llama("llama3-70b", "tpu-v5p");  // 80 layers
  Layout layout{.dp = 16, .pp = 4, .vpp = 5, .grad_accum = 8, .zero = 1, .schedule = Schedule::kGpipe};
  EXPECT_EQ(llama.refusal("maxtext", layout), "");
  layout.grad_accum = 6;
  EXPECT_EQ(llama.refusal("maxtext", layout), "pipelined-microbatches");
  layout.grad_accum = 8;
  layout.schedule = Schedule::k1F1B;
  layout.vpp = 1;
  EXPECT_EQ(llama.refusal("maxtext", layout), "schedule=1f1b");
  EXPECT_EQ(llama.refusal("paxml", layout), "schedule=1f1b");
  layout.schedule = Schedule::kZeroBubble;
  EXPECT_EQ(llama.refusal("maxtext", layout), "schedule=zero-bubble");
  layout.schedule = Schedule::kGpipe;
  layout.zero = 2;
  EXPECT_EQ(llama.refusal("maxtext", layout), "zero=2");
  const Launcher v3("deepseek-v3", "tpu-v5p");
  const Layout odd{.dp = 64, .pp = 16, .ep = 64, .grad_accum = 16, .zero = 1, .schedule = Schedule::kGpipe};
  EXPECT_EQ(v3.refusal("maxtext", odd), "pipelined-layers") << "61 layers";
  const Layout narrow{.fsdp = 64, .tp = 2, .ep = 64, .etp = 1, .sp = true, .zero = 3};
  EXPECT_EQ(v3.refusal("maxtext", narrow), "expert-tensor");
}

TEST(StackSupports, ExpertsBesideTensorRanks) {
  const Launcher v3("deepseek-v3");
  Layout layout{.dp = 32, .tp = 2, .ep = 64, .etp = 1, .zero = 1};
  EXPECT_EQ(v3.refusal("megatron", layout), "experts-in-sequence-shards");
  layout.sp = true;
  EXPECT_EQ(v3.refusal("megatron", layout), "");
  EXPECT_EQ(v3.refusal("megatron@0.9", layout), "expert-tensor");
  layout.etp = 2;
  layout.ep = 32;
  EXPECT_EQ(v3.refusal("megatron@0.9", layout), "");
  EXPECT_EQ(v3.refusal("torchtitan", layout), "expert-tensor");
  EXPECT_EQ(v3.refusal("torchtitan@0.2", layout), "zero=1");
}

TEST(StackSupports, DimensionsThatAStackLacks) {
  const Launcher llama("llama3-70b");
  const Layout pipeline{.dp = 16, .pp = 4, .grad_accum = 8, .zero = 0, .schedule = Schedule::k1F1B};
  for (const char* stack : {"accelerate", "composer"})
    EXPECT_EQ(llama.refusal(stack, pipeline), "no-pipeline") << stack;
  EXPECT_EQ(llama.refusal("torchtitan", pipeline), "");
  for (const char* stack : {"nanotron", "neuronx", "maxtext"}) {
    EXPECT_EQ(llama.refusal(stack, {.dp = 8, .grad_accum = 4, .zero = 2}), "zero=2") << stack;
  }
  EXPECT_EQ(Launcher("deepseek-v3").refusal("accelerate", {.fsdp = 64, .ep = 64, .zero = 3}), "no-experts");
  const Layout bubbles{.dp = 16, .pp = 4, .grad_accum = 8, .zero = 1, .schedule = Schedule::kZeroBubble};
  for (const char* stack : {"megatron", "nemo", "maxtext", "nanotron", "neuronx", "torchtitan"}) {
    EXPECT_EQ(llama.refusal(stack, bubbles), "schedule=zero-bubble") << stack;
  }
  EXPECT_EQ(llama.refusal("primus", bubbles), "");
}

TEST(StackSupports, PrecisionsAndGraphsByRelease) {
  Launcher llama("llama3-70b", "b200");
  const Layout layout{.dp = 8, .grad_accum = 4, .zero = 1};
  llama.work().precision = precision_of("nvfp4");
  EXPECT_EQ(llama.refusal("megatron@0.14", layout), "precision=nvfp4");
  EXPECT_EQ(llama.refusal("megatron@0.15", layout), "");
  llama.work().precision = precision_of("int8");
  EXPECT_EQ(llama.refusal("megatron", layout), "precision=int8");
  llama.work().precision = precision_of("bf16");
  llama.work().graphs = GraphCapture::kStep;
  EXPECT_EQ(llama.refusal("megatron@0.13", layout), "graphs=step");
  EXPECT_EQ(llama.refusal("megatron", layout), "");
}

/// Frameworks that share a file share coefficients, not abilities.
TEST(StackSupports, AreOfTheNameAskedFor) {
  EXPECT_EQ(stack_release(Catalog(), "megatron-lm", "")->name(), "megatron-lm 0.19");
  EXPECT_EQ(stack_release(Catalog(), "gpt-neox", ""), nullptr);
  EXPECT_NE(load_supports(Catalog(), "gpt-neox").unknown, "");
  EXPECT_EQ(stack_release(Catalog(), "megatron-bridge", "0.6")->facts.size(),
            stack_release(Catalog(), "megatron", "0.19")->facts.size());
}

TEST(StackSupports, EveryFactOfTheCatalogHasASource) {
  const Catalog catalog;
  for (const std::string& name : catalog.names(CatalogKind::kStack)) {
    for (const StackRelease& release : load_supports(catalog, name).releases) {
      for (const SupportFact& fact : release.facts) {
        EXPECT_FALSE(fact.source.empty() || fact.says.empty() || fact.refused_if.empty())
            << release.name() << fact.name;
      }
    }
  }
}

StackSupports acme(const std::string& supports) {
  return load_supports(
      Catalog(), "acme",
      read_yaml("schema: scalecalc-stack/1\nname: acme\ntitle: Acme\nsupports:\n" + supports, "acme.yaml"));
}

/// The first problem as "line:column message / hint".
std::string problem_of(const std::string& rules) {
  try {
    acme("  - releases:\n      - release: '1'\n        since: 2026-01-01\n" + rules);
  } catch (const UserError& error) {
    const Diagnostic& d = error.diagnostics().front();
    return std::to_string(d.where.line) + ":" + std::to_string(d.where.column) + " " + d.message + " / " + d.hint;
  }
  return "";
}

TEST(StackSupports, AnOffloadThatIsRefusedSaysWhatIsOffloaded) {
  const auto says = [](const char* only) {
    const StackSupports all = acme(fmt::format(R"(
  - releases:
      - release: "1"
        since: 2025-01-01
        has: {{offload: {{only: [{}], source: them}}}}
)",
                                               only));
    std::string out;
    for (const SupportFact& fact : all.releases.at(0).facts) {
      if (fact.name == "offload=weights") out = fact.says;
    }
    return out;
  };
  EXPECT_EQ(says("optimizer"), "offloads optimizer, not weights");
  EXPECT_EQ(says("optimizer, activations"), "offloads optimizer and activations, not weights");
  EXPECT_EQ(says(""), "offloads no weights");
}

TEST(StackSupports, LaterReleasesInheritAndReplace) {
  const StackSupports all = acme(R"(
  - releases:
      - release: "1"
        since: 2025-01-01
        has: {zero: {only: [0, 1], source: them}}
        rules:
          small: {says: at most 8 tensor ranks, needs: {tp: "<=8"}, source: them}
      - release: "2"
        since: 2026-01-01
        has: {zero: {only: [0, 1, 3], source: them}}
        rules:
          small: {says: at most 16 tensor ranks, needs: {tp: "<=16"}, source: them}
      - release: "3"
        since: 2026-02-01
        drops: [small]
)");
  ASSERT_EQ(all.releases.size(), 3U);
  const ModelSpec model = test::dense_model();
  const HardwareSpec hw = test::torus_chip();
  const Workload work = test::workload();
  const auto runs = [&](std::size_t release, const Layout& layout) {
    return !all.releases[release].refusal({layout, model, work, hw});
  };
  EXPECT_TRUE(runs(0, {.tp = 8}));
  EXPECT_FALSE(runs(0, {.tp = 16}));
  EXPECT_TRUE(runs(1, {.tp = 16}));
  EXPECT_FALSE(runs(1, {.tp = 32}));
  EXPECT_TRUE(runs(2, {.tp = 32}));
  EXPECT_FALSE(runs(0, {.zero = 3}));
  EXPECT_TRUE(runs(1, {.zero = 3}));
  EXPECT_FALSE(runs(2, {.zero = 2}));
}

TEST(StackSupports, RecallRefusesNothing) {
  const StackSupports all = acme(
      "  - releases:\n      - {release: '1', since: 2025-01-01, has: {zero: {only: [0], source: us, recall: true}}}\n");
  const ModelSpec model = test::dense_model();
  const HardwareSpec hw = test::torus_chip();
  const Workload work = test::workload();
  const Layout layout{.zero = 3};
  EXPECT_FALSE(all.releases[0].refusal({layout, model, work, hw}));
  EXPECT_TRUE(std::any_of(all.releases[0].facts.begin(), all.releases[0].facts.end(), [&](const SupportFact& fact) {
    return fact.refuses({layout, model, work, hw});
  }));
}

TEST(StackSupports, ComparisonsOfQuantities) {
  const StackSupports all = acme(R"(
  - releases:
      - release: "1"
        since: 2025-01-01
        rules:
          groups: {says: groups, when: {pp: ">1"}, needs: {ga: multiple of pp}, source: them}
          filled: {says: filled, when: {pp: ">1"}, needs: {ga: ">=2 pp"}, source: them}
          same: {says: same, when: {ep: ">1"}, needs: {etp: tp}, source: them}
)");
  const ModelSpec model = test::moe_model();
  const HardwareSpec hw = test::torus_chip();
  const Workload work = test::workload();
  const auto refusal = [&](const Layout& layout) {
    const auto found = all.releases[0].refusal({layout, model, work, hw});
    return found ? all.releases[0].facts[*found].name : "";
  };
  EXPECT_EQ(refusal({.pp = 4, .grad_accum = 9}), "groups");
  EXPECT_EQ(refusal({.pp = 4, .grad_accum = 4}), "filled");
  EXPECT_EQ(refusal({.pp = 4, .grad_accum = 8}), "");
  EXPECT_EQ(refusal({.tp = 4, .ep = 2, .etp = 1}), "same");
  EXPECT_EQ(refusal({.tp = 4, .ep = 2, .etp = 4}), "");
}

TEST(StackSupports, WrongFactsAreNamedWithTheirPlace) {
  EXPECT_EQ(problem_of("        rules:\n          a: {says: x, when: {zer: 1}, source: us}\n"),
            "9:31 unknown quantity 'zer' in a condition / did you mean 'zero'?");
  EXPECT_EQ(problem_of("        rules:\n          a: {says: x, when: {schedule: dualpip}, source: us}\n"),
            "9:41 'dualpip' is no value of schedule / did you mean 'dualpipe'?");
  EXPECT_NE(problem_of("        rules:\n          a: {says: x, when: {pp: '>two'}, source: us}\n")
                .find("'>two' is no value of pp / expected a whole number, or a comparison"),
            std::string::npos);
  EXPECT_NE(problem_of("        rules:\n          a: {says: x, source: us}\n").find("rule a has no condition"),
            std::string::npos);
  EXPECT_NE(problem_of("        rules:\n          a: {says: x, when: {pp: 2}}\n").find("source"), std::string::npos);
  EXPECT_NE(problem_of("        has: {schedule: {only: [1f1bb], source: us}}\n").find("did you mean '1f1b'?"),
            std::string::npos);
  EXPECT_NE(problem_of("        has: {pp: {only: [1], source: us}}\n").find("'pp' is no word"), std::string::npos);
  EXPECT_NE(problem_of("        has: {offload: {only: [weight], source: us}}\n").find("'weight' is nothing to offload"),
            std::string::npos);
  EXPECT_NE(problem_of("        drops: [a]\n").find("the releases before have no such fact"), std::string::npos);
  EXPECT_NE(problem_of("        like: megatron@7\n").find("megatron has no release '7'"), std::string::npos);
  EXPECT_NE(problem_of("        lik: megatron\n").find("did you mean 'like'?"), std::string::npos);
}

TEST(StackSupports, ReleasesStandInOrder) {
  EXPECT_THROW(
      acme("  - releases:\n      - {release: '2', since: 2026-01-01}\n      - {release: '1', since: 2025-01-01}\n"),
      UserError);
  EXPECT_THROW(acme("  - of: [acme]\n"), UserError) << "neither releases nor a reason";
  EXPECT_THROW(acme("    releases: 1\n"), UserError);
}

TEST(StackSupports, AnUnknownReleaseNamesThoseKnown) {
  try {
    stack_release(Catalog(), "megatron", "0.20");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(error.diagnostics().front().message, "megatron has no release '0.20'");
    EXPECT_NE(error.diagnostics().front().hint.find("0.18, 0.19"), std::string::npos);
  }
}

/// The search cuts by the same facts, and says by which.
TEST(StackSupports, TheSearchCountsWhatItCutByFact) {
  const ModelSpec model = test::moe_model();
  const HardwareSpec hw = test::switched_chip();
  PlanRequest request = test::request(model, hw, 8);
  request.stack = stack_release(Catalog(), "megatron", "");
  const PlanResult found = plan(request);
  ASSERT_FALSE(found.plans.empty());
  std::uint64_t sum = 0;
  bool dualpipe = false;
  for (const StackCut& cut : stack_cuts(found.stats)) {
    sum += cut.layouts;
    dualpipe |= cut.fact->name == "schedule=dualpipe";
  }
  EXPECT_TRUE(dualpipe);
  EXPECT_EQ(sum, found.stats.rejected[static_cast<std::size_t>(Reject::kStack)]);
  for (const Plan& p : found.plans) {
    EXPECT_FALSE(request.stack->refusal({p.layout, model, request.workload, hw}));
  }
}

}  // namespace
}  // namespace scalecalc
