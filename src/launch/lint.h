// What is illegal, too large or wasteful in a layout that a launch file says.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/training.h"
#include "train/question.h"
#include "train/resolve.h"

namespace scalecalc {

enum class LintKind : std::uint8_t { kIllegal, kDoesNotFit, kWasteful, kOpen, kUnread };
inline constexpr std::array<std::string_view, 5> kLintKindNames{"illegal", "does_not_fit", "wasteful", "open",
                                                                "unread"};
constexpr std::string_view name_of(LintKind kind) { return kLintKindNames[static_cast<std::size_t>(kind)]; }

struct LintFinding {
  LintKind kind = LintKind::kIllegal;
  SourceSpan where;   ///< the argument it is about; the file's beginning for what several make
  std::string about;  ///< "tp", "--tensor-model-parallel-size"
  std::string text;
  std::string source;          ///< of a rule
  std::optional<double> gain;  ///< wasteful: the share of the step's time that is saved
};

struct LayoutLint {
  std::vector<LintFinding> findings;  ///< by kind
  std::optional<RankedPlan> plan;     ///< the file's layout, if it is legal; what it leaves open chosen best
  std::optional<RankedPlan> best;     ///< of all layouts on as many chips
};

/// `question` has neither pins nor a reference.
LayoutLint lint_layout(const ImportedLayout& layout, const TrainQuestion& question, const ResolvedQuestion& resolved,
                       const std::string& file, const std::function<bool()>& stop);

/// Of arguments that were not read, or whose value the file leaves open.
void add_unread(const LaunchReading& reading, std::vector<LintFinding>& findings);

}  // namespace scalecalc
