// Computes the parts that jobs of training and inference are made of, for `distill` and `rl`.
#include "jobs/job_part.h"

#include <algorithm>
#include <cmath>

#include "base/scalar.h"
#include "model/accounting.h"
#include "network/slice.h"
#include "network/tier_rates.h"
#include "plan/plan_costs.h"
#include "serve/serve_search.h"
#include "serve/serving_cost.h"

namespace scalecalc {

BytesPerSecondOf<Traced> chip_ingress(const HardwareSpec& hw, const Efficiency& efficiency, std::int64_t chips,
                                      bool apart) {
  const Reader<Traced> reader;
  const std::size_t tier = spanning_tier(hw, chips, apart);
  return named(tier_bandwidth(reader, hw, tier) * link_efficiency(reader, efficiency, tier), "rate into a chip",
               "book ch. 3, 12");
}

std::optional<BytesPerSecondOf<Traced>> host_link(const HardwareSpec& hw) {
  if (!hw.host_bandwidth() || hw.host_memory().value() <= 0) return std::nullopt;
  return read(Reader<Traced>{}, *hw.host_bandwidth(), "hw.host.pcie_bandwidth", hw.host_source);
}

std::vector<std::int64_t> built_counts(const HardwareSpec& hw, std::int64_t most) {
  std::vector<std::int64_t> out;
  for (std::int64_t count = nearest_above(hw, 1, 1); count > 0 && count <= most;
       count = nearest_above(hw, count + 1, 1)) {
    out.push_back(count);
  }
  return out;
}

ChipSplits chip_splits(const HardwareSpec& hw, std::int64_t chips) {
  ChipSplits out;
  if (chips < 2 || hw.network.empty()) return out;
  std::vector<ChipSplit> all;
  for (const std::int64_t first : built_counts(hw, chips - 1)) {
    const std::int64_t second = nearest_below(hw, chips - first, 1);
    if (second > 0) all.push_back({first, second});
  }
  if (all.size() <= kMostSplits) {
    out.splits = std::move(all);
    return out;
  }
  for (std::size_t i = 0; i < kMostSplits; ++i) out.splits.push_back(all[i * (all.size() - 1) / (kMostSplits - 1)]);
  out.left_out = all.size() - kMostSplits;
  return out;
}

JobRun job_run(const ResolvedQuestion& job, std::int64_t chips, const SecondsOf<Traced>& time) {
  const Traced count = Traced::leaf(static_cast<double>(chips), "chips", "asked", {});
  const SecondsOf<Traced> hour(Traced::leaf(3600, "an hour", "", kSecondDim));
  JobRun out{.time = time, .chip_hours = named(time * count / hour, "chip-hours", "chips x time")};
  if (job.usd_per_chip_hour) {
    const Quantity<kUsdDim, Traced> price(
        Traced::leaf(*job.usd_per_chip_hour, "price of a chip-hour", "--price or the hardware file", kUsdDim));
    out.cost = named(price * out.chip_hours, "cost", "chip-hours x price");
  }
  if (job.hw.tdp) {
    const auto power = read(Reader<Traced>{}, *job.hw.tdp, "hw.power.tdp", job.hw.tdp_source);
    out.energy = named(time * power * count, "energy", "every chip at its full power, idle or not");
  }
  return out;
}

PlanReading<Traced> explain_plan(const TrainedPlan& plan) {
  return read_plan(Reader<Traced>{}, request_of(plan.question, *plan.resolved), plan.ranked.plan);
}

double forward_pass_time(const PlanRequest& request, const Plan& plan) {
  const Reader<double> reader;
  const PlanCosts<double> costs(reader, request, plan);
  const Layout& layout = plan.layout;
  const auto stages = static_cast<double>(layout.pp);
  const double filling = (stages - 1) / static_cast<double>(layout.vpp);
  const double passes = (static_cast<double>(layout.grad_accum) + filling) / stages;
  return passes * phases(costs.input()).forward_whole.value();
}

JobTrainer::JobTrainer(TrainQuestion question, const Catalog& catalog, Stop stop)
    : question_(std::move(question)), job_(resolve_job(question_, catalog)), stop_(std::move(stop)) {
  question_.top = 1;
}

double JobTrainer::bound(std::int64_t chips) const {
  const Workload& w = job_.workload;
  const double peak = job_.hw.matmul_peak[static_cast<std::size_t>(w.precision.compute)]->value();
  // Plans may run a batch that divides better, but times are scaled to the tokens asked for.
  return training_flops(job_.model, static_cast<double>(w.seq)).six_n * step_tokens() /
         (static_cast<double>(chips) * peak);
}

std::shared_ptr<const TrainedPlan> JobTrainer::on(std::int64_t chips, double taken) {
  const auto [at, fresh] = known_.try_emplace({chips, taken});
  if (fresh) at->second = search(chips, taken);
  return at->second;
}

std::shared_ptr<const TrainedPlan> JobTrainer::search(std::int64_t chips, double taken) {
  if (slices_of(job_.hw, chips, 1).empty()) return nullptr;
  TrainQuestion question = question_;
  question.chips = chips;
  auto resolved = std::make_shared<ResolvedQuestion>(on_machine(question, job_));
  // What a chip holds is all that the planner is told of the others.
  resolved->hw.hbm_capacity = Bytes(std::max(0.0, job_.hw.hbm_capacity.value() - taken));
  const PlanRequest request = request_of(question, *resolved);
  PlanResult result = plan(request, stop_);
  if (result.plans.empty()) {
    if (result.nearest_miss) nearest_miss_ = std::move(result.nearest_miss);
    return nullptr;
  }
  TrainedPlan out{.question = question,
                  .resolved = resolved,
                  .ranked = ranked(*resolved, request, std::move(result.plans.front()))};
  const Plan& best = out.ranked.plan;
  const double scale = job_.workload.batch_seqs / best.batch_seqs;
  out.step_s = best.step_s * scale;
  out.forward_s = forward_pass_time(request, best) * scale;
  return std::make_shared<const TrainedPlan>(std::move(out));
}

namespace {

constexpr double kLogitBytes = 4;  // logits are reduced to probabilities in fp32

/// Sequences that a rank takes in one step.
double at_a_time(const ServeBasis<double>& basis, const ForwardLoad& load) {
  return std::max(1.0, std::floor(basis.system.chunk_tokens / load.tokens));
}

double memory_of(const ServeBasis<double>& basis, const ServeLayout& layout, const ForwardLoad& load) {
  const double fixed = ServeMemory(basis, layout).parts(0, 0).total();
  const double rows = load.all_logits ? at_a_time(basis, load) * load.tokens : 0;
  return fixed + rows * to_double(basis.system.model->head_width()) * kLogitBytes / to_double(layout.tp * layout.cp);
}

ServeStep batch_of(const ForwardLoad& load, double sequences) {
  return {.prefill_sequences = sequences, .prefill_tokens = load.tokens, .all_logits = load.all_logits};
}

/// Sequences of a replica's step, and how many such steps there are.
void fill_batches(const ServeBasis<double>& basis, const ForwardLoad& load, ForwardPass& pass) {
  const ServeLayout& layout = pass.layout;
  const double ranks =
      to_double(layout.attention_dp * layout.pp) * (layout.scheme == ServeScheme::kGathered ? to_double(layout.tp) : 1);
  const double share = std::ceil(load.sequences / to_double(layout.dp));
  pass.at_once = std::min(share, ranks * at_a_time(basis, load));
  pass.batches = std::ceil(share / pass.at_once);
}

}  // namespace

SecondsOf<Traced> explain_pass(const ServingSystem& system, const ForwardLoad& load, const ForwardPass& pass) {
  const ServeBasis<Traced> basis(Reader<Traced>{}, system);
  return ServingCost<Traced>(basis, pass.layout, pass.slice, pass.placement).step(batch_of(load, pass.at_once)).total();
}

std::vector<ForwardPass> forward_passes(const ServeBasis<double>& basis, std::int64_t chips, const ForwardLoad& load,
                                        double room, const ServePins& fix, const ServePins& max) {
  const HardwareSpec& hw = *basis.system.hw;
  const Deployments candidates = deployments(basis.system, chips, fix, max);
  std::vector<ForwardPass> all;
  for (const ServeLayout& layout : candidates.layouts) {
    const Slice& slice = *candidates.slice;
    const double memory = memory_of(basis, layout, load);
    if (memory > room || placed(hw, slice, layout).empty()) continue;
    ForwardPass pass{.layout = layout, .chips = chips, .memory_bytes = memory, .slice = slice};
    pass.weight_bytes = ServeMemory(basis, layout).parts(0, 0).weights;
    pass.placement = best_placement(basis, layout, slice);
    fill_batches(basis, load, pass);
    const ServingCost<double> cost(basis, layout, slice, pass.placement);
    pass.seconds = pass.batches * cost.step(batch_of(load, pass.at_once)).total().value();
    all.push_back(std::move(pass));
  }
  std::stable_sort(all.begin(), all.end(), [](const ForwardPass& a, const ForwardPass& b) {
    return a.seconds != b.seconds ? a.seconds < b.seconds : a.memory_bytes < b.memory_bytes;
  });
  std::vector<ForwardPass> front;
  for (const ForwardPass& pass : all) {
    if (front.empty() || pass.memory_bytes < front.back().memory_bytes) front.push_back(pass);
  }
  return front;
}

}  // namespace scalecalc
