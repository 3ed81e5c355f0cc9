// What the request's stack says of the members of a search, asked once for all that its facts do not tell apart: what
// the question settles is settled beforehand, and what is left of a fact is a bit of each level that may decide it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "plan/request.h"
#include "plan/stack_supports.h"

namespace scalecalc {

/// What the backward pass of a layout runs again, a policy for all layers of a stage or for as many as must be, and its
/// loss.
struct Recipe {
  Remat remat = Remat::kNone;
  bool some = false;
  LossKind loss = LossKind::kWhole;
};

/// The layout with one of them, its number of layers open.
Layout with_recipe(Layout layout, const Recipe& recipe);

/// The fact by which the request's stack refuses the layout, of those that ask for no more than the group's levels;
/// nothing if there is no stack.
std::optional<std::size_t> stack_refusal(const PlanRequest& request, FactGroup group, const Layout& layout);

/// The same of a member of which only `holding` may refuse anything.
std::optional<std::size_t> stack_refusal(const PlanRequest& request, FactGroup group, const Layout& layout,
                                         FactSet holding);

/// Of each fact on members and all that they leave open, whether what it asks of a member holds: the facts that
/// hold by the inner degrees, by the pipeline, by the ranks, by what looks at the pipeline and one of these, and by the
/// microbatches with any of them are those that do by all five.
class MemberFacts {
 public:
  /// Keeps a reference to `request`.
  explicit MemberFacts(const PlanRequest& request);

  FactSet inner(const Layout& layout) const { return ask(kInner, layout); }
  FactSet pipeline(const Layout& layout) const { return ask(kPipeline, layout); }
  FactSet ranks(const Layout& layout) const { return ask(kRanks, layout); }
  FactSet members(const Layout& layout) const { return ask(kMembers, layout); }
  FactSet batches(const Layout& layout) const { return ask(kBatch, layout); }

  /// The first fact that refuses a member of which these hold.
  std::optional<std::size_t> refusal(FactSet holding) const;
  /// Those that concern how its state is sharded: members of one set are sharded alike.
  FactSet on_sharding(FactSet holding) const { return holding & sharding_; }
  FactSet on_recipes(FactSet holding) const { return holding & recipes_; }
  /// Whether shardings or recipes of two members of which the same facts hold may still differ: a condition on them
  /// compares with a member's own figure.
  bool tells_members_apart() const { return mixed_; }
  /// Whether the same ranks may run one pipeline and not another.
  bool tells_pipelines_apart() const { return !questions_[kMembers].empty() || tells_batches_apart(); }
  /// Whether they may run it with one microbatch and not with another.
  bool tells_batches_apart() const { return !questions_[kBatch].empty(); }

 private:
  enum Level : std::uint8_t { kInner, kPipeline, kRanks, kMembers, kBatch };
  struct Question {
    SupportCondition condition;
    FactSet facts = 0;  ///< that ask it
  };
  void add(std::size_t fact, bool asked_of_members);
  FactSet ask(Level level, const Layout& layout) const {
    return questions_[level].empty() ? open_ : answers(level, layout);
  }
  FactSet answers(Level level, const Layout& layout) const;

  const PlanRequest& request_;
  FactSet open_ = 0;  ///< not settled by the question
  FactSet member_ = 0, sharding_ = 0, recipes_ = 0;
  bool mixed_ = false;
  std::array<std::vector<Question>, 5> questions_;  ///< by level
};

/// The request, its stack without what the question settles: facts that cannot refuse, and conditions that always hold.
PlanRequest settled(PlanRequest request);

/// Which recipes a member may run.
struct RecipeVerdict {
  std::vector<std::optional<std::size_t>> refused_by;  ///< by recipe
  std::vector<std::uint8_t> offload;                   ///< by recipe: all that it may offload, however it is sharded
  std::array<bool, kRematCount> remats{};              ///< policies of those allowed
  std::uint8_t any_offload = 0;                        ///< all that any of those allowed may offload
  /// Of those allowed with a policy: whether any is for all layers, any for some, and all that they may offload.
  struct Policy {
    bool for_all = false, for_some = false;
    std::uint8_t offload = 0;
  };
  std::array<Policy, kRematCount> policies{};
  std::size_t for_all = 0;  ///< allowed, of those for all layers
  std::size_t for_some = 0;
  struct Refused {
    std::size_t fact = 0;
    std::size_t for_all = 0, for_some = 0;
  };
  std::vector<Refused> refused;  ///< recipes by the fact that refuses them

  std::size_t count(std::int64_t most_treated) const { return for_all + (most_treated > 0 ? for_some : 0); }
};

/// The same for members that the facts do not tell apart, asked once. For one thread.
class RecipeVerdicts {
 public:
  RecipeVerdicts(const PlanRequest& request, const MemberFacts& facts, std::vector<Recipe> recipes);

  /// Of a member of which the facts `holding` hold; valid while this lives.
  const RecipeVerdict& of(const Layout& member, FactSet holding);

 private:
  RecipeVerdict ask(const Layout& member) const;

  const PlanRequest& request_;
  const MemberFacts& facts_;
  std::vector<Recipe> recipes_;
  std::unordered_map<FactSet, RecipeVerdict> known_;
  std::pair<FactSet, const RecipeVerdict*> last_{};  ///< members that follow each other are mostly alike
  RecipeVerdict unkept_;
};

}  // namespace scalecalc
