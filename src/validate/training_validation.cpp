// Predicts measured training runs and computes the errors of step time or memory.
#include "validate/training_validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "model/accounting.h"
#include "spec/load_stack.h"
#include "train/figures.h"
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

bool keep_weights_in_matmul_format(RowQuestion& q) {
  return std::exchange(q.resolved.workload.memory.cached_weights, {}).contains(q.resolved.workload.precision.name);
}

bool halve_gradients(RowQuestion& q) {
  Workload& w = q.resolved.workload;
  constexpr double kHalf = 2;
  if (gradient_bytes(w) <= kHalf) return false;
  w.memory.gradient_bytes[w.precision.name] = kHalf;
  w.memory.gradient_buckets.clear();
  return true;
}

bool halve_moments(RowQuestion& q) {
  Optimizer& optimizer = q.resolved.workload.optimizer;
  if (optimizer.name != "adam") return false;
  optimizer = optimizer_of("adam-bf16", q.resolved.workload.precision);
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
  train_in_16_bits(q.resolved.workload);
  return true;
}

/// Where the row names no policy, the search has looked at all of them.
bool run_layers_again(RowQuestion& q) {
  if (!q.asked.fix.remat || *q.asked.fix.remat == Remat::kFull || *q.asked.fix.remat == Remat::kNone) return false;
  q.asked.fix.remat = Remat::kFull;
  q.asked.fix.remat_layers = 0;
  return true;
}

constexpr std::array kMemorySavings{MemorySaving{"gathered inputs are gathered again", gather_again},
                                    MemorySaving{"the allocator wastes nothing", give_back_blocks},
                                    MemorySaving{"a fused loss", fuse_loss},
                                    MemorySaving{"weights in 8 bits alone", keep_weights_in_matmul_format},
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
  PlanRequest out = request_of(q.asked, q.resolved);
  std::erase_if(out.slices, [&](const Slice& slice) { return slice.chips != q.asked.chips; });
  if (q.chosen.empty()) out.stack.reset();  // what ran is not refused
  out.measured = {};
  out.top = 1;
  out.variants = true;
  out.threads = 1;
  return out;
}

Evaluated evaluate(RowQuestion& question, const Stop& stop) {
  const auto planned = [&](const PlanRequest& request) {
    PlanResult out = plan(request, stop);
    if (should_stop(stop)) throw Stopped();  // what it found says nothing of the whole
    return out;
  };
  PlanRequest request = request_of(question);
  PlanResult found = planned(request);
  if (found.plans.empty() && request.stack) {  // nor is it for what the search would have to choose beside it
    question.resolved.launcher.reset();
    request.stack.reset();
    found = planned(request);
  }
  if (!found.plans.empty()) return {.plan = std::move(found.plans.front())};
  if (found.stats.rejected[static_cast<std::size_t>(Reject::kMemory)] == 0) refuse_layout(request, found.stats);
  RowQuestion saving_more = question;
  std::vector<std::string> assumed;
  for (const MemorySaving& saving : kMemorySavings) {
    if (!saving.apply(saving_more)) continue;
    assumed.emplace_back(saving.name);
    found = planned(request_of(saving_more));
    if (found.plans.empty()) continue;
    question = std::move(saving_more);
    return {.plan = std::move(found.plans.front()), .assumed = std::move(assumed)};
  }
  constexpr double kNoLimit = 1e18;
  const HardwareSpec limited = question.resolved.hw;
  HardwareSpec& hw = question.resolved.hw;
  hw.hbm_capacity = hw.host_ram = Bytes(kNoLimit);
  if (hw.offload) hw.offload->capacity = Bytes(kNoLimit);
  found = planned(request);
  hw = limited;
  if (found.plans.empty()) refuse_layout(request, found.stats);
  return {.plan = std::move(found.plans.front()), .fits = false};
}

namespace {

void compare_time(PredictedRow& out, const Plan& plan) {
  // A batch that does not divide runs a nearby one; its time is stretched to the tokens of the row's.
  const double stretch = out.row.batch_seqs / plan.batch_seqs;
  out.predicted = plan.step_s * stretch;
  out.low = out.figures.step_low_s * stretch;
  out.high = out.figures.step_high_s * stretch;
}

/// Live tensors; what the allocator holds of the device beside them; and all that the driver sees.
double counted(const MemoryUse<double>& memory, MemoryCount count) {
  const double reserved = memory.total().value() - memory.reserve.value();
  switch (count) {
    case MemoryCount::kAllocated: return reserved - memory.allocator.value();
    case MemoryCount::kReserved: return reserved;
    case MemoryCount::kDevice: break;
  }
  return reserved + memory.reserve.value();
}

void compare_memory(PredictedRow& out, const Plan& plan, const StackMemory& rules) {
  out.predicted = counted(plan.memory, out.row.memory_count);
  const MemoryBand band = memory_band(rules, out.predicted);
  out.low = band.low;
  out.high = band.high;
}

/// Below this an order of layouts says little: of one job, and of one model on one kind of chip.
constexpr std::size_t kFewestLayouts = 3;
constexpr std::size_t kFewestOfModel = 5;

/// Runs of one source that differ in layout alone: the same model, machine, batch and precision.
std::string same_job(const PredictedRow& predicted) {
  const Measurement& row = predicted.row;
  return fmt::format("{}|{}|{}|{}|{}|{}|{}", row.group, row.model, row.chip, row.chips, row.seq, row.batch_seqs,
                     row.precision);
}

/// Runs of one model on one kind of chip, whatever the machine's size, the batch and the source.
std::string same_model(const PredictedRow& row) { return fmt::format("{}|{}", row.row.model, row.row.chip); }

/// Sets are in the order of their names, and their number says it too: names are put into words once, as every row
/// stands in a set of each axis.
void number_sets(std::vector<PredictedRow>& rows, std::string (*name)(const PredictedRow&),
                 std::size_t Training::Costed::*number) {
  std::vector<std::string> names;
  names.reserve(rows.size());
  for (const PredictedRow& row : rows) names.push_back(name(row));
  std::vector<std::string> sorted = names;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].*number =
        static_cast<std::size_t>(std::lower_bound(sorted.begin(), sorted.end(), names[i]) - sorted.begin());
  }
}

struct LayoutTimes {
  std::vector<double> measured, predicted;  ///< chip-seconds a token
};

/// What layouts are compared in and what makes two of them different beside the layout itself; null: nothing.
struct LayoutSets {
  std::size_t Training::Costed::*set;
  std::size_t Training::Costed::*variant;
  std::size_t fewest = 0;
};

/// One entry for each layout of a set: the fastest run of it.
std::vector<LayoutTimes> layout_sets(const std::vector<const PredictedRow*>& rows, const LayoutSets& kind) {
  const auto per_token = [](const PredictedRow& row) {
    return static_cast<double>(row.row.chips) / (row.row.batch_seqs * static_cast<double>(row.row.seq));
  };
  std::map<std::size_t, std::map<std::pair<std::size_t, Layout>, const PredictedRow*>> sets;
  for (const PredictedRow* row : rows) {
    const std::size_t variant = kind.variant == nullptr ? 0 : row->*kind.variant;
    const PredictedRow*& best = sets[row->*kind.set][{variant, row->layout}];
    if (best == nullptr || row->measured * per_token(*row) < best->measured * per_token(*best)) best = row;
  }
  std::vector<LayoutTimes> out;
  for (const auto& [number, layouts] : sets) {
    if (layouts.size() < kind.fewest) continue;
    LayoutTimes times;
    for (const auto& [layout, row] : layouts) {
      times.measured.push_back(row->measured * per_token(*row));
      times.predicted.push_back(row->predicted * per_token(*row));
    }
    out.push_back(std::move(times));
  }
  return out;
}

/// Measured time of the layout we would pick over the best measured one, minus 1.
double regret_of(const LayoutTimes& times) {
  const auto pick = std::min_element(times.predicted.begin(), times.predicted.end()) - times.predicted.begin();
  return times.measured[static_cast<std::size_t>(pick)] /
             *std::min_element(times.measured.begin(), times.measured.end()) -
         1;
}

OrderQuality ranks(const std::vector<const PredictedRow*>& rows, const LayoutSets& kind) {
  OrderQuality out;
  std::vector<double> spearmans;
  std::vector<double> kendalls;
  std::vector<double> regrets;
  for (const LayoutTimes& times : layout_sets(rows, kind)) {
    ++out.sets;
    if (const auto value = spearman(times.measured, times.predicted)) spearmans.push_back(*value);
    if (const auto value = kendall(times.measured, times.predicted)) kendalls.push_back(*value);
    regrets.push_back(regret_of(times));
  }
  out.spearman = mean_if_any(spearmans);
  out.kendall = mean_if_any(kendalls);
  out.regret = mean_if_any(regrets);
  out.median_spearman = median_if_any(spearmans);
  return out;
}

/// A large source would drown the others in a plain mean; here each counts once.
void by_source(const std::vector<const PredictedRow*>& rows, ErrorSummary& out) {
  std::map<std::string, std::vector<double>> sources;
  for (const PredictedRow* row : rows) sources[row->row.group].push_back(row->error);
  std::vector<double> means, medians, biases;
  for (const auto& [source, errors] : sources) {
    const Errors one = errors_of(errors);
    means.push_back(one.mean_abs);
    medians.push_back(one.median_abs);
    biases.push_back(one.bias);
  }
  out.source_mean_abs = mean_if_any(means);
  out.source_median_abs = mean_if_any(medians);
  out.source_bias = mean_if_any(biases);
}

}  // namespace

const std::vector<std::string>& Training::axes() {
  static const std::vector<std::string> kAxes{"subset",    "class", "chip",      "family",
                                              "framework", "stack", "precision", "group"};
  return kAxes;
}

std::string group_name(const Measurement& row, const std::string& by) {
  if (by == "id") return row.id;
  if (by == "subset") return row.subset;
  if (by == "class") return row.run_class.empty() ? "not known" : row.run_class;
  if (by == "chip") return row.chip;
  if (by == "family") return row.family();
  if (by == "framework") return row.framework.empty() ? "not said" : row.framework;
  if (by == "stack") return row.stack.empty() ? "not known" : row.stack;
  if (by == "precision") return precision_word(row);
  if (by == "group") return row.group;
  internal_error("unknown axis");
}

std::string Training::stack_named(const Catalog& catalog, const std::string& name) {
  return stack_spec(catalog, name)->name;
}

PredictedRow Training::predict(const Measurement& row, const ValidateQuestion& q, const Catalog& catalog,
                               const Stop& stop) {
  if (q.compared == Compared::kMemory && !row.memory_bytes) {
    throw NotPredicted("no memory was measured", "the row gives none");
  }
  RowQuestion question = row_question(row, catalog, q.set, q.ideal);
  PredictedRow out;
  out.row = row;
  out.measured = q.compared == Compared::kMemory ? row.memory_bytes.value_or(0) : measured_step(row, question.resolved);
  const Evaluated found = evaluate(question, stop);
  out.layout = found.plan.layout;
  out.fits = found.fits;
  out.kernel = question.resolved.kernel.name;
  out.kernel_why = question.resolved.kernel.why;
  out.chosen = question.chosen;
  out.assumed = found.assumed;
  out.stack = question.resolved.efficiency.stack;
  out.basis = question.basis;
  out.by_default = question.basis == StackBasis::kDefault;
  out.figures = compared_figures(question.resolved, request_of(question), found.plan);
  if (q.compared == Compared::kMemory) {
    compare_memory(out, found.plan, question.resolved.workload.memory);
  } else {
    compare_time(out, found.plan);
  }
  out.error = out.predicted / out.measured - 1;
  return out;
}

void Training::count(const std::vector<const PredictedRow*>& rows, Compared compared, ErrorSummary& out) {
  for (const PredictedRow* row : rows) {
    if (row->error > 0) ++out.too_slow;
    if (!row->fits) ++out.out_of_memory;
    if (!row->assumed.empty()) ++out.made_to_fit;
    if (!row->row.stack.empty()) continue;
    ++out.of_unknown_software;
    if (!row->row.framework.empty()) out.unknown_software.insert(row->row.framework);
  }
  for (const PredictedRow* row : rows) {
    ClassCoverage& of = out.by_class[row->row.run_class];
    ++of.rows;
    if (row->in_band()) ++of.in_band;
  }
  by_source(rows, out);
  if (compared != Compared::kStepTime) return;
  out.of_job = ranks(rows, {&Costed::job, nullptr, kFewestLayouts});
  out.of_model = ranks(rows, {&Costed::model_on_chip, &Costed::job, kFewestOfModel});
}

void Training::weigh_together(std::vector<Predicted>& rows) {
  number_sets(rows, same_job, &Costed::job);
  number_sets(rows, same_model, &Costed::model_on_chip);
}

Compared compared_by_default(const std::vector<Measurement>& rows) {
  const bool time = std::any_of(rows.begin(), rows.end(), [](const Measurement& row) {
    return row.step_s || row.tokens_per_s_per_chip || row.flops_per_s_per_chip || row.mfu;
  });
  return time ? Compared::kStepTime : Compared::kMemory;
}

Validation validate(const ValidateQuestion& question, const Catalog& catalog, const std::function<bool()>& stop) {
  return validate_rows<Training>(question, catalog, stop);
}

}  // namespace scalecalc
