// The space of layouts, in two levels. A family fixes what decides one layer's work and its tensor, context and expert
// communication: inner degrees and microbatch. Its members add the pipeline, the data ranks, the schedule and whether
// expert all-to-alls run under another microbatch. What remains inside a member is what the backward pass runs again,
// how weights are sharded over data ranks, what is offloaded where memory is short, and where groups are placed.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cost/pipeline.h"
#include "plan/layout_rules.h"
#include "plan/request.h"
#include "plan/stack_verdicts.h"

namespace scalecalc {

/// How the chips beyond the tensor and context ranks are used.
struct Split {
  std::int64_t pp = 1;
  std::int64_t data = 1;
  std::int64_t sequences = 1;  ///< of a step, per data rank
};

struct Family {
  std::size_t slice = 0;                       ///< index into PlanRequest::slices
  Layout layout;                               ///< tp, cp, cp_comm, ep, etp, sp and microbatch; the rest is open
  const std::vector<Split>* splits = nullptr;  ///< of these chips; the microbatch and the experts leave some out
};

/// Families that differ in the sequences of a microbatch alone, the fewest first, or a part of them. A family's
/// position is unique in its space.
struct FamilyRun {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t shape = 0;  ///< what they share: the space's
  std::size_t size() const { return end - begin; }
  std::size_t last() const { return end - 1; }
};

/// How a pipeline's layers are dealt to its stages.
struct PipelineStages {
  std::vector<StageShape> shapes;
  std::int64_t most_treated = 0;  ///< see plan/ways_to_fit.h
  double with_layers = 0;         ///< of the stages, those that have any; not all are embedding or head alone
};

struct Branch {
  std::size_t slice = 0;
  Layout layout;      ///< dp holds all data ways; fsdp and zero are still open
  FactSet facts = 0;  ///< of the stack, that hold of it
  const PipelineStages* stages = nullptr;
};

/// One way to keep a branch's state on its data ranks.
struct StateSharding {
  std::uint8_t zero = 0;
  std::int64_t fsdp = 1;
};

/// Every legal family of the request in a fixed order, and the members of each.
class Space {
 public:
  /// Keeps a reference to `request`. Counts what it cut.
  Space(const PlanRequest& request, SearchStats& stats);

  /// One of a run.
  Family family(const FamilyRun& run, std::size_t position) const {
    const Shape& shape = shapes_[run.shape];
    Family out = shape.family;
    out.layout.micro_batch_seqs = (*shape.sequences)[position - shape.begin];
    return out;
  }
  const std::vector<FamilyRun>& runs() const { return runs_; }
  /// How many there are.
  std::size_t size() const { return runs_.empty() ? 0 : runs_.back().end; }
  /// All of them, for who looks at each.
  std::vector<Family> families() const;
  const MemberFacts& facts() const { return facts_; }

  /// Calls `visit` once for every member of the family, in a fixed order: one that overlaps its experts' exchange comes
  /// just before the same without. A cut is counted where it was made, which may stand for many layouts.
  template <class Visit>
  void members(const Family& family, SearchStats& stats, Visit&& visit) const {
    Branch branch{family.slice, family.layout};
    Layout& layout = branch.layout;
    const FactSet inner = facts_.inner(layout);
    for (const Split& split : *family.splits) {
      if (!place(split, layout, stats)) continue;
      const std::array<FactSet, kOverlaps.size()> ranks = facts_on_ranks(inner, layout);
      for (const Pipeline& pipeline : pipelines_.at(split.pp).all) {
        enter(pipeline, branch);
        if (broken<RuleStage::kMembers>(layout, stats)) continue;
        for (const bool overlap : kOverlaps) {
          layout.ep_overlap = overlap;
          if (!expert_overlap(layout, 1, stats)) continue;
          branch.facts = ranks[overlap ? 1 : 0] & pipeline.facts & facts_.members(layout) & facts_.batches(layout);
          if (const auto fact = facts_.refusal(branch.facts)) {
            stats.refuse(*fact);
          } else {
            visit(std::as_const(branch));
          }
        }
      }
    }
  }

  /// A family of a run, by its place in it, and what its microbatch leaves of a split.
  struct Microbatch {
    std::size_t family = 0;
    std::int64_t sequences = 1;
    std::int64_t accumulated = 1;
  };
  /// Of all families of a run: calls `visit` with the first of the members that are counted alike, how many they are in
  /// each family, and the families that have them. Of a family they differ in pipelines that no fact and no floor of
  /// memory tells apart; the branch has the microbatch of one of the families.
  template <class Visit>
  void members_alike(const FamilyRun& run, SearchStats& stats, Visit&& visit) const {
    const Shape& shape = shapes_[run.shape];
    Branch branch{shape.family.slice, shape.family.layout};
    Layout& layout = branch.layout;
    const FactSet inner = facts_.inner(layout);
    std::vector<Microbatch> placed, running, those;
    for (const Split& split : *shape.family.splits) {
      placed.clear();
      for (std::size_t f = run.begin; f < run.end; ++f) {
        layout.micro_batch_seqs = (*shape.sequences)[f - shape.begin];
        if (place(split, layout, stats)) placed.push_back({f - run.begin, layout.micro_batch_seqs, layout.grad_accum});
      }
      if (placed.empty()) continue;
      layout.pp = split.pp;
      layout.dp = split.data;
      const std::array<FactSet, kOverlaps.size()> ranks = facts_on_ranks(inner, layout);
      const Pipelines& pipelines = pipelines_.at(split.pp);
      for (const Alike& alike : pipelines.alike) {
        const Pipeline& pipeline = pipelines.all[alike.first];
        enter(pipeline, branch);
        running.clear();
        for (const Microbatch& of : placed) {
          layout.micro_batch_seqs = of.sequences;
          layout.grad_accum = of.accumulated;
          if (!broken<RuleStage::kMembers>(layout, stats, alike.count)) running.push_back(of);
        }
        for (const bool overlap : kOverlaps) {
          if (overlap && layout.ep == 1) continue;
          layout.ep_overlap = overlap;
          those.clear();
          for (const Microbatch& of : running) {
            layout.micro_batch_seqs = of.sequences;
            layout.grad_accum = of.accumulated;
            if (expert_overlap(layout, alike.count, stats)) those.push_back(of);
          }
          const FactSet facts = ranks[overlap ? 1 : 0] & pipeline.facts & facts_.members(layout);
          // Together, unless a fact looks at their microbatches.
          const std::size_t together = facts_.tells_batches_apart() ? 1 : those.size();
          for (std::size_t begin = 0; begin < those.size(); begin += together) {
            layout.micro_batch_seqs = those[begin].sequences;
            layout.grad_accum = those[begin].accumulated;
            branch.facts = facts & facts_.batches(layout);
            if (const auto fact = facts_.refusal(branch.facts)) {
              stats.refuse(*fact, alike.count * together);
            } else {
              visit(std::as_const(branch), alike.count, std::span(those).subspan(begin, together));
            }
          }
        }
      }
    }
  }

  /// The ways to shard a member's state over its data ranks: ZeRO 0, 1, 2, and ZeRO-3 over every divisor of the ranks
  /// (hybrid sharding). Without data or context ranks there is nothing to shard.
  std::vector<StateSharding> shardings(const Branch& member, SearchStats& stats) const;

 private:
  struct Pipeline {
    Schedule schedule = Schedule::kNone;
    std::int64_t vpp = 1;
    ChunkEnds split{};
    FactSet facts = 0;  ///< of the stack, that hold by it
    PipelineStages stages{};
  };
  struct Alike {
    std::size_t first = 0;  ///< of Pipelines::all
    std::uint64_t count = 1;
  };
  struct Pipelines {
    std::vector<Pipeline> all;
    std::vector<Alike> alike;  ///< those that may run with the same microbatches and are counted alike
  };

  static constexpr std::array<bool, 2> kOverlaps{true, false};
  /// Of members of these ranks without and with overlap, asked once for all pipelines.
  std::array<FactSet, kOverlaps.size()> facts_on_ranks(FactSet inner, Layout layout) const {
    std::array<FactSet, kOverlaps.size()> out{};
    for (const bool overlap : kOverlaps) {
      if (overlap && layout.ep == 1) continue;  // there is no exchange
      layout.ep_overlap = overlap;
      out[overlap ? 1 : 0] = inner & facts_.ranks(layout);
    }
    return out;
  }
  static bool within(const std::optional<std::int64_t>& fix, const std::optional<std::int64_t>& max,
                     std::int64_t value) {
    return (!fix || *fix == value) && (!max || value <= *max);
  }
  static void enter(const Pipeline& pipeline, Branch& branch) {
    branch.layout.vpp = pipeline.vpp;
    branch.layout.schedule = pipeline.schedule;
    branch.layout.split = pipeline.split;
    branch.stages = &pipeline.stages;
  }

  void tensor(std::size_t slice);
  void context(Family& family, std::int64_t chips);
  void context_communication(Family& family);
  const std::vector<Split>& splits_of(std::int64_t chips);
  void batch(std::int64_t pp, std::int64_t data, std::vector<Split>& out);
  bool data_allowed(std::int64_t data) const;
  void experts(Family& family);
  void sequence_sharding(Family& family);
  void microbatches(Family& family);
  const std::vector<std::int64_t>& divisors_of(std::int64_t sequences);
  void pipelines(std::int64_t pp);
  void schedules(std::int64_t pp, std::vector<Pipeline>& out);
  void count_alike(Pipelines& pipelines) const;
  void offer(Pipeline pipeline, std::int64_t pp, std::vector<Pipeline>& out);
  void chunked(Schedule schedule, std::int64_t pp, std::vector<Pipeline>& out);
  /// Whether the split's ranks take microbatches of the layout's; its pipeline, data ranks and accumulation then.
  bool place(const Split& split, Layout& layout, SearchStats& stats) const {
    const std::int64_t micro = layout.micro_batch_seqs;
    if (split.sequences % micro != 0) return false;  // another family's member
    layout.pp = split.pp;
    layout.dp = split.data;
    layout.grad_accum = split.sequences / micro;
    if (broken<RuleStage::kRanks>(layout, stats)) return false;
    if (within(request_.fix.grad_accum, request_.max.grad_accum, layout.grad_accum)) return true;
    ++stats.rejected[static_cast<std::size_t>(Reject::kPinned)];
    return false;
  }
  bool refused(FactGroup group, const Layout& layout);
  /// Whether the layout may run the exchange of experts under another microbatch's compute, or not, as it does.
  bool expert_overlap(const Layout& layout, std::uint64_t count, SearchStats& stats) const {
    const bool on = layout.ep_overlap;
    if (layout.ep == 1) return !on;
    const bool runs = !any_broken<RuleStage::kOverlap>(subject_, layout);
    if (!overlap_pinned_) return runs;
    const bool pinned = request_.fix.ep_overlap.value_or(on) != on || (on && !request_.max.ep_overlap.value_or(true));
    if (runs && pinned) stats.rejected[static_cast<std::size_t>(Reject::kPinned)] += count;
    if (!runs && on && request_.fix.ep_overlap)
      stats.rejected[static_cast<std::size_t>(Reject::kMicrobatches)] += count;
    return runs && !pinned;
  }
  /// Whether the layout breaks a rule that this stage decides, which is counted.
  template <RuleStage kStage>
  bool broken(const Layout& layout, SearchStats& stats, std::uint64_t count = 1) const {
    return any_broken<kStage>(subject_, layout, [&](const LayoutRule& rule) {
      if (rule.counts) stats.rejected[static_cast<std::size_t>(*rule.counts)] += count;
    });
  }
  void cut(Reject reason) { ++stats_.rejected[static_cast<std::size_t>(reason)]; }

  struct Microbatches {
    std::vector<std::int64_t> sequences;
    std::uint64_t pinned = 0;  ///< left out
  };
  /// Of a run, its microbatch open.
  struct Shape {
    Family family;
    std::size_t begin = 0;                                 ///< position of its first
    const std::vector<std::int64_t>* sequences = nullptr;  ///< of a microbatch, by family
  };

  const PlanRequest& request_;
  RuleSubject subject_;
  SearchStats& stats_;
  MemberFacts facts_;
  LayerDealer dealer_;
  bool overlap_pinned_;
  std::unordered_map<std::int64_t, std::vector<std::int64_t>> divisors_;  ///< of sequences
  std::array<std::vector<std::int64_t>, 2> scratch_;  ///< of microbatches(), whose memory is used again
  std::vector<Shape> shapes_;
  std::vector<FamilyRun> runs_;
  /// Microbatches of splits over whose ranks so many experts fold: (splits, ranks beside the data, ep).
  std::map<std::tuple<const std::vector<Split>*, std::int64_t, std::int64_t>, Microbatches> microbatches_;
  std::map<std::int64_t, std::vector<Split>> splits_;    ///< by chips beyond tensor and context ranks
  std::map<std::int64_t, Pipelines> pipelines_;          ///< by pp
  std::map<std::int64_t, std::vector<ChunkEnds>> ends_;  ///< worth choosing, by pp
};

/// The recipes the request allows: every policy for all layers, cheapest first, then for some, each with every loss.
/// Counts what it cut.
std::vector<Recipe> recipes(const PlanRequest& request, SearchStats& stats);

/// The branch's layout with one of them.
Layout sharded(const Layout& branch, const StateSharding& sharding);

}  // namespace scalecalc
