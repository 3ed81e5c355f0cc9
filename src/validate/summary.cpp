#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/check.h"
#include "validate/grouping.h"
#include "validate/row_question.h"
#include "validate/statistics.h"
#include "validate/validation.h"

namespace scalecalc {
namespace {

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

std::optional<double> mean_if_any(const std::vector<double>& values) {
  return values.empty() ? std::nullopt : std::optional(mean_of(values));
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
  if (!spearmans.empty()) out.median_spearman = quantile(spearmans, 0.5);
  return out;
}

/// A large source would drown the others in a plain mean; here each counts once.
void by_source(const std::vector<const PredictedRow*>& rows, ErrorSummary& out) {
  std::map<std::string, std::vector<double>> sources;
  for (const PredictedRow* row : rows) sources[row->row.group].push_back(row->error());
  std::vector<double> means;
  std::vector<double> medians;
  std::vector<double> biases;
  for (const auto& [source, errors] : sources) {
    std::vector<double> sizes;
    for (const double error : errors) sizes.push_back(std::abs(error));
    means.push_back(mean_of(sizes));
    medians.push_back(quantile(sizes, 0.5));
    biases.push_back(mean_of(errors));
  }
  out.source_mean_abs = mean_if_any(means);
  out.source_median_abs = mean_if_any(medians);
  out.source_bias = mean_if_any(biases);
}

ErrorSummary summary_of(const std::vector<const PredictedRow*>& rows, const std::vector<const SkippedRow*>& skipped,
                        Compared compared) {
  ErrorSummary out{.rows = rows.size() + skipped.size(), .predicted = rows.size()};
  for (const SkippedRow* row : skipped) ++out.skipped[row->reason];
  if (rows.empty()) return out;
  std::vector<double> errors;
  std::vector<double> sizes;
  std::size_t inside = 0;
  for (const PredictedRow* row : rows) {
    errors.push_back(row->error());
    sizes.push_back(std::abs(row->error()));
    if (row->low <= row->measured && row->measured <= row->high) ++inside;
    if (row->error() > 0) ++out.too_slow;
    if (!row->fits) ++out.out_of_memory;
    if (!row->assumed.empty()) ++out.made_to_fit;
    if (row->basis == StackBasis::kDefault) ++out.by_default;
  }
  out.mean_abs = mean_of(sizes);
  out.median_abs = quantile(sizes, 0.5);
  out.p90_abs = quantile(sizes, 0.9);
  out.max_abs = *std::max_element(sizes.begin(), sizes.end());
  out.bias = mean_of(errors);
  out.coverage = static_cast<double>(inside) / static_cast<double>(rows.size());
  by_source(rows, out);
  if (compared == Compared::kStepTime) {
    out.of_job = ranks(rows, {same_job, [](const Measurement&) { return std::string(); }, kFewestLayouts});
    out.of_model = ranks(rows, {same_model, same_job, kFewestOfModel});
  }
  return out;
}

}  // namespace

const std::vector<std::string>& group_axes() {
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

void summarize(Validation& v) {
  std::vector<const PredictedRow*> rows;
  std::vector<const SkippedRow*> skipped;
  for (const PredictedRow& row : v.rows) rows.push_back(&row);
  for (const SkippedRow& row : v.skipped) skipped.push_back(&row);
  v.summary = summary_of(rows, skipped, v.compared);
  v.groups.clear();
  for_each_group(v.rows, v.skipped, group_axes(), group_name,
                 [&](const auto& by, const auto& name, const auto& in_group, const auto& left_out) {
                   v.groups.push_back({by, name, summary_of(in_group, left_out, v.compared)});
                 });
}

}  // namespace scalecalc
