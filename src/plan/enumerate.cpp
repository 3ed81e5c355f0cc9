// Enumerates the families of layouts and their members, for the search. Divisibility rules are those of the launchers
// a plan must start in: Megatron-LM validate_args (heads, KV heads, sequence, microbatches, experts) and torchtitan's
// and MaxText's mesh rules, which agree on them.
#include "plan/enumerate.h"

#include <algorithm>
#include <cmath>

#include "base/divisors.h"
#include "model/sharding.h"
#include "plan/ways_to_fit.h"

namespace scalecalc {
namespace {

bool is_attention(MixerKind mixer) { return attends(mixer); }

bool within(const std::optional<std::int64_t>& fix, const std::optional<std::int64_t>& max, std::int64_t value) {
  return (!fix || *fix == value) && (!max || value <= *max);
}

void sort_unique(std::vector<std::int64_t>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

}  // namespace

Space::Space(const PlanRequest& request, SearchStats& stats)
    : request_(request), stats_(stats), facts_(request), dealer_(*request.model, request.workload.runtime.stages) {
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
    if (!within(request_.fix.tp, request_.max.tp, tp)) {
      cut(Reject::kPinned);
    } else if (!undivided_heads(*request_.model, tp).empty()) {
      cut(Reject::kHeads);
    } else if (!undivided_widths(*request_.model, tp).empty()) {
      cut(Reject::kWidth);
    } else {
      family.layout.tp = tp;
      context(family, chips / tp);
    }
  }
}

void Space::context(Family& family, std::int64_t chips) {
  for (const std::int64_t cp : divisors(chips)) {
    if (!within(request_.fix.cp, request_.max.cp, cp)) {
      cut(Reject::kPinned);
    } else if (cp > 1 && request_.workload.seq % (2 * cp) != 0) {
      cut(Reject::kSequence);  // causal load balancing cuts the sequence into 2 cp pieces
    } else {
      family.layout.cp = cp;
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
    if (fix && *fix != comm) {
      cut(Reject::kPinned);
    } else if (!exchanges(comm, family.layout)) {
      cut(Reject::kContext);
    } else {
      family.layout.cp_comm = comm;
      experts(family);
    }
  }
}

/// A ring needs keys and values to pass on; Ulysses gives every rank whole heads, so it needs layers of plain attention
/// whose heads divide by the ranks of both dimensions.
bool Space::exchanges(CpComm comm, const Layout& layout) const {
  const auto any = [&](auto&& has) {
    return std::any_of(request_.model->kinds.begin(), request_.model->kinds.end(), has);
  };
  switch (comm) {
    case CpComm::kAllGather: return true;
    case CpComm::kRing: return any([](const LayerKind& k) { return is_attention(k.mixer); });
    case CpComm::kUlysses: break;
  }
  return all_plain_attention(*request_.model) && undivided_heads(*request_.model, layout.tp * layout.cp).empty();
}

const std::vector<Split>& Space::splits_of(std::int64_t chips) {
  const auto [at, added] = splits_.try_emplace(chips);
  if (!added) return at->second;
  for (const std::int64_t pp : divisors(chips)) {
    if (!within(request_.fix.pp, request_.max.pp, pp)) {
      cut(Reject::kPinned);
    } else if (pp > request_.model->layers()) {
      cut(Reject::kStages);
    } else {
      batch(pp, chips / pp, at->second);
    }
  }
  return at->second;
}

/// Sequences per data rank: the count just below and just above the batch asked for, if near enough.
void Space::batch(std::int64_t pp, std::int64_t data, std::vector<Split>& out) {
  if (!data_allowed(data)) return cut(Reject::kPinned);
  const double wanted = request_.workload.batch_seqs;
  const double tolerance = request_.workload.batch_tolerance;
  const double each = wanted / static_cast<double>(data);
  if (std::ceil(each - 1e-9) < 1 || wanted * (1 + tolerance) < static_cast<double>(data)) {
    return cut(Reject::kBatchSmall);
  }
  bool any = false;
  const auto low = static_cast<std::int64_t>(std::floor(each + 1e-9));
  const auto high = static_cast<std::int64_t>(std::ceil(each - 1e-9));
  for (const std::int64_t sequences : {low, high}) {
    if (sequences < 1 || (sequences == high && high == low && any)) continue;
    if (std::abs(static_cast<double>(sequences * data) - wanted) > tolerance * wanted) continue;
    any = true;
    pipelines(pp);
    if (!pipelines_.at(pp).all.empty()) out.push_back({pp, data, sequences});
  }
  if (!any) cut(Reject::kBatchUneven);
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
      } else if (moe.d_ff % etp != 0 || std::none_of(family.splits->begin(), family.splits->end(), [&](const Split& s) {
                   return experts_divide(family.layout, s);
                 })) {
        cut(Reject::kExperts);
      } else {
        sequence_sharding(family);
      }
    }
  }
}

/// The expert group folds over the data, context and (with etp = 1) tensor ranks.
bool Space::experts_divide(const Layout& layout, const Split& split) const {
  return split.data * layout.cp * (layout.tp / layout.etp) % layout.ep == 0;
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
    if (sp && (request_.workload.seq / l.cp) % l.tp != 0) {
      cut(Reject::kSequence);
      continue;
    }
    // Expert routing works on sequence shards: Megatron-LM requires them when both tensor and expert ranks exist.
    if (!sp && l.tp > 1 && l.ep > 1) continue;
    l.sp = sp;
    if (!refused(FactGroup::kInner, l)) microbatches(family);
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
      if (experts_divide(l, split)) of_splits.push_back(split.sequences);
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
    if (schedule != Schedule::kInterleaved) {
      if (!plain) {
        cut(Reject::kPinned);
      } else if (schedule == Schedule::kDualPipe && pp % 2 != 0) {
        cut(Reject::kStages);
      } else {
        offer({schedule, 1}, pp, out);
      }
    }
    if (gpipe || schedule == Schedule::kInterleaved) chunked(schedule, pp, out);
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
    pipeline.split = ends;
    if (ends.chosen() && dealer_.deal(pp, pipeline.vpp, ends).empty()) {
      cut(Reject::kStages);
      continue;
    }
    const Layout layout{.pp = pp, .vpp = pipeline.vpp, .schedule = pipeline.schedule, .split = ends};
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

/// Chunks must divide the layers, or the layers with embedding, head and MTP modules counted as one each.
void Space::chunked(Schedule schedule, std::int64_t pp, std::vector<Pipeline>& out) {
  const std::int64_t layers = request_.model->layers();
  const std::int64_t with_ends = layers + 2 + request_.model->mtp_layers;
  for (std::int64_t vpp = 2; pp * vpp <= with_ends; ++vpp) {
    const std::int64_t chunks = pp * vpp;
    if (!within(request_.fix.vpp, request_.max.vpp, vpp)) {
      cut(Reject::kPinned);
    } else if (chunks > layers + 2 || (layers % chunks != 0 && with_ends % chunks != 0 && (layers + 2) % chunks != 0)) {
      cut(Reject::kStages);
    } else {
      offer({schedule, vpp}, pp, out);
    }
  }
}

bool Space::place(const Split& split, Layout& layout, SearchStats& stats) const {
  const std::int64_t micro = layout.micro_batch_seqs;
  if (split.sequences % micro != 0) return false;  // another family's member
  if (!experts_divide(layout, split)) {
    ++stats.rejected[static_cast<std::size_t>(Reject::kExperts)];
    return false;
  }
  layout.pp = split.pp;
  layout.dp = split.data;
  layout.grad_accum = split.sequences / micro;
  if (within(request_.fix.grad_accum, request_.max.grad_accum, layout.grad_accum)) return true;
  ++stats.rejected[static_cast<std::size_t>(Reject::kPinned)];
  return false;
}

/// Microbatches that visit a stage's chunks in turn must come in groups of pp; DualPipe feeds as many from either end
/// and needs at least pp of them from each (the DualPipe implementation's own checks).
bool Space::runs(const Pipeline& pipeline, const Layout& layout, std::uint64_t count, SearchStats& stats) const {
  const bool interleaves = pipeline.vpp == 1 || layout.grad_accum % layout.pp == 0;
  const bool pairs =
      pipeline.schedule != Schedule::kDualPipe || (layout.grad_accum % 2 == 0 && layout.grad_accum >= 2 * layout.pp);
  if (interleaves && pairs) return true;
  stats.rejected[static_cast<std::size_t>(Reject::kMicrobatches)] += count;
  return false;
}

/// Only expert ranks exchange, and there must be a second microbatch to compute meanwhile. DualPipe always does it.
bool Space::expert_overlap(bool on, const Layout& layout, std::uint64_t count, SearchStats& stats) const {
  const bool dual = layout.schedule == Schedule::kDualPipe;
  if (layout.ep == 1) return !on;
  const bool runs = dual ? on : !on || layout.grad_accum > 1;
  const bool pinned = request_.fix.ep_overlap.value_or(on) != on || (on && !request_.max.ep_overlap.value_or(true));
  if (runs && pinned) stats.rejected[static_cast<std::size_t>(Reject::kPinned)] += count;
  if (!runs && on && request_.fix.ep_overlap) stats.rejected[static_cast<std::size_t>(Reject::kMicrobatches)] += count;
  return runs && !pinned;
}

std::vector<StateSharding> Space::shardings(const Branch& member, SearchStats& stats) const {
  const Layout& branch = member.layout;
  const LayoutFilter& fix = request_.fix;
  const LayoutFilter& max = request_.max;
  const std::int64_t data = branch.dp;
  std::vector<StateSharding> out;
  const bool asked = facts_.on_sharding(member.facts) != 0;
  const auto offer = [&](std::uint8_t zero, std::int64_t fsdp) {
    if (!within(fix.zero, max.zero, zero) || !within(fix.fsdp, max.fsdp, fsdp) ||
        !within(fix.dp, max.dp, data / fsdp)) {
      ++stats.rejected[static_cast<std::size_t>(Reject::kPinned)];
      return;
    }
    const std::int64_t expert_ranks = fsdp * branch.cp * (branch.tp / branch.etp);
    if ((zero == 3 || fsdp > 1) && branch.ep > 1 && expert_ranks % branch.ep != 0) {
      ++stats.rejected[static_cast<std::size_t>(Reject::kExperts)];
      return;
    }
    if (asked) {
      if (const auto fact = stack_refusal(request_, FactGroup::kSharding, sharded(branch, {zero, fsdp}))) {
        return stats.refuse(*fact);
      }
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
