// Members of a JSON document, a line each: what a transcript pins where a whole document would change with every key
// that is added.
#pragma once

#include <string>

namespace scalecalc::golden {

/// A line "PATH = VALUE" for each path, in their order; blanks part paths. Values are JSON without blanks between
/// tokens. A path is keys joined by dots, with [N] for an element of an array, [key=text] for the first that has that
/// member, [] for each of them, and {a,b} for several members:
///   query.{model,chips}  plans[].memory_bytes.total  bounds[name=fsdp_limit].{value,unit}
/// Several documents, a line each, are an array: [0].step_time_s. Text that is no JSON comes back as it is.
/// Throws std::runtime_error, with the members there are, on a path that leads nowhere.
std::string select(const std::string& json, const std::string& paths);

}  // namespace scalecalc::golden
