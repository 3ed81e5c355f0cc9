// What composed jobs are made of: named parts that sum to their time, each with its working; links, the bill, the
// training half, passes of models that do not train.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/scalar.h"
#include "base/stop.h"
#include "serve/serve_question.h"
#include "serve/serving_cost.h"
#include "spec/hardware_spec.h"
#include "train/figures.h"
#include "train/question.h"
#include "train/resolve.h"

namespace scalecalc {

/// One thing that a step waits for.
struct JobPart {
  std::string key;    ///< "generation"
  std::string label;  ///< for people
  SecondsOf<Traced> time;
};

inline SecondsOf<Traced> sum_of_parts(const std::vector<JobPart>& parts) {
  SecondsOf<Traced> out(Traced(0.0));
  for (const JobPart& part : parts) out += part.time;
  return out;
}

/// Seconds or bytes that a search came to: an input of what is composed from them.
inline SecondsOf<Traced> searched_seconds(double value, std::string_view name, std::string_view source) {
  return SecondsOf<Traced>(Traced::leaf(value, name, source, kSecondDim));
}
inline BytesOf<Traced> searched_bytes(double value, std::string_view name, std::string_view source) {
  return BytesOf<Traced>(Traced::leaf(value, name, source, kByteDim));
}

/// Where nothing fits: what, what a chip would need and has.
struct JobShortage {
  std::string who;   ///< "training", "generation", "teacher"
  double needs = 0;  ///< bytes of a chip; 0 where no layout is legal
  double has = 0;
  std::string how;  ///< the nearest layout, or the reason
};

/// Dollars and energy of a whole job.
struct JobRun {
  SecondsOf<Traced> time;
  Traced chip_hours;
  std::optional<Quantity<kUsdDim, Traced>> cost{};
  std::optional<Quantity<kJouleDim, Traced>> energy{};
};

// Bytes that move between the halves of a job: weights to the engine, logits to the student, state to the host.

/// Rate at which one chip receives from others of `chips` that stand together: the innermost switched tier that spans
/// them, over its oversubscription; on a torus one link, one direction (book ch. 3 and 12). Chips of two pools on a
/// torus are slices of their own (`apart`), joined by the tier beyond it. UserError where the chip stands alone.
BytesPerSecondOf<Traced> chip_ingress(const HardwareSpec& hw, const Efficiency& efficiency, std::int64_t chips,
                                      bool apart);

/// One direction of a chip's link to the host, at the share of it that transfers reach; nothing if not published.
std::optional<BytesPerSecondOf<Traced>> host_link(const HardwareSpec& hw);

/// Counts of chips from 1 to `most` that are built, ascending.
std::vector<std::int64_t> built_counts(const HardwareSpec& hw, std::int64_t most);

/// Two pools of one machine.
struct ChipSplit {
  std::int64_t first = 0;
  std::int64_t second = 0;
};

/// Every split of `chips` in two pools that are built: for each count of the first the largest second beside it. Of
/// more than `kMostSplits` those nearest to even steps are kept; `left_out` says how many were not.
inline constexpr std::size_t kMostSplits = 128;
struct ChipSplits {
  std::vector<ChipSplit> splits;
  std::size_t left_out = 0;
};
ChipSplits chip_splits(const HardwareSpec& hw, std::int64_t chips);

// Chip-hours, dollars and energy of a job that holds its chips for so long.

/// Price and power are those of `job`; what is not published is absent.
JobRun job_run(const ResolvedQuestion& job, std::int64_t chips, const SecondsOf<Traced>& time);

// The training half of a composed job: the planner, asked for one count of chips after another, with room left on each
// chip for what else lives there.

/// The best plan of a training job on some chips.
struct TrainedPlan {
  TrainQuestion question;  ///< of these chips
  std::shared_ptr<const ResolvedQuestion> resolved;
  RankedPlan ranked;
  double step_s = 0;     ///< of the tokens asked for: the plan's step times asked over run
  double forward_s = 0;  ///< one pass over the same tokens that keeps nothing for a backward pass
  /// Bytes of one chip that outlive a step: weights, optimizer state and the gradients' buffers.
  double state_bytes() const { return kept_bytes() + ranked.plan.memory.gradients.value(); }
  /// Of these, what cannot be thrown away.
  double kept_bytes() const { return (ranked.plan.memory.weights + ranked.plan.memory.optimizer).value(); }
  double total_bytes() const { return ranked.plan.memory.total().value(); }
};

/// The plan's step and memory with their formulas.
PlanReading<Traced> explain_plan(const TrainedPlan& plan);

/// Seconds of a forward pass over the tokens of a step on the plan's own layout: every microbatch through every stage,
/// and the pipeline filling once, (m + (p - 1) / v) / p passes of the whole model for m microbatches, p stages of v
/// parts each (Narayanan et al. 2021, arXiv:2104.04473 section 2.2, with the backward passes left out).
double forward_pass_time(const PlanRequest& request, const Plan& plan);

class JobTrainer {
 public:
  /// `question.chips` is the largest count that will be asked for. UserError for what is wrong with the question.
  JobTrainer(TrainQuestion question, const Catalog& catalog, Stop stop = {});

  const ResolvedQuestion& job() const { return job_; }
  double step_tokens() const { return job_.workload.batch_seqs * static_cast<double>(job_.workload.seq); }
  /// The fastest plan that leaves `taken` bytes of each chip free; null if none fits. A count that is not built has
  /// none either.
  std::shared_ptr<const TrainedPlan> on(std::int64_t chips, double taken = 0);
  /// No step over these tokens on so many chips is faster: model FLOPs at the data sheet's rate.
  double bound(std::int64_t chips) const;
  /// The least that a layout needed where nothing fitted, of the last such count.
  const std::optional<Plan>& nearest_miss() const { return nearest_miss_; }

 private:
  std::shared_ptr<const TrainedPlan> search(std::int64_t chips, double taken);

  TrainQuestion question_;
  ResolvedQuestion job_;
  Stop stop_;
  std::map<std::pair<std::int64_t, double>, std::shared_ptr<const TrainedPlan>> known_;
  std::optional<Plan> nearest_miss_;
};

// A pass over whole sequences by a model that does not train: a teacher, a reward model. It is what an engine's prefill
// is, the same operations on a layout made for them, with weights in their own format and nothing kept for a backward
// pass; but the head runs on every token where losses need it. A training step's forward would hold the frozen model
// to a layout chosen for gradients and optimizer state that it has none of.
struct ForwardLoad {
  double sequences = 0;     ///< of a pass
  double tokens = 0;        ///< of each
  bool all_logits = false;  ///< the head runs on every token
};

struct ForwardPass {
  ServeLayout layout;
  std::int64_t chips = 0;
  double seconds = 0;       ///< of all sequences
  double weight_bytes = 0;  ///< of a chip
  double memory_bytes = 0;  ///< of a chip, weights, activations, logits and the runtime
  double at_once = 0;       ///< sequences of a replica's step
  double batches = 0;       ///< such steps one after another
  Slice slice{};
  Placement placement{};
};

/// The layouts on exactly so many chips that no other beats in time and in memory, fastest first; those over `room`
/// bytes of a chip are left out. Empty if none fits or the count is not built. Sequences go through in batches of one
/// engine step's tokens, on all replicas at once.
std::vector<ForwardPass> forward_passes(const ServeBasis<double>& basis, std::int64_t chips, const ForwardLoad& load,
                                        double room, const ServePins& fix = {}, const ServePins& max = {});

/// One of the pass's batches with its formulas.
SecondsOf<Traced> explain_pass(const ServingSystem& system, const ForwardLoad& load, const ForwardPass& pass);

}  // namespace scalecalc
