#include "rules/bound_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/diagnostic.h"

namespace scalecalc {

Traced BoundList::add(BoundGroup group, BoundHead head, const Traced& value, std::optional<bool> holds) {
  return add_of(group, std::move(head), value, {}, holds);
}

Traced BoundList::add_of(BoundGroup group, BoundHead head, const Traced& value, Dim dim, std::optional<bool> holds) {
  if (!std::isfinite(value.value())) {
    throw UserError(fmt::format("{} is beyond any number with these figures", head.name),
                    "look for a figure that is far too large or too small");
  }
  const auto same = [&](const Bound& b) { return b.name == head.name; };
  check(std::none_of(answer_.bounds.begin(), answer_.bounds.end(), same), "a rule's name is given once");
  Traced known = value.with_name(head.name, head.source, dim);
  if (head.unit.empty()) head.unit = unit_name(dim);
  answer_.bounds.push_back({group, std::move(head.name), std::move(head.symbol), known, dim, std::move(head.unit),
                            std::move(head.condition), holds, std::move(head.source)});
  return known;
}

void BoundList::assume(Assumption assumption) {
  const auto said = [&](const Assumption& a) { return a.text == assumption.text && a.flag == assumption.flag; };
  if (std::any_of(answer_.assumptions.begin(), answer_.assumptions.end(), said)) return;
  answer_.assumptions.push_back(std::move(assumption));
}

void BoundList::leave_out(std::string_view rules, std::string_view needs) {
  answer_.left_out.push_back({std::string(rules), std::string(needs)});
}

}  // namespace scalecalc
