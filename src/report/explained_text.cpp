#include "report/explained_text.h"

#include <fmt/format.h>

#include "base/units.h"

namespace scalecalc {
namespace {

std::string value_text(const ExplainedStep& step) {
  if (step.unit == kByteDim) return format_quantity(step.value, UnitKind::kBytes, 4);
  if (step.unit == kSecondDim) return format_quantity(step.value, UnitKind::kSeconds, 4);
  if (step.unit == kByteDim - kSecondDim) return format_quantity(step.value, UnitKind::kBytesPerSecond, 4);
  if (step.unit == kFlopDim - kSecondDim) return format_quantity(step.value, UnitKind::kFlopsPerSecond, 4);
  const std::string unit = unit_name(step.unit);
  return format_quantity(step.value, UnitKind::kNumber, 4) + (unit.empty() ? "" : " " + unit);
}

Line explained_line(const ExplainedStep& step) {
  std::string text = fmt::format("{} = {}\n= {}\n= {}", step.name, step.formula, step.numbers, value_text(step));
  if (!step.source.empty()) text += fmt::format(" [{}]", step.source);
  return {std::move(text)};
}

}  // namespace

Section assumed_section(const std::vector<Assumption>& assumptions) {
  Section out{.title = "Assumed"};
  for (const Assumption& assumption : assumptions) {
    std::string text = assumption.warning ? "warning: " + assumption.text : assumption.text;
    if (!assumption.source.empty()) text += fmt::format(" [{}]", assumption.source);
    if (!assumption.flag.empty()) text += fmt::format(" (change: {})", assumption.flag);
    out.lines.push_back({std::move(text), assumption.warning ? Role::kWarning : Role::kPlain});
  }
  return out;
}

Section explained_section(const ExplainSection& part, std::string title) {
  Section out{.title = std::move(title)};
  for (const ExplainedStep& step : part.steps) out.lines.push_back(explained_line(step));
  for (const std::string& remark : part.remarks) out.lines.push_back({remark, Role::kDim});
  return out;
}

}  // namespace scalecalc
