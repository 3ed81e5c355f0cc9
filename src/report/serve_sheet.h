// The answer of `scalecalc serve` as a Sheet.
#pragma once

#include "report/sheet.h"
#include "serve/serve_question.h"

namespace scalecalc {

Sheet serve_sheet(const ServeAnswer& answer, bool explain);

}  // namespace scalecalc
