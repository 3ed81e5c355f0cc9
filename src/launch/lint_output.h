// The answer of `scalecalc lint` (docs/schema/lint.schema.json).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/lint.h"
#include "report/output.h"
#include "serve/serve_question.h"

namespace scalecalc {

struct LintReport {
  std::string file;
  std::string_view framework;
  LayoutLint lint;
  std::int64_t chips = 0;
  std::vector<Assumption> assumptions;
  bool serving = false;                     ///< then these are in the place of lint.plan and lint.best
  std::optional<ServePoint> server{};       ///< the file's layout, if it runs
  std::optional<ServePoint> best_server{};  ///< of all layouts on as many chips
};

Output lint_output(const LintReport& report);

}  // namespace scalecalc
