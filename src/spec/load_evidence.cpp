// Reads which mechanisms measured runs of a stack used, and how far predictions of them erred.
#include <algorithm>

#include "config/fields.h"
#include "spec/evidence.h"

namespace scalecalc {

std::vector<MechanismRuns> load_evidence(const ConfigNode& document) {
  Problems problems;
  Fields fields(document, "evidence", problems);
  fields.schema("scalecalc-evidence/1");
  fields.text("name");
  fields.text("source");
  std::vector<MechanismRuns> out;
  for (const ConfigNode& node : fields.required_node("runs").items) {
    Fields row(node, "runs", problems);
    MechanismRuns& entry = out.emplace_back();
    entry.family = row.text("family");
    entry.chip = row.text("chip");
    entry.stack = row.text("stack");
    entry.mechanism = row.text("mechanism");
    entry.measured.runs = row.count("runs");
    entry.measured.most_ways = row.has("most_ways") ? row.count("most_ways") : 0;
    entry.measured.error = row.quantity("error", UnitKind::kFraction, {0, 100});
    row.finish();
  }
  fields.finish();
  problems.throw_if_any();
  return out;
}

MechanismEvidence evidence_of(const std::vector<MechanismRuns>& rows, const std::string& mechanism,
                              const std::string& family, const std::string& chip, const std::string& stack) {
  MechanismEvidence out{.mechanism = mechanism};
  const auto add = [](const MeasuredRuns& more, MeasuredRuns& sum) {
    const double errors = sum.error * static_cast<double>(sum.runs) + more.error * static_cast<double>(more.runs);
    sum.runs += more.runs;
    sum.most_ways = std::max(sum.most_ways, more.most_ways);
    sum.error = errors / static_cast<double>(sum.runs);
  };
  for (const MechanismRuns& row : rows) {
    if (row.mechanism != mechanism || row.family != family) continue;
    add(row.measured, out.family);
    if (row.chip == chip && row.stack == stack) add(row.measured, out.here);
  }
  return out;
}

}  // namespace scalecalc
