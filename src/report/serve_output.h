// The answer of `scalecalc serve` as an Output.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "report/output.h"
#include "serve/serve_question.h"

namespace scalecalc {

Output serve_output(const ServeAnswer& answer, bool explain);
/// The causes of a decode step, and what lies in a chip's memory, as people call them.
std::vector<std::pair<std::string, double>> decode_parts(const ServeTime<double>& time);
std::vector<std::pair<std::string, double>> memory_parts(const ServeMemoryParts& memory);
/// The degrees of a layout, each under `at` and its name; in JSON and CSV only.
void add_serve_layout(std::vector<Figure>& out, const std::string& at, const ServeLayout& layout);

}  // namespace scalecalc
