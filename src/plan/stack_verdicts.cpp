#include "plan/stack_verdicts.h"

#include <algorithm>

#include "base/check.h"

namespace scalecalc {
namespace {

constexpr std::uint8_t kMemberLevels = kLevelInner | kLevelPipeline | kLevelRanks;

/// Whether the stack refuses the policy in this layout, by a fact that looks at neither sharding nor, unless the
/// request pins it, offload.
std::optional<std::size_t> recipe_refusal(const PlanRequest& request, const Layout& layout) {
  if (const auto fact = stack_refusal(request, FactGroup::kRecipe, layout)) return fact;
  const bool some = layout.remat_layers > 0;
  if (!request.fix.offload && !some) return std::nullopt;
  Layout offloaded = layout;
  offloaded.offload = request.fix.offload.value_or(0);
  const bool counts = !some && (offloaded.offload & kOffloadActivations) != 0;
  offloaded.offload_layers = counts ? request.fix.offload_layers.value_or(1) : 0;
  const auto fact = stack_refusal(request, FactGroup::kOffload, offloaded);
  if (!fact || !counts || request.fix.offload_layers) return fact;
  offloaded.offload_layers = 0;
  return stack_refusal(request, FactGroup::kOffload, offloaded);
}

}  // namespace

Layout with_recipe(Layout layout, const Recipe& recipe) {
  layout.remat = recipe.remat;
  layout.remat_layers = recipe.some ? 1 : 0;
  layout.loss = recipe.loss;
  return layout;
}

std::optional<std::size_t> stack_refusal(const PlanRequest& request, FactGroup group, const Layout& layout) {
  if (!request.stack) return std::nullopt;
  return request.stack->refusal(group, {layout, *request.model, request.workload, *request.hw});
}

MemberFacts::MemberFacts(const PlanRequest& request) : request_(request) {
  if (!request.stack) return;
  const StackRelease& stack = *request.stack;
  if (stack.facts.size() > kMostFacts) internal_error("more facts than a release may have");
  const auto of = [&](std::initializer_list<FactGroup> groups) {
    FactSet out = 0;
    for (const FactGroup group : groups) {
      for (const std::size_t fact : stack.groups[static_cast<std::size_t>(group)]) out |= FactSet{1} << fact;
    }
    return out;
  };
  member_ = of({FactGroup::kMember});
  sharding_ = of({FactGroup::kSharding});
  recipes_ = of({FactGroup::kRecipe, FactGroup::kOffload});
  const FactSet ours = member_ | sharding_ | recipes_;
  for (std::size_t fact = 0; fact < stack.facts.size(); ++fact) {
    if ((ours >> fact & 1) != 0) add(fact);
  }
}

/// Conditions that the question alone decides hold for every member or for none.
void MemberFacts::add(std::size_t fact) {
  const FactSet bit = FactSet{1} << fact;
  const std::vector<SupportCondition>& conditions = request_.stack->facts[fact].refused_if;
  const Layout any;
  const SupportSubject subject{any, *request_.model, request_.workload, *request_.hw};
  const bool never = std::any_of(conditions.begin(), conditions.end(), [&](const SupportCondition& condition) {
    return condition.levels() == 0 && !condition.holds(subject);
  });
  if (never) return;
  open_ |= bit;
  for (const SupportCondition& condition : conditions) {
    const std::uint8_t levels = condition.levels();
    if (levels == 0) continue;
    if ((levels & ~kMemberLevels) != 0) {
      mixed_ = mixed_ || (levels & kMemberLevels) != 0;
      continue;  // of what a member leaves open
    }
    const Level level = levels == kLevelInner ? kInner : levels == kLevelPipeline ? kPipeline : kRanks;
    std::vector<Question>& questions = questions_[level];
    const auto same = std::find_if(questions.begin(), questions.end(),
                                   [&](const Question& q) { return *q.condition == condition; });
    if (same != questions.end()) {
      same->facts |= bit;
    } else {
      questions.push_back({&condition, bit});
    }
  }
}

FactSet MemberFacts::ask(Level level, const Layout& layout) const {
  FactSet out = open_;
  if (questions_[level].empty()) return out;
  const SupportSubject subject{layout, *request_.model, request_.workload, *request_.hw};
  for (const Question& question : questions_[level]) {
    if ((out & question.facts) != 0 && !question.condition->holds(subject)) out &= ~question.facts;
  }
  return out;
}

std::optional<std::size_t> MemberFacts::refusal(FactSet holding) const {
  if ((holding & member_) == 0) return std::nullopt;
  for (const std::size_t fact : request_.stack->groups[static_cast<std::size_t>(FactGroup::kMember)]) {
    if ((holding >> fact & 1) != 0) return fact;
  }
  return std::nullopt;
}

RecipeVerdicts::RecipeVerdicts(const PlanRequest& request, const MemberFacts& facts, std::vector<Recipe> recipes)
    : request_(request), facts_(facts), recipes_(std::move(recipes)) {
  all_.refused_by.resize(recipes_.size());
  all_.for_some = static_cast<std::size_t>(
      std::count_if(recipes_.begin(), recipes_.end(), [](const Recipe& recipe) { return recipe.some; }));
  all_.for_all = recipes_.size() - all_.for_some;
}

const RecipeVerdict& RecipeVerdicts::of(const Layout& member, FactSet holding) {
  const FactSet concern = facts_.on_recipes(holding);
  if (concern == 0) return all_;
  if (facts_.tells_members_apart()) return unkept_ = ask(member);
  const auto it = known_.find(concern);
  return it != known_.end() ? it->second : known_.emplace(concern, ask(member)).first->second;
}

RecipeVerdict RecipeVerdicts::ask(const Layout& member) const {
  RecipeVerdict out;
  for (const Recipe& recipe : recipes_) {
    const auto fact = recipe_refusal(request_, with_recipe(member, recipe));
    out.refused_by.push_back(fact);
    if (fact) {
      out.refusals.emplace_back(*fact, recipe.some);
    } else {
      ++(recipe.some ? out.for_some : out.for_all);
    }
  }
  return out;
}

}  // namespace scalecalc
