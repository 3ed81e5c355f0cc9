// The whole question, as a library user asks it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "train/figures.h"
#include "train/question.h"
#include "train/resolve.h"

namespace scalecalc {
namespace {

TrainAnswer ask(TrainQuestion question) { return answer(question, Catalog()); }

const ExplainedStep* find(const ExplainSection& section, const std::string& name) {
  const auto it =
      std::find_if(section.steps.begin(), section.steps.end(), [&](const auto& s) { return s.name == name; });
  return it == section.steps.end() ? nullptr : &*it;
}

TrainQuestion book() {
  TrainQuestion q{.model = "llama3-70b", .hardware = "book/tpu-v5p", .chips = 8960};
  q.batch_tokens = 4194304;
  q.seq = 4096;
  q.tokens = 15e12;
  q.ideal = true;
  return q;
}

/// Scaling book, chapter 6: LLaMA 3-70B on a v5p pod.
TEST(BookChapter6, MixedFsdpTensorRanksFirst) {
  TrainQuestion q = book();
  q.fix.zero = 3;  // the book shards weights; replicas of them that tensor ranks make fit are a little faster still
  const TrainAnswer a = ask(q);
  ASSERT_FALSE(a.plans.empty());
  const Layout& l = a.plans.front().plan.layout;
  EXPECT_GT(l.fsdp, 1);
  EXPECT_GT(l.tp, 1);
  EXPECT_EQ(l.pp, 1);
  EXPECT_EQ(a.plans.front().figures.bound_by, "compute");
}

TEST(BookChapter6, PureFsdpIsCommunicationBound) {
  TrainQuestion q = book();
  q.fix = {.dp = 1, .tp = 1, .pp = 1, .zero = 3};
  const TrainAnswer a = ask(q);
  ASSERT_FALSE(a.plans.empty());
  EXPECT_EQ(a.plans.front().plan.slice.chips, 8960);
  EXPECT_EQ(a.plans.front().figures.bound_by, "fsdp communication");
}

TEST(BookChapter6, ExplainShowsTheBooksNumbers) {
  TrainQuestion q = book();
  q.explain = true;
  const TrainAnswer a = ask(q);
  ASSERT_GE(a.explanation.size(), 5u) << "time and cost of the run come last";
  const ExplainSection& rules = a.explanation[2];
  const auto value = [&](const char* name) {
    const ExplainedStep* step = find(rules, name);
    EXPECT_NE(step, nullptr) << name;
    return step == nullptr ? 0 : step->value;
  };
  EXPECT_NEAR(value("tokens per chip"), 468.114, 1e-3);
  EXPECT_DOUBLE_EQ(value("alpha"), 2550);
  EXPECT_DOUBLE_EQ(value("FSDP limit, tokens per chip"), 850);
  EXPECT_NEAR(value("X_opt"), 1619.086, 1e-3);
  EXPECT_NEAR(value("FSDP x TP limit, tokens per chip"), 113.395, 1e-3);
  // The book rounds the parameters to 70e9: 6.3e24, 435 and 44.3.
  EXPECT_DOUBLE_EQ(value("training FLOPs"), 6 * 70553706496.0 * 15e12);
  EXPECT_NEAR(value("training FLOPs"), 6.3e24, 0.01 * 6.3e24);
  EXPECT_NEAR(value("chip-years at peak"), 435.232 * 70.553706496 / 70, 1e-3);
  EXPECT_NEAR(value("time at 40 % MFU") / 86400, 44.3247 * 70.553706496 / 70, 1e-3);
}

/// Scaling book, chapter 12: behind switches it is the node's egress that counts, and tensor parallelism in the node.
TEST(BookChapter12, ExplainShowsTheRulesBehindSwitches) {
  TrainQuestion q{.model = "llama3-70b", .hardware = "book/h100", .chips = 1024};
  q.explain = true;
  const TrainAnswer a = ask(q);
  ASSERT_GE(a.explanation.size(), 3u);
  const ExplainSection& rules = a.explanation[2];
  ASSERT_NE(find(rules, "FSDP limit, tokens per chip"), nullptr);
  EXPECT_DOUBLE_EQ(find(rules, "FSDP limit, tokens per chip")->value, 2475);
  EXPECT_NEAR(find(rules, "TP limit inside a node, chips")->value, 28672 / 2200.0, 1e-9);
  EXPECT_EQ(find(rules, "X_opt"), nullptr);  // the book's split is for a torus
}

TEST(Explain, TheExplainedStepIsTheAnsweredStep) {
  TrainQuestion q{.model = "mixtral-8x7b", .hardware = "mi300x", .chips = 64};
  q.explain = true;
  q.plan = 1;
  const TrainAnswer a = ask(q);
  const ExplainedStep& last = a.explanation[0].steps.back();
  EXPECT_EQ(last.name, "step time");
  EXPECT_NEAR(last.value, a.plans[0].plan.step_s, 1e-12 * last.value);
  EXPECT_NEAR(a.explanation[1].steps.back().value, a.plans[0].plan.memory.total().value(), 1);
  for (const ExplainSection& section : a.explanation) {
    for (const ExplainedStep& step : section.steps) EXPECT_FALSE(step.source.empty()) << step.name;
  }
}

TEST(Defaults, ComeFromTheModelsFileAndAreListed) {
  const TrainAnswer a = ask({.model = "llama3-70b", .hardware = "tpu-v5p", .chips = 8960});
  EXPECT_EQ(a.workload.seq, 8192);
  EXPECT_EQ(a.workload.tokens, 15e12);
  for (const char* flag :
       {"--seq", "--batch-tokens", "--tokens", "--precision", "--optimizer", "--price", "--efficiency"}) {
    EXPECT_TRUE(std::any_of(a.assumptions.begin(), a.assumptions.end(), [&](const Assumption& x) {
      return x.flag == flag;
    })) << flag;
  }
}

TEST(Defaults, PrecisionTheChipLacksIsReplacedWithAWarning) {
  const TrainAnswer a = ask({.model = "deepseek-v3", .hardware = "a100-80g", .chips = 1024, .top = 1});
  EXPECT_EQ(a.workload.precision.name, "bf16");
  EXPECT_TRUE(std::any_of(a.assumptions.begin(), a.assumptions.end(),
                          [](const Assumption& x) { return x.warning && x.flag == "--precision"; }));
}

TEST(Defaults, AChipWithoutBf16TrainsInFp16) {
  const TrainAnswer a = ask({.model = "opt-125m", .hardware = "v100", .chips = 8, .top = 1});
  EXPECT_EQ(a.workload.precision.name, "fp16");
  EXPECT_TRUE(std::any_of(a.assumptions.begin(), a.assumptions.end(),
                          [](const Assumption& x) { return x.flag == "--precision"; }));
}

TEST(Defaults, PrecisionAskedForAndMissingIsAnError) {
  TrainQuestion q{.model = "llama3-8b", .hardware = "a100-80g", .chips = 8};
  q.precision = "fp8";
  try {
    ask(q);
    FAIL();
  } catch (const UserError& e) {
    EXPECT_EQ(e.diagnostics().at(0).message, "a100-80g publishes no rate for --precision fp8");
    EXPECT_EQ(e.diagnostics().at(0).hint, "its matmul rates: fp64, fp32, tf32, bf16, fp16, int8, int4");
  }
}

/// Racks of 72 chips: jobs of powers of two use 64 of each.
TEST(Machine, RacksAreFilledEvenly) {
  const auto part = [](const TrainAnswer& a) {
    const auto it = std::find_if(a.assumptions.begin(), a.assumptions.end(), [](const Assumption& x) {
      return x.text.find(" of the 72 chips of ") != std::string::npos;
    });
    return it == a.assumptions.end() ? std::string() : it->text;
  };
  for (const char* chip : {"gb200", "gb300"}) {
    for (const std::int64_t chips : {64, 72, 128, 256, 512, 1024, 2304}) {
      TrainQuestion q{.model = "llama3-70b", .hardware = chip, .chips = chips, .top = 1};
      q.max = {.tp = 8, .cp = 1, .pp = 8};
      const TrainAnswer a = ask(q);
      ASSERT_FALSE(a.plans.empty()) << chips << " of " << chip;
      EXPECT_EQ(part(a).empty(), chips % 72 == 0) << chips << " of " << chip;
    }
  }
  EXPECT_EQ(part(ask({.model = "llama3-8b", .hardware = "gb200", .chips = 256, .top = 1})),
            "64 of the 72 chips of each node are used: 256 divide evenly over no fewer than 4");
}

TEST(Batch, SayWhatIsReallyRun) {
  TrainQuestion q{.model = "llama3-70b", .hardware = "tpu-v5p", .chips = 8960};
  q.seq = 4096;
  q.batch_seqs = 1024;  // 8960 = 2^8 x 5 x 7 does not divide 1024
  const TrainAnswer a = ask(q);
  for (const RankedPlan& p : a.plans) {
    EXPECT_EQ(std::fmod(p.plan.batch_seqs, static_cast<double>(p.plan.layout.data())), 0);
    EXPECT_NEAR(p.plan.batch_seqs, 1024, 128);
  }
  bool fewer = false;
  for (const std::string& line : a.completeness) fewer = fewer || line.find("16x16x24") != std::string::npos;
  EXPECT_TRUE(fewer) << "plans on fewer chips are searched too";
}

/// 8,960 = 2^8 x 5 x 7 chips run a batch of 1,120; 6,144 run it with less communication for each token.
TEST(Batch, FewerChipsThatAreCheaperAreOffered) {
  TrainQuestion q{.model = "llama3-70b", .hardware = "tpu-v5p", .chips = 8960};
  const TrainAnswer a = ask(q);
  ASSERT_TRUE(a.cheaper.has_value());
  EXPECT_LT(a.cheaper->plan.slice.chips, 8960);
  EXPECT_LT(a.cheaper->figures.run->chip_hours, 0.99 * a.plans.front().figures.run->chip_hours);
  q.objective = Objective::kCost;
  const TrainAnswer by_cost = ask(q);
  EXPECT_FALSE(by_cost.cheaper.has_value());
  double cheapest = 1e300;
  for (const RankedPlan& p : by_cost.plans) cheapest = std::min(cheapest, p.figures.run->chip_hours);
  EXPECT_NEAR(a.cheaper->figures.run->chip_hours, cheapest, 0.01 * cheapest) << "ties rank by memory";
}

TEST(NothingFits, SaysByHowMuchAndWhatWould) {
  const TrainAnswer a =
      ask({.model = "llama2-7b", .hardware = "h100-sxm", .chips = 1, .stack = "megatron", .fix = {.offload = 0}});
  EXPECT_TRUE(a.plans.empty());
  ASSERT_TRUE(a.nearest_miss.has_value());
  EXPECT_GT(a.nearest_miss->plan.memory.total().value(), a.hw.hbm_capacity.value());
  // 6.74e9 parameters of 2 + 4 + 6 bytes are 80.9 GB, activations and loss 2.6 GB, megatron's reserve 2.1 GB: 85.6 GB.
  EXPECT_EQ(either_of(a.would_fit), "--chips 2 or --offload auto or --optimizer adam8bit");
}

TEST(Figures, SumAndAgree) {
  const TrainAnswer a = ask({.model = "llama3.1-405b", .hardware = "h100-sxm", .chips = 1024, .top = 3});
  for (const RankedPlan& p : a.plans) {
    double time = 0, bytes = 0;
    for (const auto& [cause, s] : p.figures.time_s) time += s;
    for (const auto& [part, b] : p.figures.memory_bytes) bytes += b;
    EXPECT_NEAR(time, p.plan.step_s, 1e-12 * time);
    EXPECT_NEAR(bytes, p.plan.memory.total().value(), 1);
    EXPECT_LE(p.figures.step_low_s, p.plan.step_s);
    EXPECT_GE(p.figures.step_high_s, p.plan.step_s);
    EXPECT_GE(p.figures.hfu, p.figures.mfu);
    EXPECT_NEAR(p.figures.run->time_s * p.figures.tokens_per_s, 15.6e12, 1e6);
    EXPECT_NEAR(*p.figures.run->cost_usd, p.figures.run->chip_hours * a.hw.prices.front().usd_per_chip_hour, 1);
  }
}

/// Stated 400 TFLOP/s on the Megatron 2024 convention: 6N + full attention per token over the measured step, see the
/// tables of NVIDIA's README (GPT 177B, vocabulary 131,072 on 8 x 12 layers: 432.8 TFLOP/s at 5.259 s).
TEST(Figures, MegatronsConventionReproducesItsPublishedTable) {
  const TrainAnswer a = ask({.model = "gpt3-175b", .hardware = "a100-80g", .chips = 1024, .top = 1});
  const auto& all = a.plans.front().figures.conventions;
  const auto convention = [&](const char* name) {
    return std::find_if(all.begin(), all.end(), [&](const FlopsConvention& c) { return c.name == name; })
        ->tflops_per_chip;
  };
  // 96 layers, d_model 12288, seq 2048, vocab 50257: 6N = 72 L D^2 + 6 V D, full attention 12 L T D per token.
  const double six_n = 72.0 * 96 * 12288 * 12288 + 6.0 * 50257 * 12288;
  const double full = 12.0 * 96 * 2048 * 12288;
  const double per_token = a.plans.front().figures.tokens_per_s_per_chip / 1e12;
  EXPECT_NEAR(convention("megatron-2024"), (six_n + full) * per_token, 1e-6);
  EXPECT_NEAR(convention("megatron"), (six_n + full / 2) * per_token, 1e-6);
  EXPECT_NEAR(convention("torchtitan"), (six_n + full) * per_token, 1e-6);
}

TEST(Figures, WhatIsComparedIsThatOfTheWholeAnswer) {
  TrainQuestion question;
  question.model = "llama3-8b";
  question.hardware = "h100-sxm";
  question.chips = 16;
  question.top = 1;
  const ResolvedQuestion resolved = resolve(question, Catalog());
  const PlanRequest request = request_of(question, resolved);
  const PlanResult found = plan(request);
  ASSERT_EQ(found.plans.size(), 1U);
  const PlanFigures whole = figures(resolved, request, found.plans.front());
  const PlanFigures compared = compared_figures(resolved, request, found.plans.front());
  EXPECT_EQ(compared.mfu, whole.mfu);
  EXPECT_EQ(compared.step_low_s, whole.step_low_s);
  EXPECT_EQ(compared.step_high_s, whole.step_high_s);
  EXPECT_EQ(compared.bound_by, whole.bound_by);
  EXPECT_EQ(compared.time_s, whole.time_s);
  EXPECT_EQ(compared.memory_bytes, whole.memory_bytes);
  EXPECT_TRUE(compared.memory_by_stage.empty()) << "what nobody compares is left out";
}

TEST(Answer, AsidesChangeNoPlan) {
  TrainQuestion question;
  question.model = "llama3-8b";
  question.hardware = "h100-sxm";
  question.chips = 24;
  const TrainAnswer whole = answer(question, Catalog());
  question.asides = false;
  const TrainAnswer plain = answer(question, Catalog());
  EXPECT_FALSE(plain.cheaper);
  EXPECT_FALSE(plain.batch_to_fill);
  ASSERT_EQ(plain.plans.size(), whole.plans.size());
  for (std::size_t i = 0; i < whole.plans.size(); ++i) {
    EXPECT_EQ(plain.plans[i].plan.layout, whole.plans[i].plan.layout);
    EXPECT_EQ(plain.plans[i].plan.step_s, whole.plans[i].plan.step_s);
  }
  EXPECT_EQ(plain.recommended->plan.plan.layout, whole.recommended->plan.plan.layout);
}

/// Its bubble is of forwards too, with the traffic of those layers that have any: the search takes the fewest that fit.
TEST(Answer, UnderDualPipeOffloadingMoreLayersIsNoFaster) {
  TrainQuestion question{.model = "llama3-70b", .hardware = "h100-sxm", .chips = 64};
  question.batch_seqs = 32;
  question.stack = "any";
  question.set = {"model.layers=160", "hw.hbm.capacity=93GB", "hw.host.ram=40TB"};
  question.fix.pp = 8;
  question.fix.tp = 4;
  question.fix.dp = 2;
  question.fix.schedule = Schedule::kDualPipe;
  question.fix.micro_batch_seqs = 1;
  question.fix.remat = Remat::kNone;
  question.fix.loss = LossKind::kWhole;
  question.fix.zero = 1;
  question.fix.offload = kOffloadActivations;
  double before = 0;
  for (const std::int64_t layers : {17, 18, 19, 0}) {  // of the 20 of a part; 0: all
    question.fix.offload_layers = layers;
    const TrainAnswer a = ask(question);
    if (layers != 0 && a.plans.empty()) continue;  // too few of them to fit
    ASSERT_FALSE(a.plans.empty()) << layers;
    EXPECT_GE(a.plans.front().plan.step_s, before) << layers;
    before = a.plans.front().plan.step_s;
  }
}

}  // namespace
}  // namespace scalecalc
