// Why pins have no layout: which rows of plan/layout_rules.h they break whatever else is chosen, and which facts of the
// stack. For --why-not, errors, `lint` and points of curves without a plan.
#include "train/obstacles.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "plan/dimensions.h"
#include "plan/layout_rules.h"
#include "plan/stack_supports.h"

namespace scalecalc {
namespace {

class ObstacleFinder {
 public:
  explicit ObstacleFinder(const PlanRequest& request)
      : request_(request),
        fix_(request.fix),
        subject_{.model = request.model, .workload = &request.workload, .chips = request.slices.front().chips} {
    pins_.request = &request;
    pins_.data = data_ranks();
    if (pins_.data) {
      const RankShares shares = rank_shares(request.workload, *pins_.data);
      pins_.shares.assign(shares.begin(), shares.end());
    }
  }

  std::vector<std::string> run() {
    const Layout layout = completed();
    std::vector<std::string> out;
    if (fix_.zero == 3 && request_.max.zero.value_or(3) < 3) {
      out.push_back(fmt::format("zero 3 lies above --max zero={}", *request_.max.zero));
    }
    for (std::string& why : rules_against({subject_, layout, &pins_}, pinned_reads())) out.push_back(std::move(why));
    stack(out);
    return out;
  }

 private:
  /// What the pins leave for data ranks, where they say it.
  std::optional<std::int64_t> data_ranks() const {
    const std::int64_t chips = subject_.chips;
    if (fix_.tp && fix_.cp && fix_.pp && chips % (*fix_.tp * *fix_.cp * *fix_.pp) == 0) {
      return chips / (*fix_.tp * *fix_.cp * *fix_.pp);
    }
    if (fix_.dp && fix_.fsdp) return *fix_.dp * *fix_.fsdp;
    return std::nullopt;
  }

  RuleReads pinned_reads() const {
    const std::array<std::pair<bool, RuleReads>, 17> all{{{fix_.tp.has_value(), reads::kTpWays},
                                                          {fix_.cp.has_value(), reads::kCpWays},
                                                          {fix_.cp_comm.has_value(), reads::kCpComm},
                                                          {fix_.ep.has_value(), reads::kEpWays},
                                                          {fix_.etp.has_value(), reads::kEtp},
                                                          {fix_.sp.has_value(), reads::kSp},
                                                          {fix_.pp.has_value(), reads::kPp},
                                                          {fix_.vpp.has_value(), reads::kVpp},
                                                          {fix_.schedule.has_value(), reads::kSchedule},
                                                          {fix_.split.has_value(), reads::kSplit},
                                                          {pins_.data.has_value(), reads::kData},
                                                          {fix_.micro_batch_seqs.has_value(), reads::kMb},
                                                          {fix_.grad_accum || !pins_.shares.empty(), reads::kGa},
                                                          {fix_.ep_overlap.has_value(), reads::kOverlap},
                                                          {fix_.zero.has_value(), reads::kZero},
                                                          {fix_.dp.has_value(), reads::kDpWays},
                                                          {fix_.fsdp.has_value(), reads::kFsdpWays}}};
    RuleReads out = 0;
    for (const auto& [known, bit] : all) out |= known ? bit : 0;
    return out;
  }

  /// The pins, and for what is open a value that breaks no rule of the others.
  Layout completed() const {
    Layout l{.dp = fix_.dp.value_or(1),
             .fsdp = fix_.fsdp.value_or(1),
             .tp = fix_.tp.value_or(1),
             .cp = fix_.cp.value_or(1),
             .pp = fix_.pp.value_or(stages_left()),
             .vpp = fix_.vpp.value_or(fix_.schedule == Schedule::kInterleaved ? 2 : 1),
             .ep = fix_.ep.value_or(1),
             .etp = fix_.etp.value_or(1),
             .micro_batch_seqs = fix_.micro_batch_seqs.value_or(1),
             .grad_accum = fix_.grad_accum.value_or(1)};
    l.sp = fix_.sp.value_or(0) != 0 && l.tp > 1;
    l.cp_comm = fix_.cp == 1 ? CpComm::kAllGather : fix_.cp_comm.value_or(CpComm::kAllGather);
    l.schedule = fix_.schedule.value_or(fix_.pp == 1 ? Schedule::kNone
                                        : l.vpp > 1  ? Schedule::kInterleaved
                                                     : Schedule::k1F1B);
    l.split = fix_.split.value_or(ChunkEnds{});
    l.ep_overlap = l.ep > 1 && fix_.ep_overlap.value_or(l.schedule == Schedule::kDualPipe);
    const bool may_shard = request_.max.zero.value_or(3) == 3;
    l.zero = static_cast<std::uint8_t>(fix_.zero.value_or(may_shard ? 3 : 0));
    l.remat_layers = fix_.remat_layers.value_or(0);
    l.remat = fix_.remat.value_or(Remat::kFull);
    l.offload_layers = fix_.offload_layers.value_or(0);
    l.offload = fix_.offload.value_or(kOffloadActivations);
    if (!pins_.data) return l;
    if (!fix_.dp && *pins_.data % l.fsdp == 0) l.dp = *pins_.data / l.fsdp;
    if (fix_.dp && !fix_.fsdp && *pins_.data % l.dp == 0) l.fsdp = *pins_.data / l.dp;
    return l;
  }

  /// Where every other dimension is pinned, the pipeline takes the chips that are left.
  std::int64_t stages_left() const {
    const bool whole = fix_.zero && *fix_.zero < 3;
    const bool alone = fix_.zero == 3 && fix_.fsdp == 1 && fix_.cp == 1;  // nothing to shard over: one data rank
    const auto copies = alone ? std::optional<std::int64_t>(1) : fix_.dp;
    const auto shards = whole ? std::optional<std::int64_t>(fix_.fsdp.value_or(1)) : fix_.fsdp;
    if (!copies || !shards || !fix_.tp || !fix_.cp) return 1;
    return std::max<std::int64_t>(1, subject_.chips / (*copies * *shards * *fix_.tp * *fix_.cp));
  }

  /// The facts of the stack that the pins alone (and the question) meet, whatever else is chosen.
  void stack(std::vector<std::string>& out) const {
    if (!request_.stack) return;
    Layout pinned;
    for (const LayoutDimension& d : layout_dimensions()) {
      if (const auto value = d.pin(fix_)) d.set_value(pinned, *value);
    }
    if (fix_.pp && *fix_.pp == 1) pinned.schedule = Schedule::kNone;
    const SupportSubject subject{pinned, *request_.model, request_.workload, *request_.hw};
    std::set<std::string> said;
    for (const SupportFact& fact : request_.stack->facts) {
      const bool decided = !fact.recall && std::all_of(fact.refused_if.begin(), fact.refused_if.end(),
                                                       [&](const auto& c) { return c.decided(fix_); });
      if (decided && fact.refuses(subject) && said.insert(fact.name).second) {
        out.push_back(fact_text(*request_.stack, fact) + "; --stack any lifts it");
      }
    }
  }

  const PlanRequest& request_;
  const LayoutFilter& fix_;
  RuleSubject subject_;
  PinnedCase pins_;
};

}  // namespace

std::vector<std::string> obstacles(const PlanRequest& request) { return ObstacleFinder(request).run(); }

std::vector<std::string> stack_obstacles(const SearchStats& stats) {
  constexpr std::size_t kShown = 3;
  std::vector<std::string> out;
  for (const StackCut& cut : stack_cuts(stats)) {
    if (out.size() < kShown) out.push_back(fact_text(*stats.launcher, *cut.fact) + "; --stack any lifts it");
  }
  return out;
}

}  // namespace scalecalc
