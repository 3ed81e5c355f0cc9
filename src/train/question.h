// `scalecalc train`: the question as typed, and the answer with everything it assumed. The library knows nothing of
// terminals; report/ turns an answer into tables and JSON.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/explained.h"
#include "config/catalog.h"
#include "economics/economics.h"
#include "plan/request.h"
#include "spec/evidence.h"

namespace scalecalc {

/// A layout to hold ours against: pins as typed, or a plan of a saved answer.
struct ReferenceLayout {
  LayoutFilter pins;
  std::string file;      ///< of `train --json`; empty: `pins` were typed
  std::size_t rank = 0;  ///< of the plan in the file; 0: the one it recommends
};

/// Adapters as asked for; what is absent takes the defaults of FineTune.
struct FineTuneQuestion {
  std::int64_t rank = 1;
  std::optional<std::uint8_t> targets;
  std::optional<bool> experts;
  std::optional<BaseFormat> base;
};

/// As given on the command line, quantities already parsed; what is absent takes the model's and hardware's defaults.
struct TrainQuestion {
  std::string model;     ///< catalog name or path, of a config.json or a directory with one too
  std::string assume;    ///< family a config.json is read as; empty: what it says
  std::string hardware;  ///< catalog name or path
  std::int64_t chips = 0;
  std::int64_t slices = 1;
  std::optional<std::string> topology;  ///< "16x20x28"
  std::optional<std::int64_t> seq;      ///< tokens of a sequence, or with `pack` of each document in it
  std::optional<Lengths> documents;     ///< lengths in the place of `seq`
  std::optional<std::int64_t> pack;     ///< tokens of the sequences that documents fill; absent: the longest's
  std::string images;                   ///< of each sequence, as images_of takes them; empty: none
  std::optional<double> batch_tokens;
  std::optional<double> batch_seqs;
  std::optional<double> tokens;
  std::optional<double> batch_tolerance;  ///< fraction; see Workload
  std::optional<std::string> precision;
  std::optional<std::string> optimizer;
  std::string attention;                   ///< as KernelQuestion::stated
  std::optional<GraphCapture> graphs;      ///< absent: none is captured
  std::optional<ExpertDispatch> dispatch;  ///< absent: as the stack
  std::optional<Scaling> fp8_recipe;       ///< of 8-bit operands; absent: as the stack
  bool balanced_experts = false;
  std::optional<bool> dropout;            ///< after attention and MLP; absent: as the stack's scripts do
  std::optional<double> expert_capacity;  ///< experts take this x their mean load, filled up
  CommOverlap tp_overlap = CommOverlap::kStack, dp_overlap = CommOverlap::kStack;
  std::optional<StageSplit> stages;           ///< absent: as the stack
  std::optional<FineTuneQuestion> fine_tune;  ///< absent: the whole model trains
  std::optional<double> price;                ///< USD per chip and hour
  RunQuestion run;
  bool ideal = false;
  std::string stack;  ///< software stack whose coefficients to use; empty: the usual one
  /// Of a run that was measured: the stack whose coefficients to use, as efficiency_under, whatever software kept its
  /// memory; what ran is not refused.
  std::optional<std::string> rates;
  std::string framework;                 ///< of the stack, where that has kernels of its own; empty: the stack
  std::string as_of;                     ///< a date: the software as it was then; empty: in its newest release
  std::optional<double> node_bandwidth;  ///< bytes/s that leave a node in one direction; absent: as the chip's file
  bool master_weights = true;            ///< false: weights train in 16 bits, without an fp32 copy
  bool fp8_activation_inputs = false;    ///< of gated MLPs, kept in 8 bits
  std::optional<bool> compiled;          ///< by torch.compile, which fuses elementwise kernels
  std::optional<bool> fused_loss;        ///< 16-bit logits and their gradient are all that any loss holds
  std::vector<std::string> recomputed;   ///< operations that selective remat runs again; empty: the stack's
  LayoutFilter fix;
  LayoutFilter max;
  Objective objective = Objective::kTime;
  std::size_t top = 10;
  bool variants = false;
  double tie = 0.02;     ///< a simpler plan is recommended if it is behind by no more than this share
  std::size_t plan = 0;  ///< rank of the plan shown in detail; 0 = the recommended one
  bool explain = false;  ///< the formulas behind it
  bool asides = true;    ///< also a plan on fewer chips and a batch that fills the machine, which rows do not show
  bool ranks = true;     ///< also the plans that are not recommended, which one row does not show
  std::vector<LayoutFilter> why_not;    ///< layouts the asker expected: what became of each
  std::optional<ReferenceLayout> from;  ///< what changes against it
  std::vector<std::string> set;         ///< "hw.hbm.bandwidth=5TB/s", "model.layers..."
  std::string expert_load;  ///< "zipf:1.2", kNaturalLoad or a file of loads by expert; empty: the chip's moe_imbalance
};

/// What a framework's log would show for the same step.
struct FlopsConvention {
  std::string name;    ///< "megatron", "maxtext", "torchtitan", "6n", ...
  std::string counts;  ///< what it counts, in one line
  double tflops_per_chip = 0;
  double mfu = 0;
};

/// Of one pipeline stage.
struct StageMemory {
  std::int64_t layers = 0;
  std::vector<std::pair<std::string, double>> bytes;  ///< of each chip, by the parts of PlanFigures::memory_bytes
};

/// The band of a plan that uses what no run of the chip's family shows is this much wider on either side: the mean
/// error of runs whose source was held out from the fit (9.7 %, docs/accuracy.md), rounded up.
inline constexpr double kUnmeasuredBand = 0.1;

struct PlanFigures {
  double tokens_per_s = 0, tokens_per_s_per_chip = 0;
  double step_low_s = 0, step_high_s = 0;  ///< step time over the uncertainty of the efficiency coefficients
  double tflops_per_chip = 0;              ///< model FLOPs (6N + causal attention), as mfu
  double mfu = 0, hfu = 0;                 ///< of the dense peak at the compute format
  std::string bound_by;
  std::vector<std::pair<std::string, double>> time_s;        ///< cause (contract names) and seconds; sums to the step
  std::vector<std::pair<std::string, double>> memory_bytes;  ///< part and bytes; sums to the total
  MemoryBand memory_band;                                    ///< of the total, by the stack's error
  MemoryVerdict memory_verdict = MemoryVerdict::kFits;
  std::vector<StageMemory> memory_by_stage;  ///< of every stage; the fullest's is memory_bytes
  std::vector<PlacedGroup> placement;        ///< of "order" how the dimensions nest
  std::vector<std::int64_t> chunk_layers;    ///< of each pipeline chunk; chunk c is on stage c mod pp
  std::vector<FlopsConvention> conventions;
  std::vector<MechanismEvidence> evidence;  ///< measured runs behind each mechanism the layout uses
  std::optional<RunFigures> run;            ///< absent if the length of the run is not known
};

struct RankedPlan {
  Plan plan;
  PlanFigures figures;
};

/// One figure of the plan ranked first and of another, in base units.
struct ComparedFigure {
  std::string name;  ///< as in PlanFigures
  double best = 0;
  double other = 0;
  double change() const { return other - best; }
};

struct ComparedDimension {
  std::string name;  ///< of a layout dimension, or "machine"
  std::string best;
  std::string other;
};

/// Another plan against the one ranked first. Lists hold what differs, the largest difference first.
struct PlanComparison {
  double slower = 0;  ///< its time per token over the best plan's, less 1
  double scale = 1;   ///< its times are multiplied by this: both move the best plan's tokens a step
  std::vector<ComparedDimension> dimensions;
  std::vector<ComparedFigure> time_s;
  std::vector<ComparedFigure> memory_bytes;
};

enum class LayoutOutcome {
  kIllegal,      ///< a rule excludes it
  kOutOfMemory,  ///< legal, and no variant of it fits
  kOutranked,    ///< fits
  kTied,         ///< fits, and is within 1 % of plan 1
  kBest,         ///< is plan 1
  kBetter,       ///< ranks before plan 1, which other pins of the question hold back
};
inline constexpr std::array<std::string_view, 6> kLayoutOutcomeNames{"illegal", "out_of_memory", "outranked",
                                                                     "tied",    "rank_1",        "better"};

/// What became of the layouts with some pins.
struct LayoutVerdict {
  LayoutFilter pins;
  LayoutOutcome outcome = LayoutOutcome::kIllegal;
  std::vector<std::string> obstacles;          ///< illegal: the rules in the way
  std::vector<std::string> remedies;           ///< illegal: nearest legal values; out of memory: what was seen to fit
  std::optional<RankedPlan> plan;              ///< the best of them; out of memory: the one that needs least
  std::optional<std::size_t> rank;             ///< if it is among the plans shown
  std::optional<PlanComparison> against_best;  ///< if both exist
};

/// The plan to run (train/recommend.h).
struct Recommendation {
  RankedPlan plan;
  std::optional<std::size_t> rank;  ///< among the plans shown
  double behind = 0;                ///< its time (or cost) per token over plan 1's, less 1
  double usable = 1;                ///< share of a chip's memory that leaves room for the error of the memory rules
  bool has_room = true;             ///< it takes no more; false where no plan does
  bool measured_only = false;       ///< faster plans that use what no measured run shows were left aside for it
  std::vector<std::string> aside;   ///< what the fastest of those used: "ring", "expert so far"
  bool only_unmeasured = false;     ///< nothing fits without what no measured run shows
};

/// A plan as a saved answer recorded it, on the question it was asked for.
struct RecordedPlan {
  std::string model, hardware;
  std::int64_t chips = 0;
  std::int64_t seq = 0;
  double batch_tokens = 0, step_s = 0, mfu = 0, memory_bytes = 0;
  std::string bound_by;
};

struct ReferenceVerdict {
  std::string name;                      ///< "answer.json, plan 1", or the layout as typed
  LayoutFilter pins;                     ///< as given
  std::optional<RecordedPlan> recorded;  ///< from a file
  std::vector<std::string> adapted;      ///< "dp 128 -> 64": so that it is a layout of this question
  std::vector<std::string> chosen;       ///< "mb 1": what the reference leaves open
  LayoutVerdict verdict;
};

struct TrainAnswer {
  ModelSpec model;
  HardwareSpec hw;
  Efficiency efficiency;  ///< that the plans were timed with
  std::string software;   ///< as ResolvedQuestion
  Workload workload;
  TrainQuestion question;
  Slice slice;  ///< the slice asked for (its first shape)
  std::vector<RankedPlan> plans;
  std::optional<Recommendation> recommended;  ///< if there are plans
  std::optional<RankedPlan> cheaper;       ///< fewer chips that cost at least 1 % less per token than the fastest plan
  std::optional<RankedPlan> nearest_miss;  ///< nothing fits: the least over capacity
  std::vector<std::string> obstacles;      ///< no layout is legal: which pins and rules are in the way
  std::optional<double> batch_to_fill;     ///< tokens of a step that would keep the chips busy, if this one does not
  std::vector<FlagChange> would_fit;       ///< nothing fits: what would
  std::vector<LayoutVerdict> why_not;      ///< one for each of the question's
  std::optional<ReferenceVerdict> from;    ///< of the question's reference
  SearchStats search;
  std::vector<std::string> completeness;  ///< what was searched and what was left out
  std::vector<Assumption> assumptions;
  std::vector<ExplainSection> explanation;
};

/// The plan asked for by rank, or the recommended one; nullptr if there is none.
const RankedPlan* detailed_plan(const TrainAnswer& answer);

/// The question with the defaults in it that it was answered with; those of the hardware too.
TrainQuestion understood(TrainQuestion question, const Workload& workload);
TrainQuestion understood(TrainQuestion question, const Workload& workload, const HardwareSpec& hw,
                         const ModelSpec& model);

/// UserError for a wrong question. No plan that fits is an answer: plans is empty, nearest_miss says what is short.
TrainAnswer answer(const TrainQuestion& question, const Catalog& catalog, const std::function<bool()>& stop = {});

}  // namespace scalecalc
