// What the tables of validate share, whether of training or of serving.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "report/sheet.h"

namespace scalecalc {

/// One line of "By chip" and the like; the errors follow.
inline Record error_group(const std::string& by, const std::string& name) {
  Record out;
  out.group = "By " + (by == "group" ? std::string("source group") : by);
  out.figures = {figure("by", "", Format::kText, Cell(by)), figure("name", "name", Format::kText, Cell(name))};
  return out;
}

/// The errors over all rows, with what was left out under words.
inline Block error_summary(Record errors) {
  for (Figure& f : errors.figures) {
    if (f.key.starts_with("skipped.")) f.label = "left out: " + f.key.substr(std::string_view("skipped.").size());
  }
  Block out{.key = "summary", .title = "All rows", .is_list = false};
  out.records.push_back(std::move(errors));
  return out;
}

}  // namespace scalecalc
