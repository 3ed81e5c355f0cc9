// Asks a stack's rules once for all members that they cannot tell apart, for the search.
#include "plan/stack_verdicts.h"

#include <algorithm>

#include "base/check.h"
#include "plan/ways_to_fit.h"

namespace scalecalc {
namespace {

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

/// What the question leaves open of a fact's conditions; nothing if it settles that they never hold.
std::optional<std::vector<SupportCondition>> open_conditions(const PlanRequest& request, const SupportFact& fact) {
  const Layout any;
  const SupportSubject subject{any, *request.model, request.workload, *request.hw};
  std::vector<SupportCondition> out;
  for (const SupportCondition& condition : fact.refused_if) {
    if (condition.levels() != 0) {
      out.push_back(condition);
    } else if (!condition.holds(subject)) {
      return std::nullopt;
    }
  }
  return out;
}

}  // namespace

PlanRequest settled(PlanRequest request) {
  if (!request.stack) return request;
  auto stack = std::make_shared<StackRelease>(*request.stack);
  FactSet may_hold = 0;
  for (std::size_t i = 0; i < stack->facts.size(); ++i) {
    auto open = open_conditions(request, stack->facts[i]);
    if (!open) continue;
    may_hold |= FactSet{1} << i;
    // What a member settles comes last: who knows of a member asks for the rest.
    std::stable_partition(open->begin(), open->end(),
                          [](const SupportCondition& condition) { return (condition.levels() & ~kMemberLevels) != 0; });
    stack->facts[i].refused_if = *std::move(open);
  }
  for (FactSet& group : stack->groups) group &= may_hold;
  request.stack = std::move(stack);
  return request;
}

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

std::optional<std::size_t> stack_refusal(const PlanRequest& request, FactGroup group, const Layout& layout,
                                         FactSet holding) {
  const FactSet facts = request.stack ? request.stack->of(group) & holding : 0;
  if (facts == 0) return std::nullopt;
  const SupportSubject subject{layout, *request.model, request.workload, *request.hw};
  return first_fact(facts, [&](std::size_t fact) { return request.stack->facts[fact].refuses(subject); });
}

MemberFacts::MemberFacts(const PlanRequest& request) : request_(request) {
  if (!request.stack) return;
  const StackRelease& stack = *request.stack;
  if (stack.facts.size() > kMostFacts) internal_error("more facts than a release may have");
  member_ = stack.of(FactGroup::kMember);
  sharding_ = stack.of(FactGroup::kSharding);
  recipes_ = stack.of(FactGroup::kRecipe) | stack.of(FactGroup::kOffload);
  const FactSet later = stack.of(FactGroup::kLayout);
  const FactSet ours = member_ | sharding_ | recipes_ | later;
  open_ = ~ours;
  for (std::size_t fact = 0; fact < stack.facts.size(); ++fact) {
    if ((ours >> fact & 1) != 0) add(fact, (later >> fact & 1) == 0);
  }
}

/// `asked_of_members`: shardings and recipes are counted by it.
void MemberFacts::add(std::size_t fact, bool asked_of_members) {
  const FactSet bit = FactSet{1} << fact;
  const auto conditions = open_conditions(request_, request_.stack->facts[fact]);
  if (!conditions) return;
  open_ |= bit;
  for (const SupportCondition& condition : *conditions) {
    const std::uint8_t levels = condition.levels();
    if ((levels & ~kMemberLevels) != 0) {
      mixed_ = mixed_ || (asked_of_members && (levels & kMemberLevels) != 0);
      continue;  // of what a member leaves open
    }
    const Level level = (levels & kLevelBatch) != 0      ? kBatch
                        : levels == kLevelInner          ? kInner
                        : levels == kLevelPipeline       ? kPipeline
                        : (levels & kLevelPipeline) == 0 ? kRanks
                                                         : kMembers;
    std::vector<Question>& questions = questions_[level];
    const auto same =
        std::find_if(questions.begin(), questions.end(), [&](const Question& q) { return q.condition == condition; });
    if (same != questions.end()) {
      same->facts |= bit;
    } else {
      questions.push_back({condition, bit});
    }
  }
}

FactSet MemberFacts::answers(Level level, const Layout& layout) const {
  FactSet out = open_;
  const SupportSubject subject{layout, *request_.model, request_.workload, *request_.hw};
  for (const Question& question : questions_[level]) {
    if ((out & question.facts) != 0 && !question.condition.holds(subject)) out &= ~question.facts;
  }
  return out;
}

std::optional<std::size_t> MemberFacts::refusal(FactSet holding) const {
  return first_fact(holding & member_, [](std::size_t) { return true; });
}

RecipeVerdicts::RecipeVerdicts(const PlanRequest& request, const MemberFacts& facts, std::vector<Recipe> recipes)
    : request_(request), facts_(facts), recipes_(std::move(recipes)) {}

const RecipeVerdict& RecipeVerdicts::of(const Layout& member, FactSet holding) {
  const FactSet concern = facts_.on_recipes(holding);
  if (last_.second != nullptr && last_.first == concern) return *last_.second;
  if (facts_.tells_members_apart()) return unkept_ = ask(member);
  const auto it = known_.find(concern);
  last_ = {concern, it != known_.end() ? &it->second : &known_.emplace(concern, ask(member)).first->second};
  return *last_.second;
}

RecipeVerdict RecipeVerdicts::ask(const Layout& member) const {
  RecipeVerdict out;
  for (const Recipe& recipe : recipes_) {
    const Layout layout = with_recipe(member, recipe);
    out.refused_by.push_back(request_.stack ? recipe_refusal(request_, layout) : std::nullopt);
    out.offload.push_back(most_offload(request_, layout));
    if (const auto& fact = out.refused_by.back()) {
      const auto same =
          std::find_if(out.refused.begin(), out.refused.end(), [&](const auto& r) { return r.fact == *fact; });
      RecipeVerdict::Refused& refused = same == out.refused.end() ? out.refused.emplace_back() : *same;
      refused.fact = *fact;
      ++(recipe.some ? refused.for_some : refused.for_all);
      continue;
    }
    ++(recipe.some ? out.for_some : out.for_all);
    out.remats[static_cast<std::size_t>(recipe.remat)] = true;
    out.any_offload |= out.offload.back();
    RecipeVerdict::Policy& policy = out.policies[static_cast<std::size_t>(recipe.remat)];
    (recipe.some ? policy.for_some : policy.for_all) = true;
    // Some layers beside an offload are for those who pin both.
    if (!recipe.some || request_.fix.offload) policy.offload |= out.offload.back();
  }
  return out;
}

}  // namespace scalecalc
