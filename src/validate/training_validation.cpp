#include "validate/training_validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "spec/load_stack.h"
#include "train/figures.h"
#include "validate/evaluate.h"

namespace scalecalc {
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
std::string same_job(const Measurement& row) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}", row.group, row.model, row.chip, row.chips, row.seq, row.batch_seqs,
                     row.precision);
}

/// Runs of one model on one kind of chip, whatever the machine's size, the batch and the source.
std::string same_model(const Measurement& row) { return fmt::format("{}|{}", row.model, row.chip); }

struct LayoutTimes {
  std::vector<double> measured, predicted;  ///< chip-seconds a token
};

using NameOf = std::string (*)(const Measurement&);

/// What layouts are compared in and what makes two of them different beside the layout itself.
struct LayoutSets {
  NameOf set;
  NameOf variant;
  std::size_t fewest = 0;
};

/// One entry for each layout of a set: the fastest run of it.
std::vector<LayoutTimes> layout_sets(const std::vector<const PredictedRow*>& rows, const LayoutSets& kind) {
  const auto per_token = [](const PredictedRow& row) {
    return static_cast<double>(row.row.chips) / (row.row.batch_seqs * static_cast<double>(row.row.seq));
  };
  std::map<std::string, std::map<std::pair<std::string, Layout>, const PredictedRow*>> sets;
  for (const PredictedRow* row : rows) {
    const PredictedRow*& best = sets[kind.set(row->row)][{kind.variant(row->row), row->layout}];
    if (best == nullptr || row->measured * per_token(*row) < best->measured * per_token(*best)) best = row;
  }
  std::vector<LayoutTimes> out;
  for (const auto& [name, layouts] : sets) {
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
  static const std::vector<std::string> kAxes{"subset", "chip", "family", "framework", "stack", "precision", "group"};
  return kAxes;
}

std::string group_name(const Measurement& row, const std::string& by) {
  if (by == "id") return row.id;
  if (by == "subset") return row.subset;
  if (by == "chip") return row.chip;
  if (by == "family") return row.family();
  if (by == "framework") return row.framework.empty() ? "not said" : row.framework;
  if (by == "stack") return row.stack.empty() ? "not known" : row.stack;
  if (by == "precision") return precision_word(row);
  if (by == "group") return row.group;
  internal_error("unknown axis");
}

std::string Training::stack_named(const Catalog& catalog, const std::string& name) {
  return load_stack(catalog.load(CatalogKind::kStack, name)).name;
}

PredictedRow Training::predict(const Measurement& row, const ValidateQuestion& q, const Catalog& catalog) {
  if (q.compared == Compared::kMemory && !row.memory_bytes) {
    throw NotPredicted("no memory was measured", "the row gives none");
  }
  RowQuestion question = row_question(row, catalog, q.set, q.ideal);
  PredictedRow out;
  out.row = row;
  out.measured = q.compared == Compared::kMemory ? row.memory_bytes.value_or(0) : measured_step(row, question.resolved);
  const Evaluated found = evaluate(question);
  out.layout = found.plan.layout;
  out.fits = found.fits;
  out.chosen = question.chosen;
  out.assumed = found.assumed;
  out.stack = question.resolved.efficiency.stack;
  out.basis = question.basis;
  out.by_default = question.basis == StackBasis::kDefault;
  out.figures = figures(question.resolved, request_of(question), found.plan);
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
  }
  by_source(rows, out);
  if (compared != Compared::kStepTime) return;
  out.of_job = ranks(rows, {same_job, [](const Measurement&) { return std::string(); }, kFewestLayouts});
  out.of_model = ranks(rows, {same_model, same_job, kFewestOfModel});
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
