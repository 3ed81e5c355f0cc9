// Members of a JSON document, a line each: what a transcript pins where a whole document would change with every key
// that is added.
#pragma once

#include <string>
#include <vector>

namespace scalecalc::golden {

/// A line "PATH = VALUE" for each path, in their order; values are JSON without blanks between tokens. A path is keys
/// joined by dots, with [N] for an element, [] for each of them (one line an element) and {a,b} for a choice:
///   query.{model,chips}  plans[0].memory_bytes.total  plans[].mfu
/// Several documents, a line each, are an array: [0].step_time_s. Text that is no JSON comes back as it is.
/// Throws std::runtime_error, with the members there are, on a path that leads nowhere.
std::string select(const std::string& json, const std::vector<std::string>& paths);

/// The paths that a text separated by blanks stands for, choices spelled out: "a.{b,c}" is a.b and a.c.
std::vector<std::string> expand_paths(const std::string& text);

}  // namespace scalecalc::golden
