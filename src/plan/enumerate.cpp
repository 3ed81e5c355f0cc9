// Walks the legal layouts of a request for the planner, and counts what it cut. What is legal the rows of
// plan/layout_rules.h say: each is asked where the last dimension that it reads is decided, or its legal values are all
// that is walked.
#include "plan/enumerate.h"

#include <algorithm>
#include <cmath>

#include "base/divisors.h"
#include "plan/ways_to_fit.h"

namespace scalecalc {
namespace {

void sort_unique(std::vector<std::int64_t>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

}  // namespace

Space::Space(const PlanRequest& request, SearchStats& stats)
    : request_(request),
      subject_{.model = request.model, .workload = &request.workload},
      stats_(stats),
      facts_(request),
      dealer_(*request.model, request.workload.runtime.stages),
      overlap_pinned_(request.fix.ep_overlap || !request.max.ep_overlap.value_or(true)) {
  if (refused(FactGroup::kQuestion, Layout{})) return;
  for (std::size_t s = 0; s < request.slices.size(); ++s) tensor(s);
}

bool Space::refused(FactGroup group, const Layout& layout) {
  const auto fact = stack_refusal(request_, group, layout);
  if (fact) stats_.refuse(*fact);
  return fact.has_value();
}

void Space::tensor(std::size_t slice) {
  const std::int64_t chips = request_.slices[slice].chips;
  Family family{.slice = slice};
  for (const std::int64_t tp : divisors(chips)) {
    family.layout = {.tp = tp};
    if (!within(request_.fix.tp, request_.max.tp, tp)) {
      cut(Reject::kPinned);
    } else if (!broken<RuleStage::kTensor>(family.layout, stats_)) {
      context(family, chips / tp);
    }
  }
}

void Space::context(Family& family, std::int64_t chips) {
  for (const std::int64_t cp : divisors(chips)) {
    family.layout.cp = cp;
    if (!within(request_.fix.cp, request_.max.cp, cp)) {
      cut(Reject::kPinned);
    } else if (!broken<RuleStage::kContext>(family.layout, stats_)) {
      family.splits = &splits_of(chips / cp);
      if (!family.splits->empty()) context_communication(family);
    }
  }
}

void Space::context_communication(Family& family) {
  const std::optional<CpComm>& fix = request_.fix.cp_comm;
  if (family.layout.cp == 1) {
    family.layout.cp_comm = CpComm::kAllGather;
    return experts(family);
  }
  for (const CpComm comm : {CpComm::kAllGather, CpComm::kRing, CpComm::kUlysses}) {
    family.layout.cp_comm = comm;
    if (fix && *fix != comm) {
      cut(Reject::kPinned);
    } else if (!broken<RuleStage::kExchange>(family.layout, stats_)) {
      experts(family);
    }
  }
}

const std::vector<Split>& Space::splits_of(std::int64_t chips) {
  const auto [at, added] = splits_.try_emplace(chips);
  if (!added) return at->second;
  for (const std::int64_t pp : divisors(chips)) {
    if (!within(request_.fix.pp, request_.max.pp, pp)) {
      cut(Reject::kPinned);
    } else if (!broken<RuleStage::kStages>({.pp = pp}, stats_)) {
      batch(pp, chips / pp, at->second);
    }
  }
  return at->second;
}

void Space::batch(std::int64_t pp, std::int64_t data, std::vector<Split>& out) {
  if (!data_allowed(data)) return cut(Reject::kPinned);
  if (broken<RuleStage::kBatch>({.dp = data, .pp = pp}, stats_)) return;
  const RankShares shares = rank_shares(request_.workload, data);
  if (shares.count == 0) return cut(Reject::kBatchUneven);
  pipelines(pp);
  if (pipelines_.at(pp).all.empty()) return;
  for (const std::int64_t sequences : shares) out.push_back({pp, data, sequences});
}

bool Space::data_allowed(std::int64_t data) const {
  const LayoutFilter& fix = request_.fix;
  const std::int64_t pinned = fix.dp.value_or(0) * fix.fsdp.value_or(0);
  if (pinned > 0) return data == pinned;
  if (fix.dp && data % *fix.dp != 0) return false;
  return !fix.fsdp || data % *fix.fsdp == 0;
}

void Space::experts(Family& family) {
  const LayoutFilter& fix = request_.fix;
  const LayoutFilter& max = request_.max;
  family.layout.ep = 1;
  family.layout.etp = 1;
  if (!request_.model->moe) {
    if ((fix.ep && *fix.ep != 1) || (fix.etp && *fix.etp != 1)) return cut(Reject::kPinned);
    return sequence_sharding(family);
  }
  const MoeSpec& moe = *request_.model->moe;
  const std::int64_t tp = family.layout.tp;
  for (const std::int64_t etp : tp > 1 ? std::vector<std::int64_t>{1, tp} : std::vector<std::int64_t>{1}) {
    for (const std::int64_t ep : divisors(moe.experts)) {
      family.layout.ep = ep;
      family.layout.etp = etp;
      if (!within(fix.ep, max.ep, ep) || !within(fix.etp, max.etp, etp)) {
        cut(Reject::kPinned);
      } else if (!broken<RuleStage::kExperts>(family.layout, stats_)) {
        const bool fold = std::any_of(family.splits->begin(), family.splits->end(),
                                      [&](const Split& s) { return experts_fold(family.layout, s.data); });
        fold ? sequence_sharding(family) : cut(Reject::kExperts);
      }
    }
  }
}

void Space::sequence_sharding(Family& family) {
  Layout& l = family.layout;
  const LayoutFilter& fix = request_.fix;
  for (const bool sp : {false, true}) {
    if (sp && l.tp == 1) continue;
    if ((fix.sp && (*fix.sp != 0) != sp && l.tp > 1) || (request_.max.sp && *request_.max.sp == 0 && sp)) {
      cut(Reject::kPinned);
      continue;
    }
    l.sp = sp;
    if (!broken<RuleStage::kInner>(l, stats_) && !refused(FactGroup::kInner, l)) microbatches(family);
  }
}

const std::vector<std::int64_t>& Space::divisors_of(std::int64_t sequences) {
  const auto [at, added] = divisors_.try_emplace(sequences);
  if (added) at->second = divisors(sequences);
  return at->second;
}

void Space::microbatches(Family& family) {
  const Layout& l = family.layout;
  const auto [at, added] = microbatches_.try_emplace({family.splits, l.cp * (l.tp / l.etp), l.ep});
  if (added) {
    std::vector<std::int64_t>& of_splits = scratch_[0];
    std::vector<std::int64_t>& sizes = scratch_[1];
    of_splits.clear();
    for (const Split& split : *family.splits) {
      if (experts_fold(l, split.data)) of_splits.push_back(split.sequences);
    }
    sort_unique(of_splits);
    sizes.clear();
    for (auto of = of_splits.begin(); of != of_splits.end(); ++of) {
      // What divides a larger one adds nothing.
      if (std::any_of(of + 1, of_splits.end(), [&](std::int64_t larger) { return larger % *of == 0; })) continue;
      const std::vector<std::int64_t>& dividing = divisors_of(*of);
      sizes.insert(sizes.end(), dividing.begin(), dividing.end());
    }
    sort_unique(sizes);
    for (const std::int64_t micro : sizes) {
      if (within(request_.fix.micro_batch_seqs, request_.max.micro_batch_seqs, micro)) {
        at->second.sequences.push_back(micro);
      } else {
        ++at->second.pinned;
      }
    }
  }
  const Microbatches& found = at->second;
  stats_.rejected[static_cast<std::size_t>(Reject::kPinned)] += found.pinned;
  if (found.sequences.empty()) return;
  const std::size_t begin = size();
  runs_.push_back({begin, begin + found.sequences.size(), shapes_.size()});
  shapes_.push_back({family, begin, &found.sequences});
}

std::vector<Family> Space::families() const {
  std::vector<Family> out;
  for (const FamilyRun& run : runs_) {
    for (std::size_t f = run.begin; f < run.end; ++f) out.push_back(family(run, f));
  }
  return out;
}

/// The schedules of a pipeline of pp stages. GPipe is tried only when asked for, or of a stack that has no other: it is
/// never faster than 1F1B, nor with chunks (the circular pipeline of JAX) than the interleaved schedule, and keeps more
/// activations.
void Space::pipelines(std::int64_t pp) {
  const auto [at, added] = pipelines_.try_emplace(pp);
  if (!added) return;
  schedules(pp, at->second.all);
  count_alike(at->second);
}

void Space::schedules(std::int64_t pp, std::vector<Pipeline>& out) {
  const std::optional<Schedule>& asked = request_.fix.schedule;
  const bool plain = within(request_.fix.vpp, request_.max.vpp, 1);
  if (pp == 1) {
    const bool any = !asked || *asked == Schedule::kGpipe || *asked == Schedule::k1F1B;
    const bool split = request_.fix.split && request_.fix.split->chosen();
    if (!plain || !any || split) return cut(Reject::kPinned);
    return offer({Schedule::kNone, 1}, pp, out);
  }
  const auto runs_without_chunks = [&](Schedule schedule) {
    const Layout layout{.pp = pp, .schedule = schedule};
    return !stack_refusal(request_, FactGroup::kPipeline, layout);
  };
  const bool only_gpipe =
      request_.stack && runs_without_chunks(Schedule::kGpipe) && !runs_without_chunks(Schedule::k1F1B);
  for (const Schedule schedule :
       {Schedule::kGpipe, Schedule::k1F1B, Schedule::kZeroBubble, Schedule::kDualPipe, Schedule::kInterleaved}) {
    const bool gpipe = schedule == Schedule::kGpipe;
    const bool wanted = asked ? *asked == schedule : !gpipe || only_gpipe;
    if (!wanted) {
      cut(Reject::kPinned);
      continue;
    }
    if (takes_one_chunk(schedule)) plain ? offer({schedule, 1}, pp, out) : cut(Reject::kPinned);
    if (takes_chunks(schedule)) chunked(schedule, pp, out);
  }
}

void Space::count_alike(Pipelines& pipelines) const {
  const auto alike = [](const Pipeline& a, const Pipeline& b) {
    const auto dual = [](const Pipeline& p) { return p.schedule == Schedule::kDualPipe; };
    return dual(a) == dual(b) && (a.vpp == 1) == (b.vpp == 1) && a.facts == b.facts &&
           a.stages.with_layers == b.stages.with_layers && (a.stages.most_treated > 0) == (b.stages.most_treated > 0);
  };
  const bool apart = facts_.tells_members_apart() || facts_.tells_pipelines_apart();
  for (std::size_t i = 0; i < pipelines.all.size(); ++i) {
    const auto same = std::find_if(pipelines.alike.begin(), pipelines.alike.end(), [&](const Alike& known) {
      return !apart && alike(pipelines.all[known.first], pipelines.all[i]);
    });
    if (same != pipelines.alike.end()) {
      ++same->count;
    } else {
      pipelines.alike.push_back({i, 1});
    }
  }
}

/// The pipeline with its layers dealt in every way worth trying that the stack runs, or as pinned.
void Space::offer(Pipeline pipeline, std::int64_t pp, std::vector<Pipeline>& out) {
  Layout layout{.pp = pp, .vpp = pipeline.vpp, .schedule = pipeline.schedule};
  if (broken<RuleStage::kPipeline>(layout, stats_)) return;
  const std::optional<ChunkEnds>& pinned = request_.fix.split;
  std::vector<ChunkEnds> ways{pinned.value_or(ChunkEnds{})};
  if (!may_choose_ends(pipeline.schedule, pipeline.vpp)) {
    if (ways.front().chosen()) return cut(Reject::kPinned);
  } else if (!pinned) {
    const auto [at, added] = ends_.try_emplace(pp);
    if (added) at->second = dealer_.ends_worth_choosing(pp);
    ways.insert(ways.end(), at->second.begin(), at->second.end());
  }
  for (const ChunkEnds& ends : ways) {
    layout.split = pipeline.split = ends;
    if (ends.chosen() && broken<RuleStage::kPipeline>(layout, stats_)) continue;
    if (refused(FactGroup::kPipeline, layout)) continue;
    pipeline.facts = facts_.pipeline(layout);
    pipeline.stages = {};  // not those of the ends before
    pipeline.stages.shapes = dealer_.partition(layout);
    pipeline.stages.most_treated = most_treated(request_, pipeline.stages.shapes);
    for (const StageShape& stage : pipeline.stages.shapes) {
      const bool any = std::any_of(stage.layers.begin(), stage.layers.end(), [](std::int32_t n) { return n > 0; });
      if (any) pipeline.stages.with_layers += static_cast<double>(stage.count);
    }
    out.push_back(pipeline);
  }
}

void Space::chunked(Schedule schedule, std::int64_t pp, std::vector<Pipeline>& out) {
  const std::int64_t most = request_.model->layers() + 2 + request_.model->mtp_layers;
  for (std::int64_t vpp = 2; pp * vpp <= most; ++vpp) {
    within(request_.fix.vpp, request_.max.vpp, vpp) ? offer({schedule, vpp}, pp, out) : cut(Reject::kPinned);
  }
}

std::vector<StateSharding> Space::shardings(const Branch& member, SearchStats& stats) const {
  const Layout& branch = member.layout;
  const LayoutFilter& fix = request_.fix;
  const LayoutFilter& max = request_.max;
  const std::int64_t data = branch.dp;
  std::vector<StateSharding> out;
  const bool asked = facts_.on_sharding(member.facts) != 0;
  Layout tried = branch;
  const auto offer = [&](std::uint8_t zero, std::int64_t fsdp) {
    if (!within(fix.zero, max.zero, zero) || !within(fix.fsdp, max.fsdp, fsdp) ||
        !within(fix.dp, max.dp, data / fsdp)) {
      ++stats.rejected[static_cast<std::size_t>(Reject::kPinned)];
      return;
    }
    tried.zero = zero;
    tried.fsdp = fsdp;
    tried.dp = data / fsdp;
    if (broken<RuleStage::kSharding>(tried, stats)) return;
    if (asked) {
      if (const auto fact = stack_refusal(request_, FactGroup::kSharding, tried)) return stats.refuse(*fact);
    }
    out.push_back({zero, fsdp});
  };
  const bool paired = branch.schedule == Schedule::kDualPipe;
  if (data * branch.cp == 1) {
    // Nothing is divided, but a launcher may ask for a stage before it offloads, and keep weights otherwise under it.
    for (std::uint8_t zero = 0; zero <= 3; ++zero) {
      if (zero < 2 || !paired) offer(zero, 1);
    }
    return out;
  }
  for (const std::uint8_t zero : {std::uint8_t{0}, std::uint8_t{1}, std::uint8_t{2}}) {
    if (zero < 2 || !paired) offer(zero, 1);
    // Optimizer state on groups of data ranks: only as a pin, for it takes more memory and rarely less time.
    const std::int64_t group = fix.fsdp.value_or(1);
    if (zero > 0 && !paired && fix.zero == zero && group > 1 && data % group == 0) offer(zero, group);
  }
  // Gathering and scattering for every microbatch from both ends is what no implementation of DualPipe does.
  if (paired) {
    stats.rejected[static_cast<std::size_t>(Reject::kMicrobatches)] += 1;
    return out;
  }
  for (const std::int64_t fsdp : divisors(data)) {
    if (fsdp * branch.cp > 1) offer(3, fsdp);
  }
  return out;
}

std::vector<Recipe> recipes(const PlanRequest& request, SearchStats& stats) {
  const LayoutFilter& fix = request.fix;
  const bool all = !fix.remat_layers || *fix.remat_layers == 0;
  // No launcher counts layers for both.
  const bool some = (!fix.remat_layers || *fix.remat_layers > 0) && fix.offload_layers.value_or(0) == 0;
  std::vector<Recipe> out;
  const auto offer = [&](const Recipe& recipe) {
    const Layout layout{.remat = recipe.remat, .remat_layers = recipe.some ? 1 : 0, .loss = recipe.loss};
    if ((fix.remat && *fix.remat != recipe.remat) || (fix.loss && *fix.loss != recipe.loss) ||
        !(recipe.some ? some : all)) {
      ++stats.rejected[static_cast<std::size_t>(Reject::kPinned)];
    } else if (const auto fact = stack_refusal(request, FactGroup::kRemat, layout)) {
      stats.refuse(*fact);
    } else {
      out.push_back(recipe);
    }
  };
  for (const bool part : {false, true}) {
    for (int r = part ? 1 : 0; r < kRematCount; ++r) {
      for (int l = 0; l < kLossCount; ++l) offer({static_cast<Remat>(r), part, static_cast<LossKind>(l)});
    }
  }
  return out;
}

Layout sharded(const Layout& branch, const StateSharding& sharding) {
  Layout out = branch;
  out.zero = sharding.zero;
  out.fsdp = sharding.fsdp;
  out.dp = branch.dp / sharding.fsdp;
  return out;
}

}  // namespace scalecalc
