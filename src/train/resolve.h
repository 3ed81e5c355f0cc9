// From a question as typed to a request the planner can search: files loaded, overrides applied, defaults filled in
// and recorded as assumptions.
#pragma once

#include "import/named_model.h"
#include "plan/request.h"
#include "plan/stack_supports.h"
#include "spec/evidence.h"
#include "spec/kernel_spec.h"
#include "train/question.h"

namespace scalecalc {

struct ResolvedQuestion {
  ModelSpec model;
  HardwareSpec hw;
  Workload workload;
  Efficiency efficiency;
  std::shared_ptr<const StackRelease> launcher;  ///< whose layouts are searched; null: those of any
  std::string software;                          ///< that runs the step: "torchtitan 2026-08"
  std::vector<Slice> slices;                     ///< the machine asked for first, then smaller ones worth offering
  std::size_t shapes_left_out = 0;               ///< longer boxes of the same count that are not searched
  std::vector<MechanismEvidence> evidence;       ///< of each mechanism, in their order; empty: nobody asks
  std::vector<Assumption> assumptions;
  KernelChoice kernel;  ///< of attention
  std::optional<double> usd_per_chip_hour;
  RunQuestion run;
  std::shared_ptr<RunBounds> bounds;  ///< of questions that differ in the number of chips alone; null: its own
};

/// UserError for everything that is wrong with the question.
ResolvedQuestion resolve(const TrainQuestion& question, const Catalog& catalog);
/// The same for a model that no file has; what `question` names is not looked up.
ResolvedQuestion resolve(const TrainQuestion& question, const Catalog& catalog, const ModelDocument& model);
/// The same for a model that is loaded already, to which the question's --set does not apply.
ResolvedQuestion resolve(const TrainQuestion& question, const Catalog& catalog, ModelSpec model);
/// The answer to a question that is resolved already.
TrainAnswer answer(const TrainQuestion& question, ResolvedQuestion resolved, const std::function<bool()>& stop = {});

/// --stack as typed: "megatron", "megatron@0.14", "any".
struct StackAsked {
  std::string name;     ///< empty: the chip's usual one
  std::string version;  ///< empty: the newest
  bool any = false;     ///< layouts of any stack, by the usual one's coefficients
};
StackAsked stack_asked(const std::string& typed);

/// The hardware's coefficients under the stack asked for or the usual one, or the pure roofline's. UserError for a
/// stack it has none of.
Efficiency efficiency_asked_for(const TrainQuestion& question, const HardwareSpec& hw, const ModelSpec& model);
/// Memory and runtime of a stack by its name or a framework's, and whether its models drop out: into `out`, whose model
/// and efficiency are there already. No particular stack's for an empty name. UserError for an unknown one.
void run_under_stack(const Catalog& catalog, const std::string& stack, std::string_view month, ResolvedQuestion& out);
/// The widest heads of a model's attention, which the kernel has to take; of attention that picks tokens, or to
/// compressed ones, the usual ones, since kernels of its own run that.
HeadWidths widest_heads(const ModelSpec& model);
/// Attention as that kernel does it, at its rates unless they are the ideal ones.
void run_kernel(const KernelChoice& kernel, bool ideal, ResolvedQuestion& out);
/// Says which kernels no efficiency coefficient was measured for.
void assume_unmeasured_kernels(ResolvedQuestion& out);
/// All but the machine, for questions about many: `slices` stays empty, and `question.chips` is the largest count.
ResolvedQuestion resolve_job(const TrainQuestion& question, const Catalog& catalog);
/// The job on the machine of `question`. UserError if it is not built; reads no file.
ResolvedQuestion on_machine(const TrainQuestion& question, ResolvedQuestion job);

/// Keeps pointers into `resolved`.
PlanRequest request_of(const TrainQuestion& question, const ResolvedQuestion& resolved);

}  // namespace scalecalc
