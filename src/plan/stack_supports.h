// What a software stack can launch: the facts of one release, each a condition on a layout under which the stack
// refuses it, with the file that shows it. Data of stacks/<name>.yaml (`supports:`); docs/stacks.md says how to write
// it.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/catalog.h"
#include "cost/workload.h"
#include "plan/dimensions.h"

namespace scalecalc {

/// What a fact is asked of.
struct SupportSubject {
  const Layout& layout;
  const ModelSpec& model;
  const Workload& workload;
  const HardwareSpec& hw;
  std::int64_t attention_dp = 1;  ///< of an engine: ranks that attend to sequences of their own and share experts
  bool speculative = false;       ///< of an engine: tokens are drafted
};

/// At which level of the search a quantity is decided; bits. 0: by the question.
inline constexpr std::uint8_t kLevelInner = 1;     ///< tp, sp, cp, cp_comm, ep, etp
inline constexpr std::uint8_t kLevelPipeline = 2;  ///< pp, vpp, schedule
inline constexpr std::uint8_t kLevelRanks = 4;     ///< data ranks, ep_overlap
inline constexpr std::uint8_t kLevelSharding = 8;  ///< zero, dp, fsdp
inline constexpr std::uint8_t kLevelRemat = 16;    ///< remat, remat_layers, loss
inline constexpr std::uint8_t kLevelOffload = 32;  ///< what lies with the host
inline constexpr std::uint8_t kLevelBatch = 64;    ///< mb, ga
/// What a member of the search settles.
inline constexpr std::uint8_t kMemberLevels = kLevelInner | kLevelPipeline | kLevelRanks | kLevelBatch;

/// Facts by what must be decided before they can be asked, so that the search cuts as early as it can.
enum class FactGroup : std::uint8_t {
  kQuestion,
  kInner,
  kPipeline,
  kMember,    ///< inner, pipeline and data ranks
  kSharding,  ///< of a member's state
  kRemat,     ///< policies and losses alone
  kRecipe,    ///< policies of a member
  kOffload,   ///< what a recipe offloads, however its state is sharded
  kLayout,    ///< the whole layout
};
inline constexpr std::size_t kFactGroups = 9;

/// What a condition may be about: a dimension of the layout, or what follows from it, the model or the question.
struct SupportQuantity {
  std::string name;
  DimensionKind kind = DimensionKind::kCount;
  std::uint8_t level = 0;
  std::int64_t (*value)(const SupportSubject&) = nullptr;  ///< null: the value of `dimension`
  const LayoutDimension* dimension = nullptr;              ///< that is its value, or decides it
  bool (*decided)(const LayoutFilter&) = nullptr;          ///< null: by the pin of `dimension`, or by the question
  std::vector<std::string> words;                          ///< of the values from `least` on; words only
  std::int64_t least = 0;
};

/// By name, in the order of their table.
std::span<const SupportQuantity> support_quantities();

/// One comparison: a quantity with some values, or with a product of numbers and quantities.
struct SupportCondition {
  enum class Relation : std::uint8_t { kIs, kAbove, kAtLeast, kBelow, kAtMost, kMultipleOf };
  const SupportQuantity* of = nullptr;
  Relation relation = Relation::kIs;
  bool negated = false;
  std::vector<std::int64_t> values;             ///< kIs: any of them
  std::int64_t factor = 1;                      ///< otherwise: this x the quantities
  std::vector<const SupportQuantity*> factors;  ///< empty with kIs: `values` count
  bool product = false;                         ///< kIs of the product

  friend bool operator==(const SupportCondition&, const SupportCondition&) = default;
  bool holds(const SupportSubject& subject) const;
  /// Whether these pins and the question decide it.
  bool decided(const LayoutFilter& pins) const;
  std::uint8_t levels() const;
};

struct SupportFact {
  std::string name;     ///< short, unique in the release: "schedule=dualpipe", "fsdp-with-pipeline"
  std::string says;     ///< what the stack does not do: "no dualpipe schedule"
  std::string source;   ///< repository and file that shows it
  bool recall = false;  ///< not read in a source yet: warned of, refuses nothing
  std::vector<SupportCondition> refused_if;  ///< all of them hold
  std::uint8_t levels = 0;                   ///< of all conditions

  bool refuses(const SupportSubject& subject) const;
};

/// Of one release; each has a bit.
inline constexpr std::size_t kMostFacts = 64;

/// Facts of one release, by their positions, a bit each.
using FactSet = std::uint64_t;
inline constexpr FactSet kAllFacts = ~FactSet{0};

/// The first of them, by its position, for which `holds(position)`; nothing if none does.
template <class Holds>
std::optional<std::size_t> first_fact(FactSet facts, const Holds& holds) {
  for (; facts != 0; facts &= facts - 1) {
    const auto fact = static_cast<std::size_t>(std::countr_zero(facts));
    if (holds(fact)) return fact;
  }
  return std::nullopt;
}

/// One release of a stack, with what it inherits from earlier ones.
struct StackRelease {
  std::string stack;    ///< as asked for or as its file calls it: "megatron"
  std::string version;  ///< "0.19"
  std::string since;    ///< "2026-08-19"
  std::vector<SupportFact> facts;
  std::array<FactSet, kFactGroups> groups{};  ///< those that refuse

  FactSet of(FactGroup group) const { return groups[static_cast<std::size_t>(group)]; }

  std::string name() const { return stack + " " + version; }
  /// The first fact of the group that refuses the layout, by its position.
  std::optional<std::size_t> refusal(FactGroup group, const SupportSubject& subject) const;
  /// The same over all groups, for a layout that is decided whole.
  std::optional<std::size_t> refusal(const SupportSubject& subject) const;
  /// Facts that may refuse a layout whose recipe and sharding are allowed once its loss is another: those on the loss,
  /// and those that ask for more than recipe and sharding.
  FactSet on_another_loss() const;
  void group_facts();  ///< fills `groups`
};

/// The releases of one stack; empty if its abilities are not known, for the reason given.
struct StackSupports {
  std::vector<StackRelease> releases;  ///< the earliest first
  std::string unknown;                 ///< why nothing is refused
};

/// What the releases of the stack (or of the framework of it) called so can launch. UserError for wrong data.
StackSupports load_supports(const Catalog& catalog, const std::string& name);
/// The same of a stack's document.
StackSupports load_supports(const Catalog& catalog, const std::string& name, const ConfigNode& document);

/// The release asked for, the newest for an empty version; null where nothing is known. UserError naming the known
/// ones.
std::shared_ptr<const StackRelease> stack_release(const Catalog& catalog, const std::string& name,
                                                  const std::string& version);
/// The newest release that was out in that month; null where none is known.
std::shared_ptr<const StackRelease> release_of(const Catalog& catalog, const std::string& name, std::string_view month);

/// What a search cut by one fact (or by all of its name), counted where it cut.
struct StackCut {
  const SupportFact* fact = nullptr;
  std::uint64_t layouts = 0;
};
/// The most frequent first; points into `stats.launcher`.
std::vector<StackCut> stack_cuts(const SearchStats& stats);

/// A fact as a sentence: "megatron 0.19: no dualpipe schedule (NVIDIA/Megatron-LM: schedules.py)".
std::string fact_text(const StackRelease& release, const SupportFact& fact);

}  // namespace scalecalc
