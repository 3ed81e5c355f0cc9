// Rows grouped by each of their axes, for errors over each group.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace scalecalc {

/// Calls `group(axis, name, predicted, skipped)` with pointers to the rows of each group, in the order of `axes` and of
/// the names; `name_of(row, axis)` is the group a measurement belongs to.
template <class Predicted, class Skipped, class NameOf, class Group>
void for_each_group(const std::vector<Predicted>& rows, const std::vector<Skipped>& skipped,
                    const std::vector<std::string>& axes, const NameOf& name_of, const Group& group) {
  for (const std::string& by : axes) {
    std::set<std::string> names;
    for (const Predicted& row : rows) names.insert(name_of(row.row, by));
    for (const Skipped& row : skipped) names.insert(name_of(row.row, by));
    for (const std::string& name : names) {
      std::vector<const Predicted*> in_group;
      std::vector<const Skipped*> left_out;
      for (const Predicted& row : rows) {
        if (name_of(row.row, by) == name) in_group.push_back(&row);
      }
      for (const Skipped& row : skipped) {
        if (name_of(row.row, by) == name) left_out.push_back(&row);
      }
      group(by, name, in_group, left_out);
    }
  }
}

}  // namespace scalecalc
