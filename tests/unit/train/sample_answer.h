// A made-up answer with round numbers, so that tests of reports need no planner.
#pragma once

#include "train/question.h"

namespace scalecalc {

inline RankedPlan sample_plan() {
  RankedPlan out;
  out.plan.layout = {
      .fsdp = 8, .tp = 4, .micro_batch_seqs = 2, .grad_accum = 4, .sp = true, .zero = 3, .remat = Remat::kSelective};
  out.plan.slice = {.chips = 32, .shape = {2, 4, 4}, .wraps = {false, true, true}};
  out.plan.step_s = 2.0;
  out.plan.batch_seqs = 64;
  PlanFigures& f = out.figures;
  f.tokens_per_s = 262144;
  f.tokens_per_s_per_chip = 8192;
  f.step_low_s = 1.75;
  f.step_high_s = 2.5;
  f.tflops_per_chip = 250;
  f.mfu = 0.5;
  f.hfu = 0.55;
  f.bound_by = "compute";
  f.time_s = {{"compute", 1.5}, {"hbm", 0.25}, {"tp_exposed", 0.25}, {"dp_exposed", 0}};
  f.memory_bytes = {{"weights", 20e9}, {"optimizer", 30e9}, {"logits", 0}, {"reserve", 1e9}};
  f.placement = {{"tp", "y:4 ring"}, {"fsdp", "x:2 + z:4"}};
  f.conventions = {{"megatron", "6N + causal attention", 250, 0.5}};
  f.run =
      RunFigures{.tokens = 1e12, .steps = 1907348.6, .time_s = 3814697.25, .chip_hours = 33908.4, .cost_usd = 135633.6};
  return out;
}

inline TrainAnswer sample_answer() {
  TrainAnswer out;
  out.model.name = "tiny";
  out.model.title = "Tiny <1B>";
  out.hw.name = "chip";
  out.hw.title = "Chip";
  out.hw.hbm_capacity = Bytes(100e9);
  out.hw.prices = {{.usd_per_chip_hour = 4}};
  TorusTier torus;
  out.hw.network = {{.name = "ici", .kind = TierKind::kTorus, .torus = torus}};
  out.workload = {.seq = 8192, .batch_seqs = 64, .tokens = 1e12};
  out.workload.precision.name = "bf16";
  out.workload.optimizer.name = "adam";
  out.software = "stack 1.2";
  out.question.model = "tiny";
  out.question.hardware = "chip";
  out.question.chips = 36;
  out.slice = {.chips = 36, .shape = {3, 3, 4}};
  out.plans = {sample_plan(), sample_plan()};
  out.plans[1].plan.layout = {.dp = 32, .grad_accum = 2, .zero = 1, .remat = Remat::kFull};
  out.plans[1].plan.step_s = 2.25;
  out.plans[1].figures.run->cost_usd.reset();
  out.recommended = Recommendation{.plan = out.plans[0], .rank = 1, .usable = 0.95};
  out.search = {.candidates = 1500, .evaluated = 40, .feasible = 30, .pruned = 900};
  out.search.rejected[static_cast<std::size_t>(Reject::kHeads)] = 7;
  out.completeness = {"searched: everything", "left out: nothing"};
  out.assumptions = {{"sequences of 8,192 tokens", "--seq", "as trained", false}, {"no price is known", "", "", true}};
  return out;
}

/// The same question with nothing that fits.
inline TrainAnswer sample_miss() {
  TrainAnswer out = sample_answer();
  out.plans.clear();
  out.recommended.reset();
  out.nearest_miss = sample_plan();
  out.nearest_miss->figures.memory_bytes = {{"weights", 80e9}, {"optimizer", 45e9}};
  out.would_fit = {{"--chips", "64"}};
  return out;
}

}  // namespace scalecalc
