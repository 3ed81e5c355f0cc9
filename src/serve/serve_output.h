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
/// The question that leaves one point: its machine, layout and batch.
NextQuestion point_alone(const ServeAnswer& answer, const ServePoint& point);
/// "--fix tp=8,pp=1,..."; of a pool "prefill.tp=8,...". 0 replicas are open.
FlagChange serve_fix(const ServeAnswer& answer, const ServeLayout& layout, std::string_view pool = "");
/// The same of two pools.
FlagChange pools_fix(const ServeAnswer& answer, const ServeLayout& prefill, const ServeLayout& decode);
/// The degrees of a layout, each under `at` and its name; in JSON and CSV only.
void add_serve_layout(std::vector<Figure>& out, const std::string& at, const ServeLayout& layout);

}  // namespace scalecalc
