// What every refusal owes: words, a place where there is one, and nothing that a terminal obeys.
#pragma once

#include "base/check.h"
#include "base/diagnostic.h"
#include "base/quoting.h"
#include "base/text.h"

namespace scalecalc::fuzz {

inline void check_refusal(const UserError& error) {
  check(!error.diagnostics().empty() && error.diagnostics().size() <= kMostProblems,
        "an error has one diagnostic and not too many");
  for (const Diagnostic& diagnostic : error.diagnostics()) {
    const std::string text = render(diagnostic);
    check(invalid_utf8_at(text) == std::string_view::npos, "a diagnostic is UTF-8");
    check(printable_lines(text) == text, "a message holds nothing a terminal obeys");
  }
}

}  // namespace scalecalc::fuzz
