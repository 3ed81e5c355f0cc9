#include "validate/validation.h"

#include <algorithm>

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
  out.low = out.predicted / (1 + rules.error);
  out.high = out.predicted * (1 + rules.error);
}

PredictedRow predict(const Measurement& row, const ValidateQuestion& q, const Catalog& catalog) {
  if (q.compared == Compared::kMemory && !row.memory_bytes) {
    throw NotPredicted("no memory was measured", "the row gives none");
  }
  RowQuestion question = row_question(row, catalog, q.set, q.ideal);
  PredictedRow out{.row = row};
  out.measured = q.compared == Compared::kMemory ? row.memory_bytes.value_or(0) : measured_step(row, question.resolved);
  const Evaluated found = evaluate(question);
  out.layout = found.plan.layout;
  out.fits = found.fits;
  out.chosen = question.chosen;
  out.assumed = found.assumed;
  out.stack = question.resolved.efficiency.stack;
  out.basis = question.basis;
  out.figures = figures(question.resolved, request_of(question), found.plan);
  if (q.compared == Compared::kMemory) {
    compare_memory(out, found.plan, question.resolved.workload.memory);
  } else {
    compare_time(out, found.plan);
  }
  return out;
}

}  // namespace

bool passes(const Measurement& row, const std::vector<RowFilter>& filters) {
  return std::all_of(filters.begin(), filters.end(), [&](const RowFilter& filter) {
    const std::string name = group_name(row, filter.by);
    return std::find(filter.names.begin(), filter.names.end(), name) != filter.names.end();
  });
}

Compared compared_by_default(const std::vector<Measurement>& rows) {
  const bool time = std::any_of(rows.begin(), rows.end(), [](const Measurement& row) {
    return row.step_s || row.tokens_per_s_per_chip || row.flops_per_s_per_chip || row.mfu;
  });
  return time ? Compared::kStepTime : Compared::kMemory;
}

Validation validate(const ValidateQuestion& question, const Catalog& catalog, const std::function<bool()>& stop) {
  Validation out{.compared = question.compared};
  std::vector<Measurement> rows = question.rows;
  name_stacks(rows, catalog);
  const std::string stack =
      question.stack.empty() ? "" : load_stack(catalog.load(CatalogKind::kStack, question.stack)).name;
  for (Measurement& row : rows) {
    if (!passes(row, question.only)) continue;
    if (!stack.empty()) row.stack = stack;
    try {
      if (stop && stop()) throw NotPredicted("interrupted", "");
      out.rows.push_back(predict(row, question, catalog));
    } catch (const NotPredicted& why) {
      out.skipped.push_back({row, why.reason(), why.detail()});
    }
  }
  if (out.rows.empty() && out.skipped.empty()) {
    throw UserError("no row is left to compare", question.only.empty() ? "the files hold no rows" : "see --only");
  }
  summarize(out);
  return out;
}

}  // namespace scalecalc
