// Collects the rules of an answer. A rule is its head and its traced value:
//
//   list.add(BoundGroup::kData, {"fsdp_limit", "alpha / M_X", "tokens per chip",
//            "FSDP is compute-bound with more tokens per chip", "book ch. 5"}, alpha / axes, holds);
#pragma once

#include <string>
#include <string_view>

#include "rules/bounds.h"

namespace scalecalc {

/// What a rule is called and says.
struct BoundHead {
  std::string name;
  std::string symbol;
  std::string unit;  ///< empty: the unit of the value's dimension
  std::string condition;
  std::string source;
};

class BoundList {
 public:
  explicit BoundList(BoundsAnswer& answer) : answer_(answer) {}

  /// Adds the rule and gives back its value under the rule's name, for rules that build on it.
  Traced add(BoundGroup group, BoundHead head, const Traced& value, std::optional<bool> holds = std::nullopt);
  template <Dim D>
  Quantity<D, Traced> add(BoundGroup group, BoundHead head, const Quantity<D, Traced>& value,
                          std::optional<bool> holds = std::nullopt) {
    return Quantity<D, Traced>(add_of(group, std::move(head), value.value(), D, holds));
  }

  void add(LayerPass pass) { answer_.layers.push_back(std::move(pass)); }
  void add(ServingPoint point) { answer_.points.push_back(std::move(point)); }

  /// Names rules that the question does not say enough for: "the FSDP x TP split", "--chips".
  void leave_out(std::string_view rules, std::string_view needs);
  void conclude(std::string line) { answer_.verdict.push_back(std::move(line)); }
  /// Groups may rest on the same figure; it is said once.
  void assume(Assumption assumption);

 private:
  Traced add_of(BoundGroup group, BoundHead head, const Traced& value, Dim dim, std::optional<bool> holds);

  BoundsAnswer& answer_;
};

}  // namespace scalecalc
