// The answer of `scalecalc lint` (docs/schema/lint.schema.json).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/lint.h"
#include "report/output.h"

namespace scalecalc {

struct LintReport {
  std::string file;
  std::string_view framework;
  LayoutLint lint;
  std::int64_t chips = 0;
  std::vector<Assumption> assumptions;
};

Output lint_output(const LintReport& report);

}  // namespace scalecalc
