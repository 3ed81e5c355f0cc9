// The answer of `scalecalc serve` as an Output.
#pragma once

#include <string>
#include <vector>

#include "report/output.h"
#include "serve/serve_question.h"

namespace scalecalc {

Output serve_output(const ServeAnswer& answer, bool explain);
/// The degrees of a layout, each under `at` and its name; in JSON and CSV only.
void add_serve_layout(std::vector<Figure>& out, const std::string& at, const ServeLayout& layout);

}  // namespace scalecalc
