// Blocks of a brief answer that several commands have.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/output.h"
#include "spec/hardware_spec.h"

namespace scalecalc {

/// A sum taken apart with bars: what takes at least a fiftieth of it, the rest in one line.
Block brief_time_block(std::string_view title, const std::vector<std::pair<std::string, double>>& parts, double whole);
/// Under the title, in one line, the parts of at least a fiftieth, the largest first; of more than five, the rest is
/// one.
Block brief_memory_block(std::string title, std::vector<std::pair<std::string, double>> parts);
/// "accuracy: 85 runs of 8 sources; mean error 8.6 %, ...": of what a file says its coefficients were fitted to, or why
/// they were not.
std::string accuracy_text(const Efficiency& efficiency);
/// A block that a brief answer leaves out.
Block in_full(Block block);
/// The last lines of a brief answer, without a heading.
Block brief_end_block(std::vector<Line> lines);
/// The last lines of every text, without a heading: commands to copy.
Block next_block(std::vector<Line> lines);

}  // namespace scalecalc
