#include "validate/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "model/accounting.h"
#include "train/obstacles.h"

namespace scalecalc {
namespace {

/// FLOPs a token costs in the source's own count.
double flops_per_token(const ModelSpec& model, const Workload& workload, double seq, FlopsCount count) {
  const TrainingFlops flops = training_flops(model, seq, true, workload.fine_tune);
  constexpr double kTraining = 6;
  const double all = kTraining * count_parameters(model).active;
  switch (count) {
    case FlopsCount::k6N: return flops.six_n;
    case FlopsCount::k6NCausal: return flops.model_causal();
    case FlopsCount::k6NFull: return flops.model_full();
    case FlopsCount::k6NAll: return all;
    case FlopsCount::k6NAllFull: return all + flops.attention_full;
    case FlopsCount::kHardware: return flops.model_full() * 4 / 3;
  }
  return 0;
}

[[noreturn]] void refuse_layout(const PlanRequest& request, const SearchStats& stats) {
  const std::vector<std::string> found = obstacles(request);
  auto worst = static_cast<std::size_t>(Reject::kPinned);
  for (std::size_t i = 0; i < kRejectCount; ++i) {
    const bool pinned = i == static_cast<std::size_t>(Reject::kPinned);
    const bool none_yet = worst == static_cast<std::size_t>(Reject::kPinned) || stats.rejected[worst] == 0;
    if (!pinned && stats.rejected[i] > (none_yet ? 0 : stats.rejected[worst])) worst = i;
  }
  throw NotPredicted(fmt::format("no such layout: {}", describe(static_cast<Reject>(worst))), join(found, " "));
}

/// What published runs do to fit and their sources rarely say, the least intrusive first. False where it changes
/// nothing.
struct MemorySaving {
  const char* name;
  bool (*apply)(RowQuestion& question);
};

bool gather_again(RowQuestion& q) { return std::exchange(q.resolved.workload.memory.keeps_gathered, false); }

bool give_back_blocks(RowQuestion& q) { return std::exchange(q.resolved.workload.memory.fragmentation.value, 0) > 0; }

bool fuse_loss(RowQuestion& q) {
  double& bytes = q.resolved.workload.memory.logit_bytes;
  return std::exchange(bytes, std::min(bytes, kFusedLogitBytes)) > kFusedLogitBytes;
}

bool halve_gradients(RowQuestion& q) {
  Workload& w = q.resolved.workload;
  constexpr double kHalf = 2;
  const auto by = w.memory.gradient_bytes.find(w.precision.name);
  const double bytes = by == w.memory.gradient_bytes.end() ? w.precision.gradient_bytes : by->second;
  if (bytes <= kHalf) return false;
  w.memory.gradient_bytes[w.precision.name] = kHalf;
  return true;
}

bool halve_moments(RowQuestion& q) {
  Optimizer& optimizer = q.resolved.workload.optimizer;
  if (optimizer.name != "adam") return false;
  optimizer = optimizer_of("adam-bf16");
  return true;
}

bool drop_momentum(RowQuestion& q) {
  Optimizer& optimizer = q.resolved.workload.optimizer;
  if (optimizer.name != "sgd") return false;
  optimizer.state_bytes -= optimizer.moments * optimizer.moment_bytes;
  optimizer.moments = 0;
  return true;
}

bool drop_master(RowQuestion& q) {
  Workload& w = q.resolved.workload;
  w.memory.sharded_master = false;
  w.optimizer.state_bytes = w.optimizer.moments * w.optimizer.moment_bytes;
  return true;
}

/// Where the row names no policy, the search has looked at all of them.
bool run_layers_again(RowQuestion& q) {
  if (!q.fix.remat || *q.fix.remat == Remat::kFull || *q.fix.remat == Remat::kNone) return false;
  q.fix.remat = Remat::kFull;
  q.fix.remat_layers = 0;
  return true;
}

constexpr std::array kMemorySavings{MemorySaving{"gathered inputs are gathered again", gather_again},
                                    MemorySaving{"the allocator wastes nothing", give_back_blocks},
                                    MemorySaving{"a fused loss", fuse_loss},
                                    MemorySaving{"16-bit gradients", halve_gradients},
                                    MemorySaving{"16-bit moments", halve_moments},
                                    MemorySaving{"no momentum", drop_momentum},
                                    MemorySaving{"no fp32 copy of the weights", drop_master},
                                    MemorySaving{"full remat", run_layers_again}};

}  // namespace

double measured_step(const Measurement& row, const ResolvedQuestion& question) {
  const double tokens = row.batch_seqs * static_cast<double>(row.seq);
  const auto chips = static_cast<double>(row.chips);
  if (row.step_s) return *row.step_s;
  if (row.tokens_per_s_per_chip) return tokens / (*row.tokens_per_s_per_chip * chips);
  if (!row.flops_per_s_per_chip && !row.mfu) {
    throw NotPredicted("no step time was measured", "neither step time, tokens/s, TFLOP/s nor MFU is given");
  }
  const auto* const name = std::find(kFlopsCountNames.begin(), kFlopsCountNames.end(), row.flops_count);
  if (name == kFlopsCountNames.end()) {
    throw NotPredicted("the FLOPs convention of the figure is not known",
                       row.flops_count.empty() ? "none is given" : row.flops_count);
  }
  const auto count = static_cast<FlopsCount>(name - kFlopsCountNames.begin());
  const double each = flops_per_token(question.model, question.workload, static_cast<double>(row.seq), count);
  const double flops = each * tokens / chips;
  const DType format = question.workload.precision.compute;
  const double peak = row.peak_flops_per_s.value_or(question.hw.matmul_peak[static_cast<std::size_t>(format)]->value());
  return flops / row.flops_per_s_per_chip.value_or(row.mfu.value_or(0) * peak);
}

PlanRequest request_of(const RowQuestion& q) {
  return {.model = &q.resolved.model,
          .hw = &q.resolved.hw,
          .efficiency = q.resolved.efficiency,
          .workload = q.resolved.workload,
          .slices = q.resolved.slices,
          .fix = q.fix,
          .top = 1,
          .variants = true,
          .threads = 1};
}

Evaluated evaluate(RowQuestion& question) {
  const PlanRequest request = request_of(question);
  PlanResult found = plan(request);
  if (!found.plans.empty()) return {.plan = std::move(found.plans.front())};
  if (found.stats.rejected[static_cast<std::size_t>(Reject::kMemory)] == 0) refuse_layout(request, found.stats);
  RowQuestion saving_more = question;
  std::vector<std::string> assumed;
  for (const MemorySaving& saving : kMemorySavings) {
    if (!saving.apply(saving_more)) continue;
    assumed.emplace_back(saving.name);
    found = plan(request_of(saving_more));
    if (found.plans.empty()) continue;
    question = std::move(saving_more);
    return {.plan = std::move(found.plans.front()), .assumed = std::move(assumed)};
  }
  constexpr double kNoLimit = 1e18;
  const HardwareSpec limited = question.resolved.hw;
  HardwareSpec& hw = question.resolved.hw;
  hw.hbm_capacity = hw.host_ram = Bytes(kNoLimit);
  if (hw.offload) hw.offload->capacity = Bytes(kNoLimit);
  found = plan(request);
  hw = limited;
  if (found.plans.empty()) refuse_layout(request, found.stats);
  return {.plan = std::move(found.plans.front()), .fits = false};
}

}  // namespace scalecalc
